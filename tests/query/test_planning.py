"""Planning costs as much as a statement is long, holds nobody up, and ends with its deadline."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import trio

from qserver.engine.world import Check, compute_here
from qserver.errors import QserverError, QueryCanceled
from qserver.lexing.fingerprint import parameterize
from qserver.limits import PARAMETERS_MAX, SOURCES_MAX, TARGETS_MAX
from qserver.query.planning import make_plan
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.sql.binder import Literals
from qserver.sql.optimizer import RULES, Rule
from qserver.sql.parser import parse
from qserver.web.service.computing import compute_in_threads
from tests.engine.passes import counted_passes
from tests.known_work import Heart, calls_of
from tests.sampling import sampled
from tests.sql.databases import opened_sql

pytestmark = pytest.mark.usefixtures("collector_settled")

LISTED = re.compile(r"\{(.*?)(?:\|(.*?))?\}")


def text_of(pattern: str, count: int) -> str:
    """A pattern with its lists written out: `{item|separator}` stands for `count` items, or
    `{item}` with commas between them. In an item, # is its number from 0, and @ that from 1."""

    def listed(found: re.Match[str]) -> str:
        item, separator = found.groups()
        items = (item.replace("#", str(at)).replace("@", str(at + 1)) for at in range(count))
        return (", " if separator is None else separator).join(items)

    return LISTED.sub(listed, pattern)


PATTERNS = {
    "columns": "SELECT {id + # AS c#} FROM t",
    "parameters": "SELECT 1 FROM t WHERE id IN ({$1#})",
    "named parameters": "SELECT 1 FROM t WHERE id IN ({:p#})",
    "rows of parameters": "INSERT INTO t (id) VALUES {($1#)}",
    "aggregates": "SELECT {sum(a + #)} FROM t",
    "windows": "SELECT {sum(a) OVER (PARTITION BY a + #)} FROM t",
    "keys of GROUP BY": "SELECT 1 FROM t GROUP BY {a + #}",
    "keys of ORDER BY": "SELECT 1 FROM t ORDER BY {a + #}",
    "numbers in ORDER BY": "SELECT {a + #} FROM t ORDER BY {@}",
    "OR": "SELECT 1 FROM t WHERE {a = #| OR }",
    "AND": "SELECT 1 FROM t WHERE {a <> #| AND }",
    "WHEN": "SELECT CASE {WHEN a = # THEN #| } END FROM t",
    "COALESCE": "SELECT COALESCE({nullif(a, #)}) FROM t",
    "IN": "SELECT 1 FROM t WHERE a IN ({#})",
    "IN of rows": "SELECT 1 FROM t WHERE (a, b) IN ({(#, '#')})",
    "ARRAY": "SELECT ARRAY[{a + #}] FROM t",
    "common tables": "WITH {c# AS (SELECT # AS x)} SELECT x FROM c0",
    "comments": "SELECT 1 {/**/ -- a|}",
    "quotes": "SELECT '{''|}'",
    "parentheses that are not closed": "SELECT {(|}",
}


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(tuple(PATTERNS), 2))
async def test_a_statement_that_is_twice_as_long_takes_about_twice_the_steps(name: str) -> None:
    pattern = PATTERNS[name]
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)")
        snapshot = database.database.snapshots.take()
        assert snapshot is not None

        def plan(text: str) -> None:
            try:
                statement, literals = parse(text).statement, Literals(parameterize(text).literals)
                make_plan(statement, literals, snapshot.catalog, snapshot)
            except QserverError as error:
                assert error.code == "42601"

        plan(text_of(pattern, 8))  # what is made once and kept does not count

        def is_about_twice(length: int) -> bool:
            text, twice = text_of(pattern, length), text_of(pattern, 2 * length)
            return calls_of(lambda: plan(twice)) < 2.6 * calls_of(lambda: plan(text))

        # Between two lengths other means may begin to be used; what is square stays so.
        assert any(map(is_about_twice, (200, 400, 900)))


@pytest.mark.long
async def test_rules_do_not_search_again_what_holds_no_subquery() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)")
        snapshot = database.database.snapshots.take()
        assert snapshot is not None
        text = text_of("SELECT COALESCE({nullif(a, #)}) FROM t", 900)

        def plan(rules: tuple[Rule, ...]) -> None:
            statement, literals = parse(text).statement, Literals(parameterize(text).literals)
            make_plan(statement, literals, snapshot.catalog, snapshot, rules=rules)

        plan(RULES)  # what is made once and kept does not count
        assert calls_of(lambda: plan(RULES)) < 1.1 * calls_of(lambda: plan(RULES[:1]))


# --- beside others -------------------------------------------------------------------------------

LONG = {
    "10,000 columns": ("SELECT {id + #} FROM t", 10_000),
    "1,600 columns": ("SELECT {id + #} FROM t", 1600),
    "all parameters": ("SELECT 1 FROM t WHERE id IN ({?})", PARAMETERS_MAX),
    "rows of parameters": ("INSERT INTO t (id) VALUES {(?)}", PARAMETERS_MAX),
    "500 windows": ("SELECT {sum(a) OVER (ORDER BY a + #)} FROM t", 500),
    "CUBE of 12": ("SELECT 1 FROM t GROUP BY CUBE ({a + #})", 12),
    "CUBE of 13": ("SELECT 1 FROM t GROUP BY CUBE ({a + #})", 13),
    "4,000 OR": ("SELECT 1 FROM t WHERE {a = #| OR }", 4000),
    "5,000 WHEN": ("SELECT CASE {WHEN a = # THEN #| } END FROM t", 5000),
    "COALESCE of 5,000": ("SELECT COALESCE({nullif(a, #)}) FROM t", 5000),
    "20,000 patterns": ("SELECT 1 FROM t WHERE b LIKE ANY (ARRAY[{'%x#_y'}])", 20_000),
    "100,000 texts": ("SELECT 1 FROM t WHERE b IN ({'x#'})", 100_000),
    "150 joins": ("SELECT 1 FROM t x {JOIN t t# ON t#.id = x.id| }", 150),
    "views of views": ("SELECT 1 FROM {v5 x#}", 100),
    "a plan to explain": ("EXPLAIN SELECT {id + #} FROM t", 1600),
    "a wide view": ("CREATE VIEW w AS SELECT {id + # AS c#} FROM t", 1600),
    "400 checks": ("CREATE TABLE c ({c# INTEGER CHECK (c# > #)})", 400),
    "a text that cannot be read": ("SELECT {$a$ $b$ |}", 60_000),
}
CLEAN = {"54000", "54001", "54011", "57014", "42601"}


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(tuple(LONG), 2))
async def test_a_statement_that_takes_long_to_plan_holds_nobody_up(name: str) -> None:
    pattern, count = LONG[name]
    sql = text_of(pattern, count)
    given = list(range(count)) if "?" in pattern else None
    heart = Heart(pause=0.01)
    async with opened_sql(compute=compute_in_threads()) as database:
        await define(database)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(heart.beat)
            try:
                await database.execute(sql, given, timeout_ms=20_000)
            except QserverError as error:
                assert error.code in CLEAN, error
            nursery.cancel_scope.cancel()
    assert heart.worst_steps() < 144, "planning is not done on the loop"


async def define(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)")
    await database.execute("CREATE VIEW v0 AS SELECT id FROM t")
    for level in range(5):
        await database.execute(
            f"CREATE VIEW v{level + 1} AS SELECT x.id FROM v{level} x JOIN v{level} y USING (id)"
        )


@pytest.mark.half
async def test_a_deadline_ends_the_planning() -> None:
    sql = text_of("SELECT 1 FROM t WHERE {a = #| OR }", 20_000)
    async with opened_sql(compute=compute_in_threads(1)) as database:
        await define(database)
        for run in (database.execute, database.stream):
            with pytest.raises(QueryCanceled):
                await run(sql, timeout_ms=100)
        with pytest.raises(QueryCanceled):
            await database.transaction([Statement(sql)], timeout_ms=100)
        # The only thread there is has ended, or nobody could plan any more.
        long = text_of("SELECT id FROM t WHERE a IN ({#})", 2000)
        assert (await database.execute(long, timeout_ms=600_000)).rows == []


async def test_definitions_of_one_transaction_let_others_run() -> None:
    async with opened_sql() as database:
        statements = [Statement(f"CREATE TABLE t{at} (id INTEGER)") for at in range(100)]
        async with counted_passes() as passes:
            await database.transaction(statements)
    assert passes.count > 10


@pytest.mark.long
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (text_of("SELECT {#}", TARGETS_MAX), None),
        (text_of("SELECT {#}", TARGETS_MAX + 1), "54011"),
        (text_of("SELECT {(SELECT #)}", SOURCES_MAX + 1), "54000"),
        (text_of("SELECT 1 FROM (SELECT {#}) s", TARGETS_MAX + 1), "54011"),
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


@pytest.mark.long
@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME COLUMN a TO z",
        "ALTER TABLE t RENAME TO z",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t ALTER COLUMN b TYPE BIGINT",
    ],
)
async def test_a_definition_that_tries_a_long_snapshot_plans_it_as_any_other_long_statement(
    sql: str,
) -> None:
    computed = 0

    async def compute(work: Callable[[Check], Any]) -> Any:
        nonlocal computed
        computed += 1
        return await compute_here(work)

    async with opened_sql(compute=compute) as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
        await database.execute(text_of("CREATE VIEW v AS SELECT {a + # AS c#} FROM t", 600))
        computed = 0
        await database.execute(sql)
    assert computed >= 1
