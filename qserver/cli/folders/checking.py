"""Checks files one after the other, with a progress bar on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import trio

from qserver.cli.shell.progress import Progress
from qserver.durability.check import Note, Report, check_file
from qserver.durability.data_folder import DataFolder
from qserver.durability.files import sync
from qserver.errors import DataCorrupted, DataUnknown, QserverError


def sound(target: Path, note: Note) -> Report:
    report = trio.run(check_file, target, note)
    if not report.is_sound:
        raise DataCorrupted(
            f"{target} is damaged: {report.problems[0]}",
            hint="There is no backup. Stop the server and run qserver check.",
        )
    sync(target)
    return report


class Checked(msgspec.Struct, frozen=True):
    text: str
    is_damaged: bool = False
    is_unread: bool = False


def checked(path: Path, note: Note) -> Checked:
    try:
        report = trio.run(check_file, path, note)
    except (DataCorrupted, DataUnknown) as error:
        return Checked(f"DAMAGED: {error.message}. {error.hint or ''}".strip(), is_damaged=True)
    except QserverError as error:  # the disk, or another process
        return Checked(f"NOT READ: {error.message}. {error.hint or ''}".strip(), is_unread=True)
    if not report.is_sound:
        return Checked("DAMAGED: " + "; ".join(report.problems), is_damaged=True)
    return Checked("\n  warning: ".join([_summary(report), *report.warnings]))


def _summary(report: Report) -> str:
    rows = sum(report.rows.values())
    text = f"ok, version {report.version}, {len(report.rows)} tables, {rows:,} rows"
    if report.checkpoints > 1:
        text += f", history with {report.checkpoints} checkpoints"
    if report.branch_of is not None:
        text += f", a branch of {report.branch_of}"
    return text


def sizes_of(folder: Path, names: list[str]) -> dict[str, int]:
    return {name: DataFolder(folder).size_bytes(name) for name in names}


def with_progress(sizes: Mapping[str, int]) -> Iterator[tuple[str, Note]]:
    """Yield the names with a progress bar on the terminal; tell it the share of each."""
    progress = Progress(sys.stderr, sum(sizes.values()), counted="databases")
    done = 0
    for count, (name, size) in enumerate(sizes.items()):

        def note(share: float, done: int = done, count: int = count, size: int = size) -> None:
            progress.update(done + int(share * size), count)

        note(0.0)
        yield name, note
        done += size
        progress.clear()


def counted(databases: int) -> str:
    return "one database" if databases == 1 else f"{databases} databases"
