"""Planning costs as much as a statement is long, holds nobody up, and ends with its deadline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from time import thread_time, time
from typing import Any

import pytest
import trio

from qserver.engine.planning import make_plan
from qserver.engine.scratch import scratch_database
from qserver.engine.sql_gateway import SqlDatabase, Statement
from qserver.engine.world import Check, OrdinaryWorld, compute_here
from qserver.errors import QserverError, QueryCanceled
from qserver.limits import PARAMETERS_MAX, SOURCES_MAX, TARGETS_MAX
from qserver.sql.binder import Literals
from qserver.sql.lift import lift
from qserver.sql.parser import parse
from qserver.web.computing import compute_in_threads
from tests.engine.passes import counted_passes
from tests.sql.databases import opened_sql

Text = Callable[[int], str]


def listed(item: str, count: int, between: str = ", ") -> str:
    return between.join([item.replace("#", str(at)) for at in range(count)])


ROW = "(#, '#')"

TEXTS: dict[str, Text] = {
    "columns": lambda n: f"SELECT {listed('id + # AS c#', n)} FROM t",
    "parameters": lambda n: f"SELECT 1 FROM t WHERE id IN ({listed('$1#', n)})",
    "named parameters": lambda n: f"SELECT 1 FROM t WHERE id IN ({listed(':p#', n)})",
    "rows of parameters": lambda n: f"INSERT INTO t (id) VALUES {listed('($1#)', n)}",
    "aggregates": lambda n: f"SELECT {listed('sum(a + #)', n)} FROM t",
    "windows": lambda n: f"SELECT {listed('sum(a) OVER (PARTITION BY a + #)', n)} FROM t",
    "keys of GROUP BY": lambda n: f"SELECT 1 FROM t GROUP BY {listed('a + #', n)}",
    "keys of ORDER BY": lambda n: f"SELECT 1 FROM t ORDER BY {listed('a + #', n)}",
    "numbers in ORDER BY": lambda n: (
        f"SELECT {listed('a + #', n)} FROM t ORDER BY {listed('#', n + 1).removeprefix('0, ')}"
    ),
    "OR": lambda n: f"SELECT 1 FROM t WHERE {listed('a = #', n, ' OR ')}",
    "AND": lambda n: f"SELECT 1 FROM t WHERE {listed('a <> #', n, ' AND ')}",
    "WHEN": lambda n: f"SELECT CASE {listed('WHEN a = # THEN #', n, ' ')} END FROM t",
    "COALESCE": lambda n: f"SELECT COALESCE({listed('nullif(a, #)', n)}) FROM t",
    "IN": lambda n: f"SELECT 1 FROM t WHERE a IN ({listed('#', n)})",
    "IN of rows": lambda n: f"SELECT 1 FROM t WHERE (a, b) IN ({listed(ROW, n)})",
    "ARRAY": lambda n: f"SELECT ARRAY[{listed('a + #', n)}] FROM t",
    "common tables": lambda n: f"WITH {listed('c# AS (SELECT # AS x)', n)} SELECT x FROM c0",
    "comments": lambda n: f"SELECT 1 {'/**/ -- a' * n}",
    "quotes": lambda n: "SELECT '" + "''" * n + "'",
    "parentheses that are not closed": lambda n: f"SELECT {'(' * n}",
}


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile, those in C included."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_statement_that_is_twice_as_long_takes_about_twice_the_steps(text: Text) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)")
        view = database.database.durable_view()
        assert view is not None

        def plan(length: int) -> None:
            try:
                parsed = parse(text(length))
                literals = Literals(lift(text(length)).literals)
                make_plan(parsed.statement, literals, view.catalog, view)
            except QserverError as error:
                assert error.code == "42601"

        plan(8)  # what is made once and kept does not count

        def is_about_twice(length: int) -> bool:
            return calls_of(lambda: plan(2 * length)) < 2.6 * calls_of(lambda: plan(length))

        # Between two lengths other means may begin to be used; what is square stays so.
        assert is_about_twice(200) or is_about_twice(900)


# --- beside others -------------------------------------------------------------------------------

LONG: dict[str, tuple[str, list[Any] | None]] = {
    "10,000 columns": (f"SELECT {listed('id + #', 10_000)} FROM t", None),
    "1,600 columns": (f"SELECT {listed('id + #', 1600)} FROM t", None),
    "all parameters": (
        f"SELECT 1 FROM t WHERE id IN ({listed('?', PARAMETERS_MAX)})",
        list(range(PARAMETERS_MAX)),
    ),
    "500 windows": (f"SELECT {listed('sum(a) OVER (ORDER BY a + #)', 500)} FROM t", None),
    "CUBE of 12": (f"SELECT 1 FROM t GROUP BY CUBE ({listed('a + #', 12)})", None),
    "CUBE of 13": (f"SELECT 1 FROM t GROUP BY CUBE ({listed('a + #', 13)})", None),
    "4,000 OR": (f"SELECT 1 FROM t WHERE {listed('a = #', 4000, ' OR ')}", None),
    "5,000 WHEN": (f"SELECT CASE {listed('WHEN a = # THEN #', 5000, ' ')} END FROM t", None),
    "COALESCE of 5,000": (f"SELECT COALESCE({listed('nullif(a, #)', 5000)}) FROM t", None),
    "150 joins": (f"SELECT 1 FROM t x {listed('JOIN t t# ON t#.id = x.id', 150, ' ')}", None),
    "views of views": (f"SELECT 1 FROM {listed('v5 x#', 100)}", None),
    "a plan to explain": (f"EXPLAIN SELECT {listed('id + #', 1600)} FROM t", None),
    "a wide view": (f"CREATE VIEW w AS SELECT {listed('id + # AS c#', 1600)} FROM t", None),
    "400 checks": (f"CREATE TABLE c ({listed('c# INTEGER CHECK (c# > #)', 400)})", None),
    "a text that cannot be read": (f"SELECT {'$a$ $b$ ' * 60_000}", None),
}
CLEAN = {"54000", "54001", "54011", "57014", "42601"}


@pytest.mark.parametrize(("sql", "given"), LONG.values(), ids=LONG)
async def test_a_statement_that_takes_long_to_plan_holds_nobody_up(
    sql: str, given: list[Any] | None
) -> None:
    world = OrdinaryWorld(time, Random(1), lambda text, error: None, compute_in_threads())
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            began = thread_time()  # of the loop's own thread: a busy machine does not lengthen it
            await trio.sleep(0.01)
            longest = max(longest, thread_time() - began)

    async with scratch_database(world) as database:
        await define(database)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat)
            try:
                await database.execute(sql, given, timeout_ms=20_000)
            except QserverError as error:
                assert error.code in CLEAN, error
            nursery.cancel_scope.cancel()
    assert longest < 0.6, "planning is not done on the loop"


async def define(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)")
    await database.execute("CREATE VIEW v0 AS SELECT id FROM t")
    for level in range(5):
        await database.execute(
            f"CREATE VIEW v{level + 1} AS SELECT x.id FROM v{level} x JOIN v{level} y USING (id)"
        )


async def test_a_deadline_ends_the_planning() -> None:
    world = OrdinaryWorld(time, Random(1), lambda text, error: None, compute_in_threads(1))
    sql = f"SELECT 1 FROM t WHERE {listed('a = #', 20_000, ' OR ')}"
    async with scratch_database(world) as database:
        await define(database)
        for run in (database.execute, database.stream):
            with pytest.raises(QueryCanceled):
                await run(sql, timeout_ms=100)
        with pytest.raises(QueryCanceled):
            await database.transaction([Statement(sql)], timeout_ms=100)
        # The only thread there is has ended, or nobody could plan any more.
        long = f"SELECT id FROM t WHERE a IN ({listed('#', 2000)})"
        assert (await database.execute(long, timeout_ms=20_000)).rows == []


async def test_definitions_of_one_transaction_let_others_run() -> None:
    async with opened_sql() as database:
        statements = [Statement(f"CREATE TABLE t{at} (id INTEGER)") for at in range(100)]
        async with counted_passes() as passes:
            await database.transaction(statements)
    assert passes.count > 10


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"SELECT {listed('#', TARGETS_MAX)}", None),
        (f"SELECT {listed('#', TARGETS_MAX + 1)}", "54011"),
        (f"SELECT {listed('(SELECT #)', SOURCES_MAX + 1)}", "54000"),
        (f"SELECT 1 FROM (SELECT {listed('#', TARGETS_MAX + 1)}) s", "54011"),
    ],
)
async def test_a_statement_has_bounds(sql: str, code: str | None) -> None:
    async with opened_sql() as database:
        if code is None:
            await database.execute(sql)
        else:
            with pytest.raises(QserverError) as raised:
                await database.execute(sql)
            assert raised.value.code == code


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME COLUMN a TO z",
        "ALTER TABLE t RENAME TO z",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t ALTER COLUMN b TYPE BIGINT",
    ],
)
async def test_a_definition_that_tries_a_long_view_plans_it_as_any_other_long_statement(
    sql: str,
) -> None:
    computed = 0

    async def compute(work: Callable[[Check], Any]) -> Any:
        nonlocal computed
        computed += 1
        return await compute_here(work)

    world = OrdinaryWorld(time, Random(1), lambda text, error: None, compute)
    async with scratch_database(world) as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
        columns = ", ".join(f"a + {number} AS c{number}" for number in range(600))
        await database.execute(f"CREATE VIEW v AS SELECT {columns} FROM t")
        computed = 0
        await database.execute(sql)
    assert computed >= 1
