"""Checks the objects of a generation: that all are there, and that they fit together."""

from __future__ import annotations

from contextlib import aclosing

import msgspec
import trio

from qserver.archive.layout import Generation, shown
from qserver.archive.objects import Objects
from qserver.archive.reading import Reader, behind, state_of
from qserver.archive.rebuilding import Note
from qserver.archive.segments import FamilyCopy, Segment, State
from qserver.durability.records import decode_record
from qserver.errors import DataCorrupted


class CheckedObjects(msgspec.Struct, frozen=True):
    text: str
    is_sound: bool = True


async def check_objects(objects: Objects, generation: Generation, note: Note) -> CheckedObjects:
    """Read every object of a generation, and compare it with what it should be."""
    reader = Reader(objects, generation)
    records = 0
    try:
        manifest, _ = await trio.to_thread.run_sync(reader.manifest)
        for copy in manifest.families:
            await _check_files(reader, copy)
        state, last = state_of(manifest), generation.last
        async with aclosing(reader.segments(last)) as segments:
            async for segment in segments:
                for copy in segment.copies:
                    await _check_files(reader, copy)
                records += _check_records(segment, state)
                state = behind(state, segment)
                note(segment.number / last)
        if generation.missing:
            raise DataCorrupted(
                f"segment {generation.missing[0]} is missing, and what follows is of no use"
            )
    except DataCorrupted as error:
        hint = f". {error.hint}" if error.hint else ""
        return CheckedObjects(f"DAMAGED: {error.message}{hint}", is_sound=False)
    files = sum(len(copy.files) for copy in manifest.families)
    return CheckedObjects(
        f"ok, {files} files, {last:,} segments with {records:,} records,"
        f" {shown(generation.begins)} to {shown(generation.until)}"
    )


async def _check_files(reader: Reader, copy: FamilyCopy) -> None:
    for file in copy.files:
        for part in file.parts:
            await trio.to_thread.run_sync(reader.load, part)


def _check_records(segment: Segment, state: State) -> int:
    """Return how many records a segment has, each of which follows the one before."""
    count = 0
    ends = {name: end.version for name, end in state.ends.items()}
    for copy in segment.copies:
        ends.update((file.database, file.end.version) for file in copy.files)
    for changes in segment.changes:
        end = ends.get(changes.database, changes.version)
        for version, data in changes.records:
            if version != end + 1 or decode_record(data).version != version:
                raise DataCorrupted(
                    f"segment {segment.number} has version {version} of {changes.database} where"
                    f" {end + 1} must follow"
                )
            end = version
            count += 1
    return count
