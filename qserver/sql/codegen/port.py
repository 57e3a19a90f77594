"""The interface between expressions and subqueries, which print each other."""

from __future__ import annotations

from typing import Protocol

from qserver.sql.codegen.current_rows import Rows
from qserver.sql.expressions import ArrayQuery, Exists, InQuery, Quantified, ScalarQuery


class SubqueryPrinter(Protocol):
    """Prints subqueries inside expressions."""

    def scalar(self, expression: ScalarQuery, rows: Rows, /) -> str: ...

    def array(self, expression: ArrayQuery, rows: Rows, /) -> str: ...

    def exists(self, expression: Exists, rows: Rows, /) -> str: ...

    def in_query(self, expression: InQuery, rows: Rows, /) -> str: ...

    def quantified(self, expression: Quantified, rows: Rows, /) -> str: ...
