"""A query that is bound, but whose result columns may still lack a type.

SELECT 'a' has a column of unknown type. Alone it is text; in a UNION it is what the other side is;
in INSERT it is what the column is. So a query is prepared first, and finished when its surroundings
have said which types they want.

    Prepared   names and types of the columns, UNKNOWN where nothing decided
    Finished   a plan that makes rows of `source`, with `columns`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qserver.sql.binder.operands import Operand
from qserver.sql.plan import OutputColumn, Plan
from qserver.values.types import SqlType


@dataclass(frozen=True, slots=True)
class Finished:
    plan: Plan
    source: int
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """A result column before it is finished. `position` is where its expression stands.

    `operand` is that expression, where it is a single one.
    """

    name: str
    type: SqlType
    position: int
    operand: Operand | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """`complete` makes the plan; it is given the wanted type of each column, or None."""

    outlines: tuple[Outline, ...]
    complete: Callable[[Sequence[SqlType | None]], Finished]

    def finish(self, wanted: Sequence[SqlType | None] | None = None) -> Finished:
        """A column of unknown type becomes what is wanted, or text; a wanted type that another
        column does not have is cast to."""
        return self.complete(wanted or (None,) * len(self.outlines))
