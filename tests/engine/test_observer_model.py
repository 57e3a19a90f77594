"""Live queries and the feed beside a model, over groups of rounds and restarts by chance.

    a group     some rounds become durable at once; a row may change in several of them
    a restart   nothing is shown for a while, or what was durable; the log may hold more versions
    a query     has the result of a version; it reads a snapshot, and arms its watch some time later

Whatever comes when: a query that is armed has the newest result; the base of one that is not gives
the result that it has; and the feed tells each row of a version as it was one version before.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

import pytest

from qserver.engine.batch import Batch
from qserver.engine.feed import Feed
from qserver.engine.log_writer import LogWriter
from qserver.engine.messages import Append
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.versions import Versions
from qserver.engine.watches import Watch, Watches
from qserver.storage.footprint import Footprint
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from simulations.mutants import Mutant, planted
from simulations.mutants.mutant import edited
from tests.storage.databases import PLAIN, commit, database, tree_entries

EVENTS = 60
KEYS = 4
QUERIES = 3

Result: TypeAlias = dict[Any, Any]


class Query:
    """A live query over some keys, some range, or the rows with a note."""

    def __init__(self, chance: Random, watch: Watch) -> None:
        self.watch = watch
        self.footprint = Footprint()
        self.result: Result | None = None
        self.reading: Snapshot | None = None
        kind = chance.randrange(3)
        key = (chance.randrange(KEYS),)
        if kind == 0:
            self._wanted: Callable[[Any, Any], bool] = lambda at, row: at == key
            self.footprint.add_key(PLAIN.id, key)
        elif kind == 1:
            self._wanted = lambda at, row: at >= key
            self.footprint.add_range(ScannedRange(PLAIN.id, key, None, None))
        else:
            self._wanted = lambda at, row: row[1] == "a"
            self.footprint.add_range(ScannedRange(PLAIN.id, None, None, lambda row: row[1] == "a"))

    def at(self, snapshot: Snapshot) -> Result:
        entries = tree_entries(snapshot, PLAIN.id)
        return {key: row for key, row in entries.items() if self._wanted(key, row)}


class Bench:
    """A database without tasks: who shows what, and who observes it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(f"observers {seed}")
        self.source = SnapshotSource()
        self.watches, self.feed = Watches(self.source), Feed(self.source)
        self.feed.open()
        self.newest = database(2)
        self.history = {self.newest.version: self.newest}
        self.known: Snapshot | None = None
        self.log: LogWriter | None = None
        self.begin()
        self.queries = [Query(self.chance, self.watches.open()) for _ in range(QUERIES)]

    @property
    def observers(self) -> tuple[Any, ...]:
        return self.watches, self.feed

    def begin(self) -> None:
        """Begin a generation with what the log holds."""
        if self.known is not None:
            for observer in self.observers:
                observer.restarting(self.known)
        self.known = None
        self.source.show(self.newest)
        self._changed()
        versions = Versions(self.newest, lambda: 0.0)
        unused: Any = None
        self.log = LogWriter(unused, versions, unused, Batch(), _ignore, self.observers)
        self.source.follow(versions)

    def end(self) -> None:
        """End the generation: an actor has died."""
        assert self.log is not None
        durable = self.log.versions.durable
        for observer in self.observers:
            observer.restarting(durable)
        self.log = None
        self.source.shut()
        self._changed()
        self.known = durable if self.chance.random() < 0.5 else None

    def _changed(self) -> None:
        for observer in self.observers:
            observer.changed()

    def round(self) -> Append:
        transaction = Transaction(self.newest)
        for _ in range(self.chance.choice((1, 1, 2))):
            key = self.chance.randrange(KEYS)
            if self.chance.random() < 0.25:
                transaction.delete(PLAIN, (key,))
            else:
                transaction.put(PLAIN, (key, self.chance.choice("abc")))
        self.newest = commit(transaction)
        self.history[self.newest.version] = self.newest
        return Append(self.newest, transaction.writes, (), {}, ())

    def happen(self) -> None:
        """Let something happen, by chance."""
        kind = self.chance.random()
        if self.log is None:
            if kind < 0.3:  # the log holds more than was durable
                self.round()
            elif kind < 0.6 and self.known is not None:
                self.source.show(self.known)
                self._changed()
            elif kind < 0.8:
                self.begin()
        elif kind < 0.5:
            group = [self.round() for _ in range(self.chance.choice((1, 2, 3)))]
            for append in group:
                self.log.versions.publish(append.snapshot)
            self.log.release(group)
        elif kind < 0.6:
            self.end()
        query = self.chance.choice(self.queries)
        if query.reading is not None:
            query.result = query.at(query.reading)
            self.watches.arm(query.watch, query.footprint, query.reading)
            query.reading = None
        elif not query.watch.armed:
            query.reading = self.source.take()

    def problems(self) -> list[str]:
        found = []
        durable = self.source.take()
        for query in self.queries:
            watch = query.watch
            if query.result is None or query.reading is not None:
                continue
            if watch.armed and durable is not None and query.at(durable) != query.result:
                found.append(f"not woken: {query.result}, now {query.at(durable)}")
            if not watch.armed and (watch.base is None or query.at(watch.base) != query.result):
                found.append(f"the base gives another result than {query.result}")
        return found

    async def feed_problems(self) -> list[str]:
        found = []
        for fed in self.feed._window:
            was, now = (tree_entries(self.history[fed.version - n], PLAIN.id) for n in (1, 0))
            told = {
                PLAIN.key_of(each.before or each.after or ()): (each.before, each.after)
                for each in await fed.changes()
            }
            true = {
                key: (was.get(key), now.get(key))
                for key in {*was, *now}
                if was.get(key) != now.get(key)
            }
            if told != true:
                found.append(f"version {fed.version} is told as {told}, and is {true}")
        return found


def _ignore(size: int) -> None:
    pass


async def problem_of(seed: int) -> str | None:
    bench = Bench(seed)
    for _ in range(EVENTS):
        bench.happen()
        found = bench.problems()
        if found:
            return found[0]
    return next(iter(await bench.feed_problems()), None)


@pytest.mark.long
async def test_observers_are_told_of_every_change() -> None:
    for seed in range(150):
        assert await problem_of(seed) is None, seed


BUGS = (
    ("the rounds of a group have one base", LogWriter.release, "before = append.snapshot",
     "pass"),
    ("the base is the last of the group", LogWriter.release, "before = self.versions.durable",
     "before = group[-1].snapshot"),
    ("a watch is armed while nothing is shown", Watches.arm,
     "durable is None or durable.version != snapshot.version",
     "durable is not None and durable.version != snapshot.version"),
    ("a watch is armed whatever came", Watches.arm,
     "durable is None or durable.version != snapshot.version", "durable is None"),
    ("a restart wakes who is behind alone", Watches.restarting, "durable.version + 1",
     "durable.version"),
    ("the base is the snapshot that woke", Watches.committed, "self._disarm(watch, before)",
     "self._disarm(watch, append.snapshot)"),
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug[0])
async def test_bugs_of_observers_are_seen(bug: tuple[str, Any, str, str]) -> None:
    name, function, old, new = bug
    with planted(Mutant(name, name, (), (edited(function, old, new),))):
        assert any([await problem_of(seed) for seed in range(60)])
