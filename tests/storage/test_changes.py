"""Net changes: the difference of what was and what is, by table and key."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qserver.storage.catalog import Catalog
from qserver.storage.changes import Change, net_changes
from qserver.storage.ranges import Trees
from qserver.storage.routing import written
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, Index, define_table
from qserver.values.steps import at_once
from qserver.values.types import INTEGER, TEXT
from tests.steps import taken

TABLES = [
    define_table(
        number, name, [Column("id", INTEGER, nullable=False), Column("a", TEXT)], ["id"]
    ).with_index(Index(number + 1, f"{name}_a", (1,), unique=False))
    for number, name in ((1, "one"), (3, "two"))
]
CATALOG = Catalog().changed({table.name: table for table in TABLES}, 4)
ROWS = st.dictionaries(st.integers(0, 9), st.sampled_from("abc"), max_size=8)
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 9), st.sampled_from("abc") | st.none()), max_size=20
)


def snapshot_of(rows: list[dict[int, str]]) -> Snapshot:
    empty = Snapshot(0, 0.0, CATALOG, Trees(), 2)
    transaction = Transaction(empty)
    for table, of_table in zip(TABLES, rows, strict=True):
        for key, text in of_table.items():
            transaction.insert(table, (key, text))
    return Snapshot(1, 0.0, CATALOG, at_once(written(empty, CATALOG, transaction.writes)), 2)


def apply(transaction: Transaction, state: list[dict[int, str]], steps: list[Any]) -> None:
    for which, key, text in steps:
        if text is None:
            transaction.delete(TABLES[which], (key,))
            state[which].pop(key, None)
        else:
            transaction.put(TABLES[which], (key, text))
            state[which][key] = text


@given(st.tuples(ROWS, ROWS), STEPS, STEPS, st.integers(0, 12))
def test_changes_are_the_difference_of_two_states(
    rows: tuple[dict[int, str], dict[int, str]], first: list[Any], then: list[Any], most: int
) -> None:
    state = [dict(each) for each in rows]
    base = Transaction(snapshot_of(state))
    apply(base, state, first)
    before = [dict(each) for each in state]
    later = Transaction(base.snapshot, base.writes)
    apply(later, state, then)
    expected = [
        (table.name, key, was.get(key), now.get(key))
        for table, was, now in zip(TABLES, before, state, strict=True)
        for key in sorted({*was, *now})
        if was.get(key) != now.get(key)
    ]
    held: list[Any] = []
    _, found = taken(net_changes(later, held.append, most))
    assert list(map(plain, found)) == expected[:most]
    assert len(held) == sum(row is not None for each in found for row in (each.before, each.after))


def plain(change: Change) -> tuple[Any, ...]:
    assert not isinstance(change.table, str)
    key = (change.after or change.before or (None,))[0]
    return (
        change.table.name,
        key,
        None if change.before is None else change.before[1],
        None if change.after is None else change.after[1],
    )
