"""How far the files of a family are a copy of its stream.

The position is a page of the root's file, with a number that no tree uses. It is written when the
files of all members are synced. So they have at least what it says, and may have more: what is read
again is skipped by its version.
"""

from __future__ import annotations

from typing import Final

import msgspec

from qserver.durability.column_numbers import POSITION
from qserver.durability.port import Log, StoredPage
from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted


class Position(msgspec.Struct, frozen=True):
    sequence: int = 0
    """Of the last message that the files have."""
    checksum: int = 0
    claim: str = ""
    """Who wrote the stream then."""
    versions: dict[str, int] = {}
    """The last version of each database. Parents come before their branches, but for the root."""
    logged: int = 0
    """About how many bytes of messages there are since the last base."""


BEGINNING: Final = Position()


def load_position(root: Log) -> Position:
    """Return the position that the root's file has; the beginning if there is none."""
    data = root.load([POSITION]).get(POSITION)
    return BEGINNING if data is None else decode_position(unsealed(data, "a position"))


async def save_position(root: Log, position: Position) -> None:
    """Save the position durably. The files of all members must have been synced."""
    await root.save_pages([position_page(position)])
    await root.sync_pages()


def position_page(position: Position) -> StoredPage:
    return POSITION, sealed(encode_position(position))


def encode_position(position: Position) -> bytes:
    return _encode(position)


def decode_position(data: bytes) -> Position:
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise DataCorrupted("a position cannot be decoded", detail=str(error)) from error


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Position).decode
