"""Makes a folder as it was at a moment: copied files, and the records of segments behind them.

    control ─► which databases there were ─► files of the generation ─► records up to the moment ─►
    what control does not list is removed ─► every file checked to its last row

Records are appended as they were, by what also brings copies of a replicated log up to it
(`replication.copies`). So every version is what it was, and history goes back as far as in the
copied files. A branch that is younger than these is made anew of its parent, at the same version.

The moment counts for each database by the times of its records, as for `as_of`. A commit gets its
time a little before it is acknowledged, so some segments behind the moment are looked at, too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from hashlib import sha256
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Final
from zlib import decompress
from zlib import error as ZlibError

import msgspec
import trio

from qserver.archive.layout import Generation, shown
from qserver.archive.reading import Reader, root_of
from qserver.archive.segments import Changes, CopiedFile, FamilyCopy, Segment
from qserver.durability.data_folder import DataFolder
from qserver.durability.port import StoredRecord
from qserver.durability.records import decode_time
from qserver.durability.settling import save_newest
from qserver.errors import DataCorrupted
from qserver.limits import CHECKPOINT_LOG_BYTES
from qserver.replication.copies import CatchUp, Copies
from qserver.replication.messages import FORMAT, Branch, Entry, Group, Records
from qserver.replication.reader import Whole

LATE_SECONDS: Final = 60.0
"""Segments are looked at until so long after the moment."""
APPLIED_AT_ONCE_BYTES: Final = 8 << 20

Note = Callable[[float], None]


class Goal(msgspec.Struct, frozen=True):
    """What is to be made."""

    moment: float = inf
    names: frozenset[str] | None = None
    """Which databases; None: all."""
    versions: dict[str, int] = {}
    """The last version of these, whatever the moment."""

    def wants(self, name: str) -> bool:
        return self.names is None or name in self.names

    def has(self, name: str, record: StoredRecord) -> bool:
        """Return whether a record is to be in the file."""
        if name in self.versions:
            return record[0] <= self.versions[name]
        return self.moment == inf or decode_time(record[1]) <= self.moment

    def takes(self, copy: FamilyCopy) -> bool:
        """Return whether the copies of a family are not too new."""
        limits = [self.versions.get(file.database) for file in copy.files]
        if any(limit is not None for limit in limits):
            pairs = zip(copy.files, limits, strict=True)
            return all(limit is None or file.end.version <= limit for file, limit in pairs)
        return copy.time <= self.moment


class Rebuilding:
    def __init__(self, reader: Reader, folder: Path, goal: Goal, note: Note) -> None:
        self._reader = reader
        self._goal = goal
        self._note = note
        self._files = DataFolder(folder, syncs_appends=False)
        self._copies = Copies(self._files)
        self.ends: dict[str, int] = {}
        """The last version of each database in the folder."""
        self.parents: dict[str, str | None] = {}
        self.lost: dict[str, float] = {}
        """By the first database of a family: since when its log was not copied."""
        self.removed: dict[str, float] = {}
        """Databases whose files were gone soon after the moment: up to when they were copied."""
        self._awaited: set[str] = set()
        """The first databases of families that are lost, before their next copies."""
        self._gone: set[str] = set()
        """Databases whose files were gone; what comes under the name may be another one."""
        self._past: set[str] = set()
        """Databases of which nothing more belongs to the goal."""
        self._catch_up = CatchUp(self._copies, {}, (), set())
        self._waiting: list[Whole] = []
        self._waiting_bytes = 0
        self._unsettled: dict[str, int] = {}

    async def run(self) -> None:
        """Make the files. Raises DataCorrupted if what they need is missing or damaged."""
        manifest, _ = await trio.to_thread.run_sync(self._reader.manifest)
        for copy in manifest.families:
            await self._place(copy)
        likely, reader = self._likely_last(), self._reader
        async with aclosing(reader.segments(reader.generation.last, self._goal.names)) as segments:
            while True:
                try:
                    segment = await anext(segments, None)
                except DataCorrupted:
                    if reader.before < self._goal.moment or self._goal.versions:
                        raise
                    break  # only what was acknowledged later is missing
                if segment is None or self._is_enough(reader.before):
                    break
                await self._add(segment, reader.before)
                self._note(min(1.0, segment.number / likely))
        await self._apply()

    def _is_enough(self, until: float) -> bool:
        """Return whether nothing that is wanted follows; files that were copied anew may."""
        if self._goal.moment == inf or self._goal.versions:
            return False
        return until >= self._goal.moment + LATE_SECONDS and not any(
            map(self._goal.wants, self._awaited)
        )

    def _likely_last(self) -> int:
        """Return about which segment is the last that is read."""
        generation: Generation = self._reader.generation
        if self._goal.moment == inf or self._goal.versions:
            return generation.last
        number, last, until = 0, generation.last, generation.begins
        while number < last and until < self._goal.moment + LATE_SECONDS:
            number += 1
            until = max(each.until for each in generation.segments[number])
        return max(number, 1)

    # --- copied files ---

    async def _place(self, copy: FamilyCopy) -> None:
        """Put the copies of a family in the place of what is there of it."""
        files = [file for file in copy.files if self._goal.wants(file.database)]
        if not files or not self._goal.takes(copy):
            return
        await self._apply()
        for name in [each for each in self.ends if root_of(self.parents, each) == copy.root]:
            await self._remove(name)
        for file in files:
            self._past.discard(file.database)
            self._gone.discard(file.database)
            async with aclosing(self._pieces(file)) as pieces:
                await self._files.stage(file.database, pieces)
            await self._files.place(file.database)
            self.ends[file.database] = file.end.version
            self.parents[file.database] = file.parent
        self.lost.pop(copy.root, None)
        self._catch_up = CatchUp(self._copies, dict(self.ends), (), set())

    async def _remove(self, name: str) -> None:
        await self._copies.remove_file(name)
        for known in (self.ends, self.parents, self._unsettled):
            known.pop(name, None)
        self._past.discard(name)

    async def _pieces(self, file: CopiedFile) -> AsyncGenerator[bytes, None]:
        digest = sha256()
        for part in file.parts:
            data = await trio.to_thread.run_sync(self._part, part)
            digest.update(data)
            yield data
        if digest.hexdigest() != file.digest:
            raise DataCorrupted(f"the copy of {file.database} is not the file that was copied")

    def _part(self, name: str) -> bytes:
        try:
            return decompress(self._reader.load(name))
        except ZlibError as error:
            raise DataCorrupted(f"{name} cannot be decoded", detail=str(error)) from error

    # --- records ---

    async def _add(self, segment: Segment, before: float) -> None:
        for copy in segment.copies:
            self._awaited.discard(copy.root)
            await self._place(copy)
        self._awaited.update(segment.lost)
        for root in segment.lost:
            if before < self._goal.moment:
                self.lost.setdefault(root, before)
        for name in segment.removed:
            self._awaited.discard(name)
            self._gone.add(name)
            is_over = before < segment.until <= self._goal.moment
            if before < self._goal.moment and not is_over:
                self.removed[name] = before
        for changes in segment.changes:
            if self._goal.wants(changes.database) and changes.database not in self._past:
                await self._add_changes(changes)
        if self._waiting_bytes >= APPLIED_AT_ONCE_BYTES:
            await self._apply()

    async def _add_changes(self, changes: Changes) -> None:
        name = changes.database
        records = list(takewhile(partial(self._goal.has, name), changes.records))
        if len(records) < len(changes.records):
            self._past.add(name)
        if name in self._gone and (records or not changes.records):
            await self._come_back(changes)
        if name not in self.ends:
            if not self._can_begin(changes):
                self._past.add(name)
                return
            self.parents[name] = changes.parent
            self.ends[name] = changes.version
            if changes.parent is not None:
                self._wait(Branch(name, changes.parent, changes.version))
        if records:
            self._wait(Records([Group(name, records)]))
            self.ends[name] = records[-1][0]
            size = sum(len(data) for _, data in records)
            self._waiting_bytes += size
            self._unsettled[name] = self._unsettled.get(name, 0) + size

    async def _come_back(self, changes: Changes) -> None:
        """Make way for another database of a name, unless it is the one whose file was gone."""
        name, first = changes.database, changes.records[:1]
        self._gone.discard(name)
        if name in self.ends:
            await self._apply()
            is_same = self.parents[name] == changes.parent
            if first and is_same:
                async with self._copies.hold_whole(name, may_make=True) as log:
                    is_same = await log.read(first[0][0] - 1, 1) == first
            if not is_same:
                await self._remove(name)
                self._catch_up = CatchUp(self._copies, dict(self.ends), (), set())

    def _can_begin(self, changes: Changes) -> bool:
        """Return whether what these changes follow is there: nothing, or a version of a parent."""
        if changes.parent is None:
            return changes.version == 0
        return self.ends.get(changes.parent, -1) >= changes.version

    def _wait(self, body: Branch | Records) -> None:
        self._waiting.append(Whole(0, 0, Entry(FORMAT, 0, "", body)))

    async def _apply(self) -> None:
        """Write what waits; make checkpoints of what would take long to replay."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        await self._catch_up.apply(waiting)
        if self._catch_up.missing:
            name = min(self._catch_up.missing)
            raise DataCorrupted(
                f"{name} cannot be made of {self.parents.get(name)}, whose copied history does not"
                " reach back to where it begins",
                hint="Restore a later moment: the next generation has its file.",
            )
        for name, size in list(self._unsettled.items()):
            if size >= CHECKPOINT_LOG_BYTES:
                async with self._copies.hold_whole(name, may_make=False) as log:
                    await save_newest(log)
                del self._unsettled[name]

    def explain_lost(self, root: str) -> str:
        return (
            f"the log of {root} was cut after {shown(self.lost[root])}, before it was copied, and"
            " its files were not copied again until that moment"
        )

    def __repr__(self) -> str:
        return f"{self._files!r}, made of {self._reader!r}"
