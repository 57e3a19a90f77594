"""A consistent copy of a running database, and the way back.

    running database ── its own connection ──► copy ── check
    copy ── bytes ──► data.new ── check ──► data

The copy is made by SQLite's backup through the connection that the database writes with, a piece at
a time, so commits go on and the copy holds whatever was durable when it was done: the checkpoint
and the log behind it. Nobody is given a copy that has not been read to its last byte.
"""

from __future__ import annotations

from pathlib import Path

import trio

from qserver.durability.check import Report, check
from qserver.durability.sqlite import SqliteLog, open_log
from qserver.durability.sqlite_file import (
    beside,
    copy_data,
    explained,
    publish_file,
    remove_file,
)
from qserver.durability.writer_thread import WriterThread
from qserver.errors import DataCorrupted


async def backup(log: SqliteLog, target: Path) -> Report:
    """Copy a log that is in use to a file that does not exist yet, and check the copy.

    Raises DataInUse if the target is there, LogFailed if it cannot be written, DataCorrupted
    if the copy is not sound; then there is no target.
    """
    await log.copy_to(target)
    try:
        async with await open_log(target) as copied:
            report = await check(copied)
        if not report.is_sound:
            raise _unsound(log.path, report)
    except BaseException:
        with trio.CancelScope(shield=True):
            await trio.Path(target).unlink(missing_ok=True)
        raise
    return report


async def restore(source: Path, target: Path) -> Report:
    """Put a backup in the place of data that are gone; what is there is never replaced.

    Raises as `backup` does. The backup itself is only read.
    """
    unfinished = beside(target, ".new")
    thread = WriterThread(f"restores {target.name}")
    try:
        await thread.run(lambda: copy_data(source, target, unfinished))
        async with await open_log(unfinished) as log:
            report = await check(log)
        if not report.is_sound:
            raise _unsound(source, report)
        await thread.run(lambda: publish_file(unfinished, target))
    except OSError as error:
        raise explained(error, target) from error
    finally:
        await thread.aclose(lambda: remove_file(unfinished))
    return report


def _unsound(path: Path, report: Report) -> DataCorrupted:
    return DataCorrupted(
        f"{path} is damaged: {report.problems[0]}",
        detail="\n".join(report.problems),
        hint="Use another backup, and keep this file until you have one.",
    )
