"""Servers that start at once: forked by a process that has imported the program for all of them.

To import it takes a second of processor time, longer than most servers of the tests live. A forked
server is the real one with the real command line, in a process, a session, an environment and with
output of its own. What has to begin with the interpreter (a library that is loaded before all
others, a module that is run by its name) starts a process with `subprocess`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection, get_context
from pathlib import Path
from signal import SIGKILL
from subprocess import TimeoutExpired
from typing import Final

from qserver.cli import main

PRELOADED: Final = [
    *("qserver.cli.serving", "qserver.cli.continuous.commands"),
    *("qserver.web.service.serving", "tests.warmed"),
]
"""What the command imports late, and what is made once in a process."""

_CONTEXT: Final = get_context("forkserver")


class Forked:
    """A process of `qserver …`. It has what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        output: int,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        """`output` is a file that it writes to, both what it says and its errors.

        `prepare`, a function of a module, is called before the command, in the process.
        """
        _CONTEXT.set_forkserver_preload(PRELOADED)
        given = connection.Connection(os.dup(output), readable=False)
        self._process = _CONTEXT.Process(
            target=_run,
            args=(list(arguments), str(folder), dict(environment), given, prepare),
            daemon=True,  # it does not outlive the tests
        )
        self._process.start()
        given.close()
        assert self._process.pid is not None
        self.pid: Final = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise TimeoutExpired("qserver", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended, and its end is on the way here
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(SIGKILL)


def _run(
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    output: connection.Connection,
    prepare: Callable[[], None] | None,
) -> None:
    """In the new process."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    output.close()
    if prepare is not None:
        prepare()
    sys.exit(main(arguments))
