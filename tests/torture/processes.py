"""The server as a process of its own: forked by the nest (see `launcher`), watched, and killed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import trio

ROOT: Final = Path(__file__).parent.parent.parent
KEY: Final = "svc_k_torture0123456789abcdef"
SAID_MAX: Final = 200
_ADDRESS: Final = re.compile(rb"http://[\d.:]+")
# What a server must never say, whatever happens to it.
_BUGS: Final = ("Traceback", "met a bug", "internal error")


class ServerProcess:
    """One life of the server. It ends by being killed, mostly."""

    def __init__(self, pid: int, stderr: trio.lowlevel.FdStream) -> None:
        self._pid = pid
        self._stderr = stderr
        self._ended = trio.Event()
        self.returncode: int | None = None
        self.said: list[str] = []
        self.url: str | None = None
        self.has_spoken = trio.Event()
        """Either the address is known, or the process has ended."""

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    async def wait(self) -> None:
        await self._ended.wait()

    @property
    def bugs(self) -> list[str]:
        return [line for line in self.said if any(word in line for word in _BUGS)]

    async def listen(self) -> None:
        """Take down what it says, to the end: a full pipe would stop it."""
        kept = b""
        async with self._stderr:
            async for piece in self._stderr:
                *lines, kept = (kept + piece).split(b"\n")
                for line in lines:
                    self.said = [*self.said, line.decode(errors="replace")][-SAID_MAX:]
                    found = _ADDRESS.search(line)
                    if found is not None and self.url is None:
                        self.url = found.group().decode()
                        self.has_spoken.set()
        await self.wait()
        self.has_spoken.set()

    async def note_end(self, next_number: Callable[[], Awaitable[int]]) -> None:
        self.returncode = await next_number()
        self._ended.set()


class Nest:
    """The process that has imported the server, and forks one for each life."""

    def __init__(self, ours: socket.socket) -> None:
        self._orders = ours.dup()
        self._answers = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        self._heard = b""

    @asynccontextmanager
    async def running_server(
        self, folder: Path, die: str | None = None, bug: str | None = None
    ) -> AsyncIterator[ServerProcess]:
        """A server on this folder; it is dead when the block ends, and what it said is known."""
        arguments = ["--die", die] if die is not None else []
        arguments += ["--bug", bug] if bug is not None else []
        order = json.dumps([*arguments, "--port", "0", "--data", str(folder)])
        reading, writing = os.pipe()
        socket.send_fds(self._orders, [order.encode()], [writing])
        os.close(writing)
        server = ServerProcess(await self._next_number(), trio.lowlevel.FdStream(reading))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.note_end, self._next_number)
            nursery.start_soon(server.listen)
            try:
                yield server
            finally:
                server.kill()

    async def aclose(self) -> None:
        self._orders.close()
        await self._answers.aclose()

    async def _next_number(self) -> int:
        while b"\n" not in self._heard:
            piece = await self._answers.receive_some()
            assert piece, "the nest has died"
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return int(line)


@asynccontextmanager
async def opened_nest() -> AsyncIterator[Nest]:
    ours, theirs = socket.socketpair()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    clean.pop("PORT", None)
    async with trio.open_nursery() as nursery:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "tests.torture.launcher", "--nest", str(theirs.fileno())],
            cwd=ROOT,
            env={**clean, "QSERVER_API_KEY": KEY},
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        nursery.start_soon(process.wait)
        nest = Nest(ours)
        try:
            yield nest
        finally:
            process.kill()
            await nest.aclose()
