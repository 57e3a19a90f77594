"""Says of a data folder that its files are copies of a replicated log, and of which one.

A server without that log must not write them: it would go another way than the log.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qserver.durability.data_folder import SUFFIX
from qserver.durability.files import beside, new_file, publish_file
from qserver.errors import DataInUse

COPY_FILE: Final = "qserver.copy"


def check_is_no_copy(folder: Path) -> None:
    """Raise DataInUse if the files of a folder belong to a replicated log."""
    if copy_of(folder) is not None:
        raise DataInUse(
            f"the files in {folder} are copies of a replicated log",
            hint="Set QSERVER_LOG to that log, or make a folder of its own from it with"
            " qserver backup --log.",
        )


def mark_as_copy(folder: Path, log: str) -> None:
    """Make an empty folder a copy of a log, or see that it is one; otherwise raise DataInUse."""
    marked = copy_of(folder)
    if marked == log:
        return
    if marked is not None:
        raise DataInUse(
            f"the files in {folder} are copies of another replicated log",
            detail=f"of {marked}, and not of {log}",
            hint="Name the log that they are of, or another folder.",
        )
    if any(folder.glob(f"*{SUFFIX}")):
        raise DataInUse(
            f"{folder} has databases that are not in the replicated log",
            hint="Name an empty folder; or bring the databases into the log with"
            " qserver restore FOLDER --log, and then name an empty folder.",
        )
    path = folder / COPY_FILE
    unfinished = beside(path, ".new")
    unfinished.unlink(missing_ok=True)
    new_file(unfinished)
    unfinished.write_text(f"{log}\n")
    publish_file(unfinished, path)


def copy_of(folder: Path) -> str | None:
    """Return the log whose copies a folder has; None if it has databases of its own."""
    try:
        return (folder / COPY_FILE).read_text().strip()
    except FileNotFoundError:
        return None
