"""The binder: resolves names and types of an AST and produces a logical plan.

    AST  ──►  names are resolved     Scope, Relation, Level       names/, tables/
              types are inferred     Unknown → a type             expressions/
              clauses are ordered    FROM … LIMIT as a plan       queries/, changes/
         ──►  bound expressions in a plan, fully resolved

Everything is bound in one pass; afterwards `queries.grouping` rewrites expressions in terms of the
keys of GROUP BY. The binder optimizes nothing: a plan says what the statement says.

Invariants: only a QserverError comes out, with its position if it has one. Every column of a plan
names a source that is produced below it, or, in a subquery, around it. A literal's value is read
only through `Literals.value`, which makes the value part of the fingerprint.

There is no separate pass for names, because types decide what names of functions and operators
mean.
"""

from __future__ import annotations

from qserver.sql.binder.clauses import Clause as Clause
from qserver.sql.binder.expressions.literals import Literals as Literals
from qserver.sql.binder.expressions.literals import RepeatedLiteralPinned as RepeatedLiteralPinned
from qserver.sql.binder.names.type_names import bind_type as bind_type
from qserver.sql.binder.statements import Bound as Bound
from qserver.sql.binder.statements import bind as bind
