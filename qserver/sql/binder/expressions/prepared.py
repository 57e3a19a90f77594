"""A bound query whose result columns may still lack a type.

    Prepared   names and types of the columns, UNKNOWN where undetermined
    Finished   a plan that produces rows of `source`, with `columns`

The column of SELECT 'a' is text if it is alone; in a UNION it has the type of the other side, in
INSERT that of the column. So a query is finished when its context has determined the types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qserver.sql.binder.expressions.operands import Operand
from qserver.sql.plan import OutputColumn, Plan
from qserver.values.types import SqlType


@dataclass(frozen=True, slots=True)
class Finished:
    plan: Plan
    source: int
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class PreparedColumn:
    """A result column before it is finished. `position` is that of its expression.

    `operand` is the expression, if there is a single one.
    """

    name: str
    type: SqlType
    position: int
    operand: Operand | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """`complete` creates the plan from the wanted type of each column, or None.

    `plain`: the rows are those of FROM and WHERE, so a constant column is a constant anywhere.
    """

    columns: tuple[PreparedColumn, ...]
    complete: Callable[[Sequence[SqlType | None]], Finished]
    plain: bool = False

    def finish(self, wanted: Sequence[SqlType | None] | None = None) -> Finished:
        """Create the plan: a column of unknown type gets the wanted type, or text; a column of
        another type is cast to the wanted one."""
        return self.complete(wanted or (None,) * len(self.columns))
