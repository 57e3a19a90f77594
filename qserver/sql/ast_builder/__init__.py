"""The builder: creates AST nodes from grammar rules.

    expressions, functions, types        values
    precedence                           operator precedence
    queries, sources                     SELECT and its clauses, FROM
    changes                              INSERT, UPDATE, DELETE, MERGE
    tables, definitions, alterations     CREATE, DROP, ALTER, COMMENT
    session_statements                   EXPLAIN, SHOW, SET, BEGIN …
    sessions                             PREPARE, DECLARE, FETCH, LOCK, GRANT, LISTEN …

Lark calls a method for each completed rule, so the AST is built from the leaves up, without
recursion. A method has the name of its rule, or the name after `->`. Its children are in the order
of the rule: terminals, results of other methods, and None for a missing `[option]`.
"""

from __future__ import annotations

from qserver.sql.ast_builder.alterations import Alterations
from qserver.sql.ast_builder.changes import Changes
from qserver.sql.ast_builder.definitions import Definitions
from qserver.sql.ast_builder.expressions import Expressions
from qserver.sql.ast_builder.functions import Functions
from qserver.sql.ast_builder.queries import Queries
from qserver.sql.ast_builder.session_statements import SessionStatements
from qserver.sql.ast_builder.sessions import Sessions
from qserver.sql.ast_builder.sources import Sources
from qserver.sql.ast_builder.tables import Tables
from qserver.sql.ast_builder.types import Types


class Builder(
    Expressions,
    Functions,
    Types,
    Queries,
    Sources,
    Changes,
    Tables,
    Definitions,
    Alterations,
    SessionStatements,
    Sessions,
):
    """A method for each rule. It has no state: one builder serves all statements."""
