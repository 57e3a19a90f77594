"""One process of a cluster on this machine: its output is in a file, and it ends with us.

Ctrl-C in a terminal reaches all processes of a group. So each has a session of its own: `up` says
when it ends. If `up` itself is killed the system ends them, on Linux.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

_PARENT_ENDS: Final = 1
"""PR_SET_PDEATHSIG: which signal a process gets when its parent ends."""
_LINES: Final = 8


class ClusterProcess:
    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], output: Path
    ) -> None:
        self.name = name
        self.output = output
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._from = 0

    def start(self) -> None:
        """Start it. The thread must live as long as it: its end counts as that of the parent."""
        with self.output.open("ab") as output:
            self._from = output.tell()
            self._process = subprocess.Popen(
                self._command,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=end_with_parent(),
            )

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs, or before it was started."""
        return None if self._process is None else self._process.poll()

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        """Ask it to end."""
        if self.runs and self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, and wait until it has."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def how_it_ended(self) -> str:
        code = self.code
        if code is None:
            return "it runs"
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def last_words(self) -> str:
        """The last lines that it has written since it was started."""
        with self.output.open("rb") as output:
            output.seek(self._from)
            lines = output.read().decode(errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-_LINES:])

    def __repr__(self) -> str:
        return f"the process {self.name}"


def end_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)  # here, because little is safe between fork and exec

    def prepare() -> None:
        library.prctl(_PARENT_ENDS, int(signal.SIGTERM))

    return prepare
