"""Operands: the results of binding, mostly expressions, sometimes less.

    Unknown     'abc', NULL or a parameter: the context determines its type
    RowValue    (a, b): comparisons, IN, IS NULL and assignments split it (`rows`)

`coercion` turns both into expressions. Neither leaves the binder.
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

    `text` is the known text of a literal in a view or DEFAULT.
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

    The row of a table has `names`, and may be missing after an outer join.
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
    """Add the position in the text to an error without one. Positions count from 1."""
    if error.position is None and position >= 0:
        error.position = position + 1
    return error
