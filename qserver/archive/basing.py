"""Copies the files of a family, a database with its branches, into objects.

    files ── copied while in use ──► a temporary folder ── checked ──► parts, compressed ──► objects

The same as in a backup (`cli/folders/backup.py`): parents are copied before their branches, because
of borrowed records, and a branch counts that was there before the first file was copied and still
is after the last one; its parent has held its pages all that time. The other branches are made of
their parent when their first segment comes. Every copy is checked to its last row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final
from zlib import compress

import trio

from qserver.archive.layout import file_name
from qserver.archive.segments import LEVEL, CopiedFile, End, FamilyCopy, digest_of
from qserver.durability.check import check_file
from qserver.durability.column_numbers import POSITION
from qserver.durability.data_folder import DataFolder
from qserver.durability.live_copy import copy_live
from qserver.durability.live_log import LiveLog
from qserver.durability.records import decode_time
from qserver.durability.sqlite import open_log
from qserver.durability.sqlite_errors import name_instead
from qserver.errors import DataCorrupted, LogFailed, QserverError

PART_BYTES: Final = 8 << 20

Save = Callable[[str, bytes], Awaitable[None]]


def families_in(folder: Path) -> dict[str, list[str]]:
    """Return the databases of a folder by the first of each family, parents before branches."""
    files = DataFolder(folder)
    parents = parents_in(files, files.names())

    def line(name: str) -> list[str]:
        above = parents.get(name)
        return [*line(above), name] if above is not None else [name]

    families: dict[str, list[str]] = {}
    for each in sorted(map(line, parents), key=lambda line: (len(line), line)):
        families.setdefault(each[0], []).append(each[-1])
    return families


def parents_in(files: DataFolder, names: Iterable[str]) -> dict[str, str | None]:
    """Return of what databases are branches, of those that are there and have begun."""
    parents: dict[str, str | None] = {}
    for name in names:
        try:
            beginning = LiveLog(files.file_of(name)).beginning()
        except LogFailed:
            if files.file_of(name).exists():
                raise
            continue
        if beginning is not None:
            parents[name] = beginning.parent
    return parents


class FamilyCopier:
    def __init__(self, folder: Path, save: Save, now: Callable[[], float]) -> None:
        self._files = DataFolder(folder)
        self._save = save
        self._now = now

    async def copy(self, generation: str, root: str, members: list[str]) -> FamilyCopy | None:
        """Copy the files of a family into objects of a generation; None if it is gone.

        Raises DataCorrupted for a damaged file, DataInUse for one that changes too fast, LogFailed
        if the temporary folder has no room.
        """
        try:
            with TemporaryDirectory(prefix="qserver-backup-") as temporary:
                try:
                    return await self._copied(Path(temporary), generation, root, members)
                except QserverError as error:
                    name_instead(error, Path(temporary), Path(gettempdir()))  # another each time
                    raise
        except OSError as error:
            raise LogFailed(
                f"files cannot be copied in {gettempdir()}: {error.strerror or error}",
                hint="It needs room for the files of the largest family; the variable TMPDIR names"
                " another folder.",
            ) from error

    async def _copied(
        self, folder: Path, generation: str, root: str, members: list[str]
    ) -> FamilyCopy | None:
        copies = DataFolder(folder)
        await trio.to_thread.run_sync(self._copy_files, copies, members)
        time = self._now()
        there = [
            name
            for name in members
            if copies.file_of(name).exists() and self._files.file_of(name).exists()
        ]
        parents = parents_in(copies, there)
        if root not in parents:
            return None
        files = []
        for name, parent in parents.items():
            if parent is not None and parent not in parents:
                continue
            end = await self._settled(copies.file_of(name))
            files.append(await self._saved(generation, copies, name, parent, end))
        return FamilyCopy(root, time, files)

    def _copy_files(self, copies: DataFolder, members: list[str]) -> None:
        for name in members:
            source = self._files.file_of(name)
            try:
                copy_live(source, copies.file_of(name))
            except LogFailed:
                if source.exists():
                    raise
                copies.file_of(name).unlink(missing_ok=True)

    async def _settled(self, copy: Path) -> End:
        """Make a copy one whole file, check it; return its end.

        What it holds for branches stays: one that was not copied is made of it in a restore.
        """
        async with await open_log(copy) as log:
            if log.load([POSITION]):  # it was a copy of a replicated log
                await log.forget(0, [POSITION])
        report = await check_file(copy)
        if not report.is_sound:
            raise DataCorrupted(
                f"{self._files.file_of(copy.name.partition('.')[0])} is damaged:"
                f" {report.problems[0]}",
                hint="Stop the server and run qserver check.",
            )
        live = LiveLog(copy)
        found = live.read(live.read(0, 0).last, 0)
        if found.before:
            checksum = int.from_bytes(found.before[:4], "big")
            return End(found.last, checksum, decode_time(found.before))
        time = 0.0 if found.checkpoint is None else found.checkpoint.time
        is_there = found.checkpoint is not None and found.checkpoint.version == found.last
        return End(found.last, 0, time if is_there else 0.0)

    async def _saved(
        self, generation: str, copies: DataFolder, name: str, parent: str | None, end: End
    ) -> CopiedFile:
        digest, size, parts = sha256(), 0, list[str]()
        with copies.file_of(name).open("rb") as file:
            while data := file.read(PART_BYTES):
                digest.update(data)
                size += len(data)
                part = await trio.to_thread.run_sync(compress, data, LEVEL)
                parts.append(file_name(generation, name, len(parts), digest_of(part)))
                await self._save(parts[-1], part)
        return CopiedFile(name, parent, end, size, digest.hexdigest(), parts)

    def __repr__(self) -> str:
        return f"copies of families in {self._files!r}"
