"""The coordinator cuts and joins ranges after a round, and the shards know before the next."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

from qserver.engine.messages import Committed, Conflicted
from qserver.storage.ranges import RangedTree, Roots, roots_of_shard
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from tests.engine import counters
from tests.engine.rounds import Bench, bench

pytestmark = pytest.mark.usefixtures("tiny_ranges")


def owned(b: Bench) -> list[Roots]:
    return [shard.roots for shard in b.generation._shards]


async def write(b: Bench, **values: int | None) -> None:
    """One transaction that writes counters, or deletes them."""

    def work(transaction: Transaction) -> None:
        table = transaction.table(counters.NAME)
        for name, value in values.items():
            key = int(name[1:])
            transaction.put_entry(table.id, (key,), None if value is None else (key, value))

    (answer,) = await b.round(b.commit(work))
    assert answer == Committed(b.snapshot.version)


def tree_of(snapshot: Snapshot) -> RangedTree:
    return snapshot.trees.tree(snapshot.catalog.tables[counters.NAME].id)


async def test_a_range_that_grows_is_cut_and_both_shards_know_before_the_next_round() -> None:
    async with bench(4) as b:
        assert len(tree_of(b.snapshot).ranges) == 1
        await write(b, _9=1)
        low, high = tree_of(b.snapshot).ranges
        assert (low.high, high.low) == ((2,), (2,))
        assert (low.shard, high.shard) == (1, 2)
        await write(b, _1=5, _3=7)
        sent = [pair for pair in b.world.names_sent() if pair[0].startswith("shard")]
        assert sorted(sent) == [
            ("shard 1", "Decide"),
            ("shard 1", "Prepare"),
            ("shard 2", "Decide"),
            ("shard 2", "Prepare"),
        ]
        assert owned(b) == [roots_of_shard(b.snapshot.trees, shard) for shard in range(4)]
        assert await b.read(counters.everything) == [(0, 0), (1, 5), (2, 0), (3, 7), (9, 1)]
        assert b.statistics().layouts == 1


async def test_ranges_that_shrink_become_one_and_the_other_shard_has_nothing_left() -> None:
    async with bench(5) as b:
        assert len(tree_of(b.snapshot).ranges) == 2
        await write(b, _0=None, _3=None, _4=None)
        assert [each.shard for each in tree_of(b.snapshot).ranges] == [1]
        await write(b, _1=7)
        assert owned(b) == [roots_of_shard(b.snapshot.trees, shard) for shard in range(4)]
        assert [len(roots) for roots in owned(b)] == [0, 1, 0, 0]
        assert await b.read(counters.everything) == [(1, 7), (2, 0)]


async def test_only_shards_whose_ranges_change_are_told() -> None:
    async with bench(12) as b:
        before = tree_of(b.snapshot).ranges
        assert [each.shard for each in before] == [1, 2, 3]
        await write(b, _100=1, _101=1, _102=1)
        await wait_all_tasks_blocked()
        assert tree_of(b.snapshot).ranges[:2] == before[:2]
        told = [name for name, kind in b.world.names_sent() if kind == "Own"]
        assert told == ["shard 0", "shard 3"]


async def test_what_was_read_before_a_cut_still_conflicts_with_what_was_written_after_it() -> None:
    async with bench(4) as b:
        old = b.snapshot
        await write(b, _8=1, _9=1)
        stale = b.commit(counters.increment(3), on=old)
        fresh = b.commit(counters.increment(2), on=old)
        await write(b, _3=5)
        answers = await b.round(stale, fresh)
        assert [type(answer) for answer in answers] == [Conflicted, Committed]


async def test_a_transaction_over_many_ranges_commits_in_all_of_them() -> None:
    async with bench(40) as b:
        numbers = range(0, 40, 3)
        assert await b.round(b.commit(counters.increment(*numbers))) == [Committed(2)]
        assert await b.read(counters.everything) == [(n, int(n % 3 == 0)) for n in range(40)]
