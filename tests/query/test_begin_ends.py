"""Who has begun a request is called back once, whatever happens, and when its end is durable.

The coordinator runs requests in the order in which they were sent. An error of the work, a log that
fails, an actor that dies: each is one call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from qserver.durability.memory import MemoryLog
from qserver.durability.port import StoredRecord
from qserver.engine.work import Rest, finish
from qserver.errors import OutcomeUnknown, UniqueViolation
from qserver.query.sql_database import RunOptions, Statement, TransactionResult
from qserver.sql.parameters import Given
from tests.engine.fakes import HeldLog, Observed, until_restarted
from tests.query.begun import (
    INCREMENT,
    Ends,
    begin,
    begin_nowait,
    filled,
    hits,
    in_laboratory,
    known,
    plan_of,
    send,
)
from tests.sql.databases import opened_sql

INSERT = "INSERT INTO counters VALUES ($1, $2)"
DELETE = "DELETE FROM wards WHERE id = $1 RETURNING id"


class EagerLog(MemoryLog):
    """A log whose appends begin when they are called, and end when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[int] = []
        self.holds = False
        self._may_end: list[trio.Event] = []

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        self.begun.append(len(records))
        event = trio.Event()
        if self.holds:
            self._may_end.append(event)
        else:
            event.set()
        return self._append(records, event)

    async def _append(self, records: Sequence[StoredRecord], event: trio.Event) -> None:
        await event.wait()
        await super().append(records)

    def end_one(self) -> None:
        self._may_end.pop(0).set()


# --- several in one turn --------------------------------------------------------------------------


async def test_of_two_that_write_one_key_in_one_turn_both_commit_in_the_order_of_sending() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        before = database.database.statistics()
        ends = [begin(database, INCREMENT, [at]) for at in (0, 0, 1, 0)]
        outcomes = [await each.wait() for each in ends]
        seen = [
            (outcome.retries, outcome.results[0].rows[0][0])
            for outcome in outcomes
            if isinstance(outcome, TransactionResult)
        ]
        assert seen == [(0, 1 + nth) for nth in (1, 2)] + [
            (0, 11),
            (0, 4),
        ]
        assert await hits(database) == 4
        after = database.database.statistics()
        assert after.gateway.transactions == before.gateway.transactions + 4
        assert (after.gateway.retries, before.gateway.retries) == (0, 0)
        assert before.generation is not None and after.generation is not None
        was, now = before.generation.coordinator, after.generation.coordinator
        assert (now.conflicts, now.rerun) == (was.conflicts, was.rerun)
        assert now.commits == was.commits + 4
        versions = {each.version for each in outcomes if isinstance(each, TransactionResult)}
        assert versions == {was.version + 1, now.version}, "the first was alone"
        assert now.version == was.version + 2


async def test_who_conflicts_with_what_was_tried_does_not_notice() -> None:
    """The ordinary way and this one, in one turn: nobody loses, and only the others may retry."""
    async with opened_sql() as database, trio.open_nursery() as nursery:
        await filled(database)
        await known(database, INCREMENT, [0])
        ordinary, begun = [], []
        for _ in range(4):
            begun.append(begin(database, INCREMENT, [0]))
            ordinary.append(Observed(nursery, lambda: database.execute(INCREMENT, [0])))
        await wait_all_tasks_blocked()
        outcomes = [each.outcome for each in begun]
        assert all(isinstance(each, TransactionResult) and each.retries == 0 for each in outcomes)
        told = [
            each.results[0].rows[0][0] for each in outcomes if isinstance(each, TransactionResult)
        ]
        assert told == sorted(told)
        told += [each.outcome.rows[0][0] for each in ordinary]
        assert sorted(told) == [1 + nth for nth in range(1, 9)]


async def test_one_that_fails_because_of_one_before_it_is_told_why() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INSERT, [9, 9])
        first, second = begin(database, INSERT, [50, 1]), begin(database, INSERT, [50, 2])
        third = begin(database, INSERT, [51, 3])
        assert isinstance(await first.wait(), TransactionResult)
        assert isinstance(await second.wait(), UniqueViolation)
        assert isinstance(await third.wait(), TransactionResult)
        assert (await hits(database, 50), await hits(database, 51)) == (1, 3)


async def told_when_durable(sql: str, kept: Given, first: Given, second: Given) -> object:
    """The outcome of the second of two requests. It has seen what the first wrote, so it is not
    told before that is durable."""
    log = HeldLog()
    async with opened_sql(log) as database, trio.open_nursery() as nursery:
        await filled(database)
        await known(database, sql, kept)
        log.hold()
        writer = begin(database, sql, first)
        await wait_all_tasks_blocked()
        outcome = await begin(database, sql, second).wait()
        assert isinstance(outcome, Rest), "what it saw is no news yet"
        waiting = Observed(nursery, lambda: finish(outcome))
        await wait_all_tasks_blocked()
        assert (writer.told, waiting.outcomes) == ([], [])
        log.release()
        await wait_all_tasks_blocked()
        assert isinstance(writer.outcome, TransactionResult)
        return waiting.outcome


async def test_an_error_that_tells_of_what_is_not_durable_waits_for_it() -> None:
    outcome = await told_when_durable(INSERT, [9, 9], [50, 1], [50, 2])
    assert isinstance(outcome, UniqueViolation)


async def test_what_one_that_failed_wrote_before_is_seen_by_nobody_behind_it() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INSERT, [9, 9])
        await known(database, INCREMENT, [0])
        failing = send(database, [Statement(INCREMENT, [0]), Statement(INSERT, [0, 0])])
        behind = begin(database, INCREMENT, [0])
        assert isinstance(await failing.wait(), UniqueViolation)
        outcome = await behind.wait()
        assert isinstance(outcome, TransactionResult)
        assert outcome.results[0].rows == [(2,)]


async def test_one_that_finds_nothing_left_to_do_is_told_so_with_those_before_it() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, DELETE, [1])
        begun = [begin(database, DELETE, [2]) for _ in range(2)]
        rows = [(await each.result()).results[0].rows for each in begun]
        assert rows == [[(2,)], []]


async def test_one_that_wrote_nothing_is_told_at_once_if_what_it_saw_is_durable() -> None:
    log = HeldLog()
    async with opened_sql(log) as database:
        await filled(database)
        await known(database, DELETE, [1])
        snapshot = database.database.snapshots.take()
        assert snapshot is not None
        log.hold()
        outcome = await begin(database, DELETE, [-1]).wait()
        assert isinstance(outcome, TransactionResult)
        assert (outcome.version, outcome.results[0].rows) == (snapshot.version, [])
        assert database.database.snapshots.take() is snapshot, "there is no version for nothing"
        log.release()


async def test_one_that_wrote_nothing_and_saw_what_is_not_durable_has_to_wait() -> None:
    outcome = await told_when_durable(DELETE, [1], [2], [2])
    assert isinstance(outcome, TransactionResult)
    assert outcome.results[0].rows == []


@settings(max_examples=30, deadline=None)
@given(
    turns=st.lists(
        st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3), max_size=5), max_size=4
    ),
    shards=st.sampled_from([1, 3]),
)
async def test_whatever_is_begun_in_one_turn_ends_as_if_one_came_after_the_other(
    turns: list[list[list[int]]], shards: int
) -> None:
    """Each increments some counters, and is told what it made of them, in the order of sending."""
    async with opened_sql(shards=shards) as database:
        await database.execute("CREATE TABLE counters (id INT PRIMARY KEY, hits INT NOT NULL)")
        await database.execute("INSERT INTO counters VALUES (0, 0), (1, 0), (2, 0)")
        await known(database, INCREMENT, [0])
        expected = {counter: await hits(database, counter) for counter in range(3)}
        told: dict[int, list[int]] = {counter: [] for counter in range(3)}
        start = dict(expected)
        for turn in turns:
            begun: list[tuple[list[int], Ends]] = []
            for counters in turn:
                statements = [Statement(INCREMENT, [each]) for each in counters]
                begun.append((counters, send(database, statements)))
            for counters, ends in begun:
                outcome = await ends.wait()
                assert isinstance(outcome, TransactionResult)
                for counter, each in zip(counters, outcome.results, strict=True):
                    expected[counter] += 1
                    told[counter].append(each.rows[0][0])
        for counter in range(3):
            assert await hits(database, counter) == expected[counter]
            numbers = list(range(start[counter] + 1, expected[counter] + 1))
            assert told[counter] == numbers


# --- when it is told ------------------------------------------------------------------------------


async def test_nobody_is_told_before_the_append_has_ended() -> None:
    log = HeldLog()
    async with opened_sql(log) as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        before, groups = database.database.snapshots.take(), len(log.groups)
        log.hold()
        ends = begin(database, INCREMENT, [0])
        await wait_all_tasks_blocked()
        assert len(log.groups) == groups + 1 and ends.told == []
        assert database.database.snapshots.take() is before
        log.release()
        outcome = await ends.wait()
        assert isinstance(outcome, TransactionResult) and before is not None
        assert outcome.version == before.version + 1
        assert await hits(database) == 2


async def test_each_group_is_told_when_its_own_append_has_ended_and_the_next_has_begun() -> None:
    log = EagerLog()
    async with opened_sql(log) as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        log.begun.clear()
        log.holds = True
        first = begin(database, INCREMENT, [0])
        await wait_all_tasks_blocked()
        second, third = begin(database, INCREMENT, [0]), begin(database, INCREMENT, [1])
        await wait_all_tasks_blocked()
        assert (log.begun, first.told) == ([1], [])
        log.end_one()
        await wait_all_tasks_blocked()
        assert (log.begun, second.told, third.told) == ([1, 2], [], [])
        assert isinstance(first.outcome, TransactionResult)
        log.end_one()
        for each in (second, third):
            assert isinstance(await each.wait(), TransactionResult)


async def test_what_follows_a_definition_that_is_not_durable_yet_is_told_after_it() -> None:
    log = HeldLog()
    async with opened_sql(log) as database, trio.open_nursery() as nursery:
        await filled(database)
        sql = "UPDATE counters SET hits = 5 WHERE id = $1 RETURNING *"
        await known(database, sql, [0])
        log.hold()
        alter = "ALTER TABLE counters ADD COLUMN more INT DEFAULT 9"
        altered = Observed(nursery, lambda: database.execute(alter))
        await wait_all_tasks_blocked()
        ends = begin(database, sql, [0])
        await wait_all_tasks_blocked()
        assert (altered.outcomes, ends.told) == ([], [])
        log.release()
        outcome = await ends.wait()
        assert isinstance(outcome, TransactionResult)
        assert outcome.results[0].columns == ("id", "hits", "more")
        assert outcome.results[0].rows == [(0, 5, 9)]
        assert outcome.version == altered.outcome.version + 1


async def test_who_writes_in_the_round_of_a_definition_writes_by_one_or_by_the_other() -> None:
    async with opened_sql() as database, trio.open_nursery() as nursery:
        await filled(database)
        sql = "UPDATE counters SET hits = 5 WHERE id = $1 RETURNING *"
        await known(database, sql, [0])
        ends = begin(database, sql, [0])
        alter = "ALTER TABLE counters ADD COLUMN more INT DEFAULT 9"
        altered = Observed(nursery, lambda: database.execute(alter))
        outcome = await ends.wait()
        assert isinstance(outcome, TransactionResult)
        width = len(outcome.results[0].rows[0])
        assert (width == 3) == (outcome.version > altered.outcome.version)
        found = await database.execute("SELECT * FROM counters WHERE id = 0")
        assert found.rows == [(0, 5, 9)]


# --- falls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", ["log", "coordinator", "shard 0", "checkpointer"])
async def test_who_waits_when_the_database_restarts_is_told_once_that_nobody_knows(
    actor: str,
) -> None:
    async with in_laboratory() as (database, world, log):
        await known(database, INCREMENT, [0])
        log.hold()
        logged = begin(database, INCREMENT, [0])
        await wait_all_tasks_blocked()
        sent = begin(database, INCREMENT, [1])
        world.kill(actor)
        await until_restarted(database.database)
        log.release()
        for ends in (logged, sent):
            outcome = await ends.wait()
            assert isinstance(outcome, OutcomeUnknown)
        assert await hits(database) in (1, 2)
        assert (await database.execute(INCREMENT, [1])).rows[0][0] in (11, 12)
        assert len(logged.told) == len(sent.told) == 1


@pytest.mark.parametrize("applied", [False, True])
async def test_a_log_that_fails_makes_the_outcome_unknown(applied: bool) -> None:
    async with in_laboratory() as (database, _, log):
        await known(database, INCREMENT, [0])
        log.fails_before_append, log.fails_after_append = not applied, applied
        ends = begin(database, INCREMENT, [0])
        assert isinstance(await ends.wait(), OutcomeUnknown)
        log.fails_before_append = log.fails_after_append = False
        assert await hits(database) == 1 + applied
        assert len(ends.told) == 1


async def test_while_a_database_recovers_a_request_waits_for_it() -> None:
    async with in_laboratory() as (database, world, log):
        await known(database, INCREMENT, [0])
        log.fails_read = True
        world.kill("log")
        await until_restarted(database.database)
        ends = Ends()
        begun = begin_nowait(database, [Statement(INCREMENT, [0])], RunOptions(), ends)
        assert isinstance(begun, Rest)
        log.fails_read = False
        assert (await finish(begun)).results[0].rows == [(2,)]
        assert ends.told == []


# --- plans ----------------------------------------------------------------------------------------


async def test_each_use_of_a_plan_counts_once() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, INCREMENT, [0])
        before = database.statistics()
        for _ in range(60):
            await begin(database, INCREMENT, [0]).result()
        after = database.statistics()
        assert (after.hits - before.hits, after.misses) == (60, before.misses)


async def test_a_plan_that_is_forgotten_while_it_runs_does_no_harm() -> None:
    """The statement that follows from a foreign key may take the place of the one it belongs to."""
    async with opened_sql() as database:
        await filled(database)
        sql = "DELETE FROM parents WHERE id = $1 RETURNING id"
        await known(database, sql, [-1])
        cache = database.planner.cache
        cache._fingerprints_most = len(cache._fingerprints)
        while next(iter(cache._fingerprints)) != plan_of(database, sql).fingerprint:
            cache._fingerprints.popitem(last=False)
            cache._fingerprints_most -= 1
        outcome = await begin(database, sql, [25]).wait()
        assert isinstance(outcome, TransactionResult)
        assert outcome.results[0].rows == [(25,)]
