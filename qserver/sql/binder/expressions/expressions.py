"""The table of functions that bind each class of AST expression."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from qserver.sql import ast
from qserver.sql.binder.binding import ExpressionBinder
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.calls import bind_call
from qserver.sql.binder.expressions.operators import (
    bind_between,
    bind_in_list,
    bind_like,
    bind_operator,
)
from qserver.sql.binder.expressions.scalars import (
    bind_array_items,
    bind_case,
    bind_cast,
    bind_collate,
    bind_constant,
    bind_default,
    bind_is,
    bind_key_column,
    bind_literal,
    bind_named_argument,
    bind_parameter,
    bind_row,
    bind_star,
    bind_subscript,
    bind_word,
    refuse_run,
)
from qserver.sql.binder.expressions.subqueries import (
    bind_array_query,
    bind_exists,
    bind_in_query,
    bind_quantified,
    bind_scalar_query,
)
from qserver.sql.binder.names.fields import bind_field
from qserver.sql.binder.names.names import bind_name

EXPRESSION_BINDERS: Final[Mapping[type, ExpressionBinder]] = MappingProxyType(
    {
        ast.Literal: bind_literal,
        ast.Constant: bind_constant,
        ast.Parameter: bind_parameter,
        ast.Run: refuse_run,
        ast.Name: bind_name,
        ast.Star: bind_star,
        ast.Operator: bind_operator,
        ast.Like: bind_like,
        ast.Is: bind_is,
        ast.Between: bind_between,
        ast.InList: bind_in_list,
        ast.InQuery: bind_in_query,
        ast.Exists: bind_exists,
        ast.ScalarQuery: bind_scalar_query,
        ast.Quantified: bind_quantified,
        ast.ArrayQuery: bind_array_query,
        ast.Case: bind_case,
        ast.Cast: bind_cast,
        ast.Call: bind_call,
        ast.Word: bind_word,
        ast.Row: bind_row,
        ast.ArrayItems: bind_array_items,
        ast.Subscript: bind_subscript,
        ast.Field: bind_field,
        ast.NamedArgument: bind_named_argument,
        ast.Default: bind_default,
        ast.Collate: bind_collate,
        ast.KeyColumn: bind_key_column,
        ast.Transform: lambda scope, node: scope.bind_in(Clause.TRANSFORM, node.expression),
    }
)
