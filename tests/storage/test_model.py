"""The room as a whole: random transactions, one after the other, beside a dict of rows.

The model knows nothing of shards, trees or indexes. It holds rows by primary key and decides by
looking at all of them whether a unique key is taken. After each commit the indexes must be exactly
what the rows say, entry for entry, each in the range that its key belongs to.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import UniqueViolation
from qserver.storage.page import Key, Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import merge_writes
from qserver.values.steps import at_once
from tests.storage.databases import EMAIL, PEOPLE, PLACE, commit, database, flat, tree_entries
from tests.storage.trees import Model, unhurried

pytestmark = pytest.mark.usefixtures("tiny_pages", "tiny_ranges")

ids = st.integers(0, 12)
emails = st.none() | st.sampled_from(["a@x", "b@x", "c@x", "d@x", "e@x"])
cities = st.none() | st.sampled_from(["London", "Paris"])
scores = st.none() | st.sampled_from([Decimal("1.0"), Decimal("1.00"), Decimal(-3), Decimal("NaN")])
rows = st.tuples(ids, emails, cities, scores)

Operation: TypeAlias = tuple[str, Value]
operations = st.tuples(st.sampled_from(["insert", "insert", "put", "delete"]), rows)
transactions = st.lists(st.lists(operations, min_size=1, max_size=6), max_size=6)


def taken(model: Model, row: Value) -> bool:
    """Does another row have this one's e-mail?"""
    return row[1] is not None and any(
        other[1] == row[1] and other[0] != row[0] for other in model.values()
    )


def run_on_model(model: Model, operation: Operation) -> str | None:
    """Change the model; the name of the constraint that does not let it, if one does not."""
    name, row = operation
    key = row[:1]
    if name == "delete":
        model.pop(key, None)
    elif name == "insert" and key in model:
        return "people_pkey"
    elif taken(model, row):
        return "people_email_key"
    else:
        model[key] = row
    return None


def run(transaction: Transaction, operation: Operation) -> str | None:
    name, row = operation
    try:
        if name == "delete":
            transaction.delete(PEOPLE, row[:1])
        elif name == "insert":
            transaction.insert(PEOPLE, row)
        else:
            transaction.put(PEOPLE, row)
    except UniqueViolation as error:
        return error.constraint
    return None


def check(snapshot: Snapshot, model: Model) -> None:
    assert spelled(tree_entries(snapshot, PEOPLE.id)) == spelled(model)
    assert [key for key, _ in flat(snapshot.pages_in_order(PEOPLE.id))] == sorted(model)
    for index in (EMAIL, PLACE):
        expected = dict(PEOPLE.entries(index, row) for row in model.values())
        assert len(expected) == len(model), "every row has an entry"
        assert tree_entries(snapshot, index.id) == expected


def spelled(rows: dict[Key, Value]) -> dict[Key, str]:
    """Rows as text: 1.0 is not 1.00, and NaN is NaN."""
    return {key: repr(row) for key, row in rows.items()}


def attempt(transaction: Transaction, model: Model, statements: list[Operation]) -> bool:
    """Run statements on both until one is refused, by both alike; were all accepted?"""
    for operation in statements:
        refused = run(transaction, operation)
        assert refused == run_on_model(model, operation)
        if refused:
            return False
        rows_by_key = {PEOPLE.key_of(row): row for row in transaction.rows(PEOPLE)}
        assert spelled(rows_by_key) == spelled(model)
    return True


@unhurried
@given(work=transactions, shards=st.integers(1, 4))
def test_transactions_one_after_the_other_do_what_they_do_to_a_dict(
    work: list[list[Operation]], shards: int
) -> None:
    snapshot, model = database(shards), Model()
    history = [(snapshot, model)]
    for statements in work:
        transaction, copy = Transaction(snapshot), model.copy()
        if attempt(transaction, copy, statements):
            snapshot, model = commit(transaction), copy
            history.append((snapshot, model))
    for old_view, old_model in history:
        check(old_view, old_model)


@unhurried
@given(work=transactions, shards=st.integers(1, 4))
def test_transactions_of_one_turn_do_what_they_do_one_after_the_other(
    work: list[list[Operation]], shards: int
) -> None:
    """Each runs on the same snapshot with the writes of those before it; all are committed at
    once."""
    snapshot, model = database(shards), Model()
    turn = Transaction(snapshot)
    for statements in work:
        transaction, copy = Transaction(snapshot, turn.writes), model.copy()
        if attempt(transaction, copy, statements):
            at_once(merge_writes(turn.writes, transaction.writes))
            model = copy
    check(commit(turn), model)
