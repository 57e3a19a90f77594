"""A record of the log: one round of commits as bytes that can be checked.

    checksum (CRC-32, 4 bytes, big end first) ‖ MessagePack array
        [format, version, time, trees used, [[tree, entries] …], [dropped tree …], {table: …}]

Entries are keys with their rows, as `values.encoding` writes them. A record says nothing about
shards: they are found by hash when it is read, so the number of shards may change in between.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted
from qserver.storage.partition import Writes
from qserver.values.encoding import decode_entries, encode_entries

FORMAT: Final = 1


class Record(msgspec.Struct, frozen=True, array_like=True):
    """What happened between the version before and this one."""

    format: int
    version: int
    time: float
    trees_used: int
    trees: list[tuple[int, bytes]]
    dropped: tuple[int, ...]
    catalog_changes: dict[str, Any]


class RecordFormat(msgspec.Struct, frozen=True, array_like=True):
    """As much of a record as all releases have in common."""

    format: int


def encode_record(
    version: int,
    time: float,
    trees_used: int,
    writes: Writes,
    dropped: tuple[int, ...] = (),
    catalog_changes: dict[str, Any] | None = None,
) -> bytes:
    record = Record(
        FORMAT,
        version,
        time,
        trees_used,
        [(tree, encode_entries(list(changes.items()))) for tree, changes in writes.items()],
        dropped,
        catalog_changes or {},
    )
    return sealed(_encode(record))


def decode_record(data: bytes) -> Record:
    """The record, or DataCorrupted when it is not what was written."""
    body = unsealed(data, "a record of the log")
    try:
        record = _decode(body)
    except msgspec.MsgspecError as error:
        _check_format(_format_of(body))
        raise DataCorrupted("a record of the log cannot be decoded", detail=str(error)) from error
    _check_format(record)
    return record


def writes_of(record: Record) -> Writes:
    return {tree: dict(decode_entries(entries)) for tree, entries in record.trees}


def _check_format(record: Record | RecordFormat | None) -> None:
    if record is not None and record.format != FORMAT:
        raise DataCorrupted(
            f"a record of the log has format {record.format}, this release knows {FORMAT}",
            hint="The data were written by another release of qserver: use that or a newer one.",
        )


def _format_of(body: bytes) -> RecordFormat | None:
    """The format of a record whose shape is not ours; None if it is no record at all."""
    try:
        return _decode_format(body)
    except msgspec.MsgspecError:
        return None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode
_decode_format = msgspec.msgpack.Decoder(RecordFormat).decode
