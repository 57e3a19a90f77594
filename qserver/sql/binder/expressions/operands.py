"""Operands: the results of binding, mostly expressions, sometimes less.

    Unknown     'abc', NULL or a parameter: the context determines its type
    RowValue    (a, b): comparisons, IN, IS NULL and assignments split it (`rows`)

`coercion` turns both into expressions. Neither leaves the binder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from qserver.errors import QserverError
from qserver.sql.binder.names.relations import AnyRelation
from qserver.sql.expressions import Expression
from qserver.values.types import RECORD, UNKNOWN, SqlType, record_of


@dataclass(frozen=True, slots=True)
class Unknown:
    """A literal by its index, a parameter by its name, or NULL: None.

    `text` is the known text of a literal in a view or DEFAULT. A run has a `count` of more than 1
    and the name of its first item.
    """

    name: int | str | None
    position: int
    text: str | None = None
    nullable: bool = True
    count: int = 1

    @property
    def type(self) -> SqlType:
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class RowValue:
    """`(a, b)`, or all columns of a table that is named like a column.

    The row of a table has `names`, those of its type, and may be missing after an outer join.
    """

    items: tuple[Operand, ...]
    position: int
    names: tuple[str, ...] = ()
    may_be_missing: bool = False
    relation: AnyRelation | None = None
    """What it is the row of; its fields are found by the names that the relation has in FROM."""
    present: Expression | None = None
    """What is NULL only if the row is missing. Without it, a row of nothing but NULL is."""
    oid: int = 0
    """The oid of its type, if that has a name."""

    @property
    def type(self) -> SqlType:
        """Return its type with its fields, unless a parameter among them has none yet."""
        if any(isinstance(item, Unknown) and isinstance(item.name, str) for item in self.items):
            return RECORD
        names = self.names or [f"f{number}" for number in range(1, len(self.items) + 1)]
        types = [item.type for item in self.items]
        return record_of(tuple(zip(names, types, strict=True)), self.oid)

    @property
    def nullable(self) -> bool:
        return True


Operand: TypeAlias = Expression | Unknown | RowValue


def located(error: QserverError, position: int) -> QserverError:
    """Add the position in the text to an error without one. Positions count from 1."""
    if error.position is None and position >= 0:
        error.position = position + 1
    return error
