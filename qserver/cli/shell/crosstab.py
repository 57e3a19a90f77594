"""\\crosstabview: a result of three columns as a grid.

 v │ h │ d          v │ x │ y
───┼───┼───        ───┼───┼───
 a │ x │ 1    ─►    a │ 1 │ 2
 a │ y │ 2          b │ 3 │
 b │ x │ 3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from qserver.cli.cells import writer_of
from qserver.errors import InvalidRequest
from qserver.values.keys import Row

COLUMNS_MAX: Final = 1600
"""As in psql."""

Table = tuple[tuple[str, ...], tuple[str, ...], list[tuple[Any, ...]]]


def crosstab(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Row], wanted: Sequence[str]
) -> Table:
    """The grid; `wanted` names or numbers its columns: vertical, horizontal, data, sort."""
    down, across, data, sort = _places(columns, wanted)
    write = writer_of(types[across])
    heads: dict[str, Any] = {}
    lines: dict[Any, None] = {}
    cells: dict[tuple[Any, str], Any] = {}
    line_writer = writer_of(types[down])
    names: dict[str, Any] = {}
    for row in rows:
        head = "" if row[across] is None else write(row[across])
        name = None if row[down] is None else line_writer(row[down])
        heads.setdefault(head, None if sort is None else row[sort])
        if len(heads) > COLUMNS_MAX:
            raise InvalidRequest(
                f"\\crosstabview: maximum number of columns ({COLUMNS_MAX}) exceeded"
            )
        lines.setdefault(name, None)
        names.setdefault(name or "", row[down])
        if (name, head) in cells:
            raise InvalidRequest(
                f'\\crosstabview: query result contains multiple data values for row "{name}", '
                f'column "{head}"'
            )
        cells[name, head] = row[data]
    order = list(heads)
    if sort is not None:
        order = sorted(heads, key=lambda head: _sort_key(heads[head]))
    filled = [
        (names[name or ""], *(_cell(cells, (name, head)) for head in order)) for name in lines
    ]
    return (columns[down], *order), (types[down], *(types[data] for _ in order)), filled


def _cell(cells: dict[tuple[Any, str], Any], key: tuple[Any, str]) -> Any:
    return cells.get(key, "")


def _sort_key(value: Any) -> tuple[bool, float]:
    if value is None:
        return True, 0.0
    try:
        return False, float(value)
    except (TypeError, ValueError):
        raise InvalidRequest(f"\\crosstabview: {value!r} is no number to sort by") from None


def _places(columns: Sequence[str], wanted: Sequence[str]) -> tuple[int, int, int, int | None]:
    if len(columns) < 3:
        raise InvalidRequest("\\crosstabview: query must return at least three columns")
    found = [_place(columns, each) for each in wanted]
    down = found[0] if found else 0
    across = found[1] if len(found) > 1 else 1
    if down == across:
        raise InvalidRequest(
            "\\crosstabview: vertical and horizontal headers must be different columns"
        )
    if len(found) > 2:
        data = found[2]
    elif len(columns) == 3:
        data = next(place for place in range(3) if place not in (down, across))
    else:
        raise InvalidRequest(
            "\\crosstabview: data column must be specified when query returns more than three "
            "columns"
        )
    return down, across, data, found[3] if len(found) > 3 else None


def _place(columns: Sequence[str], named: str) -> int:
    if named.isdigit():
        if not 1 <= int(named) <= len(columns):
            raise InvalidRequest(
                f"\\crosstabview: column number {named} is out of range 1..{len(columns)}"
            )
        return int(named) - 1
    name = named[1:-1].replace('""', '"') if named.startswith('"') else named.lower()
    places = [place for place, column in enumerate(columns) if column == name]
    if len(places) != 1:
        what = "column name not found" if not places else "ambiguous column name"
        raise InvalidRequest(f'\\crosstabview: {what}: "{named}"')
    return places[0]
