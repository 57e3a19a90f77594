"""Starts the processes of a cluster, says how far it is, and stops them in order.

log nodes ─► they agree ─► nodes ─► all are ready ─► until a signal, or all nodes have ended
a signal  ─► nodes end, drained ─► log nodes end          a second one: all are killed
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from qserver.cli.nodes.process import ClusterProcess
from qserver.errors import LogFailed

PAUSE_SECONDS: Final = 0.05
READY_SECONDS_MAX: Final = 120.0
"""How long a process may take until it is ready."""
Say = Callable[[str], None]
IsReady = Callable[[], Awaitable[bool]]


class StepLines:
    """Lines for people: what is started, and a mark when it is ready."""

    def __init__(self, say: Say, encoding: str | None) -> None:
        self._say = say
        self._mark = "✓" if (encoding or "").lower().startswith("utf") else "+"

    def begin(self, text: str) -> None:
        self._say(f"{text}\n")

    def done(self, name: str, text: str, since: float) -> None:
        seconds = trio.current_time() - since
        self._say(f"  {self._mark} {name:<4} {text:<28} {seconds:5.1f} s\n")

    def say(self, text: str) -> None:
        self._say(f"{text}\n")


class Crew:
    """All processes of a cluster. `run` returns the exit code of the command."""

    def __init__(self, steps: StepLines) -> None:
        self._steps = steps
        self._groups: list[Sequence[ClusterProcess]] = []
        """In the order in which they were started."""
        self._stopping = trio.Event()
        self._killing = trio.Event()

    async def run(self, work: Callable[[], Awaitable[None]]) -> int:
        """Do the work, which starts groups and says when they are ready; then watch them.

        Whatever happens, no process is left.
        """
        code = 0
        async with trio.open_nursery() as nursery:
            await nursery.start(self._heed_signals)
            try:
                code = await self._until_signal(work)
            finally:
                with trio.CancelScope(shield=True):
                    await self._stop()
                nursery.cancel_scope.cancel()
        return code

    async def _until_signal(self, work: Callable[[], Awaitable[None]]) -> int:
        code = 0
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                await self._stopping.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait)
            await work()
            await self._watch()
            code = 1
            nursery.cancel_scope.cancel()
        return code

    async def _heed_signals(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for _ in signals:
                if self._stopping.is_set():
                    self._killing.set()
                self._stopping.set()

    # --- starting ---

    async def start(
        self, group: Sequence[tuple[ClusterProcess, str, IsReady]], since: float
    ) -> None:
        """Start processes, each with what is said of it; return when all are ready."""
        self._groups.append([process for process, _, _ in group])
        for process, _, _ in group:
            process.start()
        async with trio.open_nursery() as nursery:
            for process, text, is_ready in group:
                nursery.start_soon(self._ready, process, text, is_ready, since)

    async def _ready(
        self, process: ClusterProcess, text: str, is_ready: IsReady, since: float
    ) -> None:
        until = trio.current_time() + READY_SECONDS_MAX
        while not await is_ready():
            if not process.runs:
                raise LogFailed(
                    f"{process.name} has ended ({process.how_it_ended()})",
                    hint=f"It said, in {process.output}:\n{process.last_words()}",
                )
            if trio.current_time() > until:
                raise LogFailed(
                    f"{process.name} is not ready after {READY_SECONDS_MAX:g} s",
                    hint=f"It said, in {process.output}:\n{process.last_words()}",
                )
            await trio.sleep(PAUSE_SECONDS)
        self._steps.done(process.name, text, since)

    # --- running ---

    async def _watch(self) -> None:
        """Say which processes end; return when nobody is left to answer clients."""
        running = [process for group in self._groups for process in group]
        while any(process.runs for process in self._groups[-1]):
            for process in [each for each in running if not each.runs]:
                running.remove(process)
                self._steps.say(
                    f"{process.name} has ended ({process.how_it_ended()}), see {process.output}."
                )
            await trio.sleep(PAUSE_SECONDS)
        self._steps.say("All nodes have ended.")

    # --- stopping ---

    async def _stop(self) -> None:
        """Stop the groups, the last first; at once if a second signal says so."""
        while self._groups:
            group = self._groups.pop()
            running = [each for each in group if each.runs]
            if not running:
                continue
            self._steps.say(f"Stopping {', '.join(each.name for each in running)} …")
            for process in running:
                process.end()
            for process in running:
                await self._ended(process)
            for process in running:
                process.kill()

    async def _ended(self, process: ClusterProcess) -> None:
        """Return when it has ended, or is to be killed."""
        while process.runs and not self._killing.is_set():
            with trio.move_on_after(PAUSE_SECONDS):
                await self._killing.wait()


def steps_on_stdout() -> StepLines:
    def say(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    return StepLines(say, sys.stdout.encoding)


async def answers(host: str, port: int, request: bytes, expected: bytes) -> bool:
    """Return whether a server there begins its answer so."""
    with trio.move_on_after(2.0):
        try:
            async with await trio.open_tcp_stream(host, port) as stream:
                if request:
                    await stream.send_all(request)
                found = await stream.receive_some(1000)
        except (OSError, trio.BrokenResourceError):
            return False
        return bytes(found).startswith(expected)
    return False
