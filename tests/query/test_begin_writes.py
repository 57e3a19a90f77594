"""Writing by `begin`: tried here or run by the coordinator, it comes to the same.

    begin ─┬─ when_replied ─┬─ done(result), when it is durable
           │                ├─ done(error)
           │                └─ done(rest): it has to wait for something else
           └─ rest: it yielded before its commit was sent

When and how often `done` is called is the matter of `test_begin_ends`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.engine.messages import Commit
from qserver.engine.work import Rest, finish
from qserver.errors import Forbidden, QserverError, TooManyRequests
from qserver.query.permissions import Allowed
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement, TransactionResult
from qserver.sql.parameters import Given
from tests.engine.fakes import Laboratory
from tests.query.begun import (
    INCREMENT,
    SERIAL,
    Ends,
    begin,
    begin_nowait,
    count_runs,
    ended,
    filled,
    hits,
    in_laboratory,
    known,
    outcome_of,
    plan_of,
    send,
)
from tests.sampling import sampled
from tests.sql.databases import opened_sql

ROUNDS = 8

# --- both routes ----------------------------------------------------------------------------------

Case = tuple[str, Callable[[int], Given]]

STATEMENTS: dict[str, Case] = {
    "insert, numbered": ("INSERT INTO t (a, n) VALUES ($1, $2)", lambda i: [f"a{i}", i]),
    "insert, named": ("INSERT INTO t (a, n) VALUES (:a, :n)", lambda i: {"a": f"a{i}", "n": i}),
    "insert, asked": ("INSERT INTO t (a, n) VALUES (?, ?)", lambda i: [None, i]),
    "insert, literal": ("INSERT INTO t (a, n, x) VALUES ('it''s', 5, 1.50)", lambda i: None),
    "insert, defaults": ("INSERT INTO t DEFAULT VALUES RETURNING *", lambda i: None),
    "insert, several": (
        "INSERT INTO t (a, n) VALUES ($1, 1), ($1, 2), (DEFAULT, DEFAULT) RETURNING id, a, n",
        lambda i: [f"a{i}"],
    ),
    "insert, from a query": (
        "INSERT INTO t (a, n) SELECT name, id FROM parents WHERE id < $1 RETURNING id",
        lambda i: [i % 4],
    ),
    "insert, as a text": ("INSERT INTO t (n, x) VALUES ($1, $2)", lambda i: [str(i), "2.50"]),
    "insert, refers": ("INSERT INTO t (parent) VALUES ($1) RETURNING parent", lambda i: [i]),
    "upsert": (
        "INSERT INTO counters VALUES ($1, 1) ON CONFLICT (id) DO UPDATE"
        " SET hits = counters.hits + excluded.hits RETURNING id, hits",
        lambda i: [i % 3],
    ),
    "upsert, nothing": (
        "INSERT INTO counters VALUES ($1, 1), ($2, 1) ON CONFLICT DO NOTHING RETURNING id",
        lambda i: [i % 3, 100 + i],
    ),
    "update": ("UPDATE t SET n = n + $1 WHERE id = $2", lambda i: [i, 1 + i % 5]),
    "update, returning": (INCREMENT, lambda i: [i % 2]),
    "update, several": (
        "UPDATE t SET a = upper(a), n = n * 2 WHERE id <= $1 RETURNING id, n",
        lambda i: [i % 5 + 1],
    ),
    "update, from": (
        "UPDATE t SET a = p.name || $1 FROM parents AS p WHERE p.id = t.parent AND t.id < 4",
        lambda i: [str(i)],
    ),
    "update, unique": ("UPDATE parents SET name = $1 WHERE id = 3", lambda i: [f"new {i}"]),
    "update, refers": ("UPDATE t SET parent = $1 WHERE id = 1", lambda i: [i]),
    "delete": ("DELETE FROM t WHERE id = $1", lambda i: [i + 1]),
    "delete, returning": ("DELETE FROM wards WHERE id = $1 RETURNING *", lambda i: [i]),
    "delete, cascade": ("DELETE FROM parents WHERE id = $1 RETURNING name", lambda i: [29 - i % 9]),
    "with": (
        "WITH gone AS (DELETE FROM wards WHERE id = $1 RETURNING id)"
        " INSERT INTO counters SELECT id + 1000, 0 FROM gone RETURNING id",
        lambda i: [i],
    ),
    "a time": ("UPDATE t SET at = now() WHERE id = $1 RETURNING at", lambda i: [1 + i % 3]),
}


async def contents(database: SqlDatabase) -> list[Any]:
    tables = ("parents", "t", "wards", "counters")
    return [(await database.execute(f"SELECT * FROM {each} ORDER BY 1")).rows for each in tables]


def let_all_be_tried(database: SqlDatabase) -> None:
    for kept in database.planner.cache._fingerprints.values():
        for plan in kept.plans.values():
            plan.may_yield = True


@pytest.mark.parametrize("name", sampled(tuple(STATEMENTS), 10))
async def test_a_statement_comes_to_the_same_tried_or_run_by_the_coordinator(name: str) -> None:
    sql, given_in = STATEMENTS[name]
    async with opened_sql() as database, opened_sql() as twin:
        await filled(database)
        await filled(twin)
        for at in range(ROUNDS):
            statements = [Statement(sql, given_in(at))]
            let_all_be_tried(twin)
            assert await outcome_of(database, statements) == await outcome_of(twin, statements)
        assert not plan_of(database, sql).may_yield
        assert await contents(database) == await contents(twin)


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(
    names=st.lists(st.sampled_from([*STATEMENTS, "select"]), min_size=1, max_size=4),
    shards=st.sampled_from([1, 4]),
)
async def test_a_transaction_comes_to_the_same_tried_or_run_by_the_coordinator(
    names: list[str], shards: int
) -> None:
    cases = {**STATEMENTS, "select": ("SELECT n, a FROM t WHERE id = $1", lambda i: [i])}
    async with opened_sql(shards=shards) as database, opened_sql(shards=shards) as twin:
        await filled(database)
        await filled(twin)
        for at in range(ROUNDS):
            statements = [Statement(cases[name][0], cases[name][1](at)) for name in names]
            let_all_be_tried(twin)
            assert await outcome_of(database, statements) == await outcome_of(twin, statements)
        assert await contents(database) == await contents(twin)


async def test_statements_of_one_transaction_see_what_those_before_them_wrote() -> None:
    async with opened_sql() as database:
        await filled(database)
        statements = [
            Statement(INCREMENT, [0]),
            Statement("SELECT hits FROM counters WHERE id = $1", [0]),
            Statement(INCREMENT, [0]),
        ]
        await database.transaction(statements)
        outcome = await send(database, statements).wait()
        assert isinstance(outcome, TransactionResult)
        rows = [each.rows for each in outcome.results]
        assert rows == [[(3,)], [(3,)], [(4,)]]
        assert {each.version for each in outcome.results} == {outcome.version}
        assert await hits(database) == 4


# --- which route ----------------------------------------------------------------------------------


def routes(world: Laboratory) -> list[str]:
    """How the commits that were sent came to be."""
    commits = [message for _, message in world.sent if isinstance(message, Commit)]
    return ["untried" if each.transaction is None else "tried" for each in commits]


async def test_what_is_known_is_left_to_the_coordinator_and_what_is_new_is_tried() -> None:
    async with in_laboratory() as (database, world, _):
        world.sent.clear()
        new = Statement("UPDATE counters SET hits = 3 WHERE id = 1 AND hits > 2")
        for _ in range(2):
            await send(database, [Statement(INCREMENT, [0])]).wait()
        await send(database, [Statement(INCREMENT, [0]), new]).wait()
        await database.execute(INCREMENT, [0])
        assert routes(world) == ["tried", "untried", "tried", "untried"]
        assert await hits(database) == 4


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY)",
        "DROP TABLE IF EXISTS wards",
        "TRUNCATE wards",
        "INSERT INTO counters SELECT 500, count(*) FROM information_schema.tables"
        " ON CONFLICT DO NOTHING",
        "INSERT INTO t (n) VALUES (setval('t_id_seq', nextval('t_id_seq') + 10)::int)",
    ],
)
async def test_what_defines_or_sets_or_reads_system_tables_comes_to_its_end(sql: str) -> None:
    async with opened_sql() as database, opened_sql() as twin:
        await filled(database)
        await filled(twin)
        for _ in range(3):
            expected = (await twin.execute(sql)).affected_rows
            outcome = await ended(database, [Statement(sql)])
            assert [each.affected_rows for each in outcome.results] == [expected]


async def many_rows(database: SqlDatabase, rows: int) -> None:
    await database.execute("CREATE TABLE many (id INT PRIMARY KEY, n INT)")
    await database.execute(f"INSERT INTO many SELECT i, 0 FROM generate_series(1, {rows}) s(i)")


async def test_a_plan_that_yields_is_no_longer_left_to_the_coordinator() -> None:
    async with opened_sql() as database:
        await filled(database)
        await many_rows(database, 5000)
        sql = "UPDATE many SET n = n + 1"
        both = [Statement(INCREMENT, [0]), Statement(sql)]
        await ended(database, both)
        learned = [plan_of(database, each.sql).may_yield for each in both]
        assert learned == [False, True], "only the one that yielded"
        plan_of(database, sql).may_yield = False
        outcome = await send(database, both).wait()
        assert isinstance(outcome, Rest), "the coordinator could not run it"
        assert (await finish(outcome)).retries == 0, "that is no conflict"
        assert plan_of(database, sql).may_yield
        begun = begin_nowait(database, both, RunOptions(), Ends())
        assert isinstance(begun, Rest), "it is tried here, and yields"
        await finish(begun)
        assert await hits(database) == 3
        found = await database.execute("SELECT min(n), max(n) FROM many")
        assert found.rows == [(3, 3)]


@pytest.mark.parametrize("rows", ["", " WHERE (id % 400)::text = '0'"])
async def test_more_than_a_page_of_rows_is_not_for_the_coordinator(rows: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        await many_rows(database, 9000)
        sql = f"SELECT id, n FROM many{rows}"
        await known(database, INCREMENT, [0])
        await known(database, sql)
        assert plan_of(database, sql).may_yield
        plan_of(database, sql).may_yield = False
        outcome = await send(database, [Statement(INCREMENT, [0]), Statement(sql)]).wait()
        assert isinstance(outcome, Rest)
        assert len((await finish(outcome)).results[1].rows) == (22 if rows else 9000)
        assert plan_of(database, sql).may_yield


async def test_who_yields_because_of_another_statement_is_not_to_blame() -> None:
    """The one that did most of the work is."""
    async with opened_sql() as database:
        await filled(database)
        await many_rows(database, 2040)
        heavy, light = (
            "SELECT count(*) FROM many WHERE n::text = '0'",
            "INSERT INTO counters VALUES ($1, 0)",
        )
        await known(database, heavy)
        await known(database, light, [100])
        both = [Statement(heavy), *(Statement(light, [each]) for each in range(200, 220))]
        outcome = await send(database, both).wait()
        assert isinstance(outcome, Rest)
        await finish(outcome)
        assert plan_of(database, heavy).may_yield
        assert not plan_of(database, light).may_yield


async def test_many_statements_are_not_for_the_coordinator() -> None:
    async with in_laboratory() as (database, world, _):
        await known(database, INCREMENT, [0])
        world.sent.clear()
        await ended(database, [Statement(INCREMENT, [0]) for _ in range(200)])
        assert routes(world) == ["tried"]
        assert await hits(database) == 201


async def test_a_table_that_was_redefined_is_changed_by_its_new_definition() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "UPDATE counters SET hits = hits + 1 WHERE id = $1 RETURNING *"
        await known(database, sql, [0])
        await database.execute("ALTER TABLE counters ADD COLUMN more INT DEFAULT 9")
        outcome = await send(database, [Statement(sql, [0])]).result()
        assert outcome.results[0].rows == [(0, 2, 9)]


async def test_before_a_database_can_be_read_everything_has_to_wait() -> None:
    world = Laboratory()
    database = SqlDatabase(Database(MemoryLog(), world, shards=1), world)
    ends = Ends()
    begun = begin_nowait(database, [Statement(INCREMENT, [0])], RunOptions(), ends)
    assert isinstance(begun, Rest)
    begun.close()
    assert ends.told == []


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tried", [False, True])
@pytest.mark.parametrize(
    ("sql", "good", "bad", "code"),
    [
        ("INSERT INTO counters VALUES ($1, 0)", [9], [0], "23505"),
        ("INSERT INTO t (n, x) VALUES (1, 1.0 / $1)", [4], [0], "22012"),
        ("INSERT INTO t (n) VALUES (10 / $1)", [4], [0], "22012"),
        ("INSERT INTO t (n) VALUES ($1)", [4], [None], "23502"),
        ("INSERT INTO t (n) VALUES ($1)", [4], [-1], "23514"),
        ("INSERT INTO t (parent) VALUES ($1)", [4], [4000], "23503"),
        ("INSERT INTO t (n) VALUES ($1)", [4], ["x"], "22P02"),
        ("INSERT INTO t (n) VALUES ($1)", [4], [], "08P01"),
        ("INSERT INTO t (n) VALUES ($1)", [4], {"n": 4}, "08P01"),
        ("INSERT INTO t (n) VALUES ($1)", [4], [2**40], "22003"),
        ("UPDATE parents SET name = $1 WHERE id = 1", ["a"], ["parent 2"], "23505"),
        ("INSERT INTO t (x) VALUES (9e99999 * $1)", [0], ["9e99999"], "22003"),
    ],
)
async def test_what_fails_is_run_once_and_leaves_nothing(
    sql: str, good: Given, bad: Given, code: str, tried: bool
) -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        await known(database, sql, good)
        plan = plan_of(database, INCREMENT)
        plan.may_yield = tried
        runs = count_runs(plan)
        with pytest.raises(QserverError) as caught:
            await ended(database, [Statement(INCREMENT, [0]), Statement(sql, bad)])
        assert (caught.value.code, caught.value.statement) == (code, 1)
        assert len(runs) == 1
        assert await hits(database) == 1


async def test_who_may_not_is_told_so() -> None:
    async with opened_sql() as database:
        await filled(database)
        select = "SELECT hits FROM counters WHERE id = $1"
        await known(database, INCREMENT, [0])
        await known(database, select, [0])
        write = [Statement(INCREMENT, [0])]
        reader, writer = Allowed(write=False, define=False), Allowed(read=False)
        mixed = [*write, Statement(select, [0])]
        for statements, allowed in ((write, reader), (mixed, writer)):
            ends = send(database, statements, allowed)
            assert isinstance(await ends.wait(), Forbidden)
        assert isinstance(await send(database, write, writer).wait(), TransactionResult)
        assert await hits(database) == 2


# --- sequences ------------------------------------------------------------------------------------


async def test_numbers_are_given_out_in_order_and_none_twice() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, SERIAL, [1])
        failing = "INSERT INTO t (n, parent) VALUES ($1, 12 / $1)"
        await known(database, failing, [12])
        statements = [Statement(SERIAL, [1]), Statement(SERIAL, [2])]
        drawn = []
        for _ in range(100):
            with pytest.raises(QserverError, match="division by zero"):
                await ended(database, [*statements, Statement(failing, [0])])
            result = await ended(database, statements)
            drawn += [row[0] for each in result.results for row in each.rows]
        assert drawn == sorted(set(drawn)) and len(drawn) == 200
        assert drawn[-1] - drawn[0] < 500, "only numbers that were used are lost"


async def test_a_sequence_of_which_none_was_ever_drawn_has_to_wait() -> None:
    async with opened_sql() as database:
        await filled(database)
        await database.execute("CREATE TABLE fresh (id SERIAL PRIMARY KEY, n INT)")
        sql = "INSERT INTO fresh (n) SELECT hits FROM counters WHERE id = $1 RETURNING id"
        await known(database, sql, [-1])
        outcome = await begin(database, sql, [0]).wait()
        assert isinstance(outcome, Rest)
        assert (await finish(outcome)).results[0].rows == [(1,)]
        assert (await begin(database, sql, [0]).result()).results[0].rows == [(2,)]


async def test_a_number_of_one_that_found_the_mailbox_full_is_the_next_one() -> None:
    async with in_laboratory() as (database, _, _):
        await known(database, SERIAL, [1])
        last = (await database.execute(SERIAL, [1])).rows[0][0]
        told: list[Ends] = []
        ends = Ends()
        with pytest.raises(TooManyRequests):
            while begin_nowait(database, [Statement(SERIAL, [1])], RunOptions(), ends) is None:
                told.append(ends)
                ends = Ends()
                assert len(told) <= 3, "the mailbox is small"
        assert told
        for each in told:
            assert isinstance(await each.wait(), TransactionResult)
        after = (await database.execute(SERIAL, [1])).rows[0][0]
        assert after == last + len(told) + 1
        assert ends.told == []
