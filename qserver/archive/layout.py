"""The names of objects, and what a listing of them says.

    qserver-backup                                              there is a backup here
    qserver-owner                                               who writes to it
    20261118T000000.000Z-4f1c/                                  a generation, by when it was begun
        files/db_01….0-8c6976e5b5410415                         parts of copied files
        manifest-20261118T000107.250Z-9b74c9897bac770f          all parts are there
        segments/000000000001-20261118T000108.300Z-c3ab8ff1…    what has changed since

A name has the checksum of its object, a segment's also its number and the time up to which it has
everything. So a listing says which moments can be restored, and whether something is missing.

A generation counts when it has a manifest, and is by itself from then on. The time in the name of
the manifest is the first that can be restored, when a segment goes beyond it. The segments of the
one before go on until then, so for a while the newest moment is not in the newest generation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Final

import msgspec

from qserver.archive.objects import MARK, OWNER, Key
from qserver.archive.segments import DIGEST_SHOWN, FamilyCopy
from qserver.errors import DataCorrupted

FORMAT: Final = 1
_STAMP: Final = r"\d{8}T\d{6}\.\d{3}Z"
_NAME: Final = re.compile(
    rf"(?P<generation>{_STAMP}-[0-9a-f]+)/"
    rf"(?:(?P<file>files/[^/]+)|manifest-(?P<begins>{_STAMP})-(?P<sum>[0-9a-f]+)"
    rf"|segments/(?P<number>\d+)-(?P<until>{_STAMP})-(?P<digest>[0-9a-f]+))"
)


class Manifest(msgspec.Struct, frozen=True):
    format: int
    generation: str
    begins: float
    made_by: str
    """The release, machine and folder, for people."""
    families: list[FamilyCopy]


class SegmentName(msgspec.Struct, frozen=True, order=True):
    number: int
    until: float
    digest: str
    name: str


class Generation(msgspec.Struct):
    """What a listing says of one."""

    name: str
    begins: float = 0.0
    manifest: str = ""
    """The name of its manifest; empty: it does not count."""
    segments: dict[int, list[SegmentName]] = {}
    """By number. Two of one number are there if a process ended between writing and knowing it."""
    size: int = 0
    keys: list[str] = []

    @property
    def last(self) -> int:
        """The number of the last segment before which none is missing; 0 if there is none."""
        number = 0
        while number + 1 in self.segments:
            number += 1
        return number

    @property
    def until(self) -> float:
        """The last time that can be restored."""
        return max((each.until for each in self.segments.get(self.last, ())), default=self.begins)

    @property
    def has_begun(self) -> bool:
        """Whether it has moments: files are copied one after the other, and each lacks what it got
        until the last one was. The segments have that."""
        return bool(self.manifest) and self.until > self.begins

    @property
    def latest(self) -> float:
        """The time of the newest segment, also if one before it is missing."""
        return max(
            (each.until for some in self.segments.values() for each in some), default=self.begins
        )

    @property
    def missing(self) -> list[int]:
        """The numbers of segments that are not there, though later ones are."""
        return [at for at in range(1, max(self.segments, default=0)) if at not in self.segments]


def generations_in(keys: Iterable[Key]) -> list[Generation]:
    """Return all generations, the oldest first; those without a manifest, too."""
    found: dict[str, Generation] = {}
    for key in keys:
        match = _NAME.fullmatch(key.name)
        if match is None:
            continue
        name = match["generation"]
        generation = found.setdefault(name, Generation(name))
        generation.size += key.size
        generation.keys.append(key.name)
        if match["begins"]:
            generation.begins, generation.manifest = moment_of(match["begins"]), key.name
        elif match["number"]:
            segment = SegmentName(
                int(match["number"]), moment_of(match["until"]), match["digest"], key.name
            )
            generation.segments.setdefault(segment.number, []).append(segment)
    return [found[name] for name in sorted(found)]


def strangers_in(keys: Iterable[Key]) -> list[str]:
    """Return the names that are not those of a backup."""
    ours = MARK, OWNER
    return [key.name for key in keys if key.name not in ours and not _NAME.fullmatch(key.name)]


def complete(generations: Iterable[Generation]) -> list[Generation]:
    """Return those that count, in the order in which they begin."""
    return sorted((each for each in generations if each.manifest), key=lambda each: each.begins)


def begun(generations: Iterable[Generation]) -> list[Generation]:
    """Return those that have moments, in the order in which they begin."""
    return [each for each in complete(generations) if each.has_begun]


def ranges_of(generations: Sequence[Generation]) -> list[tuple[float, float]]:
    """Return from when until when moments can be restored; neighbours without a gap are one."""
    ranges: list[tuple[float, float]] = []
    for each in begun(generations):
        if ranges and each.begins <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], each.until)
        else:
            ranges.append((each.begins, each.until))
    return ranges


def holding(generations: Iterable[Generation], moment: float) -> list[Generation]:
    """Return the generations that have a moment, the newest first; that of the newest moment (inf).

    That is not always the newest one: the one before gets segments while its files are checked.
    """
    if moment < inf:
        having = [each for each in begun(generations) if each.begins <= moment <= each.until]
        return having[::-1]
    order = sorted(complete(generations), key=lambda each: (each.latest, each.begins))
    return [each for each in order if each.latest > each.begins][-1:] or order[-1:]


def outdated(generations: Sequence[Generation], kept_since: float) -> list[Generation]:
    """Return those that no moment since a time needs, because a newer one has it.

    Those that were never complete are outdated when a later one is.
    """
    counting = complete(generations)
    newer = [each for each in begun(counting) if each.begins <= kept_since]
    since = newer[-1].begins if newer else -inf
    needed = [each for each in counting if each.begins >= since]
    last = max((each.name for each in counting), default="")
    return [
        each
        for each in generations
        if (each.name < last if not each.manifest else each not in needed)
    ]


def new_generation(now: float, chance: str) -> str:
    return f"{stamp(now)}-{chance}"


def file_name(generation: str, database: str, number: int, digest: str) -> str:
    return f"{generation}/files/{database}.{number}-{digest[:DIGEST_SHOWN]}"


def manifest_name(generation: str, begins: float, digest: str) -> str:
    return f"{generation}/manifest-{stamp(begins)}-{digest[:DIGEST_SHOWN]}"


def segment_name(generation: str, number: int, until: float, digest: str) -> str:
    return f"{generation}/segments/{number:012}-{stamp(until)}-{digest[:DIGEST_SHOWN]}"


def digest_in(name: str) -> str:
    """Return the digits of the checksum at the end of a name."""
    return name.rpartition("-")[2]


def stamp(moment: float) -> str:
    """Return a time as names have it, cut to the millisecond."""
    whole, thousandths = divmod(int(moment * 1000 + 0.001), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y%m%dT%H%M%S}.{thousandths:03}Z"


def moment_of(text: str) -> float:
    found = datetime.fromisoformat(text)
    return (int(found.timestamp()) * 1000 + found.microsecond // 1000) / 1000


def shown(moment: float) -> str:
    """Return a time for people, in the form that `--at` takes."""
    text = stamp(moment)
    day, clock = text[:8], text[9:]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:]}"


def encode_manifest(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest))


def decode_manifest(data: bytes, name: str) -> Manifest:
    try:
        manifest = _decode(data)
    except msgspec.MsgspecError as error:
        raise DataCorrupted(f"{name} cannot be decoded", detail=str(error)) from error
    if manifest.format != FORMAT:
        raise DataCorrupted(
            f"{name} has format {manifest.format}, this release knows {FORMAT}",
            hint="A newer release of qserver has made it: use that one.",
        )
    return manifest


_decode = msgspec.json.Decoder(Manifest).decode
