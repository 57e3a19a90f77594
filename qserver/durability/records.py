"""A record of the log: one round of commits as bytes that can be checked.

    checksum (CRC-32, 4 bytes, big end first) ‖ MessagePack array
        [format, version, time, trees used, [[tree, entries] …], [dropped tree …], {table: …},
         [request …], [[statement, [name …]] …]]

A long list of entries may be cut: then a tree is named several times, and the format is 2, which
releases that would read only the last of them refuse.

Entries are keys with their rows, as `values.encoding` writes them. A record does not mention
shards: keys find their ranges when it is read, so the number of shards may change in between.

Not done: one way to encode short rounds and long ones. Pieces put together take 9 µs for a round of
one row, one call of the encoder 3, and every commit pays that.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from qserver.durability.seal import (
    PIECE_BYTES,
    sealed,
    sealed_in_pieces,
    unsealed,
    unsealed_in_pieces,
)
from qserver.errors import DataCorrupted
from qserver.storage.writes import CHANGES_AT_ONCE, Writes
from qserver.values.encoding import decode_entries, encode_columns, encode_entries
from qserver.values.steps import Steps, at_once

FORMAT: Final = 1
FORMAT_CUT: Final = 2
"""A record that may name a tree several times."""

CHANGES_AT_FIRST: Final = 64
ENTRIES_BYTES_LONG: Final = 64 * 1024
"""After longer entries have been decoded, others can run."""


class Definitions(msgspec.Struct, frozen=True, array_like=True):
    """A statement that has changed definitions, and their keys in the catalog."""

    statement: str
    names: list[str]
    rewritten: dict[int, int] | None = None
    """Trees into which it has moved the rows of tables, each with the tree where they were before.
    Earlier releases did not write them."""
    beside_rows: bool = False
    """Whether the same transaction has changed rows by other statements, too."""


class LogRecord(msgspec.Struct, frozen=True, array_like=True):
    """The changes between the version before and this one."""

    format: int
    version: int
    time: float
    trees_used: int
    trees: list[tuple[int, bytes]]
    dropped: tuple[int, ...]
    catalog_changes: dict[str, Any]
    requests: Sequence[str] = ()
    """The ids of the requests that made the changes, where they are known."""
    definitions: Sequence[Definitions] = ()
    """The statements that changed definitions. Earlier releases wrote neither."""


class StoredLogRecord(LogRecord, frozen=True, array_like=True):
    """A record that was read. Its entries stay where they are, in the bytes of the record."""

    trees: list[tuple[int, memoryview]]  # type: ignore[assignment]


class LogRecordTime(msgspec.Struct, frozen=True, array_like=True):
    format: int
    version: int
    time: float


class LogRecordFormat(msgspec.Struct, frozen=True, array_like=True):
    """The part of a record that all releases have in common."""

    format: int


def encode_record(record: LogRecord) -> bytes:
    return sealed(_encode(record))


def encode_trees(writes: Writes, plain: Container[int] = ()) -> list[tuple[int, bytes]]:
    """Return the entries of a record; `plain`: trees of tables whose rows are plain."""
    return [(tree, encode_entries(changes, tree in plain)) for tree, changes in writes.items()]


def encode_record_in_pieces(
    record: LogRecord, writes: Writes, plain: Container[int] = ()
) -> Steps[bytes]:
    """Encode a record together with its entries, which it lacks, and cut them.

    Pieces are of one length, about: the next has as many entries as the last suggests. The
    MessagePack is put together here: an encoder would copy all pieces once more, at once.
    """
    head = (FORMAT_CUT, record.version, record.time, record.trees_used)
    tail = (record.dropped, record.catalog_changes, record.requests, record.definitions)
    pieces = [b""]
    for tree, changes in writes.items():
        keys, rows = iter(changes), iter(changes.values())
        count = CHANGES_AT_FIRST
        while some := list(islice(keys, count)):
            data = encode_columns(some, list(islice(rows, count)), tree in plain)
            pieces += [b"\x92%b\xc6%b" % (_encode(tree), len(data).to_bytes(4, "big")), data]
            count = min(max(1, count * PIECE_BYTES // len(data)), 2 * count, CHANGES_AT_ONCE)
            yield
    many = len(pieces) // 2
    pieces[0] = b"\x99%b\xdd%b" % (b"".join(map(_encode, head)), many.to_bytes(4, "big"))
    pieces += map(_encode, tail)
    return (yield from sealed_in_pieces(pieces))


def decode_record(data: bytes) -> LogRecord:
    """Return the record, or raise DataCorrupted if it is not what was written."""
    return at_once(decode_record_in_pieces(data))


def decode_record_in_pieces(data: bytes) -> Steps[LogRecord]:
    """Do the same; yield now and then, so that others can run."""
    body = yield from unsealed_in_pieces(data, "a record of the log")
    try:
        record = _decode(body)
    except msgspec.MsgspecError as error:
        _check_format(_format_of(body))
        raise DataCorrupted("a record of the log cannot be decoded", detail=str(error)) from error
    _check_format(record)
    return record


def decode_time(data: bytes) -> float:
    """Return when the version of a record was made, without reading the rest."""
    try:
        return _decode_time(unsealed(data, "a record of the log")).time
    except msgspec.MsgspecError as error:
        raise DataCorrupted("a record of the log cannot be decoded", detail=str(error)) from error


def writes_of(record: LogRecord) -> Steps[Writes]:
    """Return what a record writes; yield now and then, so that others can run."""
    writes: Writes = {}
    for tree, entries in record.trees:
        writes.setdefault(tree, {}).update(decode_entries(entries))
        if len(entries) > ENTRIES_BYTES_LONG:
            yield
    return writes


def _check_format(record: LogRecord | LogRecordFormat | None) -> None:
    if record is not None and record.format not in (FORMAT, FORMAT_CUT):
        raise DataCorrupted(
            f"a record of the log has format {record.format}, this release knows {FORMAT_CUT}",
            hint="The data were written by another release of qserver: use that or a newer one.",
        )


def _format_of(body: memoryview) -> LogRecordFormat | None:
    """Return the format of a record whose shape is not ours; None if it is no record at all."""
    try:
        return _decode_format(body)
    except msgspec.MsgspecError:
        return None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredLogRecord).decode
_decode_format = msgspec.msgpack.Decoder(LogRecordFormat).decode
_decode_time = msgspec.msgpack.Decoder(LogRecordTime).decode
