"""Makes the rows that a vector tree gives to row code: tuples, with None for what nobody reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from qserver.sql.vectors.tree_digits import OwnDigits
from qserver.sql.vectors.tree_rows import TreeRows
from qserver.sql.vectors.trees import Output
from qserver.values import vector_families as families
from qserver.values.vectors import Vector, values_of

ROWS_AT_ONCE: Final = 256
AVERAGES_AT_ONCE: Final = 128


def averages_of(rows: TreeRows, outputs: tuple[Output, ...]) -> int:
    """Return the number of columns whose values are divided one by one."""
    wanted = [each for output in outputs for each in output.columns]
    return sum([isinstance(rows.joined_column(each), OwnDigits) for each in wanted])


def answers(rows: TreeRows, outputs: tuple[Output, ...], averages: int) -> Iterator[list[Any]]:
    """Yield the rows, one of each output together, some at a time."""
    at_once = max(1, AVERAGES_AT_ONCE // averages) if averages else ROWS_AT_ONCE
    for piece in rows.pieces(at_once):
        sides = [_rows_of(piece, output) for output in outputs]
        yield sides[0] if len(sides) == 1 else list(zip(*sides, strict=True))


def _rows_of(rows: TreeRows, output: Output) -> list[tuple[Any, ...]]:
    columns: list[Any] = [[None] * rows.length] * output.width
    for wanted in output.columns:
        found = rows.joined_column(wanted)
        columns[wanted.vector.position] = values_out(found, wanted.vector.family)
    return list(zip(*columns, strict=True))


def values_out(vector: Vector, family: str) -> list[Any]:
    """Return the SQL values of a vector."""
    if isinstance(vector, OwnDigits):
        return list(vector.exact)
    found: list[Any] = vector.values.tolist()
    if vector.nulls is not None:
        present = np.flatnonzero(~vector.nulls)
        if not len(present):
            return [None] * len(found)
        found = np.where(vector.nulls, vector.values[present[0]], vector.values).tolist()
    if family != families.TEXT or vector.words is not None:
        found = values_of(found, family, vector.scale, vector.words)
    if vector.nulls is not None:
        for at in np.flatnonzero(vector.nulls).tolist():
            found[at] = None
    return found
