"""The interface between expressions and subqueries, which print each other."""

from __future__ import annotations

from typing import Protocol

from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.expressions import ArrayQuery, Exists, InQuery, Quantified, ScalarQuery


class SubqueryPrinter(Protocol):
    """Prints subqueries inside expressions."""

    def scalar(self, expression: ScalarQuery, rows: RowVariables, /) -> str: ...

    def array(self, expression: ArrayQuery, rows: RowVariables, /) -> str: ...

    def exists(self, expression: Exists, rows: RowVariables, /) -> str: ...

    def in_query(self, expression: InQuery, rows: RowVariables, /) -> str: ...

    def quantified(self, expression: Quantified, rows: RowVariables, /) -> str: ...
