"""The supervisor with real processes, in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import pytest

from qserver.cluster.supervisor import supervise
from qserver.limits import PROCESS_ENDS_MAX
from tests.children import fork, wait
from tests.patience import PATIENCE_SECONDS, eventually


class Supervised:
    """A forked supervisor; what it and its processes write goes to a file."""

    def __init__(self, output: Path, run: Callable[[int, int], int]) -> None:
        self.output = output
        output.touch()

        def supervise_into_the_file() -> int:
            signal.alarm(int(PATIENCE_SECONDS))
            with output.open("ab") as file:
                for number in (1, 2):
                    os.dup2(file.fileno(), number)
            sys.stderr = os.fdopen(2, "w")  # not the one that pytest reads
            return supervise(1, run, say)

        self.id = fork(supervise_into_the_file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.id, signal.SIGKILL)
        with suppress(ChildProcessError):
            self.wait()

    def wait(self) -> int:
        """Return its exit code."""
        return wait(self.id)

    def is_pending(self, number: int) -> bool:
        """Return whether a signal waits for it."""
        status = Path(f"/proc/{self.id}/status").read_text()
        return bool(int(status.partition("ShdPnd:")[2].split()[0], 16) >> (number - 1) & 1)


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


@contextmanager
def ignored(number: signal.Signals) -> Iterator[None]:
    """Ignore a signal, as a process that a script begins in the background ignores SIGINT."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.half
def test_ends_are_seen_though_whoever_began_it_ignored_ends(tmp_path: Path) -> None:
    with ignored(signal.SIGCHLD):
        supervisor = Supervised(tmp_path / "output", lambda number, alive: 3)
    with supervisor:
        assert supervisor.wait() == 1
    said = supervisor.output.read_text()
    assert said.count("with exit code 3: it begins again") == PROCESS_ENDS_MAX - 1, said


@pytest.mark.half
def test_a_process_that_is_interrupted_says_nothing(tmp_path: Path) -> None:
    def run(number: int, alive: int) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            say("it runs")
            os.read(alive, 1)
        except KeyboardInterrupt as interrupt:  # as a nursery raises it
            raise BaseExceptionGroup("some", [interrupt]) from None
        return 0

    with ignored(signal.SIGINT):
        supervisor = Supervised(tmp_path / "output", run)
    with supervisor:
        eventually(supervisor.output.read_text, "it does not run")
        os.kill(supervisor.id, signal.SIGTERM)
        eventually(lambda: not supervisor.is_pending(signal.SIGTERM), "it does not stop")
        os.kill(supervisor.id, signal.SIGTERM)
        assert supervisor.wait() == 0, "it did as it was told"
    assert supervisor.output.read_text() == "it runs\n"
