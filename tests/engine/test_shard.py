"""What a shard answers to each kind of part, and what it has installed afterwards.

Everything here is synchronous: a shard decides without waiting.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from msgspec.structs import replace

from qserver.engine.mailbox import Mailbox
from qserver.engine.messages import Decide, Installed, Own, Prepare, Voted
from qserver.engine.shard import Shard, ShardStatistics
from qserver.storage.btree import get, split
from qserver.storage.catalog import Catalog
from qserver.storage.conflict import Conflict
from qserver.storage.page import EMPTY
from qserver.storage.ranges import Range, RangedTree, Roots, Trees, by_tree
from qserver.storage.routing import Part
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import ScannedRange
from qserver.storage.writes import changed
from qserver.values.keys import Predicate
from qserver.values.steps import at_once

TREE = 7
WHOLE = Range(TREE, None, None, 3)
A, B, C = ("a",), ("b",), ("c",)


def shard_with(**rows: int) -> Shard:
    """A shard whose tree 7 has these rows."""
    roots: Roots = {}
    if rows:
        roots[WHOLE] = at_once(changed(EMPTY, {(key,): (value,) for key, value in rows.items()}))
    return Shard(3, roots, Mailbox("shard 3", 1), Mailbox("coordinator, from shards", 4))


def snapshot_of(shard: Shard) -> Snapshot:
    """A snapshot with what the shard has installed."""
    trees = {number: RangedTree.of(roots) for number, roots in by_tree(shard.roots).items()}
    return Snapshot(1, 0.0, Catalog(), Trees().changed(trees), 4)


def part(
    shard: Shard,
    position: int = 0,
    *,
    alone: bool = True,
    reads: dict[str, int | None] | None = None,
    scans: bool = False,
    predicate: Predicate | None = None,
    writes: dict[str, int | None] | None = None,
    dropped: tuple[int, ...] = (),
    base: Snapshot | None = None,
    of: Range = WHOLE,
) -> Part:
    def row(value: int | None) -> tuple[int] | None:
        return None if value is None else (value,)

    return Part(
        position,
        alone,
        base or snapshot_of(shard),
        {of: {(key,): row(value) for key, value in reads.items()}} if reads else {},
        [(of, ScannedRange(TREE, None, None, predicate))] if scans else [],
        {of: {(key,): row(value) for key, value in writes.items()}} if writes else {},
        dropped,
    )


def contents(shard: Shard, answer: Voted | Installed | None = None) -> dict[str, int]:
    """What is in the tree now; an answer tells just that of the range that was written."""
    root = shard.roots.get(WHOLE, EMPTY)
    if answer is not None:
        assert answer.roots == {WHOLE: root}
    found = {}
    for key in (A, B, C):
        row = get(root, key)
        if row is not None:
            found[key[0]] = row[0]
    return found


def reasons(voted: Voted) -> list[str | None]:
    return [None if conflict is None else conflict.reason for conflict in voted.conflicts]


# --- what one round's parts come to ----------------------------------------------------------


def test_parts_that_are_alone_are_installed_at_once() -> None:
    shard = shard_with(a=1)
    voted = at_once(
        shard.prepare(
            Prepare(
                5, (part(shard, reads={"a": 1}, writes={"a": 2}), part(shard, 1, writes={"b": 3}))
            )
        )
    )
    assert (voted.shard, voted.round, voted.conflicts) == (3, 5, (None, None))
    assert contents(shard, voted) == {"a": 2, "b": 3}


def test_an_undecided_part_waits_for_the_decision() -> None:
    shard = shard_with(a=1)
    voted = at_once(shard.prepare(Prepare(5, (part(shard, alone=False, writes={"a": 2}),))))
    assert (voted.conflicts, voted.roots) == ((None,), None)
    assert contents(shard) == {"a": 1}
    installed = at_once(shard.decide(Decide(5, (0,))))
    assert (installed.shard, installed.round) == (3, 5)
    assert contents(shard, installed) == {"a": 2}


def test_one_undecided_part_holds_back_the_round_and_not_only_itself() -> None:
    shard = shard_with()
    voted = at_once(
        shard.prepare(
            Prepare(
                1, (part(shard, 0, writes={"a": 1}), part(shard, 1, alone=False, writes={"b": 2}))
            )
        )
    )
    assert voted.roots is None
    assert contents(shard) == {}
    assert contents(shard, at_once(shard.decide(Decide(1, (1,))))) == {"a": 1, "b": 2}


def test_what_is_not_decided_for_is_forgotten() -> None:
    shard = shard_with(a=1)
    parts = tuple(
        part(shard, position, alone=False, writes={key: 9}) for position, key in enumerate("abc")
    )
    at_once(shard.prepare(Prepare(1, parts)))
    assert contents(shard, at_once(shard.decide(Decide(1, (1,))))) == {"a": 1, "b": 9}
    # and it stands against nobody in the next round
    voted = at_once(
        shard.prepare(Prepare(2, (part(shard, reads={"a": 1, "c": None}, writes={"a": 5}),)))
    )
    assert reasons(voted) == [None]
    assert contents(shard, voted) == {"a": 5, "b": 9}


def test_what_was_forgotten_stands_against_no_later_undecided_round() -> None:
    shard = shard_with(a=1)
    at_once(shard.prepare(Prepare(1, (part(shard, alone=False, writes={"a": 2}),))))
    at_once(shard.decide(Decide(1, ())))
    others = (
        part(shard, 0, alone=False, writes={"b": 1}),
        part(shard, 1, alone=False, reads={"a": 1}, writes={"a": 3}),
    )
    assert reasons(at_once(shard.prepare(Prepare(2, others)))) == [None, None]


def test_an_aborted_round_leaves_the_very_same_roots() -> None:
    shard = shard_with(a=1)
    before = shard.roots.copy()
    at_once(shard.prepare(Prepare(1, (part(shard, alone=False, writes={"a": 2}),))))
    assert at_once(shard.decide(Decide(1, ()))).roots == {}
    assert shard.roots == before


def test_a_part_that_only_reads_changes_nothing() -> None:
    shard = shard_with(a=1)
    before = shard.roots.copy()
    assert at_once(shard.prepare(Prepare(1, (part(shard, reads={"a": 1}),)))).roots == {}
    assert shard.roots == before


def test_dropped_trees_are_gone_after_the_writes_of_the_round() -> None:
    shard = shard_with(a=1)
    at_once(
        shard.prepare(Prepare(1, (part(shard, writes={"b": 2}), part(shard, 1, dropped=(TREE,)))))
    )
    assert shard.roots == {}


def test_all_ranges_of_a_dropped_tree_are_gone_and_no_others() -> None:
    shard = shard_with(a=1)
    split_at_b(shard)
    other = Range(8, None, None, 3)
    shard.own(Own(1, [], {other: EMPTY}))
    at_once(shard.prepare(Prepare(2, (part(shard, dropped=(TREE, 99)),))))
    assert shard.roots == {other: EMPTY}


def test_a_drop_that_is_aborted_drops_nothing() -> None:
    shard = shard_with(a=1)
    at_once(shard.prepare(Prepare(1, (part(shard, alone=False, dropped=(TREE,)),))))
    at_once(shard.decide(Decide(1, ())))
    assert contents(shard) == {"a": 1}


def test_a_round_is_decided_before_the_next_is_prepared() -> None:
    shard = shard_with()
    at_once(shard.prepare(Prepare(1, (part(shard, alone=False, writes={"a": 1}),))))
    with pytest.raises(AssertionError, match="a round is decided"):
        at_once(shard.prepare(Prepare(2, ())))


# --- the table of conflicts: an earlier part of the round, a later one, and the later one's fate --

KEY = "a key that was read is being changed by"
RANGE = "a range that was read is being changed by"
BY_ACCEPTED, BY_UNDECIDED = "an accepted transaction", "an undecided transaction"
WRITTEN = "a key is being written by an undecided transaction"


@pytest.mark.parametrize("first_is_alone", [True, False], ids=["accepted", "undecided"])
@pytest.mark.parametrize("second_is_alone", [True, False], ids=["alone", "not alone"])
@pytest.mark.parametrize(
    ("first", "second", "after_accepted", "after_undecided"),
    [
        # reads of the second against writes of the first
        (
            {"writes": {"a": 2}},
            {"reads": {"a": 1}},
            f"{KEY} {BY_ACCEPTED}",
            f"{KEY} {BY_UNDECIDED}",
        ),
        (
            {"writes": {"a": None}},
            {"reads": {"a": 1}},
            f"{KEY} {BY_ACCEPTED}",
            f"{KEY} {BY_UNDECIDED}",
        ),
        (
            {"writes": {"b": 2}},
            {"reads": {"b": None}},
            f"{KEY} {BY_ACCEPTED}",
            f"{KEY} {BY_UNDECIDED}",
        ),
        ({"writes": {"a": 1}}, {"reads": {"a": 1}}, None, None),  # the value stays what it was
        ({"writes": {"b": 2}}, {"reads": {"a": 1}}, None, None),
        (
            {"writes": {"b": 2}},
            {"scans": True},
            f"{RANGE} {BY_ACCEPTED}",
            f"{RANGE} {BY_UNDECIDED}",
        ),
        ({"writes": {"a": 1}}, {"scans": True}, None, None),
        ({"writes": {"b": 2}}, {"scans": True, "predicate": lambda row: row[0] > 5}, None, None),
        (
            {"writes": {"b": 9}},
            {"scans": True, "predicate": lambda row: row[0] > 5},
            f"{RANGE} {BY_ACCEPTED}",
            f"{RANGE} {BY_UNDECIDED}",
        ),
        (
            {"writes": {"b": 9}},
            {"scans": True, "predicate": lambda row: row[5]},
            f"{RANGE} {BY_ACCEPTED}",
            f"{RANGE} {BY_UNDECIDED}",
        ),
        # writes of both: in order when the first is sure, refused when it is not
        ({"writes": {"a": 2}}, {"writes": {"a": 3}}, None, WRITTEN),
        ({"writes": {"a": 2}}, {"writes": {"b": 3}}, None, None),
        # writes of the second against reads of the first: the first simply comes first
        ({"reads": {"a": 1}}, {"writes": {"a": 3}}, None, None),
        ({"scans": True}, {"writes": {"b": 3}}, None, None),
        ({"reads": {"a": 1}}, {"reads": {"a": 1}}, None, None),
    ],
)
def test_a_later_part_of_the_round_meets_an_earlier_one(
    first: dict[str, Any],
    second: dict[str, Any],
    after_accepted: str | None,
    after_undecided: str | None,
    first_is_alone: bool,
    second_is_alone: bool,
) -> None:
    shard = shard_with(a=1)
    voted = at_once(
        shard.prepare(
            Prepare(
                1,
                (
                    part(shard, 0, alone=first_is_alone, **first),
                    part(shard, 1, alone=second_is_alone, **second),
                ),
            )
        )
    )
    expected = after_accepted if first_is_alone else after_undecided
    assert reasons(voted) == [None, expected]
    assert shard.statistics().refused == (expected is not None)


def test_a_refused_part_stands_against_nobody() -> None:
    shard = shard_with(a=1)
    stale = part(shard, 0, reads={"a": 0}, writes={"b": 1}, base=empty_snapshot(4))
    voted = at_once(
        shard.prepare(Prepare(1, (stale, part(shard, 1, reads={"b": None}, writes={"b": 2}))))
    )
    assert reasons(voted) == ["a key that was read has changed", None]
    assert contents(shard, voted) == {"a": 1, "b": 2}


def test_later_writes_win_over_earlier_ones_also_when_the_later_was_undecided() -> None:
    shard = shard_with()
    at_once(
        shard.prepare(
            Prepare(
                1, (part(shard, 0, writes={"a": 1}), part(shard, 1, alone=False, writes={"a": 2}))
            )
        )
    )
    assert contents(shard, at_once(shard.decide(Decide(1, (1,))))) == {"a": 2}


# --- against what is installed ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("reads", "scans", "expected"),
    [
        ({"a": 1}, False, Conflict("a key that was read has changed", TREE, A)),
        ({"b": None}, False, Conflict("a key that was read has changed", TREE, B)),
        ({"c": 3}, False, None),
        ({}, True, Conflict("a range that was read has changed", TREE, A)),
    ],
)
def test_a_read_of_an_older_snapshot_must_still_hold(
    reads: dict[str, int | None], scans: bool, expected: Conflict | None
) -> None:
    shard = shard_with(a=1, c=3)
    old = snapshot_of(shard)
    at_once(shard.prepare(Prepare(1, (part(shard, writes={"a": 2, "b": 2}),))))
    late = part(shard, reads=reads, scans=scans, base=old)
    voted = at_once(shard.prepare(Prepare(2, (late,))))
    if expected is not None and scans:
        expected = replace(expected, scanned=late.scans[0][1])
    assert voted.conflicts == (expected,)


def test_a_value_that_changed_and_changed_back_is_no_conflict() -> None:
    shard = shard_with(a=1)
    old = snapshot_of(shard)
    for round, value in ((1, 2), (2, 1)):
        at_once(shard.prepare(Prepare(round, (part(shard, writes={"a": value}),))))
    voted = at_once(shard.prepare(Prepare(3, (part(shard, reads={"a": 1}, scans=True, base=old),))))
    assert voted.conflicts == (None,)


# --- ranges that are cut and joined ----------------------------------------------------------

LOW, HIGH = Range(TREE, None, B, 3), Range(TREE, B, None, 3)


def split_at_b(shard: Shard) -> None:
    low, high = split(shard.roots[WHOLE], B)
    done = shard.own(Own(1, [WHOLE], {LOW: low, HIGH: high}))
    assert (done.shard, done.round, done.roots) == (3, 1, {})


def test_a_range_that_was_cut_is_owned_in_its_pieces() -> None:
    shard = shard_with(a=1, b=2, c=3)
    split_at_b(shard)
    assert set(shard.roots) == {LOW, HIGH}
    voted = at_once(
        shard.prepare(Prepare(2, (part(shard, reads={"b": 2}, writes={"b": 5}, of=HIGH),)))
    )
    assert voted.conflicts == (None,)
    assert voted.roots == {HIGH: shard.roots[HIGH]}
    assert get(shard.roots[HIGH], B) == (5,)
    assert get(shard.roots[LOW], A) == (1,)


def test_a_range_that_was_given_away_is_owned_no_more() -> None:
    shard = shard_with(a=1, b=2)
    shard.own(Own(4, [WHOLE], {}))
    assert shard.roots == {}
    with pytest.raises(KeyError):
        shard.own(Own(5, [WHOLE], {}))


@pytest.mark.parametrize(
    ("of", "reads", "stale"),
    [(LOW, {"a": 1}, False), (HIGH, {"b": 2, "c": 3}, True), (HIGH, {"c": 3}, False)],
)
def test_what_was_read_before_the_cut_is_compared_with_the_piece_that_has_it_now(
    of: Range, reads: dict[str, int | None], stale: bool
) -> None:
    shard = shard_with(a=1, b=2, c=3)
    old = snapshot_of(shard)
    split_at_b(shard)
    at_once(shard.prepare(Prepare(2, (part(shard, writes={"b": 9}, of=HIGH),))))
    voted = at_once(shard.prepare(Prepare(3, (part(shard, reads=reads, base=old, of=of),))))
    assert (voted.conflicts[0] is not None) == stale
    scanned = at_once(shard.prepare(Prepare(4, (part(shard, scans=True, base=old, of=of),))))
    assert (scanned.conflicts[0] is not None) == (of is HIGH)


def test_ranges_change_between_rounds_only() -> None:
    shard = shard_with(a=1)
    at_once(shard.prepare(Prepare(1, (part(shard, alone=False, writes={"a": 1}),))))
    with pytest.raises(AssertionError, match="between rounds"):
        shard.own(Own(1, [WHOLE], {}))


# --- the actor -------------------------------------------------------------------------------


async def test_the_actor_answers_each_message_in_exclusive_commit() -> None:
    shard = shard_with(a=1)
    answers: Mailbox[Voted | Installed] = shard._coordinator
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.run)
        shard.mailbox.put_nowait(Prepare(1, (part(shard, alone=False, writes={"a": 2}),)))
        (voted,) = await answers.take(most=1)
        shard.mailbox.put_nowait(Decide(1, (0,)))
        (installed,) = await answers.take(most=1)
        nursery.cancel_scope.cancel()
    assert isinstance(voted, Voted)
    assert isinstance(installed, Installed)
    assert contents(shard, installed) == {"a": 2}


def test_statistics_tell_what_was_asked_refused_and_installed() -> None:
    shard = shard_with(a=1)
    at_once(
        shard.prepare(Prepare(1, (part(shard, writes={"b": 2}), part(shard, 1, reads={"b": None}))))
    )
    at_once(shard.prepare(Prepare(2, (part(shard, alone=False, writes={"c": 3}),))))
    assert shard.statistics() == ShardStatistics(
        shard=3, entries=2, ranges=1, parts=3, refused=1, installs=1, undecided=1
    )
    at_once(shard.decide(Decide(2, (0,))))
    assert shard.statistics() == ShardStatistics(3, 3, 1, 3, 1, 2, 0)


def test_a_shard_reads_as_a_sentence() -> None:
    assert repr(shard_with(a=1, b=2)) == "shard 3 with 1 ranges"
