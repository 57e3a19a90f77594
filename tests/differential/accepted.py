"""The differences that are accepted, each a named rule with its reason.

Every name stands with the same reason in docs/sql.md, and a test compares the two. A rule is as
narrow as it can be told apart: what it hides is not looked at again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.differential.comparison import Difference, same_rows
from tests.differential.engines import TIMED_OUT, Outcome

Row = tuple[str | None, ...]
FLOATS: Final = ("real", "double precision", "real[]", "double precision[]")
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)
DATA_EXCEPTION: Final = "22"


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    reason: str
    accepts: Callable[[Difference], bool]


def _last_digit(difference: Difference) -> bool:
    """The same rows, if floating point numbers are compared by their first digits only."""
    if difference.sort != "rows":
        return False
    expected, found = difference.expected, difference.found
    if len(expected.rows) != len(found.rows):
        return False
    ordered = difference.step.ordered_by
    return same_rows(_rounded(expected), _rounded(found), ordered)


def _rounded(outcome: Outcome) -> tuple[Row, ...]:
    return tuple(
        tuple(
            _round_text(value) if value is not None and name in FLOATS else value
            for value, name in zip(row, outcome.types, strict=True)
        )
        for row in outcome.rows
    )


def _round_text(text: str) -> str:
    def shorter(match: re.Match[str]) -> str:
        number = float(match[0])
        if not math.isfinite(number):
            return match[0]
        return "0" if abs(number) < 1e-12 else f"{number:.11g}"

    return NUMBER.sub(shorter, text)


def _order_of_evaluation(difference: Difference) -> bool:
    """One side met a value that it refuses, the other did not look at it or met another first."""
    codes = [difference.expected.error, difference.found.error]
    if not difference.sort.startswith("error"):
        return False
    return all(code is None or code.startswith(DATA_EXCEPTION) for code in codes) and (
        len(re.findall(r"\(", difference.step.sql)) > 2
    )


RULES: Final = (
    Rule(
        "last_digit",
        "floating point results may differ in their last digits: the mathematical library of the"
        " system computes them, and the order of additions is not defined",
        _last_digit,
    ),
)


def accepted_by(difference: Difference) -> Rule | None:
    return next((rule for rule in RULES if rule.accepts(difference)), None)


def timed_out(difference: Difference) -> bool:
    return TIMED_OUT in (difference.expected.error, difference.found.error)
