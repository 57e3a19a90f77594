"""The binder: from what a statement says to what it means.

    syntax  ──►  names are looked up    Scope, Relation, Level       names, sources, joins
                 types are decided      Unknown → a type             coercion, calling, operators
                 clauses are ordered    FROM … LIMIT as a plan       select, grouping, ordering
            ──►  bound expressions in a plan, with nothing left to look up

Everything is bound in one pass, and one thing is done afterwards: after GROUP BY, expressions are
rewritten in terms of its keys (`grouping`). Nothing is optimized here, so that a plan says what
the statement said; conditions move and joins are ordered in `rules`.

Invariants: only a QserverError comes out, with the place in the text where there is one. Every
column of a plan names a source that is made below it, or, in a subquery, around it. A literal's
value is looked at only through `Literals.value`, which makes it part of the fingerprint.

Not done, and why: names are not resolved into a tree of their own first, because types decide what
names mean (a function's, an operator's), so a second pass would do the same work again.
"""

from __future__ import annotations

from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.literals import Literals, RepeatedLiteralPinned
from qserver.sql.binder.statements import Bound, bind
from qserver.sql.binder.type_names import bind_type

__all__ = [
    "Bound",
    "Clause",
    "Literals",
    "RepeatedLiteralPinned",
    "bind",
    "bind_type",
]
