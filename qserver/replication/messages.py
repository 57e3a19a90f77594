"""The messages of a family's stream, as bytes.

    claim          from here on `claim` writes the stream, and no earlier one
    records        records of one or several databases, made durable together
    part … part    a message that is too long for one; it counts with its last part
    branch         a database begins as a version of another one
    removed        a database is gone

Each message has the checksum of the one before it. So a stream that lost a message, or had one
replaced, does not fit together any more, and whoever reads it notices. Each also names the claim
under which it was written.
"""

from __future__ import annotations

from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from qserver.durability.port import StoredRecord
from qserver.errors import DataCorrupted

FORMAT: Final = 1


class Group(msgspec.Struct, frozen=True, array_like=True):
    """Records of one database, in order."""

    database: str
    records: list[StoredRecord]


class Records(msgspec.Struct, frozen=True, array_like=True, tag="records"):
    groups: list[Group]


class Part(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    data: bytes
    is_last: bool


class Claim(msgspec.Struct, frozen=True, array_like=True, tag="claim"):
    """Its name is that of the entry."""


class Branch(msgspec.Struct, frozen=True, array_like=True, tag="branch"):
    database: str
    parent: str
    version: int


class Removed(msgspec.Struct, frozen=True, array_like=True, tag="removed"):
    database: str


Body: TypeAlias = Records | Part | Claim | Branch | Removed


class Entry(msgspec.Struct, frozen=True, array_like=True):
    format: int
    previous: int
    """The checksum of the message before; 0 for the first."""
    claim: str
    body: Body


def encode(previous: int, claim: str, body: Body) -> bytes:
    return _encode(Entry(FORMAT, previous, claim, body))


def encode_body(body: Records) -> bytes:
    """Encode what is sent in parts."""
    return _encode(body)


def decode(data: bytes, where: str) -> Entry:
    try:
        entry = _decode(data)
    except msgspec.MsgspecError as error:
        raise DataCorrupted(f"{where} cannot be decoded", detail=str(error)) from error
    if entry.format != FORMAT:
        raise DataCorrupted(
            f"{where} has format {entry.format}, this release knows {FORMAT}",
            hint="The log was written by a newer release of qserver: use that one.",
        )
    return entry


def decode_body(data: bytes, where: str) -> Records:
    """Decode what was sent in parts."""
    try:
        return _decode_body(data)
    except msgspec.MsgspecError as error:
        raise DataCorrupted(
            f"the parts up to {where} cannot be decoded", detail=str(error)
        ) from error


def checksum_of(data: bytes) -> int:
    return crc32(data)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode
_decode_body = msgspec.msgpack.Decoder(Records).decode
