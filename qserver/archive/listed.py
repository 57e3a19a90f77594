"""What the control database in a file lists: which other databases there are, and of what kind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from qserver.durability.records import FORMAT, LogRecord, encode_record, encode_trees
from qserver.durability.recovery import recover
from qserver.durability.sqlite import open_log
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction

CONTROL: Final = "control"
TABLE: Final = "databases"
WITH_FILES: Final = ("ready", "deleted")
"""The states in which a database has a whole file; a deleted one, for its branches."""


class Listed(msgspec.Struct, frozen=True):
    """What the control database says of another one."""

    state: str
    parent: str | None
    called: str = ""
    """Its name, for people."""


GONE: Final = Listed("gone", None)


def ancestors(listed: Mapping[str, Listed], name: str) -> list[str]:
    """Return the parent of a branch, that one's parent, and so on."""
    above: list[str] = []
    parent = listed[name].parent
    while parent is not None and parent not in above:
        above.append(parent)
        parent = listed.get(parent, GONE).parent
    return above


async def databases_in(control: Path) -> dict[str, Listed]:
    """Return the databases that a control database lists, by id."""
    async with await open_log(control) as log:
        snapshot = (await recover(log, 1)).snapshot
        return {
            row["id"]: Listed(row["state"], row.get("branch_of"), row["name"])
            for row in _records(snapshot)
        }


async def mark_deleting(control: Path, names: Collection[str]) -> None:
    """Commit to a control database that databases are being deleted: the next start does it."""
    async with await open_log(control) as log:
        snapshot = (await recover(log, 1)).snapshot
        table = snapshot.catalog.tables[TABLE]
        transaction = Transaction(snapshot)
        for row in _records(snapshot):
            if row["id"] in names:
                transaction.put(table, tuple({**row, "state": "deleting"}.values()))
        version, used = snapshot.version + 1, snapshot.catalog.trees_used
        trees = encode_trees(transaction.writes)
        record = LogRecord(FORMAT, version, snapshot.time, used, trees, (), {})
        await log.append([(version, encode_record(record))])


def _records(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    table = snapshot.catalog.tables.get(TABLE)
    if table is None:  # the server has just begun to make it
        return
    names = [column.name for column in table.columns]
    for _, rows in snapshot.pages(table.id):
        for row in rows:
            yield dict(zip(names, row, strict=True))
