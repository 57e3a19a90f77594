"""The interfaces between expressions and what they are made of, which print each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.source import Source
from qserver.sql.expressions import (
    ArrayQuery,
    Exists,
    Expression,
    InQuery,
    Quantified,
    ScalarQuery,
)


class ExpressionPrinter(Protocol):
    """Prints expressions, for constants and lists inside of them."""

    source: Source

    def value(self, expression: Expression, rows: RowVariables, /) -> str: ...

    def truth(self, expression: Expression, rows: RowVariables, /) -> str: ...

    def falsity(self, expression: Expression, rows: RowVariables, /) -> str: ...

    def items(self, expressions: Sequence[Expression], rows: RowVariables, /) -> str: ...


class SubqueryPrinter(Protocol):
    """Prints subqueries inside expressions."""

    def scalar(self, expression: ScalarQuery, rows: RowVariables, /) -> str: ...

    def array(self, expression: ArrayQuery, rows: RowVariables, /) -> str: ...

    def exists(self, expression: Exists, rows: RowVariables, /) -> str: ...

    def in_query(self, expression: InQuery, rows: RowVariables, /) -> str: ...

    def values_found(self, expression: InQuery, rows: RowVariables, /) -> str: ...

    def quantified(self, expression: Quantified, rows: RowVariables, /) -> str: ...
