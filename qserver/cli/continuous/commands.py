"""The commands of continuous backups: what they are given, and what they print.

backup --continuous   a data folder ─► a target, until a signal comes
backup --list         a target ─► which moments can be restored
restore               a target ─► folder.unfinished ─► folder
check                 a target: every object, and a restore into a temporary folder
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from socket import gethostname
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

import trio

from qserver import __version__
from qserver.archive.continuous import Continuous, Options
from qserver.archive.folder_objects import FolderObjects
from qserver.archive.layout import Generation, complete, ranges_of, shown
from qserver.archive.limits import (
    BACKUP_BASE_SECONDS_DEFAULT,
    BACKUP_EVERY_SECONDS_DEFAULT,
    BACKUP_KEEP_SECONDS_DEFAULT,
)
from qserver.archive.listed import CONTROL
from qserver.archive.objects import Objects
from qserver.archive.restoring import Restored, Restoring, Wanted, found_in
from qserver.archive.s3_objects import SCHEME, S3Objects
from qserver.archive.status import StatusFile
from qserver.cli.continuous.checking import check_objects
from qserver.cli.shell.progress import Progress
from qserver.config import IN_MEMORY, load
from qserver.durability.copy_mark import check_is_no_copy
from qserver.durability.data_folder import DataFolder
from qserver.durability.files import sync
from qserver.errors import DataInUse, InvalidRequest, LogFailed, QserverError, first_of

T = TypeVar("T")

TRIED_SECONDS, TRIED_SECONDS_MAX = 1.0, 60.0
"""Between attempts to begin; each pause is twice as long as the one before."""
STOP_SECONDS: Final = 10.0
"""After a signal what was written is saved, if that takes no longer."""
TOLD_SECONDS, LOGGED_SECONDS = 60.0, 3600.0
"""How often a continuous backup says how far it is: on a terminal, and in a log."""


def run_backup(options: argparse.Namespace) -> int:
    if options.lists:
        return run_list(options)
    pause = TRIED_SECONDS
    while options.keep_trying:
        try:
            return run_continuous(options)
        except QserverError as error:
            _say(f"{error.message}. {error.hint or ''}".strip())
        except Exception:
            traceback.print_exc()
        time.sleep(pause)
        pause = min(2 * pause, TRIED_SECONDS_MAX)
    return run_continuous(options)


def run_continuous(options: argparse.Namespace) -> int:
    if options.log:
        raise InvalidRequest(
            "a replicated log is on several machines already, and has no continuous backup",
            hint="Leave out --continuous: qserver backup --log makes a folder of it.",
        )
    folder = _data_folder(options)
    if CONTROL not in DataFolder(folder).names():
        raise InvalidRequest(
            f"{folder} is not a data folder: it has no {CONTROL}.qserver",
            hint="Name the folder that qserver serve was given, and start the server once.",
        )
    check_is_no_copy(folder)
    objects = objects_at(options.target, options)
    if isinstance(objects, FolderObjects) and _is_inside(Path(options.target), folder):
        raise InvalidRequest(
            f"{options.target} is in the data folder itself",
            hint="Name a target elsewhere, best on another disk: who loses the folder keeps it.",
        )
    status = StatusFile(folder, objects.place)
    every = options.every or BACKUP_EVERY_SECONDS_DEFAULT
    continuous = Continuous(
        folder,
        objects,
        status,
        Options(
            every,
            options.keep or BACKUP_KEEP_SECONDS_DEFAULT,
            options.base_every or BACKUP_BASE_SECONDS_DEFAULT,
        ),
        time.time,
        lambda: token_hex(4),
        _say,
        f"qserver {__version__}, {gethostname()}, {folder.resolve()}",
    )
    _say(f"backing up {folder} to {objects.place}, every {every:g} s")
    try:
        _run(lambda: _serve(continuous))
    finally:
        status.close()
    return 0


async def _serve(continuous: Continuous) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_tell, continuous)
        nursery.start_soon(_stop_by_signal, continuous, nursery.cancel_scope)
        await continuous.run()
        _say(f"stopped; {_far(continuous)}")
        nursery.cancel_scope.cancel()


async def _stop_by_signal(continuous: Continuous, scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(signals)
        continuous.stop()
        with trio.move_on_after(STOP_SECONDS):
            await anext(signals)
        _say(f"stopped before all was saved; {_far(continuous)}")
        scope.cancel()


async def _tell(continuous: Continuous) -> None:
    while True:
        await trio.sleep(TOLD_SECONDS if sys.stdout.isatty() else LOGGED_SECONDS)
        _say(_far(continuous))


def _far(continuous: Continuous) -> str:
    status = continuous.status()
    if not status.until:
        return "the first copy of all files is being made"
    behind = max(0.0, time.time() - status.until)
    trouble = "" if status.trouble is None else f"; {status.trouble}"
    return (
        f"saved until {shown(status.until)}, {behind:.1f} s behind;"
        f" segment {status.segments} of {status.generation}{trouble}"
    )


def _say(text: str) -> None:
    line = f"{shown(time.time())} {text}"
    if os.environ.get("QSERVER_LOG_FORMAT") == "json":
        fields = {"time": shown(time.time()), "level": "info", "kind": "backup", "message": text}
        line = json.dumps(fields)
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_list(options: argparse.Namespace) -> int:
    objects = objects_at(options.target, options)
    generations = found_in(objects)
    if options.json:
        listed = [_plain(each) for each in generations]
        ranges = [[shown(first), shown(last)] for first, last in ranges_of(generations)]
        sys.stdout.write(json.dumps({"restorable": ranges, "generations": listed}, indent=2) + "\n")
        return 0
    for each in generations:
        size = f"{each.size / 1e6:,.1f} MB"
        if not each.manifest:
            sys.stdout.write(f"{each.name}  not complete  {size}\n")
            continue
        line = f"{shown(each.begins)} to {shown(each.until)}  {len(each.segments):,} segments"
        sys.stdout.write(f"{each.name}  {line}  {size}\n")
        if each.missing:
            sys.stdout.write(
                f"  MISSING: segment {each.missing[0]}, and what follows is of no use\n"
            )
    sys.stdout.write("Any moment can be restored:\n")
    for first, last in ranges_of(generations):
        sys.stdout.write(f"  from {shown(first)} to {shown(last)}\n")
    return 0


def _plain(generation: Generation) -> dict[str, object]:
    return {
        "name": generation.name,
        "complete": bool(generation.manifest),
        "begins": shown(generation.begins) if generation.manifest else None,
        "until": shown(generation.until) if generation.manifest else None,
        "segments": len(generation.segments),
        "missing": generation.missing,
        "bytes": generation.size,
    }


def run_restore(options: argparse.Namespace) -> int:
    if options.log:
        raise InvalidRequest(
            "a continuous backup is restored into a folder",
            hint="Restore it with --data, then bring that folder into the log.",
        )
    if options.version is not None and options.database is None:
        raise InvalidRequest(
            "a version is that of one database", hint="Name it with --database, or use --at."
        )
    objects = objects_at(options.backup, options)
    folder = _data_folder(options)
    if isinstance(objects, FolderObjects) and _is_inside(folder, Path(options.backup)):
        raise InvalidRequest(
            f"{folder} is in the backup itself", hint="Name a folder elsewhere with --data."
        )
    wanted = Wanted(options.at, options.database, options.version)
    began = time.monotonic()
    with _new_folder(folder) as unfinished:
        restored = _run(lambda: Restoring(objects, unfinished, _progress).run(wanted))
    for warning in restored.warnings:
        sys.stderr.write(f"qserver: warning: {warning}\n")
    _print_restored(restored, folder, time.monotonic() - began)
    return 0


def _print_restored(restored: Restored, folder: Path, took: float) -> None:
    for name, called in sorted(restored.called.items(), key=lambda item: item[1]):
        report = restored.reports[name]
        rows = sum(report.rows.values())
        sys.stdout.write(f"{called} ({name}): version {report.version}, {rows:,} rows\n")
    moment = "the newest moment" if restored.moment == inf else shown(restored.moment)
    count = len(restored.called)
    databases = "one database" if count == 1 else f"{count} databases"
    sys.stdout.write(
        f"Restored and checked {databases} as of {moment} in {folder}, {took:.1f} s.\n"
    )


def run_check(options: argparse.Namespace) -> int:
    if options.log or options.data:
        raise InvalidRequest(
            "a continuous backup is checked by itself", hint="Leave out --data and --log."
        )
    objects = objects_at(options.backup, options)
    problems = 0
    for generation in complete(found_in(objects)):
        found = _run(partial(check_objects, objects, generation, _progress(generation.name)))
        sys.stdout.write(f"{generation.name}: {found.text}\n")
        problems += not found.is_sound
    with TemporaryDirectory(prefix="qserver-check-") as temporary:
        data = Path(temporary) / "data"
        try:
            restored = _run(lambda: Restoring(objects, data, _progress).run(Wanted()))
        except QserverError as error:
            sys.stdout.write(f"the newest moment: CANNOT BE RESTORED: {error.message}\n")
            problems += 1
        else:
            rows = sum(sum(each.rows.values()) for each in restored.reports.values())
            count = len(restored.called)
            sys.stdout.write(f"the newest moment: restored, {count} databases, {rows:,} rows\n")
    if problems:
        sys.stderr.write(
            f"qserver: {problems} problems in {objects.place}.\n"
            "A new generation heals that: start qserver backup --continuous with --base-every 1s"
            " once, and stop it when it says that files are copied.\n"
        )
    return 1 if problems else 0


COMMANDS: Final = {"backup": run_backup, "restore": run_restore, "check": run_check}


def objects_at(target: str, options: argparse.Namespace) -> Objects:
    endpoint = options.endpoint_url
    if not target:
        raise InvalidRequest("it names no place", hint="Name a folder, or s3://bucket/prefix.")
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise InvalidRequest(
            f"{endpoint!r} is no endpoint",
            hint="An endpoint begins with http:// or https://, as http://minio:9000 does.",
        )
    if target.startswith(SCHEME):
        return S3Objects(target, os.environ, endpoint)
    if "://" in target:
        raise InvalidRequest(
            f"{target} is no place for backups", hint="Name a folder, or s3://bucket/prefix."
        )
    if endpoint:
        raise InvalidRequest("a folder has no endpoint", hint="Leave out --endpoint-url.")
    return FolderObjects(Path(target))


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Have a folder to fill, which gets its name at the end."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataInUse(
            f"{folder} is not empty", hint="Name another folder, or move away what is in it."
        )
    unfinished = folder.resolve().with_name(f"{folder.resolve().name}.unfinished")
    if unfinished.exists():
        raise DataInUse(f"{unfinished} exists already", hint="Remove it, or name another folder.")
    new = [each for each in unfinished.parents if not each.exists()]
    try:
        yield unfinished
        if folder.exists():
            folder.rmdir()
        unfinished.rename(folder)
        sync(folder.resolve().parent)
    except OSError as error:
        raise LogFailed(
            f"{folder} cannot be written: {error.strerror or error}",
            hint="Name a place that can be written and has room.",
        ) from error
    finally:
        rmtree(unfinished, ignore_errors=True)
        if not folder.exists():
            for each in new:
                with suppress(OSError):  # somebody else has put something there
                    each.rmdir()


def _data_folder(options: argparse.Namespace) -> Path:
    folder = load(os.environ, {} if options.data is None else {"data": options.data}).data
    if folder == IN_MEMORY:
        raise InvalidRequest("what is in memory has no files", hint="Name a folder with --data.")
    return Path(folder)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _progress(what: str) -> Callable[[float], None]:
    progress = Progress(sys.stderr, None, counted=what)

    def note(share: float) -> None:
        progress.update(0, 1, share)
        if share >= 1.0:
            progress.clear()

    return note


def _run(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return trio.run(work)
    except ExceptionGroup as group:
        raise first_of(group) from group
