"""Restores a backup: the copy gets its name only after it has been checked to its last byte.

    backup ── bytes ──► data.new ── check ──► data

Existing data is never replaced, and the backup itself is only read. `cli/folders` makes backups of
files that a server is writing.
"""

from __future__ import annotations

from pathlib import Path

from qserver.durability.branch_files import open_with_parents
from qserver.durability.check import Report, check
from qserver.durability.data_file import copy_data, remove_file
from qserver.durability.files import beside, publish_file, remove_files
from qserver.durability.high_water_mark import ENDING
from qserver.durability.serial_queue import SerialQueue
from qserver.durability.sqlite_errors import explained, name_instead
from qserver.durability.thread_pool import ThreadPool
from qserver.errors import DataCorrupted, LogFailed, QserverError


async def restore(source: Path, target: Path) -> Report:
    """Copy a backup to a target that must not exist.

    Raises DataInUse if the target exists, LogFailed if it cannot be written, DataCorrupted or
    DataUnknown if the backup is not sound; then there is no target.
    """
    unfinished = beside(target, ".new")
    threads = ThreadPool()
    queue = SerialQueue(threads, target.name)
    try:
        await queue.run(lambda: copy_data(source, target, unfinished))
        async with open_with_parents(unfinished, threads) as opened:
            report = await check(opened.log, opened.own)
        if not report.is_sound:
            raise _unsound(source, report)
        # The mark of the earlier data would refuse the backup, which is older.
        await queue.run(lambda: remove_files([beside(target, ENDING)]))
        await queue.run(lambda: publish_file(unfinished, target))
    except QserverError as error:
        name_instead(error, unfinished, target if isinstance(error, LogFailed) else source)
        raise
    except OSError as error:
        raise explained(error, target) from error
    finally:
        await queue.aclose(lambda: remove_file(unfinished))
    return report


def _unsound(path: Path, report: Report) -> DataCorrupted:
    return DataCorrupted(
        f"{path} is damaged: {report.problems[0]}",
        detail="\n".join(report.problems),
        hint="Use another backup, and keep this file until you have one.",
    )
