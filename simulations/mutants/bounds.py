"""Planted bugs at the bounds of ranges, and where a scan is left early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.storage import transaction
from qserver.storage.btree import Key, Value
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.values.keys import TOP
from qserver.values.schema import Table
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import CROWDED


def _narrow(original: Any, change: Any) -> Any:
    """Leave the scan to the original, and change how it has narrowed its range."""

    def scan(self: Transaction, scanned: ScannedRange, backward: bool, *rest: Any) -> Iterator[Any]:
        pages = original(self, scanned, backward, *rest)
        first: Key | None = None
        try:
            for page in pages:
                first = page[0][0] if first is None else first
                yield page
        except GeneratorExit:
            pages.close()
            change(scanned, backward, first)
            raise

    return scan


def _beyond_the_last_backward(original: Any) -> Any:
    def change(scanned: ScannedRange, backward: bool, _: Key | None) -> None:
        if backward and scanned.low is not None:
            scanned.low = (*scanned.low, TOP)

    return _narrow(original, change)


def _beyond_the_last_forward(original: Any) -> Any:
    def change(scanned: ScannedRange, backward: bool, _: Key | None) -> None:
        if not backward and scanned.high is not None and scanned.high[-1] is TOP:
            scanned.high = scanned.high[:-1]

    return _narrow(original, change)


def _to_the_first_of_several(original: Any) -> Any:
    def change(scanned: ScannedRange, backward: bool, first: Key | None) -> None:
        if backward and first is not None:
            scanned.low = first

    return _narrow(original, change)


def _upper_bound_excluded(original: Any) -> Any:
    def scan_values(self: Transaction, *arguments: Any) -> Iterator[list[Value]]:
        pages: Iterator[list[Value]] = original(self, *arguments)
        scanned = self.ranges[-1]
        if scanned.low is not None and scanned.high is not None and len(scanned.high) > 2:
            scanned.high = scanned.high[:-1]
        return pages

    return scan_values


def _lower_bound_excluded(original: Any) -> Any:
    def contains(self: ScannedRange, key: Key) -> bool:
        return bool(original(self, key)) and key != self.low

    return contains


def _entry_of_null_left(original: Any) -> Any:
    def change_indexes(
        self: Transaction, table: Table, old: Value | None, new: Value | None
    ) -> None:
        original(self, table, old, new)
        for index in table.indexes:
            if old is not None and new is not None and old[index.columns[-1]] is None:
                entry = table.entries(index, old)
                if entry != table.entries(index, new):
                    self.put_entry(index.id, *entry)

    return change_indexes


MUTANTS: Final = (
    Mutant(
        "narrow_beyond_the_last_backward",
        "a backward scan that is left early does not depend on the last entry that it found",
        ("sql_bounds",),
        ((transaction.Transaction, "_scan", _beyond_the_last_backward),),
    ),
    Mutant(
        "narrow_beyond_the_last_forward",
        "a scan that is left early does not depend on the last entry that it found",
        ("sql_bounds", "sql_queue"),
        ((transaction.Transaction, "_scan", _beyond_the_last_forward),),
    ),
    Mutant(
        "narrow_to_the_first_of_several",
        "a backward scan that is left early depends only on the first entry that it found",
        ("sql_bounds",),
        ((transaction.Transaction, "_scan", _to_the_first_of_several),),
        shape=(*CROWDED, ("max_retries", 5)),
    ),
    Mutant(
        "note_an_upper_bound_as_excluded",
        "a row that comes to lie on the upper bound of a range is no conflict",
        ("sql_bounds",),
        ((transaction.Transaction, "scan_values", _upper_bound_excluded),),
    ),
    Mutant(
        "skip_the_lower_bound_in_a_round",
        "a row that comes to lie on the lower bound of a range in the same round is no conflict",
        ("sql_bounds",),
        ((transaction.ScannedRange, "__contains__", _lower_bound_excluded),),
        shape=(("clients", 8), ("transactions_per_client", 40)),
    ),
    Mutant(
        "leave_the_entry_of_null",
        "the index entry of a row whose column was NULL stays when the column is set",
        ("sql_bounds",),
        ((transaction.Transaction, "_change_indexes", _entry_of_null_left),),
    ),
)
