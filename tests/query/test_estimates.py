"""Estimates of rows, beside the rows that there are; the same ones whatever ran before."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from statistics import median
from typing import Any

import pytest

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.limits import PLANNING_STEPS_MAX
from qserver.query.catalog_names import CatalogNames
from qserver.query.data_statistics import STEPS_OF_QUESTION, DataStatistics
from qserver.query.sql_database import SqlDatabase
from qserver.sql import NotShort, StepBudget
from tests.query.test_pages_loaded import opened_on
from tests.sql.databases import opened_sql

DEFINITIONS = (
    "CREATE TABLE fact (id int PRIMARY KEY, even int, skew int, rare int, city text, land int,"
    " day int, parent int NOT NULL, free int)",
    "CREATE INDEX fact_even ON fact (even)",
    "CREATE INDEX fact_skew ON fact (skew DESC)",
    "CREATE INDEX fact_rare ON fact (rare)",
    "CREATE INDEX fact_place ON fact (land, city)",
    "CREATE TABLE parent (id int PRIMARY KEY, kind int)",
    "CREATE TABLE pair (a int, b int, n int, PRIMARY KEY (a, b))",
)
ROWS = 12_000
PARENTS = 400
CLASSES: dict[str, tuple[tuple[float, float], Sequence[str]]] = {
    "values of an index": (
        (1.05, 1.2),
        [
            f"SELECT 1 FROM fact WHERE {column} = {value}"
            for column, value in (
                ("even", 7),
                ("even", 150),
                ("skew", 1),
                ("skew", 2),
                ("skew", 40),
                ("rare", 3),
            )
        ]
        + ["SELECT 1 FROM fact WHERE rare IS NULL", "SELECT 1 FROM fact WHERE rare IS NOT NULL"],
    ),
    "composite keys that depend on each other": (
        (1.3, 2.0),
        [f"SELECT 1 FROM fact WHERE city = 'c{at}' AND land = {at // 10}" for at in (3, 27, 68)]
        + [f"SELECT 1 FROM pair WHERE a = {at}" for at in (0, 5)]
        + ["SELECT 1 FROM pair WHERE a = 3 AND b = 4", "SELECT 1 FROM pair WHERE a IN (1, 2, 3)"],
    ),
    "ranges": (
        (1.05, 1.6),
        [f"SELECT 1 FROM fact WHERE id BETWEEN {at} AND {at * 3}" for at in (10, 200, 3000)]
        + [f"SELECT 1 FROM fact WHERE even < {at}" for at in (10, 100, 290)]
        + [f"SELECT 1 FROM fact WHERE day >= {at}" for at in (50, 150)]
        + ["SELECT 1 FROM fact WHERE skew > 3 AND skew <= 9"],
    ),
    "columns without an index": (
        (1.7, 8.0),
        [f"SELECT 1 FROM fact WHERE free = {at}" for at in (0, 3, 11)]
        + [f"SELECT 1 FROM fact WHERE city = 'c{at}'" for at in (1, 44)]
        + [
            "SELECT 1 FROM fact WHERE day = 33",
            "SELECT 1 FROM fact WHERE free <> 3",
            "SELECT 1 FROM fact WHERE NOT rare = 3",
            "SELECT 1 FROM fact WHERE parent = 9",
            "SELECT 1 FROM fact WHERE free IN (1, 2) OR day < 20",
        ],
    ),
    "joins": (
        (1.3, 4.0),
        [
            "SELECT 1 FROM fact JOIN parent ON parent.id = fact.parent",
            "SELECT 1 FROM fact JOIN parent ON parent.id = fact.parent WHERE kind = 2",
            "SELECT 1 FROM fact JOIN parent ON parent.id = fact.parent WHERE kind = 2 AND even = 9",
            "SELECT 1 FROM fact one JOIN fact other ON other.even = one.even",
            "SELECT 1 FROM pair JOIN parent ON parent.id = pair.a WHERE kind < 3",
            "SELECT 1 FROM fact JOIN pair ON pair.a = fact.free",
            "SELECT 1 FROM parent WHERE EXISTS (SELECT 1 FROM fact WHERE fact.parent = parent.id)",
            "SELECT 1 FROM parent WHERE id IN (SELECT a FROM pair)",
            "SELECT 1 FROM parent WHERE id NOT IN (SELECT a FROM pair WHERE a IS NOT NULL)",
        ],
    ),
    "groups": (
        (1.1, 8.0),
        [
            f"SELECT {columns}, count(*) FROM fact GROUP BY {columns}"
            for columns in ("even", "land, city", "skew", "rare", "free", "day", "parent", "id")
        ]
        + [
            "SELECT DISTINCT city FROM fact",
            "SELECT DISTINCT even, land FROM fact",
            "SELECT even, count(*) FROM fact WHERE id < 40 GROUP BY even",
            "SELECT kind FROM fact JOIN parent ON parent.id = parent GROUP BY kind",
        ],
    ),
}
"""By class, bounds of the median and of the worst factor between rows and their estimate."""


def rows_of_tables(seed: int) -> dict[str, list[str]]:
    chance = random.Random(seed)
    fact = []
    for at in range(1, ROWS + 1):
        skew = min(int(chance.paretovariate(1)), 5000)
        rare = chance.choice(["NULL", "NULL", "NULL", "NULL", str(chance.randrange(20))])
        city = chance.randrange(80)
        fact.append(
            f"({at}, {chance.randrange(300)}, {skew}, {rare}, 'c{city}', {city // 10}, {at // 60},"
            f" {chance.randrange(PARENTS)}, {chance.randrange(14)})"
        )
    parent = [f"({at}, {at % 7})" for at in range(PARENTS)]
    pair = [f"({at % 25}, {at // 25}, {at})" for at in range(2500)]
    return {"fact": fact, "parent": parent, "pair": pair}


async def filled(database: SqlDatabase, rows: dict[str, list[str]]) -> None:
    for each in DEFINITIONS:
        await database.execute(each)
    for table, values in rows.items():
        for at in range(0, len(values), 1000):
            some = ", ".join(values[at : at + 1000])
            await database.execute(f"INSERT INTO {table} VALUES {some}")


async def explained(database: SqlDatabase, sql: str, options: str) -> Any:
    ((text,),) = (await database.execute(f"EXPLAIN (FORMAT JSON, {options}) {sql}")).rows
    return json.loads(text)[0]["Plan"]


def errors_of(node: dict[str, Any]) -> Iterator[float]:
    """Yield the factors between estimated and real rows, of a node and of those below."""
    if "Plan Rows" in node and node.get("Actual Loops", 1) == 1:
        estimated, real = max(1, node["Plan Rows"]), max(1, node["Actual Rows"])
        yield max(estimated / real, real / estimated)
    for below in node.get("Plans", ()):
        yield from errors_of(below)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
async def test_estimates_are_near_what_is_found(seed: int) -> None:
    async with opened_sql() as database:
        await filled(database, rows_of_tables(seed))
        for name, ((middle, worst), queries) in CLASSES.items():
            errors = {}
            for sql in queries:
                found = await explained(database, sql, "ANALYZE, TIMING OFF")
                errors[sql] = next(errors_of(found))
            about = f"{name}: {errors}"
            assert median(errors.values()) <= middle, about
            assert max(errors.values()) <= worst, about


QUERIES = [sql for _, queries in CLASSES.values() for sql in queries]
BOUND = (
    "SELECT 1 FROM fact JOIN parent ON parent.id = fact.parent WHERE even = $1 AND kind = $2",
    "SELECT 1 FROM fact JOIN pair ON pair.a = fact.free WHERE city = $1 AND n < $2::int",
    "SELECT even FROM fact WHERE skew = $1 AND even = $2 ORDER BY even LIMIT 3",
)


async def plans(database: SqlDatabase, queries: Sequence[str] = QUERIES) -> dict[str, Any]:
    found = {sql: await explained(database, sql, "SUMMARY OFF") for sql in queries}
    for sql in BOUND:
        asked = f"EXPLAIN (FORMAT JSON, SUMMARY OFF) {sql}"
        found[sql] = (await database.execute(asked, ["3", "5"])).rows
    return found


@pytest.mark.long
async def test_plans_follow_from_the_rows_and_not_from_their_history() -> None:
    rows = rows_of_tables(1)
    log = MemoryLog()
    async with opened_on(log, PageCache()) as (engine, database):
        await filled(database, rows)
        expected = await plans(database)
        for sql in QUERIES:
            await database.execute(sql)
        assert await plans(database) == expected, "after all statements have run"
        await engine.checkpoint()
    async with opened_on(log, PageCache()) as (_, database):
        assert await plans(database) == expected, "after a restart, of pages that are not here"
        assert await plans(database, QUERIES[::-1]) == expected, "of pages that are"
    shuffled = {name: random.Random(3).sample(some, len(some)) for name, some in rows.items()}
    async with opened_sql() as database:
        await filled(database, shuffled)
        await database.execute("UPDATE fact SET even = even + 1")
        await database.execute("UPDATE fact SET even = even - 1")
        assert await plans(database) == expected, "with the rows inserted in another order"


@pytest.mark.long
async def test_a_statement_that_is_planned_elsewhere_has_the_same_estimates() -> None:
    rows = rows_of_tables(1)
    async with opened_sql() as database:
        await filled(database, rows)
        short = "FROM fact JOIN pair ON pair.a = fact.free WHERE city = 'c1' AND n < 100"
        items = ", ".join(map(str, range(PLANNING_STEPS_MAX)))
        expected = await explained(database, f"SELECT 1 {short}", "SUMMARY OFF")
        found = await explained(database, f"SELECT greatest({items}) {short}", "SUMMARY OFF")
        scans = [list(map(rows_below, (plan,))) for plan in (expected, found)]
        assert scans[0] == scans[1]


def rows_below(node: dict[str, Any]) -> list[Any]:
    return [node.get("Plan Rows"), *map(rows_below, node.get("Plans", ()))]


@pytest.mark.parametrize("first", ["few", "many"])
async def test_of_several_indexes_the_one_with_fewer_rows_is_used(first: str) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id int PRIMARY KEY, few int, many int, more int)")
        for column in (first, "many" if first == "few" else "few"):
            await database.execute(f"CREATE INDEX t_{column} ON t ({column})")
        await database.execute("CREATE INDEX t_both ON t (few, more)")
        await database.execute(
            "INSERT INTO t SELECT n, n % 5, n % 1000, n % 3 FROM generate_series(1, 5000) n"
        )
        for condition, index in (
            ("few = 3 AND many = 8", "t_many"),
            ("many IN (1, 2, 3) AND few = 3 AND more = 1", "t_many"),
            ("few = 3 AND more = 1", "t_both"),
            ("few = $1 AND many = $2", "t_many"),
        ):
            given = ["3", "8"] if "$" in condition else None
            sql = f"EXPLAIN SELECT * FROM t WHERE {condition}"
            lines = (await database.execute(sql, given)).rows
            assert any(f"using {index} " in line for (line,) in lines), (condition, lines)
        sql = "EXPLAIN SELECT * FROM t WHERE few = 3 AND many = 8 AND id = 8"
        lines = (await database.execute(sql)).rows
        assert any("Key Lookup" in line for (line,) in lines), "one row is the least"


@pytest.fixture
async def few_rows() -> AsyncIterator[SqlDatabase]:
    async with opened_sql() as database:
        await filled(database, rows_of_tables(1))
        yield database


@pytest.mark.half
async def test_what_rows_tell_counts_as_steps_of_planning(few_rows: SqlDatabase) -> None:
    snapshot = await few_rows.database.wait_durable_snapshot()
    fact = snapshot.catalog.tables["fact"]
    asked = iter(range(1, len(fact.columns)))
    statistics = DataStatistics(snapshot.trees, StepBudget.short(3 * STEPS_OF_QUESTION))
    for _ in range(3):
        position = next(asked)
        assert statistics.distinct(fact, (position,)) is not None
        assert statistics.distinct(fact, (position,)) is not None, "what is known costs nothing"
    with pytest.raises(NotShort):
        statistics.distinct(fact, (next(asked),))


@pytest.mark.half
async def test_what_is_wanted_elsewhere_is_read_in_steps_and_is_the_same(
    few_rows: SqlDatabase,
) -> None:
    snapshot = await few_rows.database.wait_durable_snapshot()
    fact = snapshot.catalog.tables["fact"]
    here = DataStatistics(snapshot.trees)
    elsewhere = DataStatistics(snapshot.trees, may_read=False)

    def answers(statistics: DataStatistics) -> list[Any]:
        return [
            *(statistics.distinct(fact, (at,)) for at in range(1, len(fact.columns))),
            *(statistics.share_equal(fact, {at: 1}) for at in (1, 2, 3, 5, 6, 8)),
            *(statistics.share_between(fact, at, (1, True), (9, False)) for at in (1, 2, 6)),
        ]

    assert answers(elsewhere) == [None] * 17
    steps = elsewhere.read()
    assert sum(1 for _ in steps) == 17
    assert answers(elsewhere) == answers(here)
    assert sum(1 for _ in elsewhere.read()) == 0, "an answer wants to know nothing more"


@pytest.mark.half
async def test_who_only_checks_a_statement_reads_no_page(few_rows: SqlDatabase) -> None:
    snapshot = await few_rows.database.wait_durable_snapshot()
    names = CatalogNames(snapshot.catalog, snapshot)
    assert names.statistics.distinct(snapshot.catalog.tables["fact"], (1,)) is None
