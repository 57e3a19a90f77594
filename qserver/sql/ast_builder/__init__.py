"""The builder: from what the grammar recognizes to AST nodes.

Lark calls a method for each rule as soon as it is complete, with what the parts have become. So the
tree is built from the leaves up, without recursion, and there is no tree of Lark's in between. A
method is called as its rule, or as the name after `->`. Its children stand in the order of the
rule: terminals, what other methods have made, and None for a missing `[option]`.

    expressions, functions, types        what stands for a value
    precedence                           which operator takes which operands
    queries, sources                     SELECT and what is around it, FROM
    changes                              INSERT, UPDATE, DELETE, MERGE
    tables, definitions, alterations     CREATE, DROP, ALTER, COMMENT
    session_statements                     EXPLAIN, SHOW, SET, BEGIN …
"""

from __future__ import annotations

from qserver.sql.ast_builder.alterations import Alterations
from qserver.sql.ast_builder.changes import Changes
from qserver.sql.ast_builder.definitions import Definitions
from qserver.sql.ast_builder.expressions import Expressions
from qserver.sql.ast_builder.functions import Functions
from qserver.sql.ast_builder.queries import Queries
from qserver.sql.ast_builder.session_statements import SessionStatements
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
):
    """A method for each rule. It keeps nothing: one builder serves all statements at once."""
