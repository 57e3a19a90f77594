"""The continuous backup of a data folder: one task sends segments, another copies whole files.

    files ── watch ──► segments of the generation ─────────────► the target
      └───── copied when a generation is to begin, or a log was cut ──► the target

Only reads are done in the data folder, but for the status. The server does not know of it: a target
that is away, slow or full changes nothing for it. Its log keeps what was not saved, as far as
history goes back; who is away for longer finds the log cut, and copies those files anew.

A new generation is copied while the segments of the old one go on. It counts when its manifest is
there, and then the old one still gets all that was acknowledged before the copies were complete. So
the moments that can be restored have no hole, whenever this process ends.

At the start the newest generation is gone on with: what a file has is compared with where its copy
ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, inf
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import trio

from qserver.archive.basing import FamilyCopier, families_in
from qserver.archive.layout import (
    FORMAT,
    Manifest,
    complete,
    encode_manifest,
    generations_in,
    manifest_name,
    new_generation,
    outdated,
    segment_name,
    shown,
    strangers_in,
)
from qserver.archive.limits import BACKUP_IDLE_SECONDS, BACKUP_SEGMENT_BYTES
from qserver.archive.listed import CONTROL
from qserver.archive.objects import MARK, MARK_TEXT, Objects, TargetAway, is_ours
from qserver.archive.owner import Ownership
from qserver.archive.reading import Reader, state_of
from qserver.archive.segments import FORMAT as SEGMENT_FORMAT
from qserver.archive.segments import FamilyCopy, Indexed, Segment, digest_of, encode_segment
from qserver.archive.status import BackupStatus, StatusFile
from qserver.archive.watch import Found, Watch
from qserver.durability.data_folder import DataFolder
from qserver.errors import DataCorrupted, DataInUse, QserverError

STATE_SEGMENTS: Final = 64
"""One segment of so many says where all databases end, for the next start."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.5, 30.0
"""Between attempts to save an object; each pause is twice as long as the one before."""
LISTED_SECONDS: Final = 3600.0
"""How often the target is listed, to find what is outdated: a bucket asks money for that."""
STOP_PAUSE_SECONDS: Final = 0.1
"""Between looks when all is to end, and files are still being copied anew."""
COPY_PAUSE_SECONDS, COPY_PAUSE_SECONDS_MAX = 5.0, 300.0
"""The same for copies of files that failed."""
COPY_SHARE: Final = 10
"""A family is copied anew only after so many times as long as its last copy took."""

Result = TypeVar("Result")


class Options(msgspec.Struct, frozen=True):
    every_seconds: float
    keep_seconds: float
    base_seconds: float


class Stream(msgspec.Struct):
    """The generation that gets segments."""

    generation: str
    begins: float
    watch: Watch
    digest: str
    """That of its manifest, or of its last segment."""
    number: int = 0
    until: float = 0.0
    """That of the last segment."""
    seen: float = 0.0
    """Up to when nothing is missing; no segment says so while nothing is written."""
    is_behind: bool = True
    """Whether the last segment may have more than what was there at its time."""
    since_state: int = STATE_SEGMENTS
    """Segments since one that has the state: the first of a process has it."""
    index: list[Indexed] = []
    """Of the segments from the last on that has the state."""


class Ready(msgspec.Struct, frozen=True):
    """A generation whose manifest is saved."""

    manifest: Manifest
    digest: str


class Continuous:
    def __init__(
        self,
        folder: Path,
        objects: Objects,
        status: StatusFile,
        options: Options,
        now: Callable[[], float],
        chance: Callable[[], str],
        report: Callable[[str], None],
        made_by: str,
    ) -> None:
        """`chance` returns some digits; `report` tells people what happens, in a line."""
        self._folder = folder
        self._objects = objects
        self._status = status
        self._options = options
        self._now = now
        self._chance = chance
        self._report = report
        self._made_by = made_by
        self._copier = FamilyCopier(folder, self._save_file, now)
        self._folder_id = status.folder_id or chance()
        self._owner = Ownership(objects, chance(), self._folder_id, made_by, options.every_seconds)
        self._stream: Stream | None = None
        self._ready: Ready | None = None
        """The generation that comes next."""
        self._copies: list[FamilyCopy] = []
        """New copies of families that were lost."""
        self._may_copy_again: dict[str, float] = {}
        self._listed_at = -inf
        self._news = trio.Event()
        """Wakes the task that copies."""
        self._ends = trio.Event()
        self._until = self._saved_at = 0.0
        self._bytes_saved = 0
        self._troubles: dict[str, str] = {}
        """What does not get on, and why."""

    def stop(self) -> None:
        """End when what was written until now is saved."""
        self._ends.set()

    async def run(self) -> None:
        """Go on until `stop`. Raises TargetAway if the target cannot be reached at the start."""
        await self.begin()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._copy)
            await self._send()
            nursery.cancel_scope.cancel()
        self._note()
        if "target" not in self._troubles:
            await _in_thread(self._owner.leave)

    async def begin(self) -> None:
        """See whether the target is ours, and take up what is there."""
        if not await _in_thread(is_ours, self._objects):
            strangers = strangers_in(await _in_thread(self._objects.keys))
            if strangers:
                raise DataInUse(
                    f"{self._objects.place} has other things in it: {strangers[0]}",
                    hint="Name an empty place, or one that has a continuous backup.",
                )
            await _in_thread(self._objects.save, MARK, MARK_TEXT)
        was_ours = await _in_thread(self._owner.was_ours, self._now())
        await self._go_on()
        if not was_ours and self._stream is not None:
            self._check_is_related(self._stream.watch)
        self._note()  # the next process of this folder knows itself by that
        await _in_thread(self._owner.take, self._now())

    def _check_is_related(self, watch: Watch) -> None:
        """Raise DataInUse if the target has databases, and none of them is in the folder."""
        known = watch.ends.keys() - {CONTROL}
        here = set(DataFolder(self._folder).names()) - {CONTROL}
        if known and here and not known & here:
            raise DataInUse(
                f"{self._objects.place} has the backup of other databases",
                hint="Name an empty place: each data folder has its own.",
            )

    async def _go_on(self) -> None:
        """Take up the newest generation, if it is whole."""
        counting = complete(generations_in(await _in_thread(self._objects.keys)))
        if not counting:
            return
        having = [each for each in counting if each.segments]
        newest, last = (having or counting)[-1], counting[-1]
        try:
            if newest.missing:
                raise DataCorrupted(f"segment {newest.missing[0]} of {newest.name} is missing")
            reader = Reader(self._objects, newest)
            last_one = await _in_thread(reader.position)
            watch = Watch(self._folder, last_one.state)
            self._until = last_one.until
            self._stream = Stream(
                newest.name,
                newest.begins,
                watch,
                last_one.digest,
                last_one.number,
                last_one.until,
                index=last_one.indexed,
            )
            if last is not newest:  # a process ended before it went over to that one
                self._ready = Ready(*await _in_thread(Reader(self._objects, last).manifest))
        except DataCorrupted as error:
            self._report(f"{error.message}: a new generation begins")
            return
        self._report(f"going on with {newest.name} behind {shown(self._until)}")

    # --- segments ---

    async def _send(self) -> None:
        while True:
            began = trio.current_time()
            is_last = self._ends.is_set()
            is_all = await self.send()
            if is_last and (self._troubles or (is_all and not self._is_copied_anew())):
                return
            if is_last:
                await trio.sleep(STOP_PAUSE_SECONDS)
            elif is_all or self._troubles:
                pause = self._options.every_seconds - (trio.current_time() - began)
                with trio.move_on_after(max(pause, 0.0)):
                    await self._ends.wait()
                await trio.lowlevel.checkpoint()

    async def send(self) -> bool:
        """Save a segment of what is new; True if that is all there is."""
        if self._ready is not None:
            await self._begin(self._ready)
        is_all = self._stream is None or await self._send_some(self._stream)
        self._note()
        return is_all

    def _is_copied_anew(self) -> bool:
        """Return whether files are being copied: what a server cuts at its end is known again."""
        return self._stream is not None and bool(self._stream.watch.lost)

    async def _send_some(self, stream: Stream, *, must: bool = False) -> bool:
        """Save a segment if there is something for it; True if that is all there is."""
        copies, self._copies = self._copies, []
        for copy in copies:
            stream.watch.copied(copy)
        looked = self._now()
        found = await _in_thread(stream.watch.look, BACKUP_SEGMENT_BYTES)
        for name in [each for each in self._troubles if each.startswith("read ")]:
            del self._troubles[name]
        for name, error in found.troubles.items():
            self._trouble(f"read {name}", error)
        if (found.lost or found.removed) and stream.seen > stream.until:
            # It was all there until then: no moment before that is in doubt.
            await self._save_segment(stream, Found(), copies, stream.seen)
            copies = []
        until = max(looked, stream.until) if found.is_all else stream.until
        is_idle = until < stream.until + BACKUP_IDLE_SECONDS and not stream.is_behind
        if found or copies or must or not is_idle or self._ends.is_set():
            is_first = stream.until <= stream.begins < until
            await self._save_segment(stream, found, copies, until)
            if is_first:  # now it has what older ones were kept for
                self._listed_at = -inf
                self._news.set()
            stream.watch.confirm(found)
            stream.is_behind = not found.is_all
            for name, why in found.lost.items():
                self._report(f"the files of {name} are copied anew, because the log was cut: {why}")
            if found.lost:
                self._news.set()
        stream.seen = until
        self._until = max(self._until, until)
        return found.is_all

    async def _save_segment(
        self, stream: Stream, found: Found, copies: list[FamilyCopy], until: float
    ) -> None:
        has_state = stream.since_state >= STATE_SEGMENTS
        segment = Segment(
            SEGMENT_FORMAT,
            stream.generation,
            stream.number + 1,
            stream.digest,
            until,
            found.changes,
            found.removed,
            list(found.lost),
            copies,
            stream.watch.state_behind(found) if has_state else None,
            stream.index if has_state else None,
        )
        data = await _in_thread(encode_segment, segment)
        digest = digest_of(data)
        await self._save(segment_name(stream.generation, segment.number, until, digest), data)
        stream.digest, stream.until, stream.number = digest, until, segment.number
        stream.since_state = 1 if has_state else stream.since_state + 1
        stream.index = [*([] if has_state else stream.index), segment.indexed(digest)]

    async def _begin(self, ready: Ready) -> None:
        """Send to the new generation, when the old one has all up to where the new one begins."""
        manifest, old = ready.manifest, self._stream
        while old is not None and old.until < manifest.begins:
            if not await self._send_some(old, must=True) and self._troubles:
                break  # a file that cannot be read shall not keep the others
        watch = Watch(self._folder, state_of(manifest))
        for copy in manifest.families:
            watch.copied(copy)
        self._stream = Stream(
            manifest.generation, manifest.begins, watch, ready.digest, until=manifest.begins
        )
        self._ready, self._copies = None, []  # copies that are parts of the old one
        self._until = max(self._until, manifest.begins)
        self._news.set()

    # --- copies of files ---

    async def _copy(self) -> None:
        pause = COPY_PAUSE_SECONDS
        while True:
            self._news = trio.Event()
            try:
                due = await self.copy()
                self._troubles.pop("copies", None)
                pause = COPY_PAUSE_SECONDS
            except QserverError as error:
                self._trouble("copies", error)
                due, pause = pause, min(2 * pause, COPY_PAUSE_SECONDS_MAX)
            with trio.move_on_after(due):
                await self._news.wait()

    async def copy(self) -> float:
        """Copy files, remove old generations; return in how many seconds more is due."""
        stream = self._stream
        if self._ready is not None:
            return COPY_PAUSE_SECONDS
        age = 0.0 if stream is None else self._now() - stream.begins
        if stream is None or age >= self._options.base_seconds:
            await self._begin_generation()
            return COPY_PAUSE_SECONDS
        pauses = []
        for root in sorted(stream.watch.lost):
            left = self._may_copy_again.get(root, 0.0) - trio.current_time()
            if left > 0:
                pauses.append(left)
            elif all(copy.root != root for copy in self._copies):
                await self._copy_again(stream, root)
        is_listed = trio.current_time() >= self._listed_at + LISTED_SECONDS
        if is_listed and not await self._remove_outdated(stream):
            self._report(f"{stream.generation} is not in the target any more: a new one begins")
            await self._begin_generation()
            return COPY_PAUSE_SECONDS
        return min([self._options.base_seconds - age, COPY_PAUSE_SECONDS_MAX, *pauses])

    async def _begin_generation(self) -> None:
        name = new_generation(self._now(), self._chance())
        began, size = trio.current_time(), self._bytes_saved
        copies = []
        for root, members in (await _in_thread(families_in, self._folder)).items():
            copy = await self._copier.copy(name, root, members)
            if copy is not None:
                copies.append(copy)
        begins = ceil(1000 * max((copy.time for copy in copies), default=self._now())) / 1000
        manifest = Manifest(FORMAT, name, begins, self._made_by, copies)
        data = encode_manifest(manifest)
        await self._save(manifest_name(name, begins, digest_of(data)), data)
        files, took = sum(len(copy.files) for copy in copies), trio.current_time() - began
        self._report(
            f"{name}: {files} files copied and checked, {self._bytes_saved - size:,} bytes saved,"
            f" {took:.1f} s; any moment from {shown(begins)} on can be restored"
        )
        self._ready = Ready(manifest, digest_of(data))

    async def _copy_again(self, stream: Stream, root: str) -> None:
        began = trio.current_time()
        members = (await _in_thread(families_in, self._folder)).get(root, [])
        copy = await self._copier.copy(stream.generation, root, members) if members else None
        took = trio.current_time() - began
        self._may_copy_again[root] = trio.current_time() + COPY_SHARE * took
        if copy is not None and stream is self._stream:
            self._copies.append(copy)

    async def _remove_outdated(self, stream: Stream) -> bool:
        """Remove what nobody needs; False if the generation that gets segments is not there."""
        self._listed_at = trio.current_time()
        keys = await _in_thread(self._objects.keys)
        if MARK not in {key.name for key in keys}:
            raise TargetAway(
                f"{self._objects.place} has no {MARK} any more",
                hint="Is its disk mounted? If somebody has emptied it, start the backup anew.",
            )
        generations = [each for each in generations_in(keys) if each.name <= stream.generation]
        if all(each.name != stream.generation for each in complete(generations)):
            return False
        since = self._now() - self._options.keep_seconds
        await _in_thread(self._owner.check, self._now())
        for generation in outdated(generations, since):
            names = [name for name in generation.keys if name != generation.manifest]
            if generation.manifest:  # without it nobody begins to read the rest
                await _in_thread(self._objects.remove, [generation.manifest])
            await _in_thread(self._objects.remove, names)
            self._report(f"removed {generation.name}: newer generations have what is kept")
        return True

    # --- the target, and what is said of it ---

    async def _save_file(self, name: str, data: bytes) -> None:
        await self._save(name, data, is_file=True)

    async def _save(self, name: str, data: bytes, *, is_file: bool = False) -> None:
        """Save an object, however long the target is away; a part of a file counts for nothing yet.

        Raises DataInUse if another process has taken over.
        """
        pause, began = PAUSE_SECONDS, trio.current_time()
        while True:
            try:
                if not is_file:
                    await _in_thread(self._owner.check, self._now())
                await _in_thread(self._objects.save, name, data)
            except TargetAway as error:
                self._trouble("target", error)
            else:
                break
            self._note()
            await trio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
        if self._troubles.pop("target", None) is not None:
            away = trio.current_time() - began
            self._report(f"the target is there again, after {away:.0f} s; nothing is lost")
            self._news.set()  # what copies may have met the same
        self._saved_at = self._now()
        self._bytes_saved += len(data)

    def _trouble(self, what: str, error: QserverError) -> None:
        """Tell of what does not get on, once."""
        text = f"{error.message}. {error.hint or ''}".strip()
        if text not in self._troubles.values():
            self._report(text)
        self._troubles[what] = text

    def _note(self) -> None:
        self._status.write(self.status())

    def status(self) -> BackupStatus:
        stream = self._stream
        return BackupStatus(
            self._objects.place,
            self._status.process,
            self._now(),
            0.0 if stream is None else self._until,
            self._saved_at,
            "" if stream is None else stream.generation,
            0.0 if stream is None else stream.begins,
            0 if stream is None else stream.number,
            self._bytes_saved,
            [] if stream is None else sorted(stream.watch.lost),
            next(iter(self._troubles.values()), None),
            self._folder_id,
        )

    def __repr__(self) -> str:
        return f"the continuous backup of {self._folder} to {self._objects!r}"


async def _in_thread(call: Callable[..., Result], *arguments: object) -> Result:
    """Make a call that blocks; who is cancelled does not wait for its end."""
    return await trio.to_thread.run_sync(partial(call, *arguments), abandon_on_cancel=True)
