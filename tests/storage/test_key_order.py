"""The order of changes is that of all their keys, whenever one looks, and costs little to keep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.storage import key_order
from qserver.storage.key_order import INSERTED_MAX, RUN_KEYS_MAX, KeyOrder
from qserver.storage.stepped import SteppedTransaction
from qserver.storage.transaction import Transaction
from qserver.storage.writes import TreeWrites
from tests.storage.databases import PLAIN, view_with

keys = st.tuples(st.integers(0, 60))
bounds = st.none() | keys


@given(
    st.sampled_from([INSERTED_MAX, INSERTED_MAX + 3, RUN_KEYS_MAX]),
    st.lists(st.tuples(st.lists(keys, max_size=INSERTED_MAX + 8), bounds, bounds), max_size=8),
)
def test_a_range_has_the_keys_of_all_changes_until_then(
    run_keys: int, steps: list[tuple[list[tuple[int]], tuple[int] | None, tuple[int] | None]]
) -> None:
    changes: TreeWrites = {}
    order = KeyOrder(changes)
    for written, low, high in steps:
        changes.update(dict.fromkeys(written))
        wanted = [
            key
            for key in sorted(changes)
            if (low is None or low <= key) and (high is None or key < high)
        ]
        with patched(key_order, "RUN_KEYS_MAX", run_keys):
            assert sorted(order.within(low, high)) == wanted


@contextmanager
def patched(module: ModuleType, name: str, value: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        yield


class Counted(int):
    """A number that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: Any) -> bool:
        Counted.compared += 1
        return int(self) < int(other)

    def __eq__(self, other: Any) -> bool:
        Counted.compared += 1
        return int(self) == int(other)

    __hash__ = int.__hash__


def test_a_range_among_many_own_writes_is_found_without_looking_at_all() -> None:
    """As a cascade does: write a row, look at the rows that refer to the next one."""
    count = 2000
    transaction = Transaction(view_with({}, 1, PLAIN.id))
    Counted.compared = 0
    for number in range(count):
        transaction.put_entry(PLAIN.id, (Counted(number),), (number, "own"))
        found = transaction.rows(PLAIN, (Counted(number),), (Counted(number + 1),))
        assert found == [(number, "own")]
    assert Counted.compared < 100 * count  # all pairs are two million


@pytest.mark.long
def test_one_look_at_many_writes_sorts_only_some_of_them() -> None:
    """So that nobody waits long for it; each look has a bound of its own."""
    count = 4 * RUN_KEYS_MAX
    numbers = Random(1).sample(range(count), count)
    order = KeyOrder({(Counted(number),): None for number in numbers})
    for _ in range(6):
        Counted.compared = 0
        assert order.within((Counted(7),), (Counted(8),)) == [(7,)]
        assert Counted.compared < 10 * count
    assert Counted.compared < 1000  # all are sorted


def test_a_step_that_goes_on_after_a_rollback_sees_what_is_left() -> None:
    """As many writes come back, the last with the same key, and others before it."""
    stepped = SteppedTransaction(view_with({}, 1, PLAIN.id))
    step = stepped.step(0)

    def write(*numbers: int) -> None:
        for number in numbers:
            step.put_entry(PLAIN.id, (number,), (number, "own"))
        for _ in stepped.keep(step, 0):
            pass
        step.go_on()

    def found() -> list[Any]:
        return [row[0] for row in step.rows(PLAIN, (100,), (200,))]

    write(*range(20))
    assert found() == []
    stepped.set_savepoint("a")
    write(100, 101, 102)
    assert found() == [100, 101, 102]
    for _ in stepped.roll_back_to("a"):
        pass
    step.go_on()
    write(150, 300, 102)
    assert found() == [102, 150]
