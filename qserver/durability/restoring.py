"""From a backup to data: a copy that nobody is given before it has been read to its last byte.

    backup ── bytes ──► data.new ── check ──► data

What is there is never replaced, and the backup itself is only read. How a backup is made of files
that a server is writing is the command's affair, see `cli/folders`.
"""

from __future__ import annotations

from pathlib import Path

from qserver.durability.check import Report, check
from qserver.durability.files import beside, publish_file, remove_files
from qserver.durability.high_water_mark import ENDING
from qserver.durability.sqlite import open_log
from qserver.durability.sqlite_file import copy_data, explained, remove_file
from qserver.durability.writer_thread import WriterThread
from qserver.errors import DataCorrupted


async def restore(source: Path, target: Path) -> Report:
    """Put a backup in the place of data that are gone; what is there is never replaced.

    Raises DataInUse if the target is there, LogFailed if it cannot be written, DataCorrupted or
    DataUnknown if the backup is not sound; then there is no target.
    """
    unfinished = beside(target, ".new")
    thread = WriterThread(f"restores {target.name}")
    try:
        await thread.run(lambda: copy_data(source, target, unfinished))
        async with await open_log(unfinished) as log:
            report = await check(log)
        if not report.is_sound:
            raise _unsound(source, report)
        # The mark of what was there before would refuse the backup, which is older.
        await thread.run(lambda: remove_files([beside(target, ENDING)]))
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
