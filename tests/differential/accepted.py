"""The differences that are accepted, each a named rule with its reason.

Every name stands with the same reason in docs/sql.md, and a test compares the two. A rule is as
narrow as it can be told apart: what it hides is not looked at again.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import partial
from typing import Final

from tests.differential.comparison import Difference, Step, same_rows
from tests.differential.engines import TIMED_OUT, Outcome

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
ALL_DIGITS: Final = Context(prec=200_000)
"""A numeric has up to 131072 digits before the point and 16383 after it."""
MICROSECOND: Final = Decimal("0.000001")
MICROSECONDS_OF_DAY: Final = 86_400_000_000
POSIX_ZONE: Final = re.compile(
    r'time zone "(?:<[^>]*>|[^\d,+-]*)[+-]?(?P<hours>\d+)(?::\d+)*(?P<daylight>.*)" not recognized',
    re.DOTALL,
)
JSONS: Final = ("json", "jsonb")
PRINTED_CHAR: Final = re.compile(
    r"(?=.*json)(?=.*(?:::char\b|\b(?:array_agg|min|max|mode|percentile_disc|lag|lead|\w+_value)\())",
    re.IGNORECASE | re.DOTALL,
)
"""JSON of a text that is cast to CHAR, or that an aggregate or a window function shows."""
JOINED_CHAR: Final = re.compile(
    r"(?=.*\bconcat(?:_ws)?\()(?=.*\b(?:min|max|least|greatest)\(.*::char\b)",
    re.IGNORECASE | re.DOTALL,
)
"""A text that concat makes of the least or greatest CHAR."""
OUT_OF_MEMORY: Final = "53200"
SHIFTED: Final = re.compile(r"\bto_char\(.*'[^']*V[^']*'", re.IGNORECASE | re.DOTALL)
PARTIAL_INDEX: Final = re.compile(
    r"CREATE (?:UNIQUE )?INDEX\b.*\bON\b.*\(.*\(.*\bWHERE\b", re.IGNORECASE | re.DOTALL
)
GENERATED_CASE: Final = re.compile(
    r"GENERATED ALWAYS AS .*\bCASE\s+'.*\bWHEN\b.*'", re.IGNORECASE | re.DOTALL
)
FIELDS_REFUSED: Final = re.compile(
    r"cannot compare (?:dissimilar column|record) types"
    r"|could not identify an? (?:equality|ordering) operator for type (?:record|unknown|json)$"
    r"|could not identify a comparison function for type (?:unknown|json)$"
)
UNIQUE_VIOLATION: Final = "23505"
DATA_EXCEPTIONS: Final = ("22", "21")
READ_LATER: Final = re.compile(r"[\d.]|'(?:[^']|'')*'::(?:text|varchar|char)", re.IGNORECASE)
"""A number, or a text that is cast: a cast to another type is computed when the statement runs."""
OVER_ROWS: Final = re.compile(
    r"\(*(?:SELECT|WITH|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|CREATE TABLE .* AS)\b",
    re.IGNORECASE | re.DOTALL,
)
QUOTED_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
CHANGES_ROWS: Final = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE|ALTER)\b", re.IGNORECASE)
DECIDES: Final = re.compile(
    r"\b(?:WHERE|HAVING|ON|USING|FILTER|CASE|COALESCE|NULLIF|AND|OR|IN|EXISTS|ANY|ALL|LIMIT|FETCH"
    r"|OFFSET|DISTINCT|UNION|INTERSECT|EXCEPT|WHEN)\b|\(SELECT\b",
    re.IGNORECASE,
)
"""What may leave a part of a statement without a row to compute it for, or decide the order."""


CHANGES_IN_WITH: Final = re.compile(
    r"\s*\(*WITH\b.*\bAS\s*(?:(?:NOT )?MATERIALIZED\s*)?\(\s*(?:INSERT|UPDATE|DELETE|MERGE)\b",
    re.IGNORECASE | re.DOTALL,
)


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


def _fused_multiply_add(difference: Difference) -> bool:
    """The same rows, but for microseconds of times in a statement that multiplies.

    And but for results of regressions that are NULL on one side: whether the squares of equal
    values add up to zero depends on the processor, too.
    """
    if difference.sort != "rows" or not MULTIPLIES.search(difference.step.sql):
        return False
    expected, found = difference.expected, difference.found
    if len(expected.rows) != len(found.rows):
        return False
    left = Counter(found.rows)
    regresses = REGRESSES.search(difference.step.sql) is not None
    return all(_taken(row, expected.types, left, regresses) for row in expected.rows)


def _taken(row: Row, types: tuple[str, ...], left: Counter[Row], regresses: bool) -> bool:
    """Take a row away that is this one, or beside it."""
    nears = (each for each in (row, *left) if left[each] and _are_near(row, each, types, regresses))
    near = next(nears, None)
    if near is None:
        return False
    left[near] -= 1
    return True


def _are_near(one: Row, other: Row, types: tuple[str, ...], regresses: bool) -> bool:
    return all(
        left == right
        or (regresses and name == "double precision" and None in (left, right))
        or (left is not None and right is not None and name in TIMES and _beside(left, right))
        for left, right, name in zip(one, other, types, strict=True)
    )


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


def _order_of_evaluation(difference: Difference) -> bool:
    """Errors of data in a statement over rows, where something decides which parts are computed.

    A literal that cannot be read is no such error, unless it is one of two: it is read before
    anything is computed.
    """
    step = difference.step
    if step.strict or not difference.sort.startswith("error") or not OVER_ROWS.match(step.sql):
        return False
    outcomes = (difference.expected, difference.found)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if not all(map(_is_of_data, failed)):
        return False
    literals = sum(1 for outcome in failed if _is_literal(outcome, step))
    if literals:
        return literals == 2
    return len(failed) == 2 or DECIDES.search(step.sql + step.views) is not None


def _is_of_data(outcome: Outcome) -> bool:
    """Does the error depend on a value that is met while the statement runs?"""
    assert outcome.error is not None
    return outcome.error.startswith(DATA_EXCEPTIONS) or any(
        words in outcome.message
        for words in (
            "multidimensional",
            "not supported for type interval",
            "cannot convert infinity to",
            "cannot convert NaN to",
        )
    )


def _is_literal(outcome: Outcome, step: Step) -> bool:
    """Is the error about a quoted value of the statement, other than a text that is cast?"""
    at = outcome.position
    return at is not None and READ_LATER.match(step.sql, at - 1) is None


CONSTRAINTS: Final = ("23", "44")
"""Those of tables, and of views."""


def _first_violation(difference: Difference) -> bool:
    """Different errors of a change, at least one of them of a constraint."""
    codes = [difference.expected.error or "", difference.found.error or ""]
    return (
        CHANGES_ROWS.search(difference.step.sql) is not None
        and all(code.startswith((*DATA_EXCEPTIONS, *CONSTRAINTS)) for code in codes)
        and any(code.startswith(CONSTRAINTS) for code in codes)
    )


def _too_large(difference: Difference) -> bool:
    ends = (TIMED_OUT, OUT_OF_MEMORY)
    return difference.expected.error in ends or difference.found.error in ends


def _char_blanks(difference: Difference) -> bool:
    if difference.sort != "rows":
        return False
    expected, found, step = difference.expected, difference.found, difference.step
    is_printed, is_joined = PRINTED_CHAR.match(step.sql), JOINED_CHAR.match(step.sql)
    if not is_printed and not is_joined and "char" not in "".join(expected.types):
        return False
    if is_printed:
        expected, found = _without_json_blanks(expected), _without_json_blanks(found)
    if is_joined:
        expected, found = _without_text_blanks(expected), _without_text_blanks(found)
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


def _equal_values(difference: Difference) -> bool:
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


def _modifiers(difference: Difference) -> bool:
    if difference.sort != "types":
        return False
    expected, found = difference.expected, difference.found
    bare = [tuple(MODIFIER.sub("", name) for name in each.types) for each in (expected, found)]
    ordered = difference.step.ordered_by
    one, other = replace(expected, rows=_stripped(expected)), replace(found, rows=_stripped(found))
    return bare[0] == bare[1] and same_rows(_canonical(one), _canonical(other), ordered)


def _array_bounds(difference: Difference) -> bool:
    return "arrays with a lower bound other than 1" in difference.found.message


def _partial_nulls_not_distinct(difference: Difference) -> bool:
    return difference.found.message.startswith("NULLS NOT DISTINCT is not supported")


def _years(difference: Difference) -> bool:
    """qserver refuses a date, and PostgreSQL has one of many digits or before our era."""
    return difference.found.error == "22008" and difference.expected.error is None


def _posix_zones(difference: Difference) -> bool:
    """qserver refuses a zone whose offset is followed by other letters, or is a day or more."""
    expected, found = difference.expected, difference.found
    zone = POSIX_ZONE.search(found.message)
    if found.error != "22023" or expected.error is not None or zone is None:
        return False
    return bool(zone["daylight"]) or int(zone["hours"]) >= 24


def _to_char_overflow(difference: Difference) -> bool:
    """qserver refuses an integer that V makes too large, and PostgreSQL prints what is left."""
    expected, found = difference.expected, difference.found
    return (
        found.error == "22003"
        and found.message == "integer out of range"
        and expected.error is None
        and SHIFTED.search(difference.step.sql) is not None
    )


def _json_null_key(difference: Difference) -> bool:
    """Both refuse NULL as a key of a JSON object."""
    expected, found = difference.expected, difference.found
    return (
        (expected.error, found.error) == ("22004", "22023")
        and expected.message == "null value not allowed for object key"
        and re.fullmatch(r"argument \d+ cannot be null|field name must not be null", found.message)
        is not None
    )


def _partial_expression_index(difference: Difference) -> bool:
    """qserver fails to compute the expression of an index with WHERE for some row."""
    expected, found = difference.expected, difference.found
    return (
        expected.error is None
        and (found.error or "").startswith(DATA_EXCEPTIONS)
        and PARTIAL_INDEX.match(difference.step.sql) is not None
    )


def _unique_at_the_end(difference: Difference) -> bool:
    expected, found = difference.expected, difference.found
    updates = difference.step.sql.lstrip().upper().startswith(("UPDATE", "WITH"))
    return updates and expected.error == UNIQUE_VIOLATION and found.error is None


def _any_full_join(difference: Difference) -> bool:
    refused = "FULL JOIN is only supported" in difference.expected.message
    return refused and difference.found.error is None


def _literals_in_generated(difference: Difference) -> bool:
    """PostgreSQL refuses to compare two quoted texts in the CASE of a generated column."""
    generates = GENERATED_CASE.search(difference.step.sql) is not None
    return generates and difference.expected.error == "42P22" and difference.found.error is None


def _changes_in_with(difference: Difference) -> bool:
    """More rows are counted here, in a statement whose WITH changes some."""
    if difference.sort != "affected rows" or not CHANGES_IN_WITH.match(difference.step.sql):
        return False
    expected, found = difference.expected.affected, difference.found.affected
    assert expected is not None and found is not None
    return found > expected


def _constant_without_rows(difference: Difference) -> bool:
    """PostgreSQL refuses a value of an INSERT whose query has no row."""
    expected, found = difference.expected.error or "", difference.found
    return (
        re.match(r"INSERT\b.*\bSELECT\b", difference.step.sql, re.I | re.S) is not None
        and expected in ("22001", "22003")
        and (found.error, found.affected) == (None, 0)
    )


def _fields_of_rows(difference: Difference) -> bool:
    """One side refuses to compare rows because of the types of their fields."""
    return any(
        one.error in ("42804", "42883") and FIELDS_REFUSED.match(one.message) is not None
        for one in (difference.expected, difference.found)
    )


RULES: Final = (
    Rule(
        "last_digit",
        "floating point results may differ in their last digits: the mathematical library of the"
        " system computes them, and the order of additions is not defined",
        _last_digit,
    ),
    Rule(
        "fused_multiply_add",
        "an interval times a fraction may differ by a microsecond, and by half of the last bit of"
        " its months and days if they are many, and a regression over equal values is NULL, where"
        " PostgreSQL may have a rest of rounding: PostgreSQL's own answer depends on the processor,"
        " which may multiply and add without rounding in between",
        _fused_multiply_add,
    ),
    Rule(
        "char_blanks",
        "a value of char(n) comes without the blanks that fill it up where its expression does not"
        " tell n: greatest of a char(3) and a char(5), a function or an aggregate of one, or an"
        " array of both; and so does JSON that is made of it, or a text by concat",
        _char_blanks,
    ),
    Rule(
        "type_modifiers",
        "the length or precision in the type of an expression that is no column: PostgreSQL has it"
        " or not by how far it simplified the expression",
        _modifiers,
    ),
    Rule(
        "equal_values",
        "which of two equal values is shown, or comes first, where they are written differently:"
        " 1 day and 24:00:00, 1.0 and 1.00",
        _equal_values,
    ),
    Rule(
        "array_bounds",
        "arrays begin at 1: what would make one that does not is refused",
        _array_bounds,
    ),
    Rule(
        "partial_nulls_not_distinct",
        "NULLS NOT DISTINCT of an index over some rows (WHERE) is refused",
        _partial_nulls_not_distinct,
    ),
    Rule(
        "years",
        "a date or timestamp before the year 1 or after 9999 is refused",
        _years,
    ),
    Rule(
        "posix_zones",
        "a time zone in the form of POSIX has an offset of less than a day and no daylight saving"
        " time: EST5EDT4 is refused",
        _posix_zones,
    ),
    Rule(
        "order_of_evaluation",
        "a value that an operator refuses is an error only if it is looked at, and the order in"
        " which the parts of a statement are computed is not defined. A literal that cannot be read"
        " is always an error, but of two such another may be named",
        _order_of_evaluation,
    ),
    Rule(
        "to_char_overflow",
        "to_char with V is an error if the number that it multiplies leaves the type: for an"
        " integer PostgreSQL drops the bits that do not fit, and prints the rest",
        _to_char_overflow,
    ),
    Rule(
        "json_null_key",
        "NULL as a key is the error 22023 in json_build_object and json_object_agg, as in"
        " PostgreSQL 15: later releases say 22004",
        _json_null_key,
    ),
    Rule(
        "partial_expression_index",
        "the expression of an index is computed for every row of the table, also if WHERE leaves"
        " the row out: one that fails for it is refused",
        _partial_expression_index,
    ),
    Rule(
        "unique_at_the_end",
        "an UPDATE may exchange or shift unique keys: they are checked when all rows are changed,"
        " where PostgreSQL refuses what is a duplicate for a moment",
        _unique_at_the_end,
    ),
    Rule(
        "any_full_join",
        "FULL JOIN takes any condition, where PostgreSQL wants one that it can merge or hash by",
        _any_full_join,
    ),
    Rule(
        "literals_in_generated",
        "CASE 'a' WHEN 'b' may stand in a generated column, where PostgreSQL computes it before it"
        " has found a collation for the two texts, and fails",
        _literals_in_generated,
    ),
    Rule(
        "fields_of_rows",
        "rows with other fields, or with one of type json or a literal without a type, cannot be"
        " compared: PostgreSQL finds that out when it gets to the field, qserver before a row is"
        " read, or not at all where the types of the fields are not known",
        _fields_of_rows,
    ),
    Rule(
        "too_large",
        "a statement ends for want of time or memory on one side and not on the other",
        _too_large,
    ),
    Rule(
        "first_violation",
        "of several constraints that the rows of a statement violate, another may be named",
        _first_violation,
    ),
    Rule(
        "changes_in_with",
        "rows that an INSERT, UPDATE or DELETE in WITH changes are affected rows, too: PostgreSQL"
        " counts those of the last part alone",
        _changes_in_with,
    ),
    Rule(
        "constant_without_rows",
        "a constant of INSERT … SELECT that does not fit its column is an error if there is a row"
        " to insert: PostgreSQL converts it before it reads any",
        _constant_without_rows,
    ),
)


def accepted_by(difference: Difference) -> Rule | None:
    return next((rule for rule in RULES if rule.accepts(difference)), None)
