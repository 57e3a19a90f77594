"""No sequence gives a number twice, whatever happens to it and however often it is restored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.control.reset import wipe
from qserver.durability.memory import MemoryLog
from qserver.engine import sequence_states
from qserver.engine.position_sweeper import PositionSweeper
from qserver.engine.version_restore import VersionRestore
from qserver.errors import QserverError
from qserver.query.sql_database import SqlDatabase
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import SEQUENCES_TREE
from qserver.values.keys import TOP
from qserver.values.relations import Sequence
from simulations.mutants import Mutant, planted
from simulations.mutants.mutant import edited
from tests.engine.fakes import Laboratory
from tests.engine.test_history import newest, opened
from tests.sampling import examples

names = st.sampled_from(["a", "b", "c"])
events = st.one_of(
    st.tuples(st.just("next"), names, st.sampled_from([1, 2, 200])),
    st.tuples(st.just("next"), names, st.sampled_from([1, 2, 200])),
    st.tuples(st.just("create"), names, st.none()),
    st.tuples(st.just("drop"), names, st.none()),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("alter"), names, st.integers(1, 5)),
    st.tuples(st.just("restore"), st.none(), st.integers(0, 12)),
    st.tuples(st.just("restore"), st.none(), st.integers(0, 12)),
    st.tuples(st.just("wipe"), st.none(), st.none()),
    st.tuples(st.just("sweep"), st.none(), st.none()),
    st.tuples(st.just("checkpoint"), st.none(), st.none()),
    st.tuples(st.just("checkpoint, later"), st.none(), st.none()),
)


class Machine:
    def __init__(self, sql: SqlDatabase, world: Laboratory) -> None:
        self.sql = sql
        self.world = world
        self.sweeper = PositionSweeper(sql.database)
        self.last: dict[int, int] = {}
        """The last number of each sequence, by its id."""

    async def do(self, what: str, name: Any, how: Any) -> None:
        database = self.sql.database
        if what == "next":
            for _ in range(how):
                ((number,),) = (await self.sql.execute(f"select nextval('{name}')")).rows
                found = self.find(newest(database), name)
                assert number > self.last.get(found.id, 0), "it was given out before"
                self.last[found.id] = number
        elif what == "create":
            await self.sql.execute(f"create sequence {name}")
        elif what == "drop":
            await self.sql.execute(f"drop sequence {name}")
        elif what == "rename":
            await self.sql.execute(f"alter sequence {name} rename to {how}")
        elif what == "alter":
            await self.sql.execute(f"alter sequence {name} increment {how}")
        elif what == "wipe":
            await database.transact(wipe)
        elif what == "sweep":
            await self.sweeper.sweep()
        elif what.startswith("checkpoint"):
            self.world.time += 100 if "later" in what else 0
            await database.checkpoint()
        else:
            version = max(newest(database).version - how, 0)
            was = ids_of(await database.snapshot_at(version))
            await database.restore_version(version)
            assert ids_of(newest(database)) == was

    @staticmethod
    def find(snapshot: Snapshot, name: str) -> Sequence:
        found = snapshot.catalog.find(name)
        assert isinstance(found, Sequence)
        return found


def ids_of(snapshot: Snapshot) -> dict[str, int]:
    others = snapshot.catalog.others.items()
    return {name: each.id for name, each in others if isinstance(each, Sequence)}


@settings(deadline=None, max_examples=examples(60))
@given(program=st.lists(events, max_size=25))
async def test_a_sequence_only_goes_on(program: list[tuple[str, Any, Any]]) -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        database.keep_history(50.0)
        machine = Machine(SqlDatabase(database, world), world)
        for name in ("a", "b"):
            await machine.do("create", name, None)
        for event in program:
            try:
                await machine.do(*event)
            except QserverError as error:
                assert error.code in ("42P01", "42P07", "QS004"), error


SHORT = (
    ("next", "a", 1),
    ("alter", "a", 2),
    ("drop", "a", None),
    ("create", "a", None),
    ("restart", None, None),
)


@pytest.mark.parametrize("second", SHORT, ids=lambda event: event[0])
async def test_every_short_program_ends_with_a_new_number(second: tuple[str, Any, Any]) -> None:
    """All programs that draw one number and do two things more, and a restore of each version."""
    for third in SHORT:
        for back in range(1, 6):
            await run_short([SHORT[0], second, third, ("restore", None, back), ("next", "a", 1)])


async def run_short(events: list[tuple[str, Any, Any]]) -> None:
    world, log = Laboratory(), MemoryLog()
    lives: list[list[tuple[str, Any, Any]]] = [[("create", "a", None)]]
    for event in events:
        if event[0] == "restart":
            lives.append([])
        else:
            lives[-1].append(event)
    last: dict[int, int] = {}
    for life in lives:
        async with opened(log, world) as database:
            machine = Machine(SqlDatabase(database, world), world)
            machine.last = last
            await database.wait_durable_snapshot()
            for event in life:
                try:
                    await machine.do(*event)
                except QserverError as error:
                    assert error.code in ("42P01", "42P07", "QS004"), (events, error)


BUGS = (
    (sequence_states.furthest, "(up * state[0], state[1])", "up * state[0]"),
    (sequence_states.leave_position, "(value, called, before.version)",
     "(value, False, before.version)"),
    (sequence_states.position_left, "(row[0], row[1])", "(row[0], False)"),
    (VersionRestore._count_on, "if left is not None:", "if False:"),
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug[2])
async def test_bugs_at_the_first_number_are_seen(bug: tuple[Any, str, str]) -> None:
    with planted(Mutant("first", "the first number", (), (edited(*bug),))):
        with pytest.raises((AssertionError, BaseExceptionGroup)):
            for second in SHORT:
                await test_every_short_program_ends_with_a_new_number(second)


async def test_a_table_that_comes_back_over_a_new_one_goes_on_with_its_own_numbers() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table t (id serial primary key, v integer)")
        await sql.execute("insert into t (v) select n from generate_series(1, 300) n")
        version = newest(database).version
        await sql.execute("insert into t (v) select n from generate_series(1, 300) n")
        await sql.execute("drop table t")
        await sql.execute("create table t (id serial primary key, v integer)")
        await sql.execute("insert into t (v) values (1)")
        await database.restore_version(version)
        assert (await sql.execute("select count(*) from t")).rows == [(300,)]
        ((number,),) = (await sql.execute("insert into t (v) values (2) returning id")).rows
        assert number > 600


async def test_a_position_is_swept_when_no_version_has_its_sequence_and_not_before() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        sweeper = PositionSweeper(database)
        await sql.execute("create sequence s")
        version = newest(database).version
        await sql.execute("select nextval('s')")
        await sql.execute("drop sequence s")
        for _ in range(2):
            await database.checkpoint()
            await sweeper.sweep()
        await database.restore_version(version)
        assert (await sql.execute("select nextval('s')")).rows[0][0] > 1
        await sql.execute("drop sequence s")
        world.time += 4000
        await sql.execute("create table t (a integer)")
        await sweeper.sweep()
        await database.checkpoint()
        world.time += 4000
        await sql.execute("create table u (a integer)")
        await database.checkpoint()
        await sweeper.sweep()
        left = newest(database).first_entries(SEQUENCES_TREE, (0, TOP), None, False, 10)
        assert left[0] == []


async def test_a_sequence_that_counts_down_or_has_come_to_its_end_goes_on_too() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create sequence down increment -1")
        await sql.execute("create sequence short maxvalue 3")
        version = newest(database).version
        for _ in range(3):
            await sql.execute("select nextval('down'), nextval('short')")
        await sql.execute("drop sequence down, short")
        await database.restore_version(version)
        assert (await sql.execute("select nextval('down')")).rows[0][0] < -3
        try:
            ((number,),) = (await sql.execute("select nextval('short')")).rows
        except QserverError as error:
            assert error.code == "2200H"
        else:
            raise AssertionError(f"it gave {number} again")
