"""Opens a data file again and again, and each time another read of the disk fails.

Run as a program under the recorder: the arguments are a folder with files, and the folder to open a
copy of them in. Prints a line for each read that failed, with the outcome: `read` if it was tried
again with success, else the class of the error. Then all reads fail, once and again.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import trio

from qserver.durability.branch_files import open_with_parents
from qserver.durability.recovery import recover
from qserver.errors import QserverError
from tests.durability.histories import entries_of
from tests.powerloss.journal import CONTROL, Control

OPENED: Final = "trial.qserver"
READS_MAX: Final = 2000


def main() -> None:
    template, root = (Path(each) for each in sys.argv[1:])
    control = Control(Path(os.environ[CONTROL]))
    expected = trio.run(contents, fresh(template, root))
    for number in range(1, READS_MAX):
        path = fresh(template, root)
        before = control.get("refused")
        control.set(fail_read=number)
        outcome = outcome_of(path, expected)
        control.set()
        if control.get("refused") == before:
            break
        if trio.run(contents, path) != expected:
            outcome += " LOST"
        sys.stdout.write(f"{outcome}\n")
    path = fresh(template, root)
    control.set(read_errno=errno.EIO)
    sys.stdout.write(f"all: {outcome_of(path, expected)}, {outcome_of(path, expected)}\n")
    control.set()
    sys.stdout.write(f"again: {outcome_of(path, expected)}\n")


def outcome_of(path: Path, expected: object) -> str:
    try:
        return "read" if trio.run(contents, path) == expected else "OTHER"
    except QserverError as error:
        return type(error).__name__


def fresh(template: Path, root: Path) -> Path:
    shutil.rmtree(root / "data", ignore_errors=True)
    shutil.copytree(template, root / "data")
    return root / "data" / OPENED


async def contents(path: Path) -> object:
    async with open_with_parents(path) as opened:
        snapshot = (await recover(opened.log, 1)).snapshot
        return snapshot.version, entries_of(snapshot)


if __name__ == "__main__":
    main()
