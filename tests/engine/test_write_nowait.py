"""Writing without waiting: what `execute` and `transaction` would do, or nothing at all.

    write_nowait ─┬─ False                nothing was sent: no plan is kept, or nothing writes
                  └─ True, and later ─┬─ its results
                                      └─ None: nothing is left of it, not even a gap in a sequence

When and how often it tells of the end is the matter of `test_write_nowait_ends`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.engine.permissions import Allowed
from qserver.engine.sql_gateway import SqlDatabase, Statement, TransactionResult
from qserver.errors import InsufficientPrivilege, QserverError
from qserver.sql.parameters import Given
from tests.engine.begun import (
    INCREMENT,
    SERIAL,
    USES_UNTIL_KNOWN,
    Ends,
    begin,
    by_any_way,
    by_transaction,
    came_to_nothing,
    filled,
    footprint,
    hits,
    in_laboratory,
    known,
    plain,
    refused,
    shape_of,
)
from tests.engine.fakes import Laboratory
from tests.sql.databases import opened_sql

ROUNDS = 14
"""So often that at the end some of them were begun without waiting."""

# --- the same results -----------------------------------------------------------------------------

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


async def as_one(database: SqlDatabase, statements: list[Statement]) -> TransactionResult | str:
    try:
        result = await database.execute(statements[0].sql, statements[0].parameters)
    except QserverError as error:
        return repr(error)
    return plain(TransactionResult([result], result.version, result.retries))


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_statement_comes_to_what_execute_makes_of_it(name: str) -> None:
    sql, given_in = STATEMENTS[name]
    async with opened_sql() as database, opened_sql() as twin:
        await filled(database)
        await filled(twin)
        begun = 0
        for at in range(ROUNDS):
            statements = [Statement(sql, given_in(at))]
            expected = await as_one(twin, statements)
            found, at_once = await by_any_way(database, statements)
            assert found == expected
            begun += at_once
        assert begun >= 2
        assert await contents(database) == await contents(twin)


@settings(max_examples=15, deadline=None)
@given(
    names=st.lists(st.sampled_from([*STATEMENTS, "select"]), min_size=1, max_size=4),
    shards=st.sampled_from([1, 4]),
)
async def test_a_transaction_comes_to_what_transaction_makes_of_it(
    names: list[str], shards: int
) -> None:
    cases = {**STATEMENTS, "select": ("SELECT n, a FROM t WHERE id = $1", lambda i: [i])}
    async with opened_sql(shards=shards) as database, opened_sql(shards=shards) as twin:
        await filled(database)
        await filled(twin)
        for at in range(ROUNDS):
            statements = [Statement(cases[name][0], cases[name][1](at)) for name in names]
            expected = await by_transaction(twin, statements)
            found, _ = await by_any_way(database, statements)
            assert found == expected
        assert await contents(database) == await contents(twin)


async def test_statements_of_one_transaction_see_what_those_before_them_wrote() -> None:
    async with opened_sql() as database:
        await filled(database)
        statements = [
            Statement(INCREMENT, [0]),
            Statement("SELECT hits FROM counters WHERE id = $1", [0]),
            Statement(INCREMENT, [0]),
        ]
        for _ in range(USES_UNTIL_KNOWN):
            await database.transaction(statements)
        before = await hits(database)
        ends = Ends()
        assert database.write_nowait(statements, ends)
        outcome = await ends.wait()
        assert isinstance(outcome, TransactionResult)
        rows = [each.rows for each in outcome.results]
        assert rows == [[(before + 1,)], [(before + 1,)], [(before + 2,)]]
        assert await hits(database) == before + 2


# --- what is not taken on -------------------------------------------------------------------------


async def test_a_shape_that_is_not_known_is_refused_alone_or_among_others() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        new = Statement("UPDATE counters SET hits = 3 WHERE id = 1 AND hits > 2")
        await refused(database, [new])
        await refused(database, [Statement(INCREMENT, [0]), new])
        assert await hits(database) == USES_UNTIL_KNOWN


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY)",
        "DROP TABLE IF EXISTS u",
        "TRUNCATE wards",
        "SELECT hits FROM counters WHERE id = 0",
        "SELECT nextval('t_id_seq')",
        "SELECT table_name FROM information_schema.tables",
        "INSERT INTO counters SELECT 500, count(*) FROM information_schema.tables"
        " ON CONFLICT DO NOTHING",
        "EXPLAIN UPDATE counters SET hits = 1 WHERE id = 0",
        "SELECT setval('t_id_seq', 100)",
    ],
)
async def test_what_defines_or_cannot_write_or_reads_system_tables_is_refused(sql: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        for _ in range(USES_UNTIL_KNOWN):
            await database.execute(sql)
        await refused(database, [Statement(sql)])


# --- what comes to nothing ------------------------------------------------------------------------


async def test_what_draws_a_number_and_sets_the_sequence_comes_to_nothing_and_draws_none() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "INSERT INTO t (n) VALUES (setval('t_id_seq', nextval('t_id_seq') + 10)::int)"
        await known(database, sql)
        await known(database, SERIAL, [1])
        await came_to_nothing(database, [Statement(sql)])


async def test_a_plan_that_gives_way_comes_to_nothing_and_is_not_taken_on_again() -> None:
    async with opened_sql() as database:
        await filled(database)
        await database.execute("CREATE TABLE many (id INT PRIMARY KEY, n INT)")
        await database.execute("INSERT INTO many SELECT i, 0 FROM generate_series(1, 5000) s(i)")
        sql = "UPDATE many SET n = n + 1"
        await known(database, sql)
        await known(database, INCREMENT, [0])
        both = [Statement(INCREMENT, [0]), Statement(sql)]
        await came_to_nothing(database, both)
        shapes = database.planner.cache._shapes
        kept = [shapes[shape_of(database, each.sql)] for each in both]
        turns = [plan.takes_turns for each in kept for plan in each.plans.values()]
        assert turns == [False, True], "only the one that gave way"
        await refused(database, [Statement(sql)])
        await refused(database, both)
        assert await hits(database) == USES_UNTIL_KNOWN
        await begin(database, INCREMENT, [0]).wait()
        assert await hits(database) == USES_UNTIL_KNOWN + 1
        found = await database.execute("SELECT min(n), max(n) FROM many")
        assert found.rows == [(USES_UNTIL_KNOWN, USES_UNTIL_KNOWN)]


@pytest.mark.parametrize("rows", ["", " WHERE id % 400 = 0"])
async def test_more_than_a_page_of_rows_is_not_for_the_coordinator(rows: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        await database.execute("CREATE TABLE many (id INT PRIMARY KEY, n INT)")
        await database.execute("INSERT INTO many SELECT i, 0 FROM generate_series(1, 9000) s(i)")
        sql = f"SELECT id, n FROM many{rows}"
        await known(database, INCREMENT, [0])
        await known(database, sql)
        await came_to_nothing(database, [Statement(INCREMENT, [0]), Statement(sql)])
        await refused(database, [Statement(INCREMENT, [0]), Statement(sql)])


async def test_who_gives_way_because_of_another_statement_is_not_to_blame() -> None:
    """The one that did most of the work is; the others are taken on again."""
    async with opened_sql() as database:
        await filled(database)
        await database.execute("CREATE TABLE many (id INT PRIMARY KEY, n INT)")
        await database.execute("INSERT INTO many SELECT i, 0 FROM generate_series(1, 2040) s(i)")
        heavy, light = (
            "SELECT count(*) FROM many WHERE n = 0",
            "INSERT INTO counters VALUES ($1, 0)",
        )
        await known(database, heavy)
        for number in range(100, 100 + USES_UNTIL_KNOWN):
            await database.execute(light, [number])
        both = [Statement(heavy), *(Statement(light, [each]) for each in range(200, 220))]
        await came_to_nothing(database, both)
        shapes = database.planner.cache._shapes
        kept = [shapes[shape_of(database, sql)].plans.values() for sql in (heavy, light)]
        assert [plan.takes_turns for plans in kept for plan in plans] == [True, False]
        await refused(database, both)


@pytest.mark.parametrize(
    ("sql", "good", "bad", "code"),
    [
        ("INSERT INTO counters VALUES ($1, 0)", [[9]], [0], "23505"),
        ("INSERT INTO t (n, x) VALUES (1, 1.0 / $1)", [[4]], [0], "22012"),
        ("INSERT INTO t (n) VALUES (10 / $1)", [[4]], [0], "22012"),
        ("INSERT INTO t (n) VALUES ($1)", [[4]], [None], "23502"),
        ("INSERT INTO t (n) VALUES ($1)", [[4]], [-1], "23514"),
        ("INSERT INTO t (parent) VALUES ($1)", [[4]], [4000], "23503"),
        ("INSERT INTO t (n) VALUES ($1)", [[4]], ["x"], "22P02"),
        ("INSERT INTO t (n) VALUES ($1)", [[4]], [], "08P01"),
        ("INSERT INTO t (n) VALUES ($1)", [[4]], {"n": 4}, "08P01"),
        ("INSERT INTO t (n) VALUES ($1)", [[4]], [2**40], "22003"),
        ("UPDATE parents SET name = $1 WHERE id = 1", [["a"], ["b"]], ["parent 2"], "23505"),
    ],
)
async def test_an_error_is_told_by_the_ordinary_way_and_leaves_nothing_not_even_a_gap(
    sql: str, good: list[Given], bad: Given, code: str
) -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        await known(database, sql, *good)
        await known(database, SERIAL, [1])
        last = (await database.execute(SERIAL, [1])).rows[0][0]
        both = [Statement(INCREMENT, [0]), Statement(SERIAL, [1]), Statement(sql, bad)]
        for statements in ([Statement(sql, bad)], both):
            await came_to_nothing(database, statements)
            with pytest.raises(QserverError) as ordinary:
                await database.transaction(statements)
            assert ordinary.value.code == code
            assert ordinary.value.statement == len(statements) - 1
        assert await hits(database) == USES_UNTIL_KNOWN
        after = (await database.execute(SERIAL, [1])).rows[0][0]
        assert after - last <= 4, "only the ordinary way draws numbers that are lost"


async def test_of_who_may_not_nothing_comes() -> None:
    async with opened_sql() as database:
        await filled(database)
        select = "SELECT hits FROM counters WHERE id = $1"
        await known(database, INCREMENT, [0])
        await known(database, SERIAL, [1])
        await known(database, select, [0])
        write = [Statement(SERIAL, [1]), Statement(INCREMENT, [0])]
        reader, writer = Allowed(write=False, define=False), Allowed(read=False)
        mixed = [*write, Statement(select, [0])]
        for statements, allowed in ((write, reader), (mixed, writer)):
            await came_to_nothing(database, statements, allowed)
            with pytest.raises(InsufficientPrivilege):
                await database.transaction(statements, allowed=allowed)
        ends = Ends()
        assert database.write_nowait(write, ends, writer)
        assert isinstance(await ends.wait(), TransactionResult)


async def test_a_table_that_was_redefined_is_refused_until_its_plan_was_made_anew() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        await database.execute("ALTER TABLE counters ADD COLUMN more INT DEFAULT 9")
        await refused(database, [Statement(INCREMENT, [0])])
        await known(database, INCREMENT, [0])
        await begin(database, INCREMENT, [0]).wait()
        assert await hits(database) == 2 * USES_UNTIL_KNOWN + 1


async def test_before_a_database_can_be_read_everything_is_refused() -> None:
    world = Laboratory()
    database = SqlDatabase(Database(MemoryLog(), world, shards=1), world)
    ends = Ends()
    assert database.write_nowait([Statement(INCREMENT, [0])], ends) is False
    assert ends.told == []


# --- sequences ------------------------------------------------------------------------------------


async def test_numbers_are_given_out_without_a_gap_and_none_twice() -> None:
    async with opened_sql() as database:
        await filled(database)
        first = (await database.execute(SERIAL, [1])).rows[0][0]
        failing = "INSERT INTO t (n, parent) VALUES ($1, 12 / $1)"
        await known(database, failing, [12])
        statements = [Statement(SERIAL, [1]), Statement(SERIAL, [2])]
        drawn = []
        begun = failed = 0
        for _ in range(100):
            ends = Ends()
            if database.write_nowait([*statements, Statement(failing, [0])], ends):
                failed += 1
                assert await ends.wait() is None
            found, at_once = await by_any_way(database, statements)
            assert isinstance(found, TransactionResult)
            drawn += [row[0] for each in found.results for row in each.rows]
            begun += at_once
        begins = first + 1 + USES_UNTIL_KNOWN
        assert drawn == list(range(begins, begins + 200))
        assert begun > 50 and failed > 50


async def test_numbers_of_those_that_fail_go_to_those_behind_them_in_the_same_turn() -> None:
    async with opened_sql() as database:
        await filled(database)
        failing = "INSERT INTO t (n, parent) VALUES ($1, 12 / $1)"
        await known(database, failing, [12])
        await known(database, SERIAL, [1])
        last = (await database.execute(SERIAL, [1])).rows[0][0]
        pair = [Statement(SERIAL, [1]), Statement(failing, [0])]
        good, bad = [], []
        for _ in range(3):
            good.append(begin(database, SERIAL, [1]))
            bad.append(Ends())
            assert database.write_nowait(pair, bad[-1])
        assert [await each.wait() for each in bad] == [None] * 3
        outcomes = [await each.wait() for each in good]
        drawn = [each.results[0].rows for each in outcomes if isinstance(each, TransactionResult)]
        assert drawn == [[(last + nth,)] for nth in (1, 2, 3)]


async def test_a_sequence_of_which_none_was_ever_drawn_comes_to_nothing() -> None:
    async with opened_sql() as database:
        await filled(database)
        await database.execute("CREATE TABLE fresh (id SERIAL PRIMARY KEY, n INT)")
        sql = "INSERT INTO fresh (n) SELECT hits FROM counters WHERE id = $1 RETURNING id"
        await known(database, sql, [-1])
        await came_to_nothing(database, [Statement(sql, [0])])
        assert (await database.execute(sql, [0])).rows == [(1,)]


async def test_a_number_of_one_that_found_the_mailbox_full_is_the_next_one() -> None:
    async with in_laboratory() as (database, _, _):
        await known(database, SERIAL, [1])
        last = (await database.execute(SERIAL, [1])).rows[0][0]
        begun, told = 0, []
        while database.write_nowait([Statement(SERIAL, [1])], ends := Ends()):
            begun += 1
            told.append(ends)
            assert begun <= 3, "the mailbox is small"
        assert begun > 0
        before = footprint(database)
        assert not database.write_nowait([Statement(SERIAL, [1])], ends)
        assert footprint(database) == before
        for each in told:
            assert isinstance(await each.wait(), TransactionResult)
        after = (await database.execute(SERIAL, [1])).rows[0][0]
        assert after == last + begun + 1
        assert ends.told == []
