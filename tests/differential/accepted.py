"""The differences that are accepted, each a named rule with its reason.

Every name stands with the same reason in docs/sql.md, and a test compares the two. A rule is as
narrow as it can be told apart: what it hides is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.differential.alike import (
    equal_as_values,
    same_but_for_blanks,
    same_but_for_last_digits,
    same_but_for_microseconds,
    same_but_for_modifiers,
)
from tests.differential.comparison import Difference, Step
from tests.differential.engines import TIMED_OUT, Outcome

POSIX_ZONE: Final = re.compile(
    r'time zone "(?:<[^>]*>|[^\d,+-]*)[+-]?(?P<hours>\d+)(?::\d+)*(?P<daylight>.*)" not recognized',
    re.DOTALL,
)
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
        same_but_for_last_digits,
    ),
    Rule(
        "fused_multiply_add",
        "an interval times a fraction may differ by a microsecond, and by half of the last bit of"
        " its months and days if they are many, and a regression over equal values is NULL or a"
        " rest of rounding, where PostgreSQL may have another: PostgreSQL's own answer depends on"
        " the processor, which may multiply and add without rounding in between",
        same_but_for_microseconds,
    ),
    Rule(
        "char_blanks",
        "a value of char(n) comes without the blanks that fill it up where its expression does not"
        " tell n: greatest of a char(3) and a char(5), a function or an aggregate of one, or an"
        " array of both; and so does JSON or a row that is made of it, or a text by concat"
        " or format",
        same_but_for_blanks,
    ),
    Rule(
        "type_modifiers",
        "the length or precision in the type of an expression that is no column: PostgreSQL has it"
        " or not by how far it simplified the expression",
        same_but_for_modifiers,
    ),
    Rule(
        "equal_values",
        "which of two equal values is shown, or comes first, where they are written differently:"
        " 1 day and 24:00:00, 1.0 and 1.00",
        equal_as_values,
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
)


def accepted_by(difference: Difference) -> Rule | None:
    return next((rule for rule in RULES if rule.accepts(difference)), None)
