"""Measures the speed of the storage package, and checks the choices behind it.

    python -m tests.speed.storage [--rows 100000] [--repeats 15]

Four questions, one block of the table each:

    maps        is our B+tree as good as the persistent maps on PyPI?
    batches     does a batch cost less than the same changes one by one?
    reading     what does a row cost in a scan, in one tree and over its ranges?
    comparing   what do `difference` and the conflict test cost after few changes?

A time is the best of several runs in CPU time, because other work on the machine can only add to
it. The cyclic collector is off meanwhile and earlier objects are frozen. The result of a run is
freed after its clock has stopped. Randomness is seeded: each run does the same work.
"""

from __future__ import annotations

import argparse
import gc
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from random import Random
from time import process_time
from typing import Any, Final

from pyrsistent import PMap, pmap

from qserver.benchmarks.printing import line
from qserver.storage.btree import EntryChange, apply, difference, get, pages
from qserver.storage.conflict import stale_read
from qserver.storage.page import EMPTY, Key, Tree, Value
from qserver.storage.routing import parts_of, written
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import Writes
from qserver.values.steps import at_once

BATCH: Final = 1_000
BATCH_RATIO_AIM: Final = 1 / 3
SHARDS: Final = 4
TREE: Final = 1
STEP: Final = 10
"""Ids of stored rows are multiples of this, which leaves room for new ones."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Seconds of a batch, and of the same changes one by one."""

    batch: float
    single: float

    @property
    def ratio(self) -> float:
        return self.batch / self.single


class Bench:
    """A table of rows and the measurements on it."""

    def __init__(self, rows: int, repeats: int) -> None:
        assert rows >= BATCH, "a batch is not larger than the table"
        self.rows = rows
        self.repeats = repeats
        self.keys: list[Key] = [(at * STEP,) for at in range(rows)]
        self.values = [make_row(at * STEP) for at in range(rows)]
        self.tree = apply(EMPTY, self.keys, self.values)

    def best(self, work: Callable[[], object], count: int = 1) -> float:
        """Seconds per piece of work, of `count` pieces, in the best run."""
        seconds = float("inf")
        for _ in range(self.repeats):
            start = process_time()
            made = work()
            seconds = min(seconds, process_time() - start)
            del made
        return seconds / count

    # --- maps ---

    def maps(self) -> Iterator[str]:
        chance = Random(1)
        stored = [chance.choice(self.keys) for _ in range(BATCH)]
        mixed: list[Key] = [(chance.randrange(self.rows * STEP),) for _ in range(BATCH)]
        entries = dict(zip(self.keys, self.values, strict=True))
        trie: PMap[Key, Value] = pmap(entries)
        ours = self._map_times(self.tree, get, put_one, stored, mixed)
        others = {
            "immutables.Map": self._immutables_times(entries, stored, mixed),
            "pyrsistent.pmap": self._map_times(trie, PMap.get, PMap.set, stored, mixed),
        }
        heads = ("get µs", "of B+tree", "put µs", "of B+tree")
        yield head(f"maps: random get and put on {self.rows:,} rows", *heads)
        yield cells("B+tree", ours[0] * 1e6, "", ours[1] * 1e6)
        for name, times in others.items():
            if times is None:
                yield cells(name, "not installed")
            else:
                getting, putting = (time / our for time, our in zip(times, ours, strict=True))
                yield cells(name, times[0] * 1e6, getting, times[1] * 1e6, putting)

    def _immutables_times(
        self, entries: dict[Key, Value], stored: list[Key], mixed: list[Key]
    ) -> tuple[float, float] | None:
        """The same for a library that only the bench uses, and that may be absent."""
        if find_spec("immutables") is None:
            return None
        from immutables import Map

        return self._map_times(Map(entries), Map.get, Map.set, stored, mixed)

    def _map_times(
        self,
        mapping: Any,
        get: Callable[[Any, Key], Any],
        put: Callable[[Any, Key, Value], Any],
        stored: list[Key],
        mixed: list[Key],
    ) -> tuple[float, float]:
        """The time of one get and one put; nine of ten puts add a row."""
        row = make_row(0)

        def get_all() -> None:
            for key in stored:
                get(mapping, key)

        def put_all() -> object:
            changed = mapping
            for key in mixed:
                changed = put(changed, key, row)
            return changed

        return self.best(get_all, BATCH), self.best(put_all, BATCH)

    # --- batches ---

    def batches(self) -> Iterator[str]:
        cases = {
            "contiguous new keys": self.contiguous_keys(),
            "spread over the table": self.spread_keys(),
        }
        heads = ("batch µs", "single µs", "ratio", f"aim < {BATCH_RATIO_AIM:.2f}")
        yield head(f"batches: {BATCH:,} sorted rows into {self.rows:,}, per row", *heads)
        for name, keys in cases.items():
            measured = self.batch(keys)
            aim = "met" if measured.ratio < BATCH_RATIO_AIM else "missed"
            times = measured.batch / BATCH * 1e6, measured.single / BATCH * 1e6
            yield cells(name, *times, f"{measured.ratio:.3f}", aim)

    def contiguous_keys(self) -> list[Key]:
        """Keys of a multi-row INSERT: all after the last stored key."""
        return [(self.rows * STEP + at,) for at in range(BATCH)]

    def spread_keys(self) -> list[Key]:
        """New keys at even distances over the whole table."""
        return [(self.rows * STEP * at // BATCH + 1,) for at in range(BATCH)]

    def batch(self, keys: list[Key]) -> Batch:
        row = make_row(0)
        rows = [row] * len(keys)

        def put_each() -> Tree:
            tree = self.tree
            for key in keys:
                tree = put_one(tree, key, row)
            return tree

        return Batch(self.best(lambda: apply(self.tree, keys, rows)), self.best(put_each))

    # --- reading ---

    def reading(self) -> Iterator[str]:
        snapshot = snapshot_of(self.keys, self.values)

        def scan(stream: Iterator[tuple[list[Key], list[Value]]]) -> int:
            return sum(len(keys) for keys, _ in stream)

        yield head(f"reading: all of {self.rows:,} rows, per row", "ns")
        for name, work in {
            "scan of one tree": lambda: scan(pages(self.tree)),
            "scan of ranges": lambda: scan(snapshot.pages_in_order(TREE)),
            "backward scan of ranges": lambda: scan(snapshot.pages_in_order(TREE, backward=True)),
        }.items():
            yield cells(name, f"{self.best(work, self.rows) * 1e9:.1f}")

    # --- comparing ---

    def comparing(self) -> Iterator[str]:
        yield head(f"comparing: {self.rows:,} rows then and now", "µs")
        for count in (1, 100):
            changed_keys = self.keys[:: self.rows // count][:count]
            changed = apply(self.tree, changed_keys, [make_row(-1) for _ in changed_keys])
            time = self.best(partial(_differences, self.tree, changed))
            yield cells(f"difference after {count} changed", time * 1e6)
        snapshot = snapshot_of(self.keys, self.values)
        reader, scanner = Transaction(snapshot), Transaction(snapshot)
        reader.get_entry(TREE, self.keys[0])
        for _ in scanner.scan(TREE, predicate=_has_no_name):
            pass
        for what, transaction in (("one key", reader), ("the whole table", scanner)):
            time = self._conflict_time(snapshot, transaction)
            yield cells(f"conflict test of {what} after 1 changed", time * 1e6)

    def _conflict_time(self, snapshot: Snapshot, transaction: Transaction) -> float:
        """Test all parts, against a change of the second key."""
        changes: Writes = {TREE: {self.keys[1]: make_row(-1)}}
        trees = at_once(written(snapshot, snapshot.catalog, changes)).tree(TREE)
        now = dict(zip(trees.ranges, trees.roots, strict=True))
        parts = at_once(parts_of(transaction, 0, snapshot))

        def test() -> None:
            for part in parts.values():
                assert stale_read(part, now) is None, "the change does not matter"

        def test_often() -> None:
            for _ in range(20):
                test()

        return self.best(test_often, 20)


def put_one(tree: Tree, key: Key, row: Value) -> Tree:
    return apply(tree, [key], [row])


def make_row(number: int) -> Value:
    return (number, f"name of {number}", number % 97, True)


def snapshot_of(keys: Sequence[Key], values: Sequence[Value]) -> Snapshot:
    """A snapshot whose tree 1 holds the entries."""
    empty = empty_snapshot(SHARDS)
    trees = at_once(written(empty, empty.catalog, {TREE: dict(zip(keys, values, strict=True))}))
    return Snapshot(1, 0.0, empty.catalog, trees, SHARDS)


def head(title: str, *columns: str) -> str:
    """The first line of a block of the table."""
    return line(title, columns, 52, 15)


def cells(name: str, *values: str | float) -> str:
    return line(f"  {name}", values, 52, 15)


@contextmanager
def collector_off() -> Iterator[None]:
    """Disable the collector in the block, and freeze existing objects."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.storage")
    parser.add_argument("--rows", type=int, default=100_000, help=f"at least {BATCH:,}")
    parser.add_argument("--repeats", type=int, default=15, help="runs to take the best of")
    options = parser.parse_args(arguments)
    if options.rows < BATCH or options.repeats < 1:
        parser.error(f"--rows is at least {BATCH}, --repeats at least 1")
    bench = Bench(options.rows, options.repeats)
    print(f"storage bench, best of {options.repeats} runs, Python {platform.python_version()}")
    for measure in (bench.maps, bench.batches, bench.reading, bench.comparing):
        with collector_off():
            lines = list(measure())
        print("", *lines, sep="\n")


def _differences(old: Tree, new: Tree) -> list[EntryChange]:
    return list(difference(old, new))


def _has_no_name(row: Value) -> bool:
    return row[1] is None


if __name__ == "__main__":
    main()
