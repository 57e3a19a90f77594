"""Every read and every write reaches the shard that owns its key, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.storage.page import Key
from qserver.storage.ranges import Range
from qserver.storage.routing import Part, parts_of, unconditional_parts, written
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import CHANGES_AT_ONCE, Writes
from qserver.values.schema import Column, define_table
from qserver.values.steps import at_once
from qserver.values.types import INTEGER
from tests.storage.databases import (
    EMAIL,
    PEOPLE,
    PLAIN,
    commit,
    database,
    laid_out,
    ranges_of,
    tree_entries,
    view_with,
)
from tests.storage.trees import Changes, Model, changed_model, unhurried, within
from tests.values.making import define_index

pytestmark = pytest.mark.usefixtures("tiny_pages", "tiny_ranges")

TREE = PLAIN.id
numbers = st.tuples(st.integers(0, 30))
models = st.dictionaries(numbers, st.tuples(st.integers()), max_size=30)
changes = st.dictionaries(numbers, st.none() | st.tuples(st.integers()), max_size=8)
bounds = st.none() | st.tuples(st.integers(-1, 31))
sizes = st.sampled_from([(1, 0), (3, 1), (4, 2), (9, 4), (50_000, 5_000)])


def owner(snapshot: Snapshot, tree: int, key: Key) -> Range:
    """The one range that has a key, found by looking at all."""
    (found,) = [
        each
        for each in snapshot.trees.tree(tree).ranges
        if (each.low is None or each.low <= key) and (each.high is None or key < each.high)
    ]
    return found


@unhurried
@given(
    model=models,
    since=changes,
    reads=st.sets(numbers, max_size=6),
    scans=st.lists(st.tuples(bounds, bounds), max_size=3),
    writes=changes,
    size=sizes,
    shards=st.integers(1, 4),
)
def test_each_read_and_write_goes_to_its_owner_in_the_newest_snapshot(
    model: Model,
    since: Changes,
    reads: set[Key],
    scans: list[tuple[Key | None, Key | None]],
    writes: Changes,
    size: tuple[int, int],
    shards: int,
) -> None:
    base = view_with({**model, (99,): (99,)}, shards, TREE)
    transaction = Transaction(base)
    for low, high in scans:
        for _ in transaction.scan(TREE, low, high):
            pass
    for key in reads:
        transaction.get_entry(TREE, key)
    for key, value in writes.items():
        transaction.put_entry(TREE, key, value)
    with ranges_of(*size):
        newest = laid_out(view_with({**changed_model(model, since), (99,): (99,)}, shards, TREE))
    parts = at_once(parts_of(transaction, 5, newest))
    for shard, part in parts.items():
        check_part(part, shard, newest)
        assert (part.position, part.base) == (5, base)
        assert part.alone == (len(parts) == 1)
    assert gathered(parts, "keys") == {key: base.get_entry(TREE, key) for key in reads}
    assert gathered(parts, "writes") == writes
    everywhere = {(at,) for at in range(-1, 100)}
    for scanned in transaction.ranges:
        owners = {
            owner(newest, TREE, key)
            for key in within(dict.fromkeys(everywhere, ()), scanned.low, scanned.high)
        }
        sent = [each for part in parts.values() for each, of in part.scans if of is scanned]
        assert len(sent) == len(set(sent)), "once to each"
        assert owners <= set(sent)


def check_part(part: Part, shard: int, newest: Snapshot) -> None:
    for each in [*part.keys, *part.writes, *(each for each, _ in part.scans)]:
        assert each.shard == shard
        assert each in newest.trees.tree(TREE).ranges
    for by_range in (part.keys, part.writes):
        for each, entries in by_range.items():
            assert entries
            assert all(owner(newest, TREE, key) == each for key in entries)


def gathered(parts: dict[int, Part], what: str) -> Changes:
    found: Changes = {}
    for part in parts.values():
        for entries in getattr(part, what).values():
            assert found.keys().isdisjoint(entries), "each key goes to one shard"
            found.update(entries)
    return found


@unhurried
@given(model=models, writes=changes, shards=st.integers(1, 4))
def test_writes_that_nobody_checks_go_the_same_way(
    model: Model, writes: Changes, shards: int
) -> None:
    newest = view_with({**model, (99,): (99,)}, shards, TREE)
    parts = at_once(unconditional_parts({TREE: writes} if writes else {}, newest))
    for shard, part in parts.items():
        check_part(part, shard, newest)
        assert part.alone
        assert (part.keys, part.scans) == ({}, [])
    assert gathered(parts, "writes") == writes


@unhurried
@given(model=models, rounds=st.lists(changes, max_size=4), shards=st.integers(1, 3))
def test_writes_without_shards_make_the_same_trees(
    model: Model, rounds: list[Changes], shards: int
) -> None:
    snapshot = view_with(model, shards, TREE)
    for made in rounds:
        trees = at_once(written(snapshot, snapshot.catalog, {TREE: made}))
        snapshot, model = (
            Snapshot(1, 0.0, snapshot.catalog, trees, shards),
            changed_model(model, made),
        )
        assert tree_entries(snapshot, TREE) == model


def test_a_small_table_and_its_indexes_are_on_one_shard() -> None:
    transaction = Transaction(database(4))
    transaction.insert(PEOPLE, (1, "ada@x", "London", None))
    transaction.rows(PEOPLE)
    ((shard, part),) = at_once(parts_of(transaction, 5, transaction.snapshot)).items()
    assert (shard, part.alone, part.position) == (PEOPLE.id % 4, True, 5)
    assert {each.tree for each in part.writes} == {2, 3, 4}
    assert part.keys == {
        Range(PEOPLE.id, None, None, 2): {(1,): None},
        Range(EMAIL.id, None, None, 2): {("ada@x",): None},
    }
    assert part.scans == [(Range(PEOPLE.id, None, None, 2), transaction.ranges[0])]


def test_a_table_that_the_transaction_makes_is_on_the_shard_where_others_will_look() -> None:
    transaction = Transaction(database(4))
    table = define_table(transaction.next_tree(), "new", [Column("a", INTEGER)], ["a"])
    index = define_index(transaction.next_tree(), "new_a", table, ["a"])
    table = table.with_index(index)
    transaction.define(table.key, table)
    transaction.insert(table, (1,))
    ((shard, _),) = at_once(parts_of(transaction, 0, transaction.snapshot)).items()
    newest = commit(transaction)
    assert {each.shard for tree in (table.id, index.id) for each in newest.ranges(tree)} == {shard}


def test_a_dropped_table_concerns_all_shards_that_have_or_may_get_a_range_of_it() -> None:
    rows: Writes = {TREE: {(at,): (at,) for at in range(20)}}
    snapshot = database(4)
    newest = Snapshot(
        1, 0.0, snapshot.catalog, at_once(written(snapshot, snapshot.catalog, rows)), 4
    )
    dropper = Transaction(newest)
    dropper.drop_table("plain")
    parts = at_once(parts_of(dropper, 0, newest))
    assert set(parts) == {0, 1, 2, 3}
    assert all(part.dropped == (TREE,) for part in parts.values())
    never_written = Transaction(snapshot)
    never_written.drop_table("people")
    assert set(at_once(parts_of(never_written, 0, snapshot))) == {PEOPLE.id % 4}, (
        "one may write it this round"
    )


def test_who_writes_a_table_and_drops_it_writes_where_others_do_in_that_round() -> None:
    other, dropper = Transaction(database(4)), Transaction(database(4))
    other.insert(PEOPLE, (1, "ada@x", "London", None))
    dropper.insert(PEOPLE, (2, "bob@x", "Paris", None))
    dropper.drop_table("people")
    for transaction in (other, dropper):
        assert set(at_once(parts_of(transaction, 0, database(4)))) == {PEOPLE.id % 4}


def test_what_touched_no_shard_has_no_parts() -> None:
    transaction = Transaction(database(4))
    transaction.define("new", define_table(transaction.next_tree(), "new", [Column("a", INTEGER)]))
    assert at_once(parts_of(transaction, 0, transaction.snapshot)) == {}
    assert transaction.changes_anything


def test_many_keys_are_routed_in_steps() -> None:
    with ranges_of(4_000, 400):
        snapshot = view_with({(at,): (at,) for at in range(10_000)}, 4, TREE)
    transaction = Transaction(snapshot)
    for at in range(3 * CHANGES_AT_ONCE):
        transaction.get_entry(TREE, (at,))
        transaction.put_entry(TREE, (at,), (at, "new"))
    assert len(list(parts_of(transaction, 0, snapshot))) == 2 + 2
    assert len(list(unconditional_parts(transaction.writes, snapshot))) == 2
    few = Transaction(snapshot)
    few.put_entry(TREE, (1,), (1, "new"))
    few.put_entry(TREE, (9_999,), (1, "new"))
    assert list(parts_of(few, 0, snapshot)) == []
