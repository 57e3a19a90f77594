"""Answers with the same rows, but for how some of their values are written.

A float by its first digits, a time but for microseconds, a char without blanks, a number by value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Context, Decimal
from functools import partial
from typing import Final

from tests.differential.comparison import Difference, same_rows
from tests.differential.engines import Outcome

Row = tuple[str | None, ...]
FLOATS: Final = ("real", "double precision", "real[]", "double precision[]")
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)
MODIFIER: Final = re.compile(r"\([\d,]+\)|(?<=interval) (?:year|month|day|hour|minute|second).*")
ZONES: Final = ("with", "without")
TIMES: Final = ("interval", *(f"{a} {b} time zone" for a in ("time", "timestamp") for b in ZONES))
SECONDS: Final = re.compile(r"(?<=\d:)\d\d(?:\.\d+)?(?!:)")
MULTIPLIES: Final = re.compile(
    r"\*|\bavg\(|\bpercentile_cont\(|\bregr_\w+\(|\bcorr\(", re.IGNORECASE
)
REGRESSES: Final = re.compile(r"\bregr_\w+\(|\bcorr\(", re.IGNORECASE)
_CONSTANT: Final = r"\(?'?-?[0-9][0-9.e+-]*'?\)?(?:::\w+)?"
_ARGUMENT: Final = r"(?:[^(),']|'[^']*'|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
OVER_A_CONSTANT: Final = re.compile(
    rf"\b(?:regr_\w+|corr)\((?:{_CONSTANT},|{_ARGUMENT}, ?{_CONSTANT}\))", re.IGNORECASE
)
"""A regression, one of whose two arguments is the same number in each row."""
ALL_DIGITS: Final = Context(prec=200_000)
"""A numeric has up to 131072 digits before the point and 16383 after it."""
MICROSECOND: Final = Decimal("0.000001")
MICROSECONDS_OF_DAY: Final = 86_400_000_000
JSONS: Final = ("json", "jsonb")
_SHOWN_CHAR: Final = (
    r"(?=.*(?:::char\b|\b(?:array_agg|min|max|mode|percentile_disc|lag|lead|\w+_value)\())"
)
"""A text that is cast to CHAR, or that an aggregate or a window function shows."""
SHOWN_CHAR: Final = re.compile(_SHOWN_CHAR, re.IGNORECASE | re.DOTALL)
PRINTED_CHAR: Final = re.compile(rf"(?=.*json){_SHOWN_CHAR}", re.IGNORECASE | re.DOTALL)
"""JSON of such a text."""
JOINED_CHAR: Final = re.compile(
    r"(?=.*\b(?:concat(?:_ws)?|format)\()"
    r"(?=.*\b(?:(?:min|max|least|greatest)\(.*::char\b|(?:mode|percentile_disc)\())",
    re.IGNORECASE | re.DOTALL,
)
"""A text that concat or format makes of the least or greatest CHAR, or of one of a group."""
QUOTED_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


def same_but_for_last_digits(difference: Difference) -> bool:
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


def same_but_for_microseconds(difference: Difference) -> bool:
    """The same rows, but for microseconds of times in a statement that multiplies.

    And but for results of regressions that are NULL on one side, or that are over a constant:
    whether the squares of equal values add up to zero, or to what else, depends on the processor,
    too.
    """
    if difference.sort != "rows" or not MULTIPLIES.search(difference.step.sql):
        return False
    expected, found = difference.expected, difference.found
    if len(expected.rows) != len(found.rows):
        return False
    left = Counter(found.rows)
    return all(_taken(row, expected.types, left, difference.step.sql) for row in expected.rows)


def _taken(row: Row, types: tuple[str, ...], left: Counter[Row], sql: str) -> bool:
    """Take a row away that is this one, or beside it."""
    nears = (each for each in (row, *left) if left[each] and _are_near(row, each, types, sql))
    near = next(nears, None)
    if near is None:
        return False
    left[near] -= 1
    return True


def _are_near(one: Row, other: Row, types: tuple[str, ...], sql: str) -> bool:
    return all(
        left == right
        or (name == "double precision" and _are_rests(left, right, sql))
        or (left is not None and right is not None and name in TIMES and _beside(left, right))
        for left, right, name in zip(one, other, types, strict=True)
    )


def _are_rests(one: str | None, other: str | None, sql: str) -> bool:
    """May two results be what rounding leaves of a regression over equal values?"""
    kind = REGRESSES if None in (one, other) else OVER_A_CONSTANT
    return kind.search(sql) is not None


def _beside(one: str, other: str) -> bool:
    """Are two times the same but for what one rounding can make, within the same second?"""
    left, right = SECONDS.search(one), SECONDS.search(other)
    if left is None or right is None or SECONDS.sub("", one) != SECONDS.sub("", other):
        return False
    return abs(Decimal(left[0]) - Decimal(right[0])) <= _rounding(one) * MICROSECOND


def _rounding(text: str) -> int:
    """How many microseconds a product may be off that was rounded once more.

    What is left of the months becomes days, and what is left of the days becomes time. Each of the
    two is a product minus its whole part, so it has the error of the product: half of its last bit.
    """
    parts = {"year": 0, "mon": 0, "day": 0}
    for number, unit in re.findall(r"([+-]?\d+) (year|mon|day)", text):
        parts[unit] = abs(int(number))
    months = math.ulp(12.0 * parts["year"] + parts["mon"] + 1) / 2
    days = math.ulp(parts["day"] + 31.0) / 2
    return 1 + int((30 * months + days) * MICROSECONDS_OF_DAY)


def same_but_for_blanks(difference: Difference) -> bool:
    if difference.sort != "rows":
        return False
    expected, found, step = difference.expected, difference.found, difference.step
    is_printed, is_joined = PRINTED_CHAR.match(step.sql), JOINED_CHAR.match(step.sql)
    is_in_row = "record" in expected.types and SHOWN_CHAR.match(step.sql)
    if not (is_printed or is_joined or is_in_row or "char" in "".join(expected.types)):
        return False
    if is_printed:
        expected, found = _without_json_blanks(expected), _without_json_blanks(found)
    if is_joined:
        expected, found = _without_text_blanks(expected), _without_text_blanks(found)
    if is_in_row:
        expected, found = _without_row_blanks(expected), _without_row_blanks(found)
    return same_rows(_stripped(expected), _stripped(found), step.ordered_by)


def _without_json_blanks(outcome: Outcome) -> Outcome:
    """The same without blanks at the end of texts in JSON."""
    rows = tuple(
        tuple(
            re.sub(' +"', '"', value) if value is not None and name in JSONS else value
            for value, name in zip(row, outcome.types, strict=True)
        )
        for row in outcome.rows
    )
    return replace(outcome, rows=rows)


def _without_text_blanks(outcome: Outcome) -> Outcome:
    rows = tuple(
        tuple(
            value.replace(" ", "") if value is not None and name == "text" else value
            for value, name in zip(row, outcome.types, strict=True)
        )
        for row in outcome.rows
    )
    return replace(outcome, rows=rows)


def _without_row_blanks(outcome: Outcome) -> Outcome:
    """The same without blanks at the end of fields of rows."""
    rows = tuple(
        tuple(
            QUOTED_ELEMENT.sub(_stripped_field, value)
            if value is not None and name == "record"
            else value
            for value, name in zip(row, outcome.types, strict=True)
        )
        for row in outcome.rows
    )
    return replace(outcome, rows=rows)


def _stripped_field(field: re.Match[str]) -> str:
    """A field without blanks at its end, and without quotes if they were there for these."""
    text = field[1].rstrip(" ")
    return text if re.fullmatch(r'[^\s(),"\\]+', text) else f'"{text}"'


def _stripped(outcome: Outcome) -> tuple[Row, ...]:
    return tuple(
        tuple(
            _without_blanks(value, name) if value is not None and "char" in name else value
            for value, name in zip(row, outcome.types, strict=True)
        )
        for row in outcome.rows
    )


def _without_blanks(value: str, name: str) -> str:
    if not name.endswith("[]"):
        return value.rstrip(" ")
    return QUOTED_ELEMENT.sub(_stripped_element, value)


def _stripped_element(element: re.Match[str]) -> str:
    """An element without blanks at its end, and without quotes if they were there for these."""
    text = element[1].rstrip(" ")
    is_plain = re.fullmatch(r'[^\s{},"\\]+', text) is not None and text.lower() != "null"
    return text if is_plain else f'"{text}"'


def equal_as_values(difference: Difference) -> bool:
    """The same rows, if values are compared as the type does and not as they are written."""
    if difference.sort != "rows":
        return False
    expected, found = difference.expected, difference.found
    ordered = difference.step.ordered_by
    return same_rows(_canonical(expected), _canonical(found), ordered)


def _canonical(outcome: Outcome) -> tuple[Row, ...]:
    writers = [_writer(name) for name in outcome.types]
    return tuple(
        tuple(
            None if value is None else write(value)
            for value, write in zip(row, writers, strict=True)
        )
        for row in outcome.rows
    )


def _writer(type_name: str) -> Callable[[str], str]:
    write = next((write for word, write in CANONICAL.items() if type_name.startswith(word)), None)
    if write is None:
        return str
    return partial(_elements_written, write) if type_name.endswith("[]") else write


def _elements_written(write: Callable[[str], str], array: str) -> str:
    """An array, each element written alike. None of these types has commas, braces or quotes."""
    return re.sub(
        r"[^{},]+",
        lambda element: element[0] if element[0] == "NULL" else write(element[0]),
        array.replace('"', ""),
    )


def _interval_length(text: str) -> str:
    """In microseconds, a month as 30 days, as intervals are compared."""
    total = 0
    for number, unit in re.findall(r"([+-]?\d+) (year|mon|day)", text):
        total += int(number) * {"year": 360, "mon": 30, "day": 1}[unit] * 86_400_000_000
    clock = re.search(r"([+-]?)(\d+):(\d\d):(\d\d(?:\.\d+)?)", text)
    if clock is not None:
        seconds = int(clock[2]) * 3600 + int(clock[3]) * 60 + Decimal(clock[4])
        total += int(seconds * 1_000_000) * (-1 if clock[1] == "-" else 1)
    return str(total)


def _numeric_value(text: str) -> str:
    return str(Decimal(text).normalize(ALL_DIGITS))


CANONICAL: Final[Mapping[str, Callable[[str], str]]] = {
    "interval": _interval_length,
    "numeric": _numeric_value,
    "double precision": lambda text: "0" if text == "-0" else text,
}
"""How values are written alike that are equal, by the beginning of the type's name."""


def same_but_for_modifiers(difference: Difference) -> bool:
    if difference.sort != "types":
        return False
    expected, found = difference.expected, difference.found
    bare = [tuple(MODIFIER.sub("", name) for name in each.types) for each in (expected, found)]
    ordered = difference.step.ordered_by
    one, other = replace(expected, rows=_stripped(expected)), replace(found, rows=_stripped(found))
    return bare[0] == bare[1] and same_rows(_canonical(one), _canonical(other), ordered)
