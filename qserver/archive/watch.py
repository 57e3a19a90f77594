"""Finds what is new in a data folder: the records behind where each database's copy ends.

    files ── look: has it changed? ──► records behind its end ──► changes ── saved ──► new ends

A look begins with a time. If all files could be read to their ends, what was acknowledged before
that time was found. Ends move only when what was found is saved (`confirm`), so after any failure
the same is found again: the log keeps it.

A copy cannot go on where the log no longer has what follows, or has something else there. Then the
family of that database is `lost`, and needs new copies of its files.

    first record is not the next one          the log was cut: no history, or longer than that away
    the log ends before the copy              an older file was put in place
    another record where the copy ends        the same, or a crash took back what was not synced

The server may make, rename and remove databases meanwhile. A branch is told by its file, and is
found only with the version of its parent at which it begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from qserver.archive.segments import Changes, End, FamilyCopy, State
from qserver.durability.data_folder import SUFFIX, DataFolder
from qserver.durability.live_log import LiveLog, LiveRecords, Look
from qserver.durability.port import StoredRecord
from qserver.durability.records import decode_time
from qserver.errors import DataCorrupted, LogFailed, QserverError

UNKNOWN: Final = End(0, 0, 0.0)


class Found(msgspec.Struct):
    """What one look has found."""

    is_all: bool = True
    """Whether that is everything there was when the look began."""
    changes: list[Changes] = []
    removed: list[str] = []
    lost: dict[str, str] = {}
    """By the first database of a family: why."""
    troubles: dict[str, QserverError] = {}
    """By database: why it could not be read."""
    ends: dict[str, End] = {}
    looks: dict[str, Look] = {}

    def __bool__(self) -> bool:
        return bool(self.changes or self.removed or self.lost)


class Watch:
    """Every call blocks, and is made by one thread at a time."""

    def __init__(self, folder: Path, state: State) -> None:
        """`state`: of the databases that were copied."""
        self._files = DataFolder(folder)
        self.ends = dict(state.ends)
        self.parents = dict(state.parents)
        self.lost = set(state.lost)
        """The first databases of families that are not looked at."""
        self._logs: dict[str, LiveLog] = {}
        self._looks: dict[str, Look] = {}
        self._empty: dict[str, Look | None] = {}
        """Files that had not begun, and how they looked."""
        self._proven: set[str] = set()
        """Databases whose end was compared with their file."""

    def look(self, most: int) -> Found:
        """Look at all files; stop at about so many bytes of records."""
        found = Found()
        names = self._files.names()
        known = self.ends.keys() | self.parents.keys() | self.lost
        found.removed = sorted(known - set(names))
        self._meet(names, found)
        left = most
        for name in sorted(self.parents.keys() & set(names), key=self._depth):
            root = self.root_of(name)
            if root in self.lost or root in found.lost:
                continue
            if left <= 0:
                found.is_all = False
                break
            try:
                left -= self._look_at(name, left, found)
            except (LogFailed, DataCorrupted) as error:
                if self._files.file_of(name).exists():
                    found.troubles[name] = error
                    found.is_all = False
            except QserverError as error:  # it changes too fast
                found.troubles[name] = error
                found.is_all = False
        if found.lost:
            self._leave_out(found)
        return found

    def confirm(self, found: Found) -> None:
        """Go on behind what was found: it is saved."""
        for name in found.removed:
            for known in (self.ends, self.parents, self._logs, self._looks):
                known.pop(name, None)
            self._proven.discard(name)
            self.lost.discard(name)
        self.ends.update(found.ends)
        self._looks.update(found.looks)
        self._proven.update(found.ends)
        self.lost.update(found.lost)

    def copied(self, copy: FamilyCopy) -> None:
        """Go on with a family behind new copies of its files, made by this process."""
        for name in [each for each in self.parents if self.root_of(each) == copy.root]:
            for known in (self.ends, self.parents, self._looks):
                known.pop(name, None)
            self._proven.discard(name)
        for file in copy.files:
            self.ends[file.database] = file.end
            self.parents[file.database] = file.parent
            self._proven.add(file.database)
        self.lost.discard(copy.root)

    def state_behind(self, found: Found) -> State:
        """Return what is so when what was found is saved."""
        lost = (self.lost | found.lost.keys()) - set(found.removed)
        ends = {**self.ends, **found.ends}
        kept = [name for name in ends if name not in found.removed]
        return State(
            {name: ends[name] for name in kept},
            {name: self.parents[name] for name in kept},
            sorted(lost),
        )

    def root_of(self, name: str) -> str:
        return self._line(name)[-1]

    def _line(self, name: str) -> list[str]:
        """Return a database, its parent, and so on."""
        line = [name]
        while (parent := self.parents.get(line[-1])) is not None and parent not in line:
            line.append(parent)
        return line

    def _depth(self, name: str) -> tuple[int, str]:
        return len(self._line(name)), name

    def _log(self, name: str) -> LiveLog:
        if name not in self._logs:
            self._logs[name] = LiveLog(self._files.file_of(name))
        return self._logs[name]

    def _meet(self, names: Iterable[str], found: Found) -> None:
        """Learn of what new files are branches."""
        for name in names:
            if name in self.parents:
                continue
            look = self._log(name).look()
            if look is not None and look == self._empty.get(name):
                continue
            try:
                beginning = self._log(name).beginning()
            except QserverError as error:
                if self._files.file_of(name).exists():
                    found.troubles[name] = error
                    found.is_all = False
                continue
            if beginning is None:
                self._empty[name] = look if look is not None and look.is_settled else None
            else:
                self.parents[name] = beginning.parent

    def _look_at(self, name: str, most: int, found: Found) -> int:
        """Add what is new in one file; return how many bytes of records that is."""
        log = self._log(name)
        look = log.look()
        if look is None or (name in self.ends and look == self._looks.get(name)):
            return 0
        end, parent = self.ends.get(name), None
        if end is None:
            beginning = log.beginning()
            if beginning is None:
                return 0  # it has taken the place of the file that was there
            base, end = beginning.base, UNKNOWN
            if base is not None:
                above = found.ends.get(base.parent) or self.ends.get(base.parent)
                if above is None or above.version < base.version:
                    found.is_all = found.is_all and base.parent not in self.parents
                    return 0  # made a moment ago: the next look has that version of its parent
                parent, end = base.parent, End(base.version, 0, 0.0)
        live = log.read(end.version, most)
        reason = self._loss(name, end, live)
        if reason is not None:
            found.lost[self.root_of(name)] = f"{name}: {reason}"
            return 0
        new = self._checked(name, end, live.records)
        if live.records or name not in self.ends:
            found.changes.append(Changes(name, parent, end.version, live.records))
        found.ends[name] = new
        if live.is_all and look.is_settled:
            found.looks[name] = look
        elif not live.is_all:
            found.is_all = False
        return sum(len(data) for _, data in live.records)

    def _loss(self, name: str, end: End, live: LiveRecords) -> str | None:
        """Return why the copy of a log cannot go on; None if it can."""
        if live.last < end.version:
            return f"its log ends with version {live.last}, and {end.version} was copied"
        if live.before and end.checksum and _checksum(live.before) != end.checksum:
            return f"version {end.version} is not the one that was copied"
        if live.records:
            if live.records[0][0] != end.version + 1:
                return f"versions {end.version + 1} to {live.records[0][0] - 1} are forgotten"
        elif live.last > end.version:
            return f"versions {end.version + 1} to {live.last} are forgotten"
        if live.before is None and end.time and name not in self._proven:
            at = live.checkpoint
            if at is None or (at.version, at.time) != (end.version, end.time):
                return f"version {end.version}, up to which it was copied, is forgotten"
        return None

    def _checked(self, name: str, end: End, records: list[StoredRecord]) -> End:
        """Return where the copy ends behind these records, each of which is what it should be."""
        for version, data in records:
            if version != end.version + 1:
                raise DataCorrupted(
                    f"{name}{SUFFIX} has version {version} where {end.version + 1} must follow",
                    hint="Stop the server and run qserver check.",
                )
            end = End(version, _checksum(data), decode_time(data))
        return end

    def _leave_out(self, found: Found) -> None:
        """Take families that are lost out of what was found."""
        found.changes = [
            each for each in found.changes if self.root_of(each.database) not in found.lost
        ]
        for name in [each for each in found.ends if self.root_of(each) in found.lost]:
            del found.ends[name]
            found.looks.pop(name, None)

    def __repr__(self) -> str:
        return f"a watch of {len(self.ends)} databases in {self._files!r}"


def _checksum(record: bytes) -> int:
    return int.from_bytes(record[:4], "big")
