"""Maps sources to the variables that hold their current rows."""

from __future__ import annotations

from collections.abc import Mapping

from qserver.sql.expressions import Column, Expression


class RowVariables:
    """The variable of each source's current row, or variables by column.

    If the width of a row is known, an expression list of all its columns is the row itself.
    """

    __slots__ = ("_columns", "_rows", "_widths")

    def __init__(
        self,
        rows: Mapping[int, str] | None = None,
        columns: Mapping[tuple[int, int], str] | None = None,
        widths: Mapping[int, int] | None = None,
    ) -> None:
        self._rows = dict(rows or {})
        self._columns = dict(columns or {})
        self._widths = dict(widths or {})

    def with_row(self, source: int, name: str, width: int | None = None) -> RowVariables:
        widths = self._widths if width is None else {**self._widths, source: width}
        return RowVariables({**self._rows, source: name}, self._columns, widths)

    def with_column(self, column: Column, name: str) -> RowVariables:
        """Return the variables with one of a value that no row has."""
        columns = {**self._columns, (column.source, column.position): name}
        return RowVariables(self._rows, columns, self._widths)

    def unused_source(self) -> int:
        """Return a source for `with_column`."""
        return -1 - len(self._columns)

    def whole_row(self, expressions: tuple[Expression, ...]) -> str | None:
        """Return the variable that holds exactly these expressions, if they are one whole row."""
        first = expressions[0] if expressions else None
        if not isinstance(first, Column) or self._widths.get(first.source) != len(expressions):
            return None
        for position, each in enumerate(expressions):
            if not isinstance(each, Column) or each.source != first.source:
                return None
            if each.position != position or (each.source, position) in self._columns:
                return None
        return self._rows[first.source]

    def row(self, source: int) -> str:
        return self._rows[source]

    def column(self, column: Column) -> str:
        name = self._columns.get((column.source, column.position))
        if name is not None:
            return name
        return f"{self._rows[column.source]}[{column.position}]"
