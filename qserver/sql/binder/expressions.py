"""Which function binds which kind of syntax."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from qserver.sql import syntax
from qserver.sql.binder.binding import ExpressionBinder
from qserver.sql.binder.calls import bind_call
from qserver.sql.binder.fields import bind_field
from qserver.sql.binder.names import bind_name
from qserver.sql.binder.operators import (
    bind_between,
    bind_in_list,
    bind_like,
    bind_operator,
)
from qserver.sql.binder.scalars import (
    bind_array_items,
    bind_case,
    bind_cast,
    bind_collate,
    bind_constant,
    bind_default,
    bind_is,
    bind_literal,
    bind_named_argument,
    bind_parameter,
    bind_row,
    bind_star,
    bind_subscript,
    bind_word,
)
from qserver.sql.binder.subqueries import (
    bind_array_query,
    bind_exists,
    bind_in_query,
    bind_quantified,
    bind_scalar_query,
)

EXPRESSION_BINDERS: Final[Mapping[type, ExpressionBinder]] = MappingProxyType(
    {
        syntax.Literal: bind_literal,
        syntax.Constant: bind_constant,
        syntax.Parameter: bind_parameter,
        syntax.Name: bind_name,
        syntax.Star: bind_star,
        syntax.Operator: bind_operator,
        syntax.Like: bind_like,
        syntax.Is: bind_is,
        syntax.Between: bind_between,
        syntax.InList: bind_in_list,
        syntax.InQuery: bind_in_query,
        syntax.Exists: bind_exists,
        syntax.ScalarQuery: bind_scalar_query,
        syntax.Quantified: bind_quantified,
        syntax.ArrayQuery: bind_array_query,
        syntax.Case: bind_case,
        syntax.Cast: bind_cast,
        syntax.Call: bind_call,
        syntax.Word: bind_word,
        syntax.Row: bind_row,
        syntax.ArrayItems: bind_array_items,
        syntax.Subscript: bind_subscript,
        syntax.Field: bind_field,
        syntax.NamedArgument: bind_named_argument,
        syntax.Default: bind_default,
        syntax.Collate: bind_collate,
    }
)
