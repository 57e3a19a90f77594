"""What a planner may know of tables beyond their definitions.

Nothing but the number of rows has to be known; `None` means that something is not. What is known
follows from the rows alone, so the same statement gets the same plan whatever ran before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from qserver.sql.expressions import Cast, Constant, Expression, Folded, Slot
from qserver.values.distinct import Distinct
from qserver.values.schema import Table

End: TypeAlias = tuple[Any, bool] | None
"""An end of a range of values, and whether it belongs to the range; None: the range is open."""

UNKNOWN: Final = object()
"""In place of a value that only an execution has."""


class Statistics(ABC):
    """Knows nothing but the number of rows; others know more."""

    @abstractmethod
    def row_count(self, table: Table) -> int:
        """Return the number of rows of a table."""

    def distinct(self, table: Table, positions: tuple[int, ...]) -> Distinct | None:
        """Return how many values columns have together."""
        return None

    def share_equal(self, table: Table, values: Mapping[int, Any]) -> float | None:
        """Return the share of rows that hold these values, by the positions of their columns."""
        return None

    def share_between(self, table: Table, position: int, low: End, high: End) -> float | None:
        """Return the share of rows whose value lies between two ends."""
        return None

    def value(self, expression: Expression) -> Any:
        """Return the value that an expression without columns will have, or UNKNOWN."""
        return UNKNOWN

    @property
    def of_execution(self) -> Statistics:
        """The same, with the values of the execution that is planned. A plan is chosen without
        them, because it serves others, too."""
        return self


class Sizes(Statistics):
    """Knows the number of rows by a function."""

    def __init__(self, row_count: Callable[[Table], int]) -> None:
        self._row_count = row_count

    def row_count(self, table: Table) -> int:
        return self._row_count(table)


def value_of_literal(expression: Expression, literal: Callable[[int], Any]) -> Any:
    """Return the value of an expression that is a literal, perhaps cast; otherwise UNKNOWN."""
    match expression:
        case Constant():
            return expression.value
        case Folded(guards=()):
            return value_of_literal(expression.expression, literal)
        case Slot(name=int() as index, convert=convert):
            given = literal(index)
            return given if convert is None else convert(given)
        case Cast():
            value = value_of_literal(expression.operand, literal)
            return value if value is UNKNOWN or value is None else expression.function(value)
    return UNKNOWN
