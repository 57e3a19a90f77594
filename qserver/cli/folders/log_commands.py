"""`qserver backup --log`, `restore --log`, `check --log` and `cluster rescue`.

restore    folder ── checked ──► a claim, a base and a manifest for each family; control last
backup     bases and streams ──► target.unfinished ── checked ──► target
check      bases and streams ──► a folder for the moment ── checked
rescue     a family's files ──► its stream, begun anew
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import trio

from qserver.archive.listed import databases_in
from qserver.cli.folders.backup import FileMissing, find_missing
from qserver.cli.folders.checking import checked, sizes_of, sound, with_progress
from qserver.cli.folders.log_backup import LogBackup
from qserver.cli.folders.log_nodes import LogAddress
from qserver.control.plane import CONTROL
from qserver.durability.check import Note, Report
from qserver.durability.copy_mark import copy_of
from qserver.durability.data_folder import DataFolder
from qserver.durability.files import sync
from qserver.errors import DataInUse, InvalidRequest, QserverError
from qserver.replication.bases import decode_manifest, manifest_key
from qserver.replication.moving import (
    begin_family,
    families_of,
    read_family,
    remove_family,
    versions_of,
)
from qserver.replication.port import LogNodes


def copy_log(log: LogAddress, unfinished: Path) -> dict[str, Report]:
    """Copy, check and sync all databases of a log."""
    sizes = log.run(_sizes_of_bases)

    def named(names: list[str]) -> Iterator[str]:
        for name, _ in with_progress({name: sizes.get(name, 0) for name in names}):
            yield name

    names = LogBackup(log, unfinished).copy(named)
    reports: dict[str, Report] = {}
    for name, note in with_progress(sizes_of(unfinished, names)):
        reports[name] = sound(DataFolder(unfinished).file_of(name), note)
    sync(unfinished)
    return reports


async def _sizes_of_bases(nodes: LogNodes) -> dict[str, int]:
    values = await nodes.values(manifest_key(""))
    manifests = [decode_manifest(value.data, key) for key, value in values.items()]
    return {file.name: file.size for manifest in manifests for file in manifest.files}


# --- restore -------------------------------------------------------------------------------------


def restore_into_log(log: LogAddress, folder: Path, names: list[str]) -> None:
    """Make the databases of a folder, which nobody uses, the content of a log that has none."""
    files = _files_in(folder)
    log.run(_check_is_empty)
    for path, called in find_missing(folder).items():
        raise FileMissing(path, called)
    for name, note in with_progress(sizes_of(folder, names)):
        sound(files.file_of(name), note)
    log.run(lambda nodes: _begin_all(nodes, folder, names))


def _files_in(folder: Path) -> DataFolder:
    """Return the files of a folder, which may be those of a server with a log."""
    return DataFolder(folder, syncs_appends=copy_of(folder) is None)


async def _check_is_empty(nodes: LogNodes) -> None:
    there = await nodes.streams()
    if there:
        raise DataInUse(
            f"the log has databases already: {', '.join(there[:3])}",
            hint="Name nodes that have none. To begin again after a restore that was killed, stop"
            " the nodes and empty their folders.",
        )


async def _begin_all(nodes: LogNodes, folder: Path, names: list[str]) -> None:
    """Begin all streams, or none; that of control is the last, because a server begins with it."""
    files = _files_in(folder)
    families = await families_of(files, names)
    sizes = {root: sum(sizes_of(folder, family).values()) for root, family in families.items()}
    done: list[str] = []
    try:
        for root, note in with_progress(dict(sorted(sizes.items(), key=_control_last))):
            done.append(root)
            adding = _Shares(note, sizes[root])
            await begin_family(nodes, files, families[root], _new_name, note=adding.add)
    except BaseException:
        with trio.CancelScope(shield=True):
            for root in reversed(done):
                await remove_family(nodes, root)
        raise


class _Shares:
    """Tells the share of what was done, from bytes."""

    def __init__(self, note: Note, total: int) -> None:
        self._note = note
        self._total = max(1, total)
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        self._note(min(1.0, self._done / self._total))


def _control_last(each: tuple[str, int]) -> tuple[bool, str]:
    return each[0] == CONTROL, each[0]


def _new_name() -> str:
    return f"command-{token_hex(8)}"


# --- check ---------------------------------------------------------------------------------------


def check_log(log: LogAddress) -> int:
    """Read and check all families; return the exit code."""
    listed = _roots_listed(log)
    sizes = log.run(_sizes_of_bases)
    roots: list[str] = list(log.run(lambda nodes: nodes.streams()))
    problems = 0
    for root, note in with_progress({root: sizes.get(root, 0) for root in roots}):
        with TemporaryDirectory() as temporary:
            problems += _check_family(log, Path(temporary), root, note)
    for name in sorted(listed & _roots_listed(log) - {*roots}):
        sys.stdout.write(f"{name}: DAMAGED: the log has nothing of it.\n")
        problems += 1
    if problems:
        sys.stderr.write(f"qserver: {problems} problems in the log.\n")
    return 1 if problems else 0


def _check_family(log: LogAddress, folder: Path, root: str, note: Note) -> int:
    """Check a family as files; return how many have problems."""
    problems = 0
    try:
        names = log.run(lambda nodes: read_family(nodes, DataFolder(folder), root))
    except QserverError as error:
        sys.stdout.write(f"{root}: DAMAGED: {error.message}. {error.hint or ''}\n")
        return 1
    for name in names:
        found = checked(DataFolder(folder).file_of(name), note)
        sys.stdout.write(f"{name}: {found.text}\n")
        problems += found.is_damaged or found.is_unread
    return problems


def _roots_listed(log: LogAddress) -> set[str]:
    """Return the databases that should have a stream; none if control cannot tell."""
    with TemporaryDirectory() as temporary:
        folder = DataFolder(Path(temporary))
        try:
            log.run(lambda nodes: read_family(nodes, folder, CONTROL))
            listed = trio.run(databases_in, folder.file_of(CONTROL))
        except QserverError:  # which its own check says
            return set()
    return {name for name, each in listed.items() if each.state == "ready" and each.parent is None}


# --- rescue --------------------------------------------------------------------------------------


def rescue(log: LogAddress, folder: Path, root: str, *, is_confirmed: bool) -> bool:
    """Begin the stream of a family anew, from the files of a folder that nobody uses.

    False if that was not confirmed.
    """
    files = _files_in(folder)
    families = trio.run(families_of, files, files.names())
    if root not in families:
        raise InvalidRequest(
            f"{root} is no database without a parent in {folder}",
            hint=f"There are {', '.join(sorted(families)) or 'none'}. Branches come with theirs.",
        )
    for name, note in with_progress(sizes_of(folder, families[root])):
        sound(files.file_of(name), note)
    ours = trio.run(versions_of, files, families[root])
    theirs = _versions_in(log, root)
    for name in sorted(ours.keys() | theirs.keys()):
        mine, other = (_version(name, versions) for versions in (ours, theirs))
        sys.stderr.write(f"{name}: the file {mine}, the log {other}\n")
    if not is_confirmed and not _is_typed(root):
        return False

    async def begin(nodes: LogNodes) -> None:
        await remove_family(nodes, root)
        await begin_family(nodes, files, families[root], _new_name, keeps_position=True)

    log.run(begin)
    return True


def _versions_in(log: LogAddress, root: str) -> dict[str, int]:
    with TemporaryDirectory() as temporary:
        try:
            return log.run(lambda nodes: read_family(nodes, DataFolder(Path(temporary)), root))
        except QserverError as error:
            sys.stderr.write(f"{root}: the log cannot be read: {error.message}\n")
            return {}


def _version(name: str, versions: dict[str, int]) -> str:
    return f"ends with version {versions[name]}" if name in versions else "has nothing of it"


def _is_typed(root: str) -> bool:
    if not sys.stdin.isatty():
        raise InvalidRequest(
            "nobody is here to confirm: standard input is no terminal",
            hint="Pass --yes to do it without being asked.",
        )
    sys.stderr.write(
        f"What the log has of {root} is removed, and begins anew with the files here.\n"
        "Type its name to do that: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip() == root:
        return True
    sys.stderr.write("Nothing was done.\n")
    return False
