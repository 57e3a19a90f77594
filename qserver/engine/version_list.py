"""Lists versions: when each was made, by which requests, and which tables it changed.

All of it is in the log. Records name trees, so naming tables takes the catalog of each version:
that of the kept checkpoint before, with the definitions in the records after it. Rows are counted,
not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import trio

from qserver.durability.checkpoint import catalog_of, decode_checkpoint
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.port import Log
from qserver.durability.records import LogRecord, decode_record
from qserver.storage.catalog import Catalog, changes_from_plain
from qserver.values.encoding import count_entries
from qserver.values.identifiers import name_of_key

RECORDS_READ_AT_ONCE: Final = 64


class VersionEntry(msgspec.Struct, frozen=True):
    version: int
    time: float
    tables: list[str]
    """Tables whose rows or definitions changed; other definitions, too."""
    rows_changed: int
    requests: list[str]


async def list_versions(
    log: Log, base: KeptCheckpoint, after: int, until: int
) -> list[VersionEntry] | None:
    """Return the versions after `after` up to `until`, in order; None if records are missing."""
    catalog = Catalog()
    if base.version:
        stored = await log.load_checkpoint(base.version)
        if stored is None:
            return None
        catalog = catalog_of(decode_checkpoint(*stored))
    entries: list[VersionEntry] = []
    version = base.version
    while version < until:
        records = await log.read(version, min(RECORDS_READ_AT_ONCE, until - version))
        if not records or records[0][0] != version + 1:
            return None
        for version, data in records:
            record = decode_record(data)
            before = catalog
            changes = changes_from_plain(record.catalog_changes, catalog)
            if changes:
                catalog = catalog.changed(changes, record.trees_used)
            if version > after:
                entries.append(_entry(record, changes, before, catalog))
            await trio.lowlevel.checkpoint()
    return entries


def _entry(
    record: LogRecord, changes: Iterable[str], before: Catalog, catalog: Catalog
) -> VersionEntry:
    names = {table.id: name for each in (before, catalog) for name, table in each.tables.items()}
    touched = {name for name in changes if before.find(name) or catalog.find(name)}
    rows = 0
    for tree, entries in record.trees:
        if tree in names:
            rows += count_entries(entries)
            touched.add(names[tree])
    requests = list(record.requests)
    tables = sorted(map(name_of_key, touched))
    return VersionEntry(record.version, record.time, tables, rows, requests)
