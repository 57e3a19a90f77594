"""Reads the objects of one generation, and compares each with its name and with its neighbours."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

import trio

from qserver.archive.layout import (
    Generation,
    Manifest,
    SegmentName,
    decode_manifest,
    digest_in,
    shown,
)
from qserver.archive.objects import Objects
from qserver.archive.segments import (
    End,
    Indexed,
    Segment,
    State,
    decode_segment,
    digest_of,
)
from qserver.durability.records import decode_time
from qserver.errors import DataCorrupted

LOADED_AT_ONCE: Final = 16
"""Segments that are loaded side by side."""


class Position(NamedTuple):
    """Where a generation is gone on with."""

    state: State
    number: int
    """Of the last segment; 0 if there is none."""
    digest: str
    until: float
    indexed: list[Indexed]
    """Of the segments from the last on that has a state."""


class Reader:
    """Every call of a plain method blocks."""

    def __init__(self, objects: Objects, generation: Generation) -> None:
        self._objects = objects
        self.generation = generation
        self.before = generation.begins
        """Up to when what comes before the segment has everything, while `segments` goes on."""

    def load(self, name: str) -> bytes:
        """Return an object; raise DataCorrupted if its bytes are not those that its name says."""
        data = self._objects.load(name)
        if not digest_of(data).startswith(digest_in(name)):
            raise DataCorrupted(
                f"{self._objects.place}/{name} is damaged: its name has another checksum"
            )
        return data

    def manifest(self) -> tuple[Manifest, str]:
        """Return the manifest and its checksum."""
        data = self.load(self.generation.manifest)
        return decode_manifest(data, self.generation.manifest), digest_of(data)

    def segment(self, name: SegmentName) -> tuple[Segment, str]:
        """Return a segment and its checksum."""
        data = self.load(name.name)
        segment = decode_segment(data, name.name)
        if (segment.generation, segment.number) != (self.generation.name, name.number):
            raise DataCorrupted(f"{name.name} is segment {segment.number} of {segment.generation}")
        return segment, digest_of(data)

    def picked(self, number: int) -> SegmentName:
        """Return the segment of a number: of two, the one that the next one follows."""
        several = self.generation.segments[number]
        if len(several) > 1 and number + 1 in self.generation.segments:
            following, _ = self.segment(self.picked(number + 1))
            for each in several:
                if following.previous.startswith(each.digest):
                    return each
        return max(several)

    async def segments(
        self, last: int, names: frozenset[str] | None = None
    ) -> AsyncGenerator[Segment, None]:
        """Yield the segments up to a number, each of which must follow the one before.

        With names of databases, those that are known to have nothing of them are passed over.
        """
        manifest, previous = await trio.to_thread.run_sync(self.manifest)
        self.before = manifest.begins
        index = {} if names is None else await trio.to_thread.run_sync(self._index, last)
        wanted = [
            number
            for number in range(1, last + 1)
            if number not in index or not (names or frozenset()).isdisjoint(index[number].names)
        ]
        for at in range(0, len(wanted), LOADED_AT_ONCE):
            for number, found in await self._loaded(wanted[at : at + LOADED_AT_ONCE], index):
                if number - 1 in index:
                    previous, self.before = index[number - 1].digest, index[number - 1].until
                if isinstance(found, DataCorrupted):
                    raise DataCorrupted(found.message, hint=self._before(number)) from found
                if isinstance(found, Exception):
                    raise found
                segment, digest = found
                if segment.previous != previous:
                    raise self._unchained(number)
                yield segment
                previous, self.before = digest, segment.until

    async def _loaded(
        self, numbers: list[int], index: dict[int, Indexed]
    ) -> list[tuple[int, tuple[Segment, str] | Exception]]:
        """Load segments side by side; what goes wrong with one counts when it is its turn."""
        results: dict[int, tuple[Segment, str] | Exception] = {}

        async def load(number: int) -> None:
            try:
                results[number] = await trio.to_thread.run_sync(self._segment, number, index)
            except Exception as error:
                results[number] = error

        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(load, number)
        return [(number, results[number]) for number in numbers]

    def _segment(self, number: int, index: dict[int, Indexed]) -> tuple[Segment, str]:
        """Return the segment of a number and its checksum, which is that of the index."""
        if number not in index:
            return self.segment(self.picked(number))
        wanted = index[number].digest
        for each in self.generation.segments[number]:
            if wanted.startswith(each.digest):
                segment, digest = self.segment(each)
                if digest == wanted:
                    return segment, digest
        raise self._unchained(number)

    def _index(self, last: int) -> dict[int, Indexed]:
        """Go from one segment with a state to the one before; of others nothing is known."""
        index: dict[int, Indexed] = {}
        number = last
        while number:
            try:
                segment, _ = self._segment(number, index)
            except DataCorrupted:  # it is told when it is wanted
                number -= 1
                continue
            if segment.index is not None:
                index.update((each.number, each) for each in segment.index)
                number = min((each.number for each in segment.index), default=0)
            elif segment.state is None:
                number -= 1
            else:
                break  # older releases made no index
        return index

    def _unchained(self, number: int) -> DataCorrupted:
        return DataCorrupted(
            f"segment {number} of {self.generation.name} does not follow the one before",
            hint="It was replaced, or two processes have written to"
            f" {self._objects.place}. {self._before(number)}",
        )

    def _before(self, number: int) -> str:
        segments = self.generation.segments.get(number - 1)
        until = min(each.until for each in segments) if segments else self.generation.begins
        return (
            f"From {shown(self.generation.begins)} to {shown(until)} can be restored from this"
            " generation; qserver backup --list shows the others."
        )

    # --- going on ---

    def position(self) -> Position:
        """Return what is behind the last segment."""
        generation = self.generation
        number = generation.last
        if not number:
            manifest, digest = self.manifest()
            return Position(state_of(manifest), 0, digest, generation.begins, [])
        name = self.picked(number)
        segment, digest = self.segment(name)
        later, index = [segment], [segment.indexed(digest)]
        while later[-1].state is None and later[-1].number > 1:
            before = later[-1].number - 1
            for each in generation.segments[before]:
                if later[-1].previous.startswith(each.digest):
                    segment, found = self.segment(each)
                    later.append(segment)
                    index.append(segment.indexed(found))
                    break
            else:
                raise self._unchained(before + 1)
        state = later[-1].state
        if state is None:
            state = state_of(self.manifest()[0])
        else:
            later.pop()
        for segment in reversed(later):
            state = behind(state, segment)
        return Position(state, number, digest, name.until, index[::-1])

    def __repr__(self) -> str:
        return f"a reader of {self.generation.name} in {self._objects!r}"


def state_of(manifest: Manifest) -> State:
    """Return the state with which a generation begins."""
    files = [file for family in manifest.families for file in family.files]
    return State(
        {file.database: file.end for file in files},
        {file.database: file.parent for file in files},
        [],
    )


def behind(state: State, segment: Segment) -> State:
    """Return the state behind a segment."""
    ends, parents, lost = dict(state.ends), dict(state.parents), set(state.lost)
    for copy in segment.copies:
        for name in [each for each in parents if root_of(parents, each) == copy.root]:
            del parents[name]
            ends.pop(name, None)
        for file in copy.files:
            ends[file.database], parents[file.database] = file.end, file.parent
        lost.discard(copy.root)
    for name in segment.removed:
        ends.pop(name, None)
        parents.pop(name, None)
        lost.discard(name)
    for changes in segment.changes:
        if changes.records:
            version, data = changes.records[-1]
            end = End(version, int.from_bytes(data[:4], "big"), decode_time(data))
        else:
            end = End(changes.version, 0, 0.0)
        ends[changes.database] = end
        parents.setdefault(changes.database, changes.parent)
    return State(ends, parents, sorted(lost | set(segment.lost)))


def root_of(parents: dict[str, str | None], name: str) -> str:
    above = parents.get(name)
    while above is not None:
        name, above = above, parents.get(above)
    return name
