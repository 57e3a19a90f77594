"""A segment: what the databases of a folder got since the segment before, as bytes.

    generation   segment 1 ─► segment 2 ─► segment 3 …     each names the checksum of the one before
                 the first names that of the generation's manifest

A segment has records of several databases, each database's in order and without a gap to those
before. Parents come before their branches. A database whose log was cut, or went another way, is
`lost` from one segment on, until a later one has a new copy of its files.

Some have the state behind them, for who goes on, and an index of those before, for who wants one
database: state segments lead back from one to the other, and name what is to be read between.

`until` is a time: every commit that was acknowledged before it is in this segment or before.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final
from zlib import compress, decompress
from zlib import error as ZlibError

import msgspec

from qserver.durability.port import StoredRecord
from qserver.errors import DataCorrupted

FORMAT: Final = 1
LEVEL: Final = 1
"""Of compression: the fastest. Records shrink to a third with any."""
DIGEST_SHOWN: Final = 16
"""So many digits of a checksum are in an object's name."""


class End(msgspec.Struct, frozen=True):
    """Where the copied log of a database ends."""

    version: int
    checksum: int
    """That of the last record; 0 if it is not known."""
    time: float


class CopiedFile(msgspec.Struct, frozen=True):
    """The copy of a whole file."""

    database: str
    parent: str | None
    end: End
    size: int
    digest: str
    parts: list[str]
    """The names of its objects, in order."""


class FamilyCopy(msgspec.Struct, frozen=True):
    """Copies of the files of a database and its branches, which fit together."""

    root: str
    time: float
    """When the last of them was copied: no earlier moment can be restored from it."""
    files: list[CopiedFile]
    """Parents come before their branches, so the root is the first."""


class Changes(msgspec.Struct, frozen=True, array_like=True):
    database: str
    parent: str | None
    """With the first changes of a branch: of what, and since which version, it is one."""
    version: int
    records: list[StoredRecord]


class State(msgspec.Struct, frozen=True):
    """What a process needs to know to go on."""

    ends: dict[str, End]
    parents: dict[str, str | None]
    lost: list[str]


class Indexed(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a segment without reading it."""

    number: int
    digest: str
    until: float
    names: list[str]
    """The databases of which it has anything."""


class Segment(msgspec.Struct, frozen=True, array_like=True):
    format: int
    generation: str
    number: int
    previous: str
    until: float
    changes: list[Changes] = []
    removed: list[str] = []
    """Databases whose files are gone."""
    lost: list[str] = []
    """The first databases of families of which nothing follows before a new copy."""
    copies: list[FamilyCopy] = []
    state: State | None = None
    """Behind this segment; only some have it."""
    index: list[Indexed] | None = None
    """With a state: of the segments before this one, from the last on that has a state, too."""

    def indexed(self, digest: str) -> Indexed:
        names = {each.database for each in self.changes}.union(self.removed, self.lost)
        for copy in self.copies:
            names.update([copy.root, *(file.database for file in copy.files)])
        return Indexed(self.number, digest, self.until, sorted(names))


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def encode_segment(segment: Segment) -> bytes:
    return compress(_encode(segment), LEVEL)


def decode_segment(data: bytes, name: str) -> Segment:
    """Return the segment, or raise DataCorrupted if it is not what was written."""
    try:
        segment = _decode(decompress(data))
    except (msgspec.MsgspecError, ZlibError) as error:
        raise DataCorrupted(f"{name} cannot be decoded", detail=str(error)) from error
    if segment.format != FORMAT:
        raise DataCorrupted(
            f"{name} has format {segment.format}, this release knows {FORMAT}",
            hint="A newer release of qserver has made it: use that one.",
        )
    return segment


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Segment).decode
