"""What a request comes to: answers wait for the disk, conflicts are run again, deadlines hold."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.engine.gateway import GatewayStatistics, Outcome
from qserver.engine.messages import Commit, Work
from qserver.errors import (
    Applied,
    QueryCanceled,
    SerializationFailure,
    TooManyRequests,
    UndefinedTable,
    UniqueViolation,
)
from qserver.storage.conflict import Conflict
from qserver.storage.transaction import Transaction
from tests.engine import counters
from tests.engine.fakes import HeldLog, Laboratory, Observed, Pauses, opened


def insert(number: int) -> Work:
    return lambda transaction: transaction.insert(transaction.table(counters.NAME), (number, 0))


def stumble(transaction: Transaction) -> None:
    raise LookupError(counters.value(transaction, 1))


# --- answers wait for the disk ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        pytest.param(counters.increment(1), Outcome([2], 4), id="a commit"),
        pytest.param(counters.look(1), Outcome(1, 3), id="work that wrote nothing"),
        pytest.param(insert(1), UniqueViolation, id="an error that the work raised"),
        pytest.param(stumble, LookupError, id="a bug in the work"),
    ],
)
async def test_no_answer_leaves_before_what_it_saw_is_durable(work: Work, expected: Any) -> None:
    log = HeldLog()
    async with opened(log, counters=5) as database, trio.open_nursery() as nursery:
        await database.transact(counters.increment(2))
        log.hold()
        first = Observed(nursery, lambda: database.transact(counters.increment(1)))
        await wait_all_tasks_blocked()
        second = Observed(nursery, lambda: database.transact(work))
        await wait_all_tasks_blocked()
        assert (first.outcomes, second.outcomes) == ([], [])
        log.release()
        await wait_all_tasks_blocked()
        assert first.outcome == Outcome([1], 3)
        if isinstance(expected, Outcome):
            assert second.outcome == expected
        else:
            assert type(second.outcome) is expected


async def test_an_error_of_work_that_was_run_again_waits_too() -> None:
    log = HeldLog()
    async with opened(log, counters=5) as database, trio.open_nursery() as nursery:
        log.hold()
        calls = [Observed(nursery, lambda: database.transact(insert(9))) for _ in range(2)]
        await wait_all_tasks_blocked()
        assert database.statistics().generation.coordinator.rerun == 1  # type: ignore[union-attr]
        assert [call.outcomes for call in calls] == [[], []]
        log.release()
        await wait_all_tasks_blocked()
        kinds = {type(call.outcome) for call in calls}
        assert kinds == {Outcome, UniqueViolation}


async def test_an_error_of_work_that_was_run_again_waits_for_nothing_that_it_wrote() -> None:
    def write_and_stumble(transaction: Transaction) -> None:
        counters.put(transaction, 1, 9)
        stumble(transaction)

    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        works = [
            counters.one_after_the_other(counters.increment(1), write_and_stumble) for _ in range(2)
        ]
        calls = [Observed(nursery, partial(database.transact, work)) for work in works]
        await wait_all_tasks_blocked()
        assert {type(call.outcome) for call in calls} == {Outcome, LookupError}
        assert await counters.total(database) == 1


async def test_a_conflict_that_is_reported_waits_too() -> None:
    log = HeldLog()
    async with opened(log, counters=5) as database, trio.open_nursery() as nursery:
        log.hold()
        calls = [
            Observed(nursery, lambda: database.transact(counters.increment(1), max_retries=0))
            for _ in range(2)
        ]
        await wait_all_tasks_blocked()
        assert [call.outcomes for call in calls] == [[], []]
        log.release()
        await wait_all_tasks_blocked()
        assert {type(call.outcome) for call in calls} == {Outcome, SerializationFailure}


async def test_reading_takes_the_durable_snapshot_and_needs_no_actor() -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world, counters=5) as database, trio.open_nursery() as nursery:
        log.hold()
        writing = Observed(nursery, lambda: database.transact(counters.increment(1)))
        await wait_all_tasks_blocked()
        world.sent.clear()
        assert await counters.read(database, counters.look(1)) == Outcome(0, 1)
        assert world.sent == []
        log.release()
        await wait_all_tasks_blocked()
        assert writing.outcome == Outcome([1], 2)
        assert await counters.read(database, counters.look(1)) == Outcome(1, 2)


async def test_an_error_applies_nothing_and_is_not_run_again() -> None:
    runs: list[int] = []

    def work(transaction: Transaction) -> None:
        runs.append(1)
        counters.put(transaction, 1, 99)
        transaction.table("nowhere")

    async with opened(counters=5) as database:
        with pytest.raises(UndefinedTable):
            await database.transact(work)
        assert await counters.total(database) == 0
        assert len(runs) == 1


# --- conflicts -------------------------------------------------------------------------------


async def test_long_work_that_conflicts_is_run_again_after_a_pause(
    autojump_clock: MockClock,
) -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        began = trio.current_time()
        outcome = await database.transact(counters.disturbed(database, nursery, 1))
        assert outcome == Outcome([1, 2], 3, retries=1)
        assert began < trio.current_time() < began + 0.005
        assert database.statistics().gateway == GatewayStatistics(
            transactions=3, retries=1, exclusive=0, restarts=0
        )
        assert await counters.total(database) == 2


async def test_many_long_ones_on_one_key_all_end_and_none_is_lost(
    autojump_clock: MockClock,
) -> None:
    async with opened(counters=5) as database:
        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(database.transact, counters.increment_slowly(1))
        assert await counters.total(database) == 30
        assert database.statistics().gateway.retries > 0


async def test_short_work_that_conflicts_tells_how_often_it_was_run_again() -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        calls = [
            Observed(nursery, lambda: database.transact(counters.increment(1))) for _ in range(3)
        ]
        await wait_all_tasks_blocked()
        outcomes = sorted((call.outcome for call in calls), key=lambda outcome: outcome.result)
        assert outcomes == [
            Outcome([1], 2),
            Outcome([2], 3, retries=1),
            Outcome([3], 3, retries=1),
        ]


@pytest.mark.parametrize("work", [counters.increment(1), counters.increment_slowly(1)])
async def test_without_retries_a_conflict_names_table_key_and_versions(work: Work) -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        calls = [
            Observed(nursery, lambda: database.transact(work, max_retries=0)) for _ in range(2)
        ]
        await wait_all_tasks_blocked()
        (error,) = [call.outcome for call in calls if not isinstance(call.outcome, Outcome)]
        assert isinstance(error, SerializationFailure)
        assert str(error) == "could not serialize access due to concurrent update"
        assert isinstance(error.conflict, Conflict)
        reason = error.conflict.reason
        assert reason in (
            "a key that was read is being changed by an accepted transaction",
            "a key that was read has changed",  # slow work may come a round later
        )
        assert error.detail == f"{reason}: counters (1,)"
        assert error.hint == "The transaction might succeed if retried."
        assert (error.retryable, error.applied) == (True, Applied.NO)
        assert error.conflict == Conflict(
            reason,
            tree=1,
            key=(1,),
            table="counters",
            version_read=1,
            version_found=2,
            columns=("id",),
        )
        assert await counters.total(database) == 1


async def test_a_conflict_over_definitions_reads_well_too() -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        calls = [
            Observed(nursery, partial(database.transact, counters.create(name=name), max_retries=0))
            for name in ("one", "two")
        ]
        await wait_all_tasks_blocked()
        (error,) = [call.outcome for call in calls if not isinstance(call.outcome, Outcome)]
        assert isinstance(error, SerializationFailure)
        assert error.detail == "the catalog that was read has changed"


# --- an exclusive commit
# ----------------------------------------------------------------------------------


async def test_after_its_retries_work_gets_a_turn_in_which_nobody_else_commits(
    autojump_clock: MockClock,
) -> None:
    versions_in_exclusive_commit: list[int] = []

    def in_exclusive_commit(transaction: Transaction) -> Generator[None, None, None]:
        found = counters.value(transaction, 1) + 1
        for _ in range(3):
            nursery.start_soon(database.transact, counters.increment(1))
        for _ in range(50):
            yield
            versions_in_exclusive_commit.append(counters.newest_version(database))
        counters.put(transaction, 1, found)

    def work(transaction: Transaction) -> Any:
        exclusive = database.statistics().gateway.exclusive
        return (in_exclusive_commit if exclusive else disturbing)(transaction)

    async with opened(counters=5) as database:
        async with trio.open_nursery() as nursery:
            disturbing = counters.disturbed(database, nursery, 1, times=99)
            outcome = await database.transact(work, max_retries=2)
            assert outcome.retries == 2
            assert versions_in_exclusive_commit == [outcome.version - 1] * 50
        statistics = database.statistics()
        assert (statistics.gateway.exclusive, statistics.gateway.transactions) == (1, 7)
        assert await counters.total(database) == 6, "its own, two before its turn, three during it"


async def test_a_turn_that_wrote_nothing_ends(autojump_clock: MockClock) -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        first = counters.disturbed(database, nursery, 1)
        work = counters.one_after_the_other(first, counters.look(1))
        assert await database.transact(work, max_retries=1) == Outcome(1, 2, retries=1)
        assert database.statistics().gateway.exclusive == 1
        assert await database.transact(counters.increment(1)) == Outcome([2], 3)


async def test_a_turn_that_wrote_nothing_lets_others_commit_while_it_waits_for_the_disk(
    autojump_clock: MockClock,
) -> None:
    log = HeldLog()
    async with opened(log, counters=5) as database, trio.open_nursery() as nursery:
        slowly = counters.disturbed(database, nursery, 1)

        def hold_and_disturb(transaction: Transaction) -> Generator[None, None, Any]:
            result = yield from slowly(transaction)
            log.hold()
            nursery.start_soon(database.transact, counters.increment(2))
            while counters.newest_version(database) == 2:
                yield
            return result

        work = counters.one_after_the_other(hold_and_disturb, counters.look(2))
        looking = Observed(nursery, partial(database.transact, work, max_retries=1))
        await trio.sleep(1)
        assert (looking.outcomes, database.statistics().gateway.exclusive) == ([], 1)
        nursery.start_soon(database.transact, counters.increment(3))
        await trio.sleep(1)
        assert counters.newest_version(database) == 4, "the other has committed in memory"
        assert looking.outcomes == []
        log.release()
        await wait_all_tasks_blocked()
        assert looking.outcome == Outcome(1, 3, retries=1)


async def test_a_turn_whose_work_raises_ends(autojump_clock: MockClock) -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        first = counters.disturbed(database, nursery, 1)
        work = counters.one_after_the_other(first, insert(1))
        with pytest.raises(UniqueViolation):
            await database.transact(work, max_retries=1)
        assert database.statistics().gateway.exclusive == 1
        assert await database.transact(counters.increment(1)) == Outcome([2], 3)


async def test_many_exclusive_commits_that_are_asked_for_at_once_all_end(
    autojump_clock: MockClock,
) -> None:
    async with opened(counters=5) as database:
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                work = counters.increment_slowly(1, yields=5)
                nursery.start_soon(lambda work: database.transact(work, max_retries=1), work)
        assert await counters.total(database) == 20
        assert database.statistics().gateway.exclusive > 1


# --- deadlines -------------------------------------------------------------------------------


def overslept(clock: MockClock, work: Work) -> Work:
    """Long work that takes 10 seconds."""

    def run(transaction: Transaction) -> Generator[None, None, Any]:
        yield
        clock.jump(10)
        yield
        return work(transaction)

    return run


async def test_work_that_passes_its_deadline_is_stopped(mock_clock: MockClock) -> None:
    async with opened(counters=5) as database:
        deadline = trio.current_time() + 5
        work = overslept(mock_clock, counters.look(1))
        with pytest.raises(QueryCanceled) as caught:
            await database.transact(work, deadline=deadline)
        assert str(caught.value) == "canceling statement due to statement timeout"
        assert caught.value.applied is Applied.NO


async def test_short_work_that_ends_after_its_deadline_is_not_sent(mock_clock: MockClock) -> None:
    def work(transaction: Transaction) -> None:
        counters.put(transaction, 1, 99)
        mock_clock.jump(10)

    async with opened(counters=5) as database:
        with pytest.raises(QueryCanceled):
            await database.transact(work, deadline=trio.current_time() + 5)
        assert await counters.total(database) == 0


async def test_a_second_run_that_ends_after_its_deadline_reports_the_conflict_of_the_first(
    mock_clock: MockClock,
) -> None:
    def late(transaction: Transaction) -> None:
        counters.put(transaction, 1, 99)
        mock_clock.jump(10)

    world = Laboratory(Pauses(0))
    async with opened(world=world, counters=5) as database, trio.open_nursery() as nursery:
        work = counters.one_after_the_other(counters.disturbed(database, nursery, 1), late)
        with pytest.raises(SerializationFailure):
            await database.transact(work, deadline=trio.current_time() + 5)
        assert await counters.total(database) == 1


async def test_a_deadline_that_is_not_reached_changes_nothing() -> None:
    async with opened(counters=5) as database:
        deadline = trio.current_time() + 1000
        outcome = await database.transact(counters.increment_slowly(1), deadline=deadline)
        assert outcome == Outcome([1], 2)
        assert await counters.read(database, counters.look(1), deadline=deadline) == Outcome(1, 2)


async def test_a_deadline_that_passes_after_a_conflict_reports_the_conflict(
    mock_clock: MockClock,
) -> None:
    def be_late(message: Any) -> None:
        if isinstance(message, Commit) and message.work is None:  # the long one's
            mock_clock.jump(10)

    world = Laboratory()
    async with opened(world=world, counters=5) as database, trio.open_nursery() as nursery:
        world.watch = be_late
        work = counters.disturbed(database, nursery, 1)
        with pytest.raises(SerializationFailure) as caught:
            await database.transact(work, deadline=trio.current_time() + 5)
        assert isinstance(caught.value.conflict, Conflict)
        assert caught.value.conflict.key == (1,)
        assert await counters.total(database) == 1


async def test_work_is_not_run_again_when_the_deadline_passes_in_the_pause(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory(Pauses(0.004))
    async with opened(world=world, counters=5) as database, trio.open_nursery() as nursery:
        deadline = trio.current_time() + 0.002
        with pytest.raises(SerializationFailure):
            await database.transact(counters.disturbed(database, nursery, 1), deadline=deadline)
        assert trio.current_time() == deadline
        assert database.statistics().gateway.retries == 0
        assert await counters.total(database) == 1


async def test_a_deadline_holds_while_the_disk_hangs_and_nothing_was_sent(
    autojump_clock: MockClock,
) -> None:
    log = HeldLog()
    async with opened(log, counters=5) as database, trio.open_nursery() as nursery:
        log.hold()
        writing = Observed(nursery, lambda: database.transact(counters.increment(1)))
        await wait_all_tasks_blocked()
        for work in (counters.look(1), insert(1), overslept(autojump_clock, counters.look(1))):
            deadline = trio.current_time() + 5
            with pytest.raises(QueryCanceled):
                await database.transact(work, deadline=deadline)
            assert trio.current_time() <= deadline + 10
        assert writing.outcomes == []
        log.release()


async def test_a_deadline_holds_while_waiting_for_a_exclusive_commit(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory(
        Pauses(0.002, 0.001)
    )  # the second to conflict is the first to have an exclusive commit
    async with opened(world=world, counters=5) as database, trio.open_nursery() as nursery:

        def keep_the_exclusive_commit(transaction: Transaction) -> Generator[None, None, None]:
            while not waiting.outcomes:
                autojump_clock.jump(0.1)
                yield
            counters.put(transaction, 3, 7)

        other = counters.disturbed(database, nursery, 2)
        waiting = Observed(
            nursery,
            partial(database.transact, other, max_retries=1, deadline=trio.current_time() + 5),
        )
        works = counters.one_after_the_other(
            counters.after_a_conflict(database, counters.disturbed(database, nursery, 1)),
            keep_the_exclusive_commit,
        )
        await database.transact(works, max_retries=1)
        assert isinstance(waiting.outcome, QueryCanceled)
        assert database.statistics().gateway.exclusive == 2
        assert dict((await counters.read(database, counters.everything)).result) == {
            0: 0,
            1: 1,
            2: 1,
            3: 7,
            4: 0,
        }


# --- too much at once ------------------------------------------------------------------------


async def test_when_the_mailbox_is_full_requests_are_refused_and_nothing_of_them_applied() -> None:
    world = Laboratory()
    world.capacities["coordinator"] = 3
    async with opened(world=world, counters=20) as database, trio.open_nursery() as nursery:
        calls = [
            Observed(nursery, partial(database.transact, counters.increment(number)))
            for number in range(10)
        ]
        await wait_all_tasks_blocked()
        refused = [call for call in calls if isinstance(call.outcome, TooManyRequests)]
        assert 0 < len(refused) < 10
        assert {str(call.outcome) for call in refused} == {
            "3 messages wait at the coordinator already"
        }
        assert await counters.total(database) == 10 - len(refused)
        assert database.statistics().generation.unanswered == 0  # type: ignore[union-attr]


async def test_a_gateway_reads_as_a_sentence() -> None:
    async with opened(counters=5) as database:
        assert repr(database._gateway) == "a gateway after 1 transactions"
