"""Compares two snapshots for `GET /v1/databases/{database}/diff`: a page of changes, or counts."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, cast

import msgspec

from qserver.control.databases import OpenDatabase
from qserver.durability.branch_log import last_shared_page
from qserver.engine.work import before
from qserver.engine.yielding import yield_to_others
from qserver.errors import DataCorrupted, InvalidRequest, UndefinedTable
from qserver.limits import ANSWER_PART_BYTES
from qserver.query.results import Redefinition
from qserver.storage.page import DropShared, Key, without_alike, without_shared
from qserver.storage.snapshot import Snapshot
from qserver.storage.snapshot_changes import snapshot_changes, snapshot_counts
from qserver.values.encoding import decode_columns, encode_columns
from qserver.values.identifiers import catalog_key, key_of_name, name_of_key, names_in
from qserver.values.sizes import size_of
from qserver.web.description import shapes, version_shapes
from qserver.web.statements.json_values import encode_json
from qserver.web.streaming.changes import ChangeEncoder

DIFF_BYTES_MAX = 32 * ANSWER_PART_BYTES
"""A page of changes ends after so many bytes of rows, however few changes that is."""

Place = tuple[str, Key | None]
"""A change, by the catalog key of its table and the key of its row."""


class Comparison(msgspec.Struct, frozen=True):
    first: Snapshot
    last: Snapshot
    tables: set[str] | None
    """By their catalog keys; None: all."""
    drop_shared: DropShared
    deadline: float

    async def page(
        self, start: Place | None, limit: int
    ) -> tuple[list[shapes.RowChange], str | None]:
        """Return the changes after `start`, and the cursor of the next page if there is one."""
        first, last = self.first, self.last
        encoder, size = ChangeEncoder(), 0
        changes: list[msgspec.Raw] = []
        place: Place = ("", None)
        for found in snapshot_changes(first, last, self.tables, start, self.drop_shared):
            if found is None:
                await before(self.deadline, yield_to_others)
                continue
            if len(changes) >= limit or size > DIFF_BYTES_MAX:
                return cast(list[shapes.RowChange], changes), cursor_of(place)
            name, key, change = found
            place = name, key
            schema = Redefinition(name, first.catalog, last.catalog) if key is None else None
            changes.append(msgspec.Raw(encode_json(encoder.encoded(change, schema))))
            size += sum(map(size_of, (*(change.before or ()), *(change.after or ()))))
        return cast(list[shapes.RowChange], changes), None  # they are encoded already

    async def counts(self) -> list[version_shapes.TableDifference]:
        counts = []
        for found in snapshot_counts(self.first, self.last, self.tables, self.drop_shared):
            if found is None:
                await before(self.deadline, yield_to_others)
            else:
                schema, *rows = found.schema, found.insert, found.update, found.delete
                counts.append(
                    version_shapes.TableDifference(name_of_key(found.table), schema, *rows)
                )
        return counts


def drop_shared_of(one: OpenDatabase, other: OpenDatabase) -> DropShared:
    """Return what tells apart pages of two databases, or of one."""
    if one is other:
        return without_shared
    return without_alike(
        last_shared_page((one.id, one.database.log), (other.id, other.database.log))
    )


def tables_of(given: str | None, first: Snapshot, last: Snapshot) -> set[str] | None:
    """Return the catalog keys of the tables or schemas that are named; None for all."""
    if given is None:
        return None
    keys = set()
    for name in names_in(given):
        named = {key_of_name(name), catalog_key(name, "")}
        found = {key for key in named if first.catalog.find(key) or last.catalog.find(key)}
        if not found:
            raise UndefinedTable(f'relation "{name}" does not exist', table=name)
        keys |= found
    return keys


def cursor_of(place: Place) -> str:
    name, key = place
    data = encode_columns([(name,)], [key])
    return urlsafe_b64encode(data).decode().rstrip("=")


def place_of(cursor: str) -> tuple[str, Any]:
    try:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        ((name,),), (key,) = decode_columns(data)
    except (ValueError, DataCorrupted):
        raise InvalidRequest("the cursor is none of ours") from None
    if not isinstance(name, str):
        raise InvalidRequest("the cursor is none of ours")
    return name, key
