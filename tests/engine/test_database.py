"""A database outlives its actors and its disk's bad days, and never guesses what is on the disk."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.engine.database import Database, DatabaseState, DatabaseStatistics
from qserver.engine.gateway import GatewayStatistics, Outcome
from qserver.engine.history import HistoryStatistics
from qserver.errors import (
    Applied,
    DatabaseDropped,
    DatabaseUnavailable,
    OutcomeUnknown,
    QueryCanceled,
    SerializationFailure,
)
from qserver.limits import SHARDS_MAX
from qserver.storage.transaction import Transaction
from tests.engine import counters
from tests.engine.fakes import HeldLog, Laboratory, Observed, Pauses, opened, until_restarted

ACTORS = ["coordinator", "shard 0", "shard 3", "log"]


# --- the death of an actor -------------------------------------------------------------------


@pytest.mark.parametrize("actor", ACTORS)
async def test_a_database_recovers_from_the_death_of_any_actor(
    autojump_clock: MockClock, actor: str
) -> None:
    world = Laboratory()
    async with opened(world=world, counters=5) as database:
        for restarts in range(1, 4):
            await database.transact(counters.increment(1))
            world.kill(actor)
            await until_restarted(database, restarts)
            assert repr(database) == f"database main, recovering, {restarts} restarts"
            assert database.statistics().generation is None
        assert await database.transact(counters.increment(1)) == Outcome([4], 5)
        assert await counters.total(database) == 4
        assert len(world.reports) == 3
        assert world.reports[0].startswith("database main restarts: ")
        assert actor in world.reports[0]


async def test_an_actor_that_quietly_comes_to_its_end_is_as_dead_as_any(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory()
    world.deaths_are_quiet = True
    async with opened(world=world, counters=5) as database:
        world.kill("shard 1")
        await until_restarted(database)
        assert await database.transact(counters.increment(1)) == Outcome([1], 2)
        assert world.reports == ["database main restarts: ActorDied('the shard 1 came to its end')"]


@pytest.mark.parametrize("actor", ACTORS)
async def test_a_commit_that_was_sent_ends_in_an_unknown_outcome(
    autojump_clock: MockClock, actor: str
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database, trio.open_nursery() as nursery:
        log.hold()
        call = Observed(nursery, lambda: database.transact(counters.increment(1)))
        await wait_all_tasks_blocked()
        world.kill(actor)
        await until_restarted(database)
        await wait_all_tasks_blocked()
        error = call.outcome
        assert isinstance(error, OutcomeUnknown)
        assert str(error) == "the database restarted while the transaction was being committed"
        assert error.detail == "It was applied as a whole or not at all."
        assert error.hint is not None and error.hint.startswith("Read to see which, once")
        assert (error.applied, error.retryable) == (Applied.UNKNOWN, False)
        log.release()
        assert await database.transact(counters.increment(1)) == Outcome([1], 2)


async def test_a_commit_that_still_waited_to_be_taken_ends_in_an_unknown_outcome(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory()
    async with opened(world=world, counters=5) as database, trio.open_nursery() as nursery:
        calls = [
            Observed(nursery, lambda: database.transact(counters.increment(1))) for _ in range(3)
        ]
        world.kill("coordinator")
        await until_restarted(database)
        await wait_all_tasks_blocked()
        assert {type(call.outcome) for call in calls} <= {OutcomeUnknown, Outcome}
        applied = await counters.total(database)
        assert applied >= sum(isinstance(call.outcome, Outcome) for call in calls)


async def test_work_whose_commit_was_not_sent_is_run_again_and_does_not_notice(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory()
    versions: list[int] = []

    def work(transaction: Transaction) -> Generator[None, None, int]:
        versions.append(transaction.snapshot.version)
        if len(versions) == 1:
            world.kill("shard 2")
            while database.statistics().restarts == 0:
                yield
        found = counters.value(transaction, 1) + 1
        counters.put(transaction, 1, found)
        return found

    async with opened(world=world, counters=5) as database:
        assert await database.transact(work) == Outcome(1, 2)
        assert versions == [1, 1]
        assert database.statistics().gateway.restarts == 1


async def test_what_was_seen_and_then_lost_is_never_answered(autojump_clock: MockClock) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database, trio.open_nursery() as nursery:
        log.hold()
        writing = Observed(nursery, lambda: database.transact(counters.increment(1)))
        await wait_all_tasks_blocked()
        looking = Observed(nursery, lambda: database.transact(counters.look(1)))
        await wait_all_tasks_blocked()
        assert looking.outcomes == []
        world.kill("log")
        await until_restarted(database)
        log.release()
        await trio.sleep(1)
        assert isinstance(writing.outcome, OutcomeUnknown)
        assert looking.outcome == Outcome(0, 1), "the increment it had seen is not in the log"


async def test_a_conflict_with_what_was_then_lost_is_reported_as_a_conflict(
    autojump_clock: MockClock,
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database, trio.open_nursery() as nursery:
        log.hold()
        calls = [
            Observed(nursery, partial(database.transact, counters.increment(1), max_retries=0))
            for _ in range(2)
        ]
        await wait_all_tasks_blocked()
        world.kill("log")
        await until_restarted(database)
        await wait_all_tasks_blocked()
        assert {type(call.outcome) for call in calls} == {OutcomeUnknown, SerializationFailure}
        log.release()
        assert await counters.total(database) == 0


@pytest.mark.parametrize("actor", ACTORS)
async def test_who_has_a_turn_and_who_waits_for_one_are_run_again(
    autojump_clock: MockClock, actor: str
) -> None:
    world = Laboratory(
        Pauses(0.002, 0.001)
    )  # the second to conflict is the first to have an exclusive commit
    async with opened(world=world, counters=5) as database:
        async with trio.open_nursery() as nursery:

            def kill(transaction: Transaction) -> Generator[None, None, None]:
                while database.statistics().gateway.exclusive < 2:
                    autojump_clock.jump(1)
                    yield  # until the other one waits for its turn
                world.kill(actor)
                while database.statistics().restarts == 0:
                    yield
                counters.put(transaction, 3, 1000)

            works = counters.one_after_the_other(
                counters.after_a_conflict(database, counters.disturbed(database, nursery, 1)),
                kill,
                counters.increment(3),
            )
            other = counters.disturbed(database, nursery, 2)
            nursery.start_soon(partial(database.transact, works, max_retries=1))
            nursery.start_soon(partial(database.transact, other, max_retries=1))
        rows = dict((await counters.read(database, counters.everything)).result)
        assert rows == {0: 0, 1: 1, 2: 2, 3: 1, 4: 0}
        statistics = database.statistics()
        assert (statistics.restarts, statistics.gateway.restarts) == (1, 2)


async def test_pauses_between_restarts_grow_and_are_forgotten_after_a_long_life(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory()
    async with opened(world=world, counters=5) as database:

        async def pause_after_a_death() -> float:
            world.kill("log")
            await until_restarted(database, database.statistics().restarts + 1)
            restarted = trio.current_time()
            await database.transact(counters.look(1))
            return round(trio.current_time() - restarted, 6)

        pauses = [await pause_after_a_death() for _ in range(12)]
        assert pauses[:4] == [0.01, 0.02, 0.04, 0.08]
        assert pauses[-2:] == [5.0, 5.0]
        await trio.sleep(60)
        assert await pause_after_a_death() == 0.01


async def test_what_was_recovered_is_read_during_the_pause_before_commits_go_on(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory()
    async with opened(world=world, counters=5) as database:
        for restarts in range(1, 9):
            await database.transact(counters.look(1))
            world.kill("log")
            await until_restarted(database, restarts)
        restarted = trio.current_time()
        assert (await counters.read(database, counters.look(1))).version == 1
        assert trio.current_time() == restarted and database.state is DatabaseState.RECOVERING
        await database.transact(counters.increment(1))
        assert trio.current_time() - restarted > 1


# --- a disk that fails -----------------------------------------------------------------------


@pytest.mark.parametrize("written", [True, False])
async def test_when_the_log_fails_the_database_reads_what_is_there(
    autojump_clock: MockClock, written: bool
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database:
        log.fails_after_append, log.fails_before_append = written, not written
        with pytest.raises(OutcomeUnknown):
            await database.transact(counters.increment(1))
        log.fails_after_append = log.fails_before_append = False
        assert await counters.total(database) == int(written)
        assert await database.transact(counters.increment(1)) == Outcome([1 + written], 2 + written)
        assert len(world.reports) == 1
        assert "LogFailed" in world.reports[0] or "log_failed" in world.reports[0]


async def test_while_the_log_cannot_be_read_requests_wait_and_go_on_when_it_heals(
    autojump_clock: MockClock,
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database, trio.open_nursery() as nursery:
        log.fails_read = True
        world.kill("shard 0")
        await until_restarted(database)
        writing = Observed(nursery, lambda: database.transact(counters.increment(1)))
        reading = Observed(nursery, lambda: counters.read(database, counters.look(2)))
        await trio.sleep(100)
        assert (writing.outcomes, reading.outcomes) == ([], [])
        assert database.statistics().state == "recovering"
        assert str(database.trouble) == "the disk is away"
        assert world.reports[-1] == (
            "database main cannot read its log:"
            " <log_failed QS022: the disk is away, perhaps applied>"
        )
        log.fails_read = False
        await trio.sleep(10)
        assert (writing.outcome, reading.outcome) == (Outcome([1], 2), Outcome(0, 1))
        assert database.state is DatabaseState.OPEN


async def test_while_a_disk_is_away_reads_go_on_from_the_last_durable_snapshot(
    autojump_clock: MockClock,
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database, trio.open_nursery() as nursery:
        await database.transact(counters.increment(1))
        log.fails_after_append = log.fails_read = True
        with pytest.raises(OutcomeUnknown) as caught:
            await database.transact(counters.increment(1))
        assert "unique key" in (caught.value.hint or "")
        writing = Observed(nursery, lambda: database.transact(counters.increment(2)))
        for _ in range(5):
            assert await counters.read(database, counters.look(1)) == Outcome(1, 2)
            await trio.sleep(20)
        assert database.snapshots.take() is not None
        assert (database.state, writing.outcomes) == (DatabaseState.RECOVERING, [])
        assert database.statistics().log_failed
        log.fails_after_append = log.fails_read = False
        await trio.sleep(10)
        assert writing.outcome == Outcome([1], 4)
        assert await counters.read(database, counters.look(1)) == Outcome(2, 4), (
            "it had been applied"
        )


async def test_a_deadline_holds_while_the_database_recovers(autojump_clock: MockClock) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database:
        log.fails_read = True
        world.kill("shard 0")
        await until_restarted(database)
        deadline = trio.current_time() + 30
        with pytest.raises(QueryCanceled):
            await database.transact(counters.increment(1), deadline=deadline)
        with pytest.raises(QueryCanceled):
            await counters.read(database, counters.look(1), deadline=deadline)
        assert trio.current_time() == deadline


async def test_a_log_that_cannot_be_read_at_first_delays_the_opening(
    autojump_clock: MockClock,
) -> None:
    log = HeldLog()
    log.fails_read = True
    database = Database(log, Laboratory())
    async with trio.open_nursery() as nursery:

        async def heal() -> None:
            await trio.sleep(60)
            assert database.state is DatabaseState.RECOVERING
            log.fails_read = False

        nursery.start_soon(heal)
        await nursery.start(database.run)
        assert database.state is DatabaseState.OPEN
        nursery.cancel_scope.cancel()


class SlowFence(HeldLog):
    """A log whose fence is answered late."""

    def __init__(self) -> None:
        super().__init__()
        self.fenced = trio.Event()

    async def fence(self, version: int) -> bool:
        await self.fenced.wait()
        return await super().fence(version)


async def test_nothing_is_shown_before_the_log_is_fenced(autojump_clock: MockClock) -> None:
    log, world = SlowFence(), Laboratory()
    log.fenced.set()
    async with opened(log, world, counters=5) as database:
        log.fenced = trio.Event()
        world.kill("shard 0")
        await until_restarted(database)
        await trio.sleep(10)
        assert database.snapshots.take() is None
        assert database.statistics().state == "recovering"
        log.fenced.set()
        assert (await database.wait_durable_snapshot()).version == 1


async def test_a_log_that_lost_its_end_while_the_disk_was_away_is_refused(
    autojump_clock: MockClock,
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database:
        await database.transact(counters.increment(1))
        log.fails_before_append = log.fails_read = True
        with pytest.raises(OutcomeUnknown):
            await database.transact(counters.increment(1))
        del log._records[2]
        log._last = 1
        log.fails_before_append = log.fails_read = False
        await trio.sleep(10)
        assert database.state is DatabaseState.REFUSED and database.snapshots.take() is None
        assert str(database.trouble) == "the log ends with version 1, and 2 was durable"


@pytest.mark.parametrize("opened_before", [True, False])
async def test_a_damaged_log_is_refused_and_the_error_says_why(
    autojump_clock: MockClock, opened_before: bool
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database:
        await database.transact(counters.increment(1))
        if opened_before:
            log.spoil(2)
            world.kill("log")
            await until_restarted(database)
            await check_refused(database, world)
    if not opened_before:
        log.spoil(2)
        async with opened(log, world) as database:
            await check_refused(database, world)


async def check_refused(database: Database, world: Laboratory) -> None:
    for call in (database.transact, partial(counters.read, database)):
        with pytest.raises(DatabaseUnavailable) as caught:
            await call(counters.look(1))
        assert str(caught.value) == "database main is refused"
        assert caught.value.detail == "a record of the log does not match its checksum"
    assert database.state is DatabaseState.REFUSED
    assert world.reports[-1] == (
        "database main cannot be opened: <data_corrupted XX001:"
        " a record of the log does not match its checksum, not applied>"
    )
    reports = len(world.reports)
    await trio.sleep(1000)
    assert len(world.reports) == reports, "it is not tried again"


# --- opening and closing ---------------------------------------------------------------------


async def test_a_database_that_is_opened_again_is_as_it_was_whatever_its_shards() -> None:
    log = HeldLog()
    async with opened(log, shards=4, counters=100) as database:
        for number in range(0, 100, 3):
            await database.transact(counters.increment(number))
        before = await counters.read(database, counters.everything)
    for shards in (4, 1, 7):
        async with opened(log, shards=shards) as database:
            assert await counters.read(database, counters.everything) == before
            for number in range(100):
                found = (await counters.read(database, counters.look(number))).result
                assert found == int(number % 3 == 0)


async def test_closing_ends_what_waits_and_refuses_what_comes_after(
    autojump_clock: MockClock,
) -> None:
    log = HeldLog()
    with trio.fail_after(1000):
        async with trio.open_nursery() as clients:
            async with opened(log, counters=5) as database:
                log.hold()
                committing = Observed(clients, lambda: database.transact(counters.increment(1)))
                await wait_all_tasks_blocked()
                looking = Observed(clients, lambda: database.transact(counters.look(1)))
                await wait_all_tasks_blocked()
    assert isinstance(committing.outcome, OutcomeUnknown)
    assert isinstance(looking.outcome, DatabaseUnavailable)
    assert str(looking.outcome) == "database main is closed"
    assert looking.outcome.detail is None
    with pytest.raises(DatabaseUnavailable):
        await counters.read(database, counters.look(1))
    assert repr(database) == "database main, closed, 0 restarts"


async def test_what_waits_for_a_deleted_database_is_told_that_it_is_gone(
    autojump_clock: MockClock,
) -> None:
    log = HeldLog()
    async with trio.open_nursery() as clients:
        async with opened(log, counters=5) as database:
            log.hold()
            Observed(clients, lambda: database.transact(counters.increment(1)))
            await wait_all_tasks_blocked()
            looking = Observed(clients, lambda: database.transact(counters.look(1)))
            await wait_all_tasks_blocked()
            database.is_deleted = True
    assert isinstance(looking.outcome, DatabaseDropped)
    assert not looking.outcome.retryable and "again" not in str(looking.outcome.hint)


async def test_requests_may_come_before_the_database_is_open() -> None:
    database = Database(HeldLog(), Laboratory())
    async with trio.open_nursery() as nursery:
        early = Observed(nursery, lambda: database.transact(counters.create(3)))
        await wait_all_tasks_blocked()
        assert early.outcomes == []
        await nursery.start(database.run)
        await wait_all_tasks_blocked()
        assert early.outcome == Outcome(None, 1)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("shards", [0, -1, SHARDS_MAX + 1])
def test_a_number_of_shards_that_cannot_be_is_refused(shards: int) -> None:
    with pytest.raises(ValueError, match=f"a database has 1 to {SHARDS_MAX} shards, not {shards}"):
        Database(HeldLog(), Laboratory(), shards=shards)


# --- statistics ------------------------------------------------------------------------------


async def test_statistics_tell_of_every_actor(tiny_ranges: None) -> None:
    async with opened(counters=20, shards=2) as database:
        one, other = counters.on_shards(await database.wait_durable_snapshot(float("inf")), [0, 1])
        await database.transact(counters.increment(one))
        await database.transact(counters.increment(one, other))
        await counters.read(database, counters.look(one))
        statistics = database.statistics()
        assert statistics == DatabaseStatistics(
            name="main",
            state="open",
            restarts=0,
            gateway=GatewayStatistics(transactions=3, retries=0, exclusive=0, restarts=0),
            generation=statistics.generation,
            log_failed=False,
            page_loads=0,
            pages_trouble=None,
            history=HistoryStatistics(
                oldest=0,
                checkpoints=1,
                log_bytes=statistics.history.log_bytes if statistics.history else 0,
                pages=0,
                rebuilt=0,
                snapshot_bytes=0,
            ),
        )
        assert statistics.history is not None and statistics.history.log_bytes > 0
        generation = statistics.generation
        assert generation is not None
        assert (generation.versions.newest, generation.versions.durable) == (3, 3)
        assert (generation.coordinator.commits, generation.coordinator.version) == (3, 3)
        assert (generation.log.records, generation.log.groups) == (3, 3)
        assert sum(shard.entries for shard in generation.shards) == 20
        assert [(shard.shard, shard.undecided) for shard in generation.shards] == [(0, 0), (1, 0)]
        assert [(mailbox.name, mailbox.taken) for mailbox in generation.mailboxes] == [
            ("coordinator", 3),
            ("coordinator, from shards", 8),
            ("shard 0", 4),
            ("shard 1", 4),
            ("log", 3),
        ]
        assert generation.unanswered == 0


async def test_a_database_reads_as_a_sentence() -> None:
    database = Database(HeldLog(), Laboratory(), name="shop")
    assert repr(database) == "database shop, recovering, 0 restarts"
    async with opened() as database:
        assert repr(database) == "database main, open, 0 restarts"
