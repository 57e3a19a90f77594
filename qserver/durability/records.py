"""A record of the log: one round of commits as bytes that can be checked.

    checksum (CRC-32, 4 bytes, big end first) ‖ MessagePack array
        [format, version, time, trees used, [[tree, entries] …], [dropped tree …], {table: …},
         [request …], [[statement, [name …]] …]]

A long list of entries may be cut: then a tree is named several times, and the format is 2, which
releases that would read only the last of them refuse.

Entries are keys with their rows, as `values.encoding` writes them. A record does not mention
shards: keys find their ranges when it is read, so the number of shards may change in between.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec

from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted
from qserver.storage.transaction import Definitions
from qserver.storage.writes import CHANGES_AT_ONCE, Writes
from qserver.values.encoding import decode_entries, encode_columns, encode_entries

FORMAT: Final = 1
FORMAT_CUT: Final = 2
"""A record that may name a tree several times."""

EncodedTrees: TypeAlias = list[tuple[int, bytes]]


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


class LogRecordTime(msgspec.Struct, frozen=True, array_like=True):
    format: int
    version: int
    time: float


class LogRecordFormat(msgspec.Struct, frozen=True, array_like=True):
    """The part of a record that all releases have in common."""

    format: int


def encode_record(
    version: int,
    time: float,
    trees_used: int,
    writes: Writes,
    dropped: tuple[int, ...] = (),
    catalog_changes: dict[str, Any] | None = None,
    *,
    encoded: EncodedTrees | None = None,
    plain: Container[int] = (),
    requests: Sequence[str] = (),
    definitions: Sequence[Definitions] = (),
) -> bytes:
    """Return the bytes of a record; `encoded` are the entries, if they were encoded before.

    `plain`: trees of tables whose rows are plain, see `Table.is_plain`.
    """
    record = LogRecord(
        FORMAT if encoded is None else FORMAT_CUT,
        version,
        time,
        trees_used,
        encode_trees(writes, plain) if encoded is None else encoded,
        dropped,
        catalog_changes or {},
        requests,
        definitions,
    )
    return sealed(_encode(record))


def encode_trees(writes: Writes, plain: Container[int] = ()) -> EncodedTrees:
    return [(tree, encode_entries(changes, tree in plain)) for tree, changes in writes.items()]


def encode_trees_in_pieces(
    writes: Writes, plain: Container[int] = ()
) -> Generator[None, None, EncodedTrees]:
    """Do the same in pieces; yield now and then, so that others can run."""
    encoded: EncodedTrees = []
    for tree, changes in writes.items():
        keys, rows = iter(changes), iter(changes.values())
        while piece := list(islice(keys, CHANGES_AT_ONCE)):
            data = encode_columns(piece, list(islice(rows, CHANGES_AT_ONCE)), tree in plain)
            encoded.append((tree, data))
            yield
    return encoded


def decode_record(data: bytes) -> LogRecord:
    """Return the record, or raise DataCorrupted if it is not what was written."""
    body = unsealed(data, "a record of the log")
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


def writes_of(record: LogRecord) -> Writes:
    writes: Writes = {}
    for tree, entries in record.trees:
        writes.setdefault(tree, {}).update(decode_entries(entries))
    return writes


def _check_format(record: LogRecord | LogRecordFormat | None) -> None:
    if record is not None and record.format not in (FORMAT, FORMAT_CUT):
        raise DataCorrupted(
            f"a record of the log has format {record.format}, this release knows {FORMAT_CUT}",
            hint="The data were written by another release of qserver: use that or a newer one.",
        )


def _format_of(body: bytes) -> LogRecordFormat | None:
    """Return the format of a record whose shape is not ours; None if it is no record at all."""
    try:
        return _decode_format(body)
    except msgspec.MsgspecError:
        return None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(LogRecord).decode
_decode_format = msgspec.msgpack.Decoder(LogRecordFormat).decode
_decode_time = msgspec.msgpack.Decoder(LogRecordTime).decode
