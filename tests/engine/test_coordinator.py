"""The coordinator's rounds: what conflicts, what becomes a version, and what is sent for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from trio.testing import wait_all_tasks_blocked

from qserver.engine.coordinator import CoordinatorStatistics
from qserver.engine.mailbox import Reply
from qserver.engine.messages import (
    Append,
    Commit,
    Committed,
    Conflicted,
    ExclusiveCommit,
    Failed,
    Prepare,
    Work,
)
from qserver.errors import DivisionByZero
from qserver.storage.conflict import Conflict
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from tests.engine import counters
from tests.engine.fakes import HeldLog
from tests.engine.rounds import Bench, bench, of_kind

pytestmark = pytest.mark.usefixtures("tiny_ranges")


# --- rounds, versions and messages -----------------------------------------------------------


async def test_a_round_is_one_version_and_one_record() -> None:
    async with bench(50) as b:
        answers = await b.round(*(b.commit(counters.increment(number)) for number in range(20)))
        assert answers == [Committed(2)] * 20
        appends = of_kind(b.world, Append)
        assert [append.snapshot.version for append in appends] == [2]
        assert sum(len(changes) for changes in appends[0].writes.values()) == 20
        assert await b.read(counters.everything) == [
            (number, int(number < 20)) for number in range(50)
        ]


async def test_a_round_on_single_shards_costs_one_message_each_way() -> None:
    async with bench(50) as b:
        on_0, also_on_0, on_2 = counters.on_shards(b.snapshot, [0, 0, 2])
        await b.round(*(b.commit(counters.increment(n)) for n in (on_0, also_on_0, on_2)))
        assert sorted(b.world.names_sent()) == [
            ("coordinator", "Commit"),
            ("coordinator", "Commit"),
            ("coordinator", "Commit"),
            ("coordinator, from shards", "Voted"),
            ("coordinator, from shards", "Voted"),
            ("log", "Append"),
            ("shard 0", "Prepare"),
            ("shard 2", "Prepare"),
        ]


async def test_only_shards_that_hold_part_of_a_wider_transaction_hear_a_second_word() -> None:
    async with bench(50) as b:
        one, other, apart = counters.on_shards(b.snapshot, [1, 3, 2])
        answers = await b.round(
            b.commit(counters.increment(one, other)), b.commit(counters.increment(apart))
        )
        assert answers == [Committed(2), Committed(2)]
        to_shards = [pair for pair in b.world.names_sent() if pair[0].startswith("shard")]
        assert sorted(to_shards) == [
            ("shard 1", "Decide"),
            ("shard 1", "Prepare"),
            ("shard 2", "Prepare"),
            ("shard 3", "Decide"),
            ("shard 3", "Prepare"),
        ]


async def test_creating_a_table_sends_nothing_to_the_shards() -> None:
    async with bench() as b:
        assert await b.round(b.commit(counters.create(name="other"))) == [Committed(2)]
        assert b.world.names_sent() == [("coordinator", "Commit"), ("log", "Append")]


async def test_transactions_of_a_round_commit_in_the_order_in_which_they_came() -> None:
    async with bench(50) as b:
        blind = [b.commit(counters.set_blindly(7, to)) for to in (1, 2, 3)]
        assert await b.round(*blind) == [Committed(2)] * 3
        assert await b.read(counters.look(7)) == 3


async def test_a_round_in_which_all_conflict_makes_no_version() -> None:
    async with bench(50) as b:
        old = b.snapshot
        await b.round(b.commit(counters.increment(7)))
        (answer,) = await b.round(b.commit(counters.increment(7), on=old))
        tree = b.snapshot.catalog.tables[counters.NAME].id
        assert answer == Conflicted(Conflict("a key that was read has changed", tree, (7,)))
        assert b.snapshot.version == 2
        assert of_kind(b.world, Append) == []


async def test_one_refusing_shard_aborts_a_transaction_on_all_others() -> None:
    async with bench(50) as b:
        one, other = counters.on_shards(b.snapshot, [1, 3])
        old = b.snapshot
        await b.round(b.commit(counters.increment(other)))
        answers = await b.round(
            b.commit(counters.increment(one, other), on=old),
            b.commit(counters.increment(one, other)),
        )
        assert [type(answer) for answer in answers] == [Conflicted, Conflicted]
        assert await b.read(counters.look(one)) == 0
        # the second overlapped an undecided one; alone it commits
        assert await b.round(b.commit(counters.increment(one, other))) == [Committed(3)]
        assert [await b.read(counters.look(n)) for n in (one, other)] == [1, 2]


async def test_the_time_of_a_version_is_the_worlds() -> None:
    async with bench(1) as b:
        assert b.snapshot.time == 1000.0
        b.world.time = 1500.0
        await b.round(b.commit(counters.increment(0)))
        assert b.snapshot.time == 1500.0


async def test_time_never_goes_back_from_one_version_to_the_next() -> None:
    async with bench(1) as b:
        b.world.time = 900.0
        await b.round(b.commit(counters.increment(0)))
        assert b.snapshot.time == 1000.0


# --- short work is run again -----------------------------------------------------------------


async def test_short_work_that_conflicts_is_run_again_at_once_as_one_more_version() -> None:
    async with bench(50) as b:
        answers = await b.round(*(b.commit(counters.increment(7), again=True) for _ in range(40)))
        assert answers == [
            Committed(2),
            *(Committed(3, retried=True, result=[nth]) for nth in range(2, 41)),
        ]
        assert await b.read(counters.look(7)) == 40
        (first, second) = of_kind(b.world, Prepare)
        assert (len(first.parts), len(second.parts)) == (40, 1)
        assert b.statistics() == CoordinatorStatistics(
            version=3, rounds=3, commits=41, conflicts=39, rerun=39, exclusive=0, layouts=1
        )


def fail(transaction: Transaction) -> None:
    counters.put(transaction, 7, 99)
    raise DivisionByZero("division by zero")


async def test_an_error_of_work_that_is_run_again_applies_nothing_of_it() -> None:
    async with bench(50) as b:
        work = counters.one_after_the_other(counters.increment(7), fail)
        failing = b.commit(work, again=True)
        winner = b.commit(counters.increment(7))
        later = b.commit(counters.increment(7), again=True)
        answers = await b.round(winner, failing, later)
        assert answers[0] == Committed(2)
        assert isinstance(answers[1], Failed)
        assert isinstance(answers[1].error, DivisionByZero)
        assert answers[1].version == 2, "it was the first to be run again"
        assert answers[2] == Committed(3, retried=True, result=[2])


async def test_an_error_tells_of_the_version_that_it_comes_from() -> None:
    async with bench(50) as b:
        work = counters.one_after_the_other(counters.increment(7), fail)
        others = [b.commit(counters.increment(7), again=True) for _ in range(2)]
        answers = await b.round(*others, b.commit(work, again=True))
        assert answers[:2] == [Committed(2), Committed(3, retried=True, result=[2])]
        assert isinstance(answers[2], Failed)
        assert answers[2].version == 3, "it saw what was written for version 3"


async def test_a_bug_in_work_that_is_run_again_hurts_nobody_else() -> None:
    def stumble(transaction: Transaction) -> None:
        raise ZeroDivisionError("a bug")

    async with bench(50) as b:
        work = counters.one_after_the_other(counters.increment(7), stumble)
        stumbling = b.commit(work, again=True)
        answers = await b.round(b.commit(counters.increment(7)), stumbling)
        assert answers[0] == Committed(2)
        assert isinstance(answers[1], Failed)
        assert isinstance(answers[1].error, ZeroDivisionError)
        assert await b.round(b.commit(counters.increment(7))) == [Committed(3)]


async def test_work_that_writes_nothing_when_run_again_has_committed_what_it_saw() -> None:
    async with bench(50) as b:
        work = counters.one_after_the_other(counters.increment(7), counters.look(7))
        looking = b.commit(work, again=True)
        answers = await b.round(b.commit(counters.increment(7)), looking)
        assert answers == [Committed(2), Committed(2, retried=True, result=1)]
        assert b.snapshot.version == 2


@pytest.mark.parametrize(
    ("becomes", "reason"),
    [
        (counters.increment_slowly(7), "the work is not short"),
        (counters.create(name="other"), "the work changes the catalog"),
    ],
)
async def test_what_the_coordinator_cannot_run_goes_back_as_a_conflict(
    becomes: Work, reason: str
) -> None:
    async with bench(50) as b:
        work = counters.one_after_the_other(counters.increment(7), becomes)
        changed = b.commit(work, again=True)
        others = [b.commit(counters.increment(7), again=True) for _ in range(2)]
        answers = await b.round(others[0], changed, others[1])
        assert answers == [
            Committed(2),
            Conflicted(Conflict(reason)),
            Committed(3, retried=True, result=[2]),
        ]
        assert b.snapshot.version == 3
        assert "other" not in b.snapshot.catalog.tables


# --- short work that comes untried --------------------------------------------------------------


async def test_untried_work_is_run_in_the_order_in_which_it_came_and_sees_those_before_it() -> None:
    async with bench(50) as b:
        answers = await b.round(*(b.untried(counters.increment(7)) for _ in range(40)))
        assert answers == [Committed(2, result=[nth]) for nth in range(1, 41)]
        assert await b.read(counters.look(7)) == 40
        assert b.snapshot.version == 2
        assert b.statistics() == CoordinatorStatistics(
            version=2, rounds=2, commits=41, conflicts=0, rerun=0, exclusive=0, layouts=1
        )


async def test_untried_work_costs_one_message_for_each_shard_that_it_writes_to() -> None:
    async with bench(50) as b:
        one, other, apart = counters.on_shards(b.snapshot, [1, 3, 2])
        works = [counters.increment(one, other), counters.increment(apart), counters.look(one)]
        answers = await b.round(*(b.untried(work) for work in works))
        assert answers == [Committed(2, result=found) for found in ([1, 1], [1], 1)]
        sent = [pair for pair in b.world.names_sent() if pair[0].startswith("shard")]
        assert sent == [(f"shard {number}", "Prepare") for number in (1, 2, 3)]
        (append,) = of_kind(b.world, Append)
        assert sorted(key for changes in append.writes.values() for key in changes) == sorted(
            [(one,), (other,), (apart,)]
        )


async def test_what_was_tried_comes_before_what_is_untried_however_they_were_sent() -> None:
    async with bench(50) as b:
        untried = [b.untried(counters.increment(7)) for _ in range(2)]
        tried = b.commit(counters.increment(7))
        answers = await b.round(untried[0], tried, untried[1])
        assert answers == [Committed(3, result=[2]), Committed(2), Committed(3, result=[3])]


async def test_what_is_untried_what_conflicts_and_what_wins_share_two_rounds() -> None:
    async with bench(50) as b:
        wins = b.commit(counters.increment(7))
        conflicts = [b.commit(counters.increment(7), again=True) for _ in range(2)]
        untried = [b.untried(counters.increment(7)) for _ in range(2)]
        long = b.commit(counters.increment(7))
        answers = await b.round(wins, conflicts[0], untried[0], long, conflicts[1], untried[1])
        assert (answers[0], type(answers[3])) == (Committed(2), Conflicted)
        assert [answers[at] for at in (2, 5)] == [Committed(3, result=[nth]) for nth in (2, 3)]
        assert [answers[at] for at in (1, 4)] == [
            Committed(3, retried=True, result=[nth]) for nth in (4, 5)
        ]
        assert await b.read(counters.look(7)) == 5
        assert [append.snapshot.version for append in of_kind(b.world, Append)] == [2, 3]
        assert b.statistics() == CoordinatorStatistics(
            version=3, rounds=3, commits=6, conflicts=3, rerun=2, exclusive=0, layouts=1
        )


async def test_untried_work_that_raises_leaves_nothing_and_the_others_commit() -> None:
    async with bench(50) as b:
        works = [counters.increment(7), fail, counters.increment(7), counters.increment(8)]
        answers = await b.round(*(b.untried(work) for work in works))
        assert [answers[at] for at in (0, 2, 3)] == [
            Committed(2, result=[nth]) for nth in (1, 2, 1)
        ]
        assert isinstance(answers[1], Failed)
        assert isinstance(answers[1].error, DivisionByZero)
        assert answers[1].version == 2, "it saw what was written for version 2"
        assert await b.read(counters.look(7)) == 2
        assert b.statistics().commits == 4


@pytest.mark.parametrize("again", [False, True])
async def test_an_error_makes_no_version_and_tells_of_none_that_is_not_there(again: bool) -> None:
    async with bench(50) as b:
        old = b.snapshot
        await b.round(b.commit(counters.increment(7)))
        work = counters.one_after_the_other(counters.increment(7), fail)
        commit = b.commit(work, on=old, again=True) if again else b.untried(fail)
        (answer,) = await b.round(commit)
        assert isinstance(answer, Failed)
        assert (answer.version, b.snapshot.version) == (2, 2)
        assert of_kind(b.world, Append) == []


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (counters.increment_slowly(7), "the work is not short"),
        (counters.create(name="other"), "the work changes the catalog"),
    ],
)
async def test_untried_work_that_the_coordinator_cannot_run_leaves_nothing(
    work: Work, reason: str
) -> None:
    async with bench(50) as b:
        works = [counters.increment(7), work, counters.increment(7)]
        answers = await b.round(*(b.untried(each) for each in works))
        assert answers == [
            Committed(2, result=[1]),
            Conflicted(Conflict(reason)),
            Committed(2, result=[2]),
        ]
        assert (b.snapshot.version, b.statistics().conflicts) == (2, 0)
        assert "other" not in b.snapshot.catalog.tables


async def test_untried_work_that_writes_nothing_has_committed_what_it_saw() -> None:
    async with bench(50) as b:
        (alone,) = await b.round(b.untried(counters.look(7)))
        assert alone == Committed(1, result=0)
        assert (b.snapshot.version, of_kind(b.world, Append)) == (1, [])
        works = [counters.look(7), counters.increment(7), counters.look(7)]
        answers = await b.round(*(b.untried(work) for work in works))
        assert answers == [
            Committed(1, result=0),
            Committed(2, result=[1]),
            Committed(2, result=1),
        ]
        assert b.statistics().commits == 2, "the table, and the one that wrote"


async def test_untried_work_sees_a_definition_of_the_same_round() -> None:
    def add_to_other(transaction: Transaction) -> None:
        counters.put(transaction, 1, 5, name="other")

    async with bench(5) as b:
        answers = await b.round(b.untried(add_to_other), b.commit(counters.create(name="other")))
        assert answers == [Committed(3), Committed(2)]
        assert await b.read(lambda transaction: counters.value(transaction, 1, "other")) == 5


# --- the catalog -----------------------------------------------------------------------------

REDEFINED = Conflict("a definition that was used has changed", table=counters.NAME)
CATALOG_CHANGED = Conflict("the catalog that was read has changed")


def drop(transaction: Transaction) -> None:
    transaction.drop_table(counters.NAME)


def drop_and_create(transaction: Transaction) -> None:
    drop(transaction)
    counters.create()(transaction)


def look_for_other(transaction: Transaction) -> None:
    """Writes, and depends on there being no table `other`."""
    assert transaction.find_definition("other") is None
    counters.put(transaction, 1, 1)


CATALOG_CASES: list[tuple[Work, Work, Conflict | None]] = [
    (drop, counters.set_blindly(1, 1), REDEFINED),
    (drop_and_create, counters.set_blindly(1, 1), REDEFINED),
    (drop, counters.create(name="other"), CATALOG_CHANGED),
    (counters.create(name="other"), counters.create(name="third"), CATALOG_CHANGED),
    (counters.create(name="other"), counters.set_blindly(1, 1), None),
    (
        counters.create(name="other"),
        look_for_other,
        Conflict("a definition that was used has changed", table="other"),
    ),
    (counters.set_blindly(1, 1), counters.create(name="other"), None),
]


@pytest.mark.parametrize(("first", "second", "expected"), CATALOG_CASES)
async def test_a_definition_that_changed_since_it_was_read_is_a_conflict(
    first: Work, second: Work, expected: Conflict | None
) -> None:
    async with bench(5) as b:
        later = b.commit(second)
        assert await b.round(b.commit(first)) == [Committed(2)]
        assert await b.round(later) == [Conflicted(expected) if expected else Committed(3)]


@pytest.mark.parametrize(("first", "second", "expected"), CATALOG_CASES)
async def test_a_definition_that_changes_in_the_same_round_is_a_conflict_too(
    first: Work, second: Work, expected: Conflict | None
) -> None:
    async with bench(5) as b:
        answers = await b.round(b.commit(first), b.commit(second))
        assert answers == [Committed(2), Conflicted(expected) if expected else Committed(2)]


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("shards", [1, 4])
async def test_rows_written_before_the_table_is_dropped_in_the_same_round_are_gone(
    rows: int, shards: int
) -> None:
    """Also those that made the first range of the table."""
    async with bench(rows, shards) as b:
        answers = await b.round(b.commit(counters.set_blindly(9, 1)), b.commit(drop))
        assert answers == [Committed(2), Committed(2)]
        assert list(b.snapshot.trees.items()) == []
        assert [shard.ranges for shard in b.generation.statistics().shards] == [0] * shards


async def test_a_definition_that_was_refused_by_a_shard_is_not_published() -> None:
    def fill(transaction: Transaction) -> None:
        counters.create(name="other")(transaction)
        transaction.rows(transaction.table(counters.NAME))

    async with bench(5) as b:
        filling = b.commit(fill)
        answers = await b.round(b.commit(counters.increment(1)), filling)
        assert [type(answer) for answer in answers] == [Committed, Conflicted]
        assert "other" not in b.snapshot.catalog.tables
        (append,) = of_kind(b.world, Append)
        assert (append.catalog_changes, append.dropped) == ({}, ())


# --- exclusive commits
# -----------------------------------------------------------------------------------


async def while_in_exclusive_commit(b: Bench, during: Callable[[], Commit | None]) -> Snapshot:
    """Take an exclusive commit, let all others go as far as they can, then return what `during`
    gives."""
    exclusive = ExclusiveCommit(1000, Reply(), Reply())
    b.generation.requests.put_nowait(exclusive)
    snapshot = await exclusive.granted.wait()
    returned = during()
    await wait_all_tasks_blocked()
    exclusive.returned.put(returned)
    return snapshot


async def test_nobody_else_commits_during_a_turn_and_all_do_after_it() -> None:
    async with bench(5) as b:
        waiting = b.commit(counters.increment(1))
        mine = b.commit(counters.increment(1))

        def during() -> Commit:
            b.generation.requests.put_nowait(waiting)
            return mine

        assert (await while_in_exclusive_commit(b, during)).version == 1
        assert await mine.reply.wait() == Committed(2)
        assert isinstance(await waiting.reply.wait(), Conflicted)
        assert b.statistics().exclusive == 1


async def test_a_turn_that_is_returned_empty_lets_others_go_on() -> None:
    async with bench(5) as b:
        waiting = b.commit(counters.increment(1))
        await while_in_exclusive_commit(b, lambda: b.generation.requests.put_nowait(waiting))
        assert await waiting.reply.wait() == Committed(2)


async def test_a_turn_sees_the_commits_that_came_with_it() -> None:
    async with bench(5) as b:
        exclusive = ExclusiveCommit(1000, Reply(), Reply())
        b.generation.requests.put_nowait(exclusive)
        b.generation.requests.put_nowait(b.commit(counters.increment(1)))
        assert (await exclusive.granted.wait()).version == 2
        exclusive.returned.put(None)


async def test_a_turn_sees_what_is_newest_durable_or_not() -> None:
    log = HeldLog()
    async with bench(5, log=log) as b:
        log.hold()
        waiting, mine = b.commit(counters.increment(1)), ExclusiveCommit(1000, Reply(), Reply())
        b.generation.requests.put_nowait(waiting)
        b.generation.requests.put_nowait(mine)
        snapshot = await mine.granted.wait()
        assert (snapshot.version, b.generation.versions.durable.version) == (2, 1)
        commit = b.commit(counters.increment(1), on=snapshot)
        mine.returned.put(commit)
        log.release()
        assert await commit.reply.wait() == Committed(3)


async def test_the_coordinator_reads_as_a_sentence() -> None:
    async with bench() as b:
        assert repr(b.generation._coordinator) == "the coordinator at version 1"
        assert repr(b.generation) == "a generation with version 1 published, 1 durable"
