"""A number of any length, wherever one can be written, is taken or refused with a code of its own.

Two kinds of it are dangerous: one that Python refuses to read, some thousands of digits long, and
one that a definition takes but the log cannot encode, which has more than 64 bits.
"""

from __future__ import annotations

from typing import Final

import pytest

from qserver.errors import QserverError
from tests.sql.databases import opened_sql

NUMBERS: Final = {
    "9223372036854775808": "one more than 64 bits",
    "18446744073709551616": "one more than 64 bits without a sign",
    "9" * 5000: "more than Python reads",
    "0" * 5000 + "1": "one",
}

READ: Final = (
    *("{}", "-{}", "0x{}", "1e{}", "{}.5", "${}", "2 ^ {}", "chr({})", "round(1.5, {})"),
    *("'{}'::int", "'{}'::smallint", "'{}'::bigint", "'{}'::oid", "'{}'::real", "'{}'::numeric"),
    *("'1e{}'::numeric", "'1e{}'::float8", "1::numeric({})", "'a'::varchar({})", "'a'::char({})"),
    *("'{} days'::interval", "'{}:00'::interval", "'P{}D'::interval", "'{}-1'::interval"),
    *("'P{}-01-01'::interval", "'1'::interval({})", "'{}'::interval", "'PT0.{}S'::interval"),
    *("'{}:00'::time", "'{}-01-01'::date", "'J{}'::date", "'{} BC'::date", "'{}'::timestamp"),
    *("'2024-01-01 00:00:00+{}'::timestamptz", "'2024-01-01 00:00:00.{}'::timestamp"),
    *("now() AT TIME ZONE '{}'", "now() AT TIME ZONE 'UTC+{}'", "now() AT TIME ZONE '<x>{}'"),
    *("date '2024-01-01' + {}", "make_date({}, 1, 1)", "make_interval(days => {})"),
    *("to_date('{}', 'YYYY')", "to_date('{},999', 'Y,YYY')", "to_date('{}', 'J')"),
    *("to_timestamp('{}', 'SSSSS')", "to_timestamp('{}', 'US')", "to_timestamp({})"),
    *("to_number('{}', '999')", "to_char({}, '999')", "to_char(1, 'FM{}')", "to_char(1, 'V{}')"),
    *("'a' ~ 'a{{{}}}'", "'a' ~ 'a{{1,{}}}'", r"'a' ~ '(a)\{}'", r"'a' ~ '\x{}'"),
    *(
        "'a' SIMILAR TO 'a{{{}}}'",
        r"regexp_replace('a', '(a)', '\{}')",
        "regexp_count('a', 'a', {})",
    ),
    *("'{{{}}}'::int[]", "'[{0}:{0}]={{{{1}}}}'::int[]", "'[1:{}]={{1}}'::int[]", "(ARRAY[1])[{}]"),
    *(
        "(ARRAY[1])[1:{}]",
        "array_fill(1, ARRAY[{}])",
        "array_remove(ARRAY[1], {})",
        "'[{}]'::jsonb",
    ),
    *("'[1]'::jsonb -> {}", "'[1]'::jsonb - {}", "'[1]'::jsonb #> '{{{}}}'", "'[1]'::json ->> {}"),
    *("'[1]'::json #>> '{{{}}}'", "jsonb_set('[1]', '{{{}}}', '1')", "'{{\"a\":1e{}}}'::jsonb"),
    *("jsonb_insert('[1]', '{{-{}}}', '1')", "'({},1)'::text", r"'\{}'::bytea", r"U&'\+{}'"),
    *(
        "format('%{}s', 'a')",
        "format('%{}$s', 'a')",
        "format('%*{}$s', 'a')",
        "format('%*s', {}, 1)",
    ),
    *("repeat('a', {})", "lpad('a', {})", "left('a', {})", "split_part('a', 'b', {})"),
    *("substring('a' FROM {})", "overlay('a' PLACING 'b' FROM {})", "width_bucket(1, 2, 3, {})"),
    *("ntile({}) OVER ()", "lag(1, {}) OVER ()", "nth_value(1, {}) OVER ()", "factorial({})"),
    *("sum(1) OVER (ROWS {} PRECEDING)", "gcd({}, 2)", "power(2, {})", "setseed({})", "1 << {}"),
    *("nextval('{}')", "setval('one', {})", "generate_series(1, 2, {})", "pg_sleep(-{})"),
)
STATEMENTS: Final = (
    *(f"SELECT {each}" for each in READ),
    *("SELECT 1 LIMIT {}", "SELECT 1 OFFSET {}", "SELECT 1 FETCH FIRST {} ROWS ONLY"),
    *("SELECT 1 ORDER BY {}", "SELECT 1 GROUP BY {}", "SELECT * FROM t TABLESAMPLE SYSTEM ({})"),
    *("EXPLAIN SELECT {}", "SHOW {}", "SET statement_timeout = {}", "SAVEPOINT s{}"),
    *(
        "CREATE TABLE c (a varchar({}))",
        "CREATE TABLE c (a numeric({}))",
        "CREATE TABLE c (a int[{}])",
    ),
    *("CREATE TABLE c (a int DEFAULT {})", "CREATE TABLE c (a int CHECK (a < {}))"),
    *("CREATE TABLE c (a int GENERATED ALWAYS AS (1 + {}) STORED)", "CREATE TABLE c (a time({}))"),
    *(f"CREATE SEQUENCE c {each} {{}}" for each in ("START", "INCREMENT", "CACHE")),
    *(f"CREATE SEQUENCE c {each} -{{}}" for each in ("START", "INCREMENT", "CACHE", "MINVALUE")),
    *(f"ALTER SEQUENCE one {each} {{}}" for each in ("RESTART", "MAXVALUE", "INCREMENT", "CACHE")),
    "CREATE TABLE c (a int GENERATED ALWAYS AS IDENTITY (INCREMENT {}))",
    *("ALTER TABLE t ALTER a SET DEFAULT {}", "ALTER TABLE t ALTER i RESTART WITH {}"),
    *("ALTER TABLE t ALTER i SET INCREMENT {}", "ALTER TABLE t ALTER a SET STATISTICS {}"),
    *(
        "CREATE INDEX ON t ((a + {}))",
        "CREATE INDEX ON t (a) WHERE a < {}",
        "CREATE VIEW c AS SELECT {}",
    ),
    *("INSERT INTO t VALUES ({})", "INSERT INTO t VALUES ('{}')", "UPDATE t SET a = {}"),
    *("DELETE FROM t WHERE a = {}", "ALTER TYPE mood ADD VALUE '{}'", "COMMENT ON TABLE t IS '{}'"),
)


@pytest.mark.parametrize("number", NUMBERS, ids=NUMBERS.values())
async def test_a_number_is_taken_or_refused_and_the_database_lives_on(number: str) -> None:
    async with opened_sql() as sql:  # fails if the database restarts
        await sql.execute("CREATE TYPE mood AS ENUM ('ok')")
        await sql.execute("CREATE SEQUENCE one")
        await sql.execute("CREATE TABLE t (a int, i int GENERATED ALWAYS AS IDENTITY)")
        await sql.execute("INSERT INTO t VALUES (1)")
        refused = 0
        for statement in STATEMENTS:
            text = statement.format(number)
            try:
                await sql.execute(text, timeout_ms=5000)
            except QserverError as error:
                refused += 1
                assert error.code not in ("XX000", "08007", "57P03"), (text[:200], error)
            except Exception as error:
                raise AssertionError(f"{text[:200]}: {error!r}"[:1000]) from error
            for made in ("VIEW", "TABLE", "SEQUENCE"):
                if text.startswith(f"CREATE {made} c "):
                    await sql.execute(f"DROP {made} IF EXISTS c")
        assert refused > (20 if NUMBERS[number] == "one" else 90)
        assert (await sql.execute("SELECT count(*) FROM t WHERE i > 0")).rows[0][0] >= 0
