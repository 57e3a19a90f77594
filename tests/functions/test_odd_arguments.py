"""Whatever a function is given, it answers, or raises an error with a code of its own."""

from __future__ import annotations

from random import Random, SystemRandom
from typing import Any

import pytest

from qserver.errors import QserverError
from qserver.functions.all_functions import AGGREGATES, FUNCTIONS, OPERATORS, TABLE_FUNCTIONS
from qserver.query.sql_database import SqlDatabase
from tests.sampling import NIGHTLY
from tests.sql.databases import opened_sql

CALLS = 1500 if NIGHTLY else 600
TRIES = 6

_FLOATS = [
    *("0", "-0", "1", "-1", "0.5", "-2.5", "1e308", "-1e308", "5e-324", "1e15"),
    *("NaN", "Infinity", "-Infinity"),
]
_INTEGERS = ["0", "1", "-1", "2", "3", "-7", "100", "32767", "-32768"]
_TIMES = ["0001-01-01", "9999-12-31 23:59:59.999999", "2024-02-29", "1970-01-01", "infinity"]
_TEXTS = [
    *("", "a", "abc", "%", "_", "\\", "(", "[", "*", "a{", "(?", "\\1", "é", "\U0001f600", "0"),
    *("-1", "1e400", "NaN", "infinity", "YYYY-MM-DD HH24:MI", "999.99", "S9MI", "FM", "year", "V9"),
    *("epoch", "hex", "base64", "escape", "UTF8", "NFC", "{}", "{a,b}", "[1]", '{"a":1}', "%s"),
    *(
        "%1$s %I %L",
        "%*s",
        "UTC",
        "Nowhere/Zone",
        "g",
        "x" * 2000,
        " ",
        "\n",
        "1 day",
        "IYYY-IW-ID",
        *("a.b", "a.b.c.d", "²", "99999999999", "t(", "=(integer,integer)"),
    ),
]
_JSON = ["null", "1", '"a"', "[]", "{}", '[1,[2,{"a":null}]]', '{"a":{"b":[1,true]}}', "1e400"]
VALUES: dict[str, list[Any]] = {
    "smallint": _INTEGERS,
    "integer": [*_INTEGERS, "2147483647", "-2147483648"],
    "bigint": [*_INTEGERS, "9223372036854775807", "-9223372036854775808"],
    "real": [*_FLOATS[:6], "3.4e38", "1e-45", "NaN", "Infinity"],
    "double precision": _FLOATS,
    "numeric": [*_FLOATS, "1e1000", "1e-1000", "9" * 1000, "1e131071", "1e-16383"],
    "text": _TEXTS,
    "character varying": _TEXTS,
    "boolean": ["t", "f"],
    "date": _TIMES,
    "timestamp without time zone": _TIMES,
    "timestamp with time zone": _TIMES,
    "time without time zone": ["00:00", "23:59:59.999999", "24:00"],
    "interval": [
        *("0", "1 day", "-1 day", "178000000 years", "2147483647 days", "-2147483648 days"),
        *("9223372036854775807 microseconds", "1 month -1 day", "24:00:00", "infinity"),
    ],
    "bytea": ["", "AA==", "/////w==", "YWJj"],
    "uuid": ["00000000-0000-0000-0000-000000000000"],
    "json": _JSON,
    "jsonb": _JSON,
    "jsonpath": [
        *("$", "$.a", "strict $[last]", "$.** ? (@ > 1)", "$.*.keyvalue()", "-$[*]", "$ == $x"),
        *("$[0].datetime()", "$ / 0", '$ like_regex "a"', "(", "", "$.**{2 to 1}", "$[1 to -1]"),
    ],
}
_ANY = [
    "integer",
    "text",
    "numeric",
    "double precision",
    "interval",
    "jsonb",
    "integer[]",
    "text[]",
]

FOUND: list[tuple[str, list[Any]]] = [
    ("SELECT ~ $1::smallint", ["5"]),
    ("SELECT jsonb_set('[]', $1::text[], '1')", [[["a"], ["b"]]]),
    ("SELECT jsonb_insert('[]', $1::text[], '1')", [[["a"], ["b"]]]),
    ("SELECT '[1]'::jsonb #- $1::text[]", [[["a"], ["b"]]]),
    ("SELECT '[1]'::jsonb #> $1::text[]", [[["a"], ["b"]]]),
    ("SELECT date_bin($1::interval, now(), now())", ["-2147483648 days"]),
    ("SELECT date_bin($1::interval, now(), now())", ["2147483647 days"]),
    ("SELECT to_timestamp($1::text, '{}')", ["\n"]),
    ("SELECT timezone($1::interval, now())", ["24:00:00"]),
    ("SELECT make_interval(secs => $1)", ["1e308"]),
    ("SELECT width_bucket($1::float, 1e308, -1e308, 100)", ["1e15"]),
    ("SELECT width_bucket($1::float, 0, 1.7e308, 100)", ["1e308"]),
    ("SELECT array_fill(1, $1::integer[])", [[["1"], ["2"]]]),
    ("SELECT format($1::text, $2::integer[])", ["%*s", ["-32768"]]),
    ("SELECT format('%*s', $1::text, 'a')", ["a"]),
    ("SELECT format('%*s', $1::numeric, 'a')", ["0.5"]),
    ("SELECT format('%' || repeat('9', 5000) || $1::text, 'a')", ["s"]),
    ("SELECT format('%' || repeat('9', 5000) || $1::text, 'a')", ["$s"]),
    ("SELECT 'a' ~ $1", ["a{" + "9" * 5000 + "}"]),
    ("SELECT 'a' ~ $1", ["a{1," + "9" * 5000 + "}"]),
    ("SELECT to_date($1, 'YYYY')", ["9" * 5000]),
    ("SELECT to_date($1, 'Y,YYY')", ["9" * 5000 + ",999"]),
    ("SELECT to_timestamp($1, 'SSSSS')", ["9" * 5000]),
    ("SELECT $1::text::integer[]", [f"[{'9' * 5000}:{'9' * 5000}]={{1}}"]),
    ("SELECT $1::text::integer[]", [f"[1:{'9' * 5000}]={{1}}"]),
]


def _drawn(random: Random, sql_type: str) -> Any:
    if random.random() < 0.1:
        return None
    if not sql_type.endswith("[]"):
        return random.choice(VALUES[sql_type])
    values = VALUES[sql_type[:-2]]
    row = [random.choice([*values, None]) for _ in range(random.randrange(3))]
    return [row, row] if row and random.random() < 0.3 else row


def _call(random: Random, kind: str, name: str, types: tuple[str, ...]) -> str:
    arguments = [f"${number}::{each}" for number, each in enumerate(types, 1)]
    if kind == "operator" and len(types) == 2:
        return f"SELECT {arguments[0]} {name} {arguments[1]}"
    if kind == "operator":
        return f"SELECT {name} {arguments[0]}"
    listed = ", ".join(arguments)
    if kind == "rows":
        return f"SELECT * FROM {name}({listed}) LIMIT 20"
    return f"SELECT {name}({listed})" + " FROM generate_series(1, 2)" * (kind == "aggregate")


def _calls(random: Random) -> list[tuple[str, tuple[str, ...]]]:
    calls = []
    for kind, table in (
        ("function", FUNCTIONS),
        ("operator", OPERATORS),
        ("aggregate", AGGREGATES),
        ("rows", TABLE_FUNCTIONS),
    ):
        for name, each in [(name, each) for name, found in table.items() for each in found]:
            types = tuple(map(str, each.parameters))
            known = [
                one if one.removesuffix("[]") in VALUES else random.choice(_ANY) for one in types
            ]
            calls.append((_call(random, kind, name, tuple(known)), tuple(known)))
    return random.sample(calls, min(CALLS, len(calls)))


async def _try(database: SqlDatabase, sql: str, given: list[Any]) -> None:
    try:
        await database.execute(sql, given, timeout_ms=2000)
    except QserverError as error:
        assert error.code != "XX000", (sql, given)
    except Exception as error:
        raise AssertionError(f"{sql} of {given}: {error!r}") from error


@pytest.mark.long
@pytest.mark.parametrize("seed", [7, None])
async def test_odd_arguments_cause_no_error_without_a_code(seed: int | None) -> None:
    seed = SystemRandom().randrange(1_000_000) if seed is None else seed
    random = Random(seed)
    print(f"seed {seed}")
    async with opened_sql() as database:
        for sql, types in _calls(random):
            for _ in range(TRIES if types else 1):
                await _try(database, sql, [_drawn(random, each) for each in types])


async def test_what_was_found_has_a_code_or_an_answer() -> None:
    async with opened_sql() as database:
        for sql, given in FOUND:
            await _try(database, sql, given)
        assert (await database.execute(*FOUND[0])).rows == [(-6,)]
