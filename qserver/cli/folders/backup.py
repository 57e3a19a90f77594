"""Copies a data folder that a server may be using, while databases are made and deleted.

    control ─► list of databases ─► each of them ─► control again ─► what is in both is the backup
    ready then                      copied          ready still      the rest is taken out

Each database is consistent by itself, but a branch needs pages of its parent's file, which is
copied at another moment. The parent holds these pages from before the branch is ready until after
its record is gone (see `control.branches`). So a branch that was ready before the first file was
copied, and still is after the last one, finds its pages in the copy of its parent, whenever that
was made. A branch that was made or deleted meanwhile may not, and is left out. Any other database
that was made meanwhile is copied then.

Records that a parent lends to a branch are held until the branch has no need of them. So parents
are copied before their branches: a branch that has let go of them since is whole without them.

A file that the control database does not list at all is copied as it is: who finds it there in the
folder finds it in the backup.

What is left out is taken out of the copy's records, too, as if it had been deleted there: its
record says `deleting`, which the next start finishes, and no copy holds pages for it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import trio

from qserver.archive.listed import GONE, WITH_FILES, Listed, ancestors, databases_in, mark_deleting
from qserver.control.plane import CONTROL
from qserver.durability.column_numbers import POSITION
from qserver.durability.data_folder import COMPANIONS, DataFolder
from qserver.durability.files import beside, make_folder, remove_files
from qserver.durability.kept import decode_outline, encode_outline
from qserver.durability.live_copy import copy_live
from qserver.durability.port import CheckpointParts
from qserver.durability.sqlite import open_log
from qserver.errors import DataCorrupted, LogFailed


class FileMissing(DataCorrupted):
    """The operator's fault, or the disk's: the control database lists what has no file."""

    name = "data_corrupted"

    def __init__(self, path: Path, called: str) -> None:
        super().__init__(
            f"the file of the database {called}, {path}, is not there",
            hint="Put the file back, or restore a backup into another folder.",
        )


def find_missing(folder: Path) -> dict[Path, str]:
    """Return the files that should be in a folder and are not, each with its database's name.

    The folder is only read.
    """
    files = DataFolder(folder)
    there = files.names()
    with TemporaryDirectory() as temporary:
        control = DataFolder(Path(temporary)).file_of(CONTROL)
        copy_live(files.file_of(CONTROL), control)
        listed = trio.run(databases_in, control)
    return {
        files.file_of(name): each.called
        for name, each in sorted(listed.items())
        if each.state in WITH_FILES and name not in there
    }


class Backup:
    def __init__(self, source: Path, target: Path) -> None:
        self._source = DataFolder(source)
        self._target = DataFolder(target)
        self._folder = target

    def copy(self, named: Callable[[list[str]], Iterable[str]]) -> list[str]:
        """Copy everything; return the names of what is in the backup, control first.

        `named` is given the names to be copied, and gives them back with a sign of progress.
        """
        make_folder(self._folder)
        first = self._first_list()
        stray = self._strays(first)
        wanted = [name for name in first if first[name].state in WITH_FILES]
        wanted.sort(key=lambda name: len(ancestors(first, name)))
        copied = {name for name in named([*wanted, *sorted(stray)]) if self._copied(name)}
        last = self._list(self._target.file_of(CONTROL))
        left_out: set[str] = set()
        for name, listed in last.items():
            was_ready = first.get(name, GONE).state == "ready"
            was_there = was_ready and name in copied
            if listed.state == "ready" and was_ready and not was_there:
                raise FileMissing(self._source.file_of(name), listed.called)
            if listed.state == "ready" and not was_there:
                is_late = listed.parent is None and self._copied(name)
                (copied if is_late else left_out).add(name)
            elif listed.state == "deleted" and name not in copied:
                left_out.add(name)
        listed_now = {name for name in copied if last.get(name, GONE).state in WITH_FILES}
        kept = (listed_now | (copied & stray - last.keys())) - left_out
        self._remove(set(self._target.names()) - {CONTROL} - kept)
        for name in kept:
            trio.run(let_go, self._target.file_of(name), kept)
        if left_out:
            trio.run(mark_deleting, self._target.file_of(CONTROL), left_out)
        return [CONTROL, *sorted(kept)]

    def _first_list(self) -> dict[str, Listed]:
        """Return the databases that there are before any of them is copied."""
        before = self._folder / "before"
        make_folder(before)
        try:
            return self._list(DataFolder(before).file_of(CONTROL))
        finally:
            rmtree(before)

    def _list(self, control: Path) -> dict[str, Listed]:
        """Copy the control database; return what it lists."""
        if not self._copy_file(CONTROL, control):
            raise DataCorrupted("there is no control database", hint="Restore a backup.")
        return trio.run(databases_in, control)

    def _strays(self, listed: Mapping[str, Listed]) -> set[str]:
        """Return the files that are not listed."""
        return set(self._source.names()) - {CONTROL, *listed}

    def _copied(self, name: str) -> bool:
        """Copy a database; False if it was deleted meanwhile."""
        if self._copy_file(name, self._target.file_of(name)):
            return True
        self._remove({name})
        return False

    def _copy_file(self, name: str, target: Path) -> bool:
        source = self._source.file_of(name)
        try:
            copy_live(source, target)
        except LogFailed:
            if source.exists():
                raise
            return False
        return True

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            path = self._target.file_of(name)
            remove_files(beside(path, companion) for companion in COMPANIONS)


async def let_go(path: Path, branches: set[str]) -> None:
    """Hold pages for these branches only; the next checkpoint forgets the others'.

    A copy of a replicated log's file is a file by itself then.
    """
    async with await open_log(path) as log:
        changed: list[tuple[int, CheckpointParts]] = []
        for version, outline in await log.load_outlines():
            kept = decode_outline(version, outline) if outline else None
            if kept is not None and not branches.issuperset(kept.names):
                kept.names = [name for name in kept.names if name in branches]
                kept.lent = [name for name in kept.lent if name in branches]
                changed.append((version, CheckpointParts(encode_outline(kept))))
        if changed:
            await log.change_checkpoints([], changed)
        if log.load([POSITION]):  # the file was a copy of a replicated log
            await log.forget(0, [POSITION])
