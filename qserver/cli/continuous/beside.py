"""The continuous backup of `qserver serve`: a process beside it, which cannot slow it down.

It begins before the server, which may have to make the folder first, and ends after it: so what the
server wrote at last is saved, too. If the server is killed the system ends it, on Linux.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from qserver.cli.nodes.process import end_with_parent
from qserver.config import Settings

END_SECONDS: Final = 15.0


@contextmanager
def backing_up(settings: Settings) -> Iterator[None]:
    """Back the data folder up for the length of a block, if the settings say where to."""
    if settings.backup is None:
        yield
        return
    command = ["backup", "--continuous", settings.backup, "--keep-trying", "--data", settings.data]
    process = subprocess.Popen(
        [sys.executable, "-m", "qserver", *command, "--keep", f"{settings.backup_keep:.0f}s"],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"QSERVER_LOG_FORMAT": settings.log_format},  # which may be a flag's
        start_new_session=True,  # Ctrl-C is for the server, which ends this one
        preexec_fn=end_with_parent(),
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
