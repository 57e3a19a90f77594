"""Why comparing values is enough: what passes the conflict test would do the same again now.

Two pieces of work run on one snapshot, and the first commits. If the second's reads still hold by
the conflict test, then running it anew on the next snapshot must give the same answers and the same
delta: it is as if it had run after the first all along. That is serializability, by its definition.
"""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from qserver.errors import UniqueViolation
from qserver.storage.page import Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.keys import Predicate
from tests.sampling import examples
from tests.storage.databases import EMAIL, PEOPLE, commit, database_with, overlaps, stale_reads

pytestmark = pytest.mark.usefixtures("tiny_pages", "tiny_ranges")

emails = st.none() | st.sampled_from([f"{letter}@x" for letter in "abcdefgh"])
cities = st.none() | st.sampled_from(["London", "Paris", "Rome"])
rows = st.tuples(st.integers(0, 25), emails, cities, st.none())
unique_rows = st.lists(rows, max_size=20, unique_by=(lambda row: row[0], lambda row: row[1]))

Step: TypeAlias = tuple[str, Value]
steps = st.tuples(
    st.sampled_from(["get", "find", "scan", "first", "last", "insert", "put", "delete"]), rows
)
works = st.lists(steps, min_size=1, max_size=4)


def lives_in(city: object) -> Predicate:
    return lambda row: row[2] == city


def run(work: list[Step], snapshot: Snapshot) -> tuple[Transaction, list[object]]:
    """The work on a snapshot: its transaction, and everything that it was told."""
    transaction = Transaction(snapshot)
    told: list[object] = []
    for name, row in work:
        try:
            told.append(_run_step(transaction, name, row))
        except UniqueViolation as error:
            told.append(error.detail)
            transaction.writes.clear()  # what was refused is not committed
            break
    return transaction, told


def _run_step(transaction: Transaction, name: str, row: Value) -> object:
    key, predicate = row[:1], lives_in(row[2])
    match name:
        case "get":
            return transaction.get(PEOPLE, key)
        case "find":
            return transaction.get_entry(EMAIL.id, (row[1] or "a@x",))
        case "scan":
            return transaction.rows(PEOPLE, None, key, predicate)
        case "first" | "last":
            return _first(transaction, predicate, backward=name == "last")
        case "insert":
            transaction.insert(PEOPLE, row)
        case "put":
            transaction.put(PEOPLE, row)
        case "delete":
            return transaction.delete(PEOPLE, key)
    return None


def _first(transaction: Transaction, predicate: Predicate, backward: bool) -> Value | None:
    """The first row that satisfies the predicate; what lies behind it is not read."""
    for _, page in transaction.scan(PEOPLE.id, predicate=predicate, backward=backward):
        for row in page:
            if predicate(row):
                return row
    return None


@settings(deadline=None, max_examples=examples(150))
@given(stored=unique_rows, first=works, second=works, shards=st.integers(1, 3))
def test_what_passes_the_conflict_test_would_do_the_same_again_now(
    stored: list[Value], first: list[Step], second: list[Step], shards: int
) -> None:
    snapshot = database_with(*stored, shards=shards)
    before, _ = run(first, snapshot)
    transaction, told = run(second, snapshot)
    now = commit(before)
    stale = stale_reads(transaction, now)
    assert bool(stale) == bool(overlaps(transaction, before, snapshot)), "both see the same change"
    if stale:
        event("conflict")
        return
    again, told_again = run(second, now)
    assert told_again == told
    assert again.writes == transaction.writes
