"""Finds which version and which request changed what a failed transaction had read.

    the last change of the table ─► its record ─► the one before ─► … the one that wrote the key
                                                                        └─► its request

The log names the requests of a version, not what each of them wrote. So `Writers` remembers the
keys of each request for recent versions with several requests: conflicts are with recent versions.

This runs after a request has failed and affects no decision; what it cannot find is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import msgspec
import trio
from msgspec.structs import replace

from qserver.durability.port import Log, StoredRecord
from qserver.durability.records import LogRecord, decode_record
from qserver.storage.conflict import Conflict
from qserver.storage.page import Key
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import count_changes
from qserver.values.encoding import decode_columns

KEYS_REMEMBERED_MAX: Final = 20_000
"""Keys, and requests, of versions with several requests that are remembered."""

VERSIONS_SEARCHED_MAX: Final = 1000
"""Versions that are searched for the one that wrote a key."""

VERSIONS_READ_AT_ONCE: Final = 32

EXPLAINING_SECONDS_MAX: Final = 1.0
"""How long the answer to a request that has failed waits for this."""

Keys: TypeAlias = Mapping[int, Sequence[Key]]
"""Written keys, by tree."""


class Written(msgspec.Struct, frozen=True):
    """The keys that a request wrote."""

    request_id: str | None
    keys: Keys
    names: Collection[str]
    """Definitions that it changed."""


class Writers:
    """The keys that each request of the last versions wrote, for versions with several requests."""

    def __init__(self) -> None:
        self._versions: dict[int, tuple[int, list[Written]]] = {}
        """Each with its size."""
        self._size = 0

    def note(
        self, version: int, transactions: Sequence[Transaction], requests: Sequence[str | None]
    ) -> None:
        """Remember the transactions of a version, in order, and the requests that wanted them."""
        written = []
        size = len(transactions)
        for each, request_id in zip(transactions, requests, strict=True):
            keys = {tree: tuple(changes) for tree, changes in each.writes.items()}
            written.append(Written(request_id, keys, frozenset(each.catalog_changes.definitions)))
            size += count_changes(each.writes)
        self._versions[version] = size, written
        self._size += size
        while self._size > KEYS_REMEMBERED_MAX:
            size, _ = self._versions.pop(next(iter(self._versions)))
            self._size -= size

    def find(self, version: int) -> Sequence[Written]:
        return self._versions[version][1] if version in self._versions else ()


class Place(msgspec.Struct, frozen=True):
    """Where a conflict is: a key, or definitions and perhaps any key of a tree."""

    last: int
    """The last version that can have changed it."""
    tree: int | None = None
    key: Key | None = None
    names: frozenset[str] | None = frozenset()
    """None: any definition."""

    def is_in(self, keys: Keys, names: Collection[str]) -> bool:
        """Return whether these writes changed the place."""
        if self.key is not None:
            return self.key in keys.get(self.tree, ())  # type: ignore[arg-type]
        if self.tree in keys:
            return True
        return bool(names) if self.names is None else not self.names.isdisjoint(names)


async def find_origin(conflict: Conflict, log: Log, writers: Writers, newest: Snapshot) -> Conflict:
    """Return the conflict with the version that last wrote what was read, and its request.

    If no version did, both are missing: an undecided transaction was writing it, and was aborted.
    """
    place = _place_of(conflict, newest)
    first = place.last if conflict.is_exact else (conflict.version_read or 0) + 1
    stop, last, count = max(first, place.last - VERSIONS_SEARCHED_MAX + 1), place.last, 1
    while last >= stop:
        begin = max(stop, last - count + 1)
        records = await _read(log, begin, last)
        if records is None:
            break
        for _, data in reversed(records):
            record = decode_record(data)
            if conflict.is_exact or place.is_in(_keys(record, place), record.catalog_changes):
                request_id = _request_of(record, writers, place)
                return replace(conflict, version_found=record.version, changed_by=request_id)
            await trio.lowlevel.checkpoint()
        last, count = begin - 1, VERSIONS_READ_AT_ONCE
    was_all = last < first
    return replace(conflict, version_found=None if was_all else place.last)


def _place_of(conflict: Conflict, newest: Snapshot) -> Place:
    catalog = newest.catalog
    if conflict.tree is not None:
        last, _ = newest.trees.tree(conflict.tree).last_change
        last = last or newest.version  # a tree that was dropped does not know
        return Place(last, conflict.tree, conflict.key)
    if conflict.is_exact:
        assert conflict.version_found is not None
        for key, table in catalog.tables.items():
            if table.label == conflict.table:
                return Place(conflict.version_found, table.id, None, frozenset({key}))
        return Place(conflict.version_found, names=None)  # the table is gone
    last, _ = catalog.last_change
    return Place(last, names=None if conflict.table is None else frozenset({conflict.table}))


async def _read(log: Log, first: int, last: int) -> list[StoredRecord] | None:
    """Return the records of these versions; None if the log lacks some."""
    records: list[StoredRecord] = []
    while (wanted := first + len(records)) <= last:
        more = await log.read(wanted - 1, last - wanted + 1)
        records += more
        if len(records) <= wanted - first or records[wanted - first][0] != wanted:
            return None
    return records


def _keys(record: LogRecord, place: Place) -> Keys:
    """Return the keys that a record wrote in the tree."""
    if place.key is None:
        return {tree: () for tree, _ in record.trees}
    every = [decode_columns(data)[0] for tree, data in record.trees if tree == place.tree]
    return {} if place.tree is None else {place.tree: list(chain.from_iterable(every))}


def _request_of(record: LogRecord, writers: Writers, place: Place) -> str | None:
    """Return the last request of the version that wrote the place."""
    for each in reversed(writers.find(record.version)):
        if place.is_in(each.keys, each.names):
            return each.request_id
    return record.requests[0] if len(record.requests) == 1 else None
