"""Decides whether the first scan of a page fills its vectors, or the second.

Filling a column costs as much as row code needs for a simple statement, and for numerics and times
several times that. So the first scan of a page fills columns only if row code would take longer
anyway; otherwise it reads rows, and the second scan fills. A page that changes between any two
scans is then never filled in vain. Packed rows are an exception: to unpack one takes thousands of
nanoseconds, and its columns are read without that. All numbers are measured nanoseconds per row.
"""

from __future__ import annotations

from typing import Final

from qserver.sql.vectors.plans import Aggregation
from qserver.sql.vectors.program import Program
from qserver.values import vector_families as families
from qserver.values.vector_families import ColumnVector

FILL: Final = {
    families.INTEGER: 70,
    families.FLOAT: 70,
    families.BOOLEAN: 70,
    families.DATE: 110,
    families.TEXT: 150,
    families.NUMERIC: 320,
    families.TIMESTAMP: 260,
    families.ZONED: 260,
}
ROW: Final = 40
STEP: Final = 25
NUMERIC_STEP: Final = 200
SORTED_ROW: Final = 150
LOOKED_UP: Final = 80
KEY: Final = 60

WORTH: Final = 0.7
"""What filling may cost of the time of row code."""


def pays_at_once(columns: tuple[ColumnVector, ...], by_rows: int) -> bool:
    return sum(FILL[column.family] for column in columns) <= WORTH * by_rows


def row_cost(*programs: Program) -> int:
    """Return the cost of the same computation in row code."""
    cost = ROW
    for program in programs:
        for step, family in zip(program.steps, program.families, strict=True):
            if step.operation not in ("column", "joined_column", "constant"):
                cost += NUMERIC_STEP if family == families.NUMERIC else STEP
    return cost


def calls_cost(made: Aggregation) -> int:
    cost = KEY * len(made.keys)
    for call in made.calls:
        cost += NUMERIC_STEP if call.family == families.NUMERIC else STEP
    return cost
