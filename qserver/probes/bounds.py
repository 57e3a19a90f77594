"""Probes of the limits: a statement past a limit gets an error, and the database still answers."""

from __future__ import annotations

from typing import Final

from qserver.errors import QserverError
from qserver.limits import (
    COLUMNS_MAX,
    IDENTIFIER_BYTES_MAX,
    SYNTAX_DEPTH_MAX,
    TRANSACTION_STATEMENTS_MAX,
)
from qserver.probes.run import Probe, Run
from qserver.probes.steps import SqlStep, changes, does, fails, gives
from qserver.query.sql_database import Statement

CATEGORY: Final = "limits"
ALIVE: Final = gives("SELECT 'still there'", "still there")


TIMEOUT: Final = (
    fails(
        "SELECT n FROM generate_series(1, 1000000000000) AS s (n) ORDER BY n",
        "57014",
        timeout_ms=50,
    ),
    does("CREATE TABLE t (id BIGINT PRIMARY KEY)"),
    fails(
        "INSERT INTO t SELECT n FROM generate_series(1, 1000000000000) AS s (n)",
        "57014",
        timeout_ms=50,
    ),
    gives("SELECT count(*) FROM t", "0"),
    ALIVE,
)


async def too_many_statements(run: Run) -> None:
    count = TRANSACTION_STATEMENTS_MAX + 1
    code = "none"
    try:
        await run.database.transaction([Statement("SELECT 1")] * count)
    except QserverError as error:
        code = error.code
    run.check(f"A transaction of {count} statements", code == "54000", f"error {code}")
    await run.perform(ALIVE)


def _too_deep() -> SqlStep:
    depth = SYNTAX_DEPTH_MAX + 100
    return fails("SELECT " + "(1 + " * depth + "1" + ")" * depth, "54001")


PROBES: Final = (
    Probe(
        "limit_time",
        CATEGORY,
        "A statement that takes too long is cancelled (57014) and leaves nothing.",
        TIMEOUT,
    ),
    Probe(
        "limit_memory",
        CATEGORY,
        "A statement that needs too much memory ends with 53200.",
        (
            fails("SELECT n FROM generate_series(1, 100000000) AS s (n) ORDER BY n DESC", "53200"),
            ALIVE,
        ),
    ),
    Probe(
        "limit_rows",
        CATEGORY,
        "More rows than a request wants end with 54000.",
        (
            fails("SELECT generate_series(1, 11)", "54000", max_rows=10),
            SqlStep("SELECT count(*) FROM generate_series(1, 11)", rows=("11",), max_rows=10),
        ),
    ),
    Probe(
        "limit_statements",
        CATEGORY,
        "A transaction of too many statements is refused with 54000.",
        too_many_statements,
    ),
    Probe(
        "limit_value_size",
        CATEGORY,
        "A value that would be too large is not made (54000).",
        (fails("SELECT repeat('x', 1000000000)", "54000"), ALIVE),
    ),
    Probe(
        "limit_nesting",
        CATEGORY,
        "A statement that is nested too deeply ends with 54001.",
        (_too_deep(), ALIVE),
    ),
    Probe(
        "limit_columns",
        CATEGORY,
        "A table with too many columns is refused with 54011.",
        (
            fails(
                f"CREATE TABLE t ({', '.join(f'c{n} INTEGER' for n in range(COLUMNS_MAX + 1))})",
                "54011",
            ),
            ALIVE,
        ),
    ),
    Probe(
        "limit_names",
        CATEGORY,
        "A name is cut to 63 bytes, as in PostgreSQL, wherever it stands.",
        (
            does(f"CREATE TABLE {'n' * (IDENTIFIER_BYTES_MAX + 1)} (id INTEGER PRIMARY KEY)"),
            fails(f"CREATE TABLE {'n' * IDENTIFIER_BYTES_MAX} (id INTEGER)", "42P07"),
            gives(f"SELECT count(*) FROM {'n' * (IDENTIFIER_BYTES_MAX + 9)}", "0"),
        ),
    ),
    Probe(
        "limit_numbers",
        CATEGORY,
        "Numbers out of range, divisions by zero and bad casts end with their own codes.",
        (
            fails("SELECT 9223372036854775808::bigint", "22003"),
            fails("SELECT 1.0 / 0", "22012"),
            fails("SELECT sqrt(-1)", "2201F"),
            fails("SELECT ln(0)", "2201E"),
            fails("SELECT 'a'::integer", "22P02"),
            fails("SELECT make_date(2023, 2, 29)", "22008"),
            changes("CREATE TABLE t (id INTEGER PRIMARY KEY)", 0),
        ),
    ),
)
