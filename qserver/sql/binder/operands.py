"""What an expression is while it is being bound: mostly an expression, sometimes less than one.

    Unknown     'abc', NULL or a parameter: which type it has is for its surroundings to say
    RowValue    (a, b): in comparisons, IN, IS NULL and assignments it is taken apart (`rows`)

`coercion` turns both into expressions where one is needed. Neither leaves the binder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from qserver.errors import QserverError
from qserver.sql.expressions import Expression
from qserver.values.types import RECORD, UNKNOWN, SqlType


@dataclass(frozen=True, slots=True)
class Unknown:
    """A literal by its index, a parameter by its name, or NULL: None.

    `text` is what a literal of a view or DEFAULT says, which is known now.
    """

    name: int | str | None
    position: int
    text: str | None = None
    nullable: bool = True

    @property
    def type(self) -> SqlType:
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class RowValue:
    """`(a, b)`, or all columns of a table that is named like a column.

    Such a row has `names`, and may be missing: no row of an outer join.
    """

    items: tuple[Operand, ...]
    position: int
    names: tuple[str, ...] = ()
    may_be_missing: bool = False

    @property
    def type(self) -> SqlType:
        return RECORD

    @property
    def nullable(self) -> bool:
        return True


Operand: TypeAlias = Expression | Unknown | RowValue


def located(error: QserverError, position: int) -> QserverError:
    """The error with the place in the text, unless it has one already. Positions count from 1."""
    if error.position is None and position >= 0:
        error.position = position + 1
    return error
