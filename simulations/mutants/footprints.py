"""Planted bugs in footprints: what a transaction remembers of its reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.storage import conflict
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.values.keys import TOP
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import CROWDED


def _forget_ranges(original: Any) -> Any:
    def scan(self: Transaction, *arguments: Any, **options: Any) -> Any:
        pages = original(self, *arguments, **options)
        self.ranges.pop()
        return pages

    return scan


def _ignore_rows_before(original: Any) -> Any:
    def matters(scanned: ScannedRange, was: Any, becomes: Any) -> bool:
        return bool(original(scanned, becomes))

    return matters


def _narrow_every_scan(original: Any) -> Any:
    def scan(self: Transaction, scanned: ScannedRange, *options: Any) -> Any:
        pages = list(original(self, scanned, *options))
        if pages:
            scanned.high = (*pages[-1][0][-1], TOP)
        return iter(pages)

    return scan


def _forget_absent_keys(original: Any) -> Any:
    def get_entry(self: Transaction, tree: int, key: Any) -> Any:
        value = original(self, tree, key)
        if value is None and tree in self.keys:
            self.keys[tree].pop(key, None)
        return value

    return get_entry


def _miss_half_of_the_difference(original: Any) -> Any:
    def difference(*arguments: Any) -> Iterator[Any]:
        for count, change in enumerate(original(*arguments)):
            if count % 2:
                yield change

    return difference


def _count_without_footprint(original: Any) -> Any:
    def count(self: Transaction, *bounds: Any) -> int:
        number: int = original(self, *bounds)
        self.ranges.pop()
        return number

    return count


def _count_only_what_goes(original: Any) -> Any:
    def matters(scanned: ScannedRange, was: Any, becomes: Any) -> bool:
        return becomes is None if scanned.counted else bool(original(scanned, was, becomes))

    return matters


def _forget_what_lies_before(original: Any) -> Any:
    def scan(self: Transaction, scanned: ScannedRange, backward: bool, *options: Any) -> Any:
        first = None
        stream = original(self, scanned, backward, *options)
        try:
            for page in stream:
                first = first or page[0][0]
                yield page
        except GeneratorExit:
            stream.close()
            if backward and first is not None:
                scanned.high = (*first, TOP)
            raise

    return scan


MUTANTS: Final = (
    Mutant(
        "forget_ranges",
        "the footprint lacks the ranges that were scanned",
        ("range_sums",),
        ((Transaction, "scan", _forget_ranges),),
    ),
    Mutant(
        "narrow_every_scan",
        "a scan that ran to its end counts only up to the last key that it found",
        ("range_sums",),
        ((Transaction, "_scan", _narrow_every_scan),),
        shape=CROWDED,
    ),
    Mutant(
        "ignore_rows_before",
        "a predicate is held against the new row only, not the old one",
        ("range_sums",),
        ((conflict, "matters", _ignore_rows_before),),
    ),
    Mutant(
        "forget_absent_keys",
        "that a key was found absent is not part of the footprint",
        ("unique_keys", "list_append"),
        ((Transaction, "get_entry", _forget_absent_keys),),
    ),
    Mutant(
        "count_without_footprint",
        "the footprint lacks the ranges whose keys were counted",
        ("sql_predicates",),
        ((Transaction, "count", _count_without_footprint),),
    ),
    Mutant(
        "count_only_what_goes",
        "a key that comes into a range that was counted is no conflict",
        ("sql_predicates",),
        ((conflict, "matters", _count_only_what_goes),),
    ),
    Mutant(
        "forget_what_lies_before",
        "a scan backward that is left early, as for max, does not mind keys behind its first",
        ("sql_predicates",),
        ((Transaction, "_scan", _forget_what_lies_before),),
    ),
    Mutant(
        "miss_half_of_the_difference",
        "comparing two trees overlooks every other change",
        ("range_sums",),
        ((conflict, "difference", _miss_half_of_the_difference),),
    ),
)
