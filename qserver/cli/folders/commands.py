"""`qserver backup`, `restore` and `check`: the order of their work on each file.

    backup     folder ── copied while in use ──► target.unfinished ── checked ──► target
    restore    backup ── copied ── checked ──► folder, which was empty; the control database last
    check      folder, which nobody else uses

A backup gets its name when it is complete. Each database in it is consistent by itself, and the
control database in it lists only databases that the backup holds, see `backup`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Final

import trio

from qserver.cli.folders.backup import Backup, FileMissing, find_missing
from qserver.cli.folders.checking import checked, counted, sizes_of, sound, with_progress
from qserver.cli.folders.log_commands import check_log, copy_log, rescue, restore_into_log
from qserver.cli.folders.log_nodes import log_address
from qserver.config import IN_MEMORY, load
from qserver.control.plane import CONTROL
from qserver.durability.branch_files import ParentMissing
from qserver.durability.check import Report
from qserver.durability.data_folder import SUFFIX, DataFolder
from qserver.durability.files import remove_files, sync
from qserver.durability.folder import LOCK_FILE, FolderLock, lock_folder
from qserver.durability.restoring import restore
from qserver.durability.sqlite_errors import name_instead
from qserver.errors import (
    DataCorrupted,
    DataInUse,
    DataUnknown,
    InvalidRequest,
    LogFailed,
    QserverError,
)


def run_backup(options: argparse.Namespace) -> int:
    target = Path(options.target)
    source = target if options.log else _data_folder(options)
    if not options.log:
        _names(source)
    _check_new(target)
    if _is_inside(target, source):
        raise InvalidRequest(
            f"{target} is in the data folder itself",
            hint="Name a target elsewhere, best on another disk: who loses the folder keeps it.",
        )
    unfinished = target.with_name(f"{target.name}.unfinished")
    _check_new(unfinished)
    try:
        with _errors_named(unfinished, source, target):
            if options.log:
                reports = copy_log(log_address(options), unfinished)
            else:
                reports = _copy_all(source, unfinished)
            unfinished.rename(target)
            sync(target.parent)
    except BaseException:
        rmtree(unfinished, ignore_errors=True)
        raise
    rows = sum(sum(report.rows.values()) for report in reports.values())
    sys.stdout.write(
        f"Copied and checked {counted(len(reports))} with {rows:,} rows to {target}.\n"
    )
    return 0


def run_restore(options: argparse.Namespace) -> int:
    source = Path(options.backup)
    names = _names(source)
    if options.log:
        with lock_folder(source, _now()):
            restore_into_log(log_address(options), source, names)
        sys.stdout.write(f"Checked and restored {counted(len(names))} in the log.\n")
        return 0
    folder = _data_folder(options)
    if _is_inside(folder, source):
        raise InvalidRequest(f"{folder} is in the backup itself", hint="Name a folder elsewhere.")
    with _locked_empty(folder):
        put: list[Path] = []
        try:
            for name, _ in with_progress(sizes_of(source, sorted(names, key=_control_last))):
                _restore_with_parents(source, folder, name, put)
            for path, called in find_missing(source).items():
                raise FileMissing(path, called)
        except BaseException:
            remove_files(put)
            raise
    sys.stdout.write(f"Restored and checked {counted(len(names))} in {folder}.\n")
    return 0


def run_check(options: argparse.Namespace) -> int:
    if options.log:
        return check_log(log_address(options))
    folder = _data_folder(options)
    names = _names(folder)
    damaged = unread = 0
    with lock_folder(folder, _now()):
        for name, note in with_progress(sizes_of(folder, names)):
            found = checked(DataFolder(folder).file_of(name), note)
            sys.stdout.write(f"{name}: {found.text}\n")
            damaged += found.is_damaged
            unread += found.is_unread
        missing = _missing(folder)
    for error in missing:
        sys.stdout.write(f"{error.message}. {error.hint}\n")
    if damaged:
        sys.stderr.write(
            f"qserver: {damaged} of {counted(len(names))} damaged.\n"
            "Keep the files as they are, and restore a backup into another folder.\n"
        )
    if unread:
        sys.stderr.write(
            f"qserver: {unread} of {counted(len(names))} could not be read.\n"
            "That need not be damage: look for disk errors in the system's log, and check again.\n"
        )
    if missing:
        sys.stderr.write(f"qserver: {counted(len(missing))} without a file.\n")
    return 1 if damaged or unread or missing else 0


def _missing(folder: Path) -> list[FileMissing]:
    """What has no file, if the control database can tell."""
    try:
        return [FileMissing(path, called) for path, called in find_missing(folder).items()]
    except QserverError:  # which its own check has said
        return []


def _restore_with_parents(source: Path, folder: Path, name: str, put: list[Path]) -> None:
    """Restore a database; those whose pages it shares come before it."""
    target = DataFolder(folder).file_of(name)
    if target in put:
        return
    while True:
        try:
            trio.run(restore, DataFolder(source).file_of(name), target)
            put.append(target)
            return
        except ParentMissing as missing:
            if missing.parent not in DataFolder(source).names():
                raise
            _restore_with_parents(source, folder, missing.parent, put)


def run_cluster(options: argparse.Namespace) -> int:
    folder = _data_folder(options)
    _names(folder)
    with lock_folder(folder, _now()):
        if not rescue(log_address(options), folder, options.database, is_confirmed=options.yes):
            return 1
    sys.stdout.write(
        f"The stream of {options.database} begins anew with the files in {folder}.\n"
        "On other machines remove the files of it and of its branches: they are loaded again.\n"
    )
    return 0


COMMANDS: Final = {
    "backup": run_backup,
    "restore": run_restore,
    "check": run_check,
    "cluster": run_cluster,
}

# --- files ---------------------------------------------------------------------------------------


def _copy_all(source: Path, unfinished: Path) -> dict[str, Report]:
    """Copy, check and sync all databases."""

    def named(names: list[str]) -> Iterator[str]:
        for name, _ in with_progress(sizes_of(source, names)):
            yield name

    names = Backup(source, unfinished).copy(named)
    reports: dict[str, Report] = {}
    for name, note in with_progress(sizes_of(unfinished, names)):
        reports[name] = sound(DataFolder(unfinished).file_of(name), note)
    sync(unfinished)
    return reports


def _data_folder(options: argparse.Namespace) -> Path:
    """The folder of the flag, else the one that `qserver serve` would use."""
    flags: Mapping[str, str] = {} if options.data is None else {"data": options.data}
    folder = load(os.environ, flags).data
    if folder == IN_MEMORY:
        raise InvalidRequest("what is in memory has no files", hint="Name a folder with --data.")
    return Path(folder)


def _names(folder: Path) -> list[str]:
    """The databases in a folder; raises if it is not a data folder."""
    names = DataFolder(folder).names()
    if CONTROL not in names:
        raise InvalidRequest(
            f"{folder} is not a data folder: it has no {CONTROL}{SUFFIX}",
            hint="Name the folder that qserver serve was given, or a backup of it.",
        )
    return names


@contextmanager
def _locked_empty(folder: Path) -> Iterator[FolderLock]:
    """Lock the folder, made if absent; raises unless it is empty."""
    with lock_folder(folder, _now()) as lock:
        there = sorted(each.name for each in folder.iterdir() if each.name != LOCK_FILE)
        if there:
            raise DataInUse(
                f"{folder} is not empty: it holds {', '.join(there[:3])}",
                hint="Name another folder, or move away what is in it.",
            )
        yield lock


def _check_new(path: Path) -> None:
    if path.exists():
        raise DataInUse(f"{path} exists already", hint="Name another target, or remove it.")


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve() != folder.resolve() and path.resolve().is_relative_to(folder.resolve())


@contextmanager
def _errors_named(unfinished: Path, source: Path, target: Path) -> Iterator[None]:
    """Let errors name what is copied, if it is damaged, or else the target."""
    try:
        yield
    except QserverError as error:
        is_damage = isinstance(error, DataCorrupted | DataUnknown)
        name_instead(error, unfinished, source if is_damage else target)
        raise
    except OSError as error:
        raise LogFailed(
            f"{target} cannot be written: {error.strerror or error}",
            hint="Name a place that can be written and has room.",
        ) from error


# --- order, progress, text -----------------------------------------------------------------------


def _control_last(name: str) -> tuple[bool, str]:
    return name == CONTROL, name


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
