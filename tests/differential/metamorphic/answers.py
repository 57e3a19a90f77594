"""What a way of running a query came to, and whether two ways came to the same.

Rows are compared as multisets of values that SQL holds equal: `1.0` is `1.00`, and doubles may
differ in their last digits, because a sum depends on the order of its addends. Types are compared
too. The order of rows is compared only by the relation that speaks of it.

An error is part of an answer. Two ways may differ in it only by one of the `EXCEPTIONS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, Final

from qserver.values.keys import key_element
from qserver.values.types import SqlType

Row = tuple[Any, ...]

EXCEPTIONS: Final[Mapping[str, str]] = {
    "evaluation order": "SQL leaves open which of a query's expressions are evaluated, and on which"
    " rows, where some of them raise: a plan that filters first raises less",
    "time": "a plan without rules may need more time or memory than a statement gets",
    "keys": "columns that depend on a grouped primary key need not be grouped: without the key they"
    " must be",
}
"""Why one way may raise an error where another gives rows, or another error."""

_BY_EVALUATION: Final = ("22", "21000", "23514")
"""Data exceptions, a scalar subquery with several rows: they depend on what is evaluated."""
_OF_VALUES: Final = "multidimensional arrays is not supported"
"""The end of messages with 0A000 that are about a value, and not about a statement."""
_BY_TIME: Final = ("57014", "53200", "54000", "54001")

OF_OTHER_KEYS: Final = (
    "other keys",
    "other keys, other sizes",
    "no keys",
    "no keys, without rules",
)
"""Ways to run a text over tables that have other keys, or none."""

INTERNAL: Final = "XX000"
"""An exception that is no error of the user's: wrong, however many ways agree in it."""

_DIGITS: Final = 9
"""Significant digits to which doubles must agree."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows with their types, or the code and message of an error."""

    rows: Sequence[Row] = ()
    types: tuple[SqlType, ...] = ()
    error: str | None = None
    message: str = ""

    def __str__(self) -> str:
        if self.error is not None:
            return f"error {self.error}: {self.message}"
        shown = ", ".join(map(repr, self.rows[:6]))
        return f"{len(self.rows)} rows: {shown}{', …' if len(self.rows) > 6 else ''}"


def exception_for(first: Answer, second: Answer, way: str = "") -> str | None:
    """The name of the exception by which two answers, one of them an error, may differ.

    `way` is that of the second.
    """
    if way in OF_OTHER_KEYS and first.error is None and second.error == "42803":
        return "keys"
    errors = [each for each in (first, second) if each.error is not None]
    codes = ["22" if each.message.endswith(_OF_VALUES) else str(each.error) for each in errors]
    if any(code in _BY_TIME for code in codes):
        return "time"
    if codes and all(code.startswith(_BY_EVALUATION) for code in codes):
        return "evaluation order"
    return None


def counted(rows: Iterable[Row]) -> Counter[Row]:
    """The multiset of rows, each as what it is equal to."""
    return Counter(tuple(map(_comparable, row)) for row in rows)


def _comparable(value: Any) -> Any:
    if type(value) is float and value == value:
        return float(f"{value:.{_DIGITS}g}") + 0.0
    return key_element(value)


def same_rows(first: Sequence[Row], second: Sequence[Row]) -> bool:
    """Whether two results hold equal rows equally often, in whatever order."""
    if len(first) != len(second):
        return False
    one, other = counted(first), counted(second)
    if one == other:
        return True
    # A double near the border of two roundings may be rounded to either side.
    missing, added = list((one - other).elements()), list((other - one).elements())
    return all(any(_close(row, each) for each in added) for row in missing)


def _close(first: Row, second: Row) -> bool:
    return all(
        isclose(one, other, rel_tol=10.0**-_DIGITS)
        if type(one) is float and type(other) is float
        else one == other
        for one, other in zip(first, second, strict=True)
    )


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows as comparable values, in the order in which they came."""
    return [tuple(map(_comparable, row)) for row in rows]
