"""The server as a process of its own: started, watched, and killed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
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

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.said: list[str] = []
        self.url: str | None = None
        self.has_spoken = trio.Event()
        """Either the address is known, or the process has ended."""

    def kill(self) -> None:
        self.process.kill()

    @property
    def bugs(self) -> list[str]:
        return [line for line in self.said if any(word in line for word in _BUGS)]

    async def listen(self) -> None:
        """Take down what it says, to the end: a full pipe would stop it."""
        assert self.process.stderr is not None
        kept = b""
        async for piece in self.process.stderr:
            *lines, kept = (kept + piece).split(b"\n")
            for line in lines:
                self.said = [*self.said, line.decode(errors="replace")][-SAID_MAX:]
                found = _ADDRESS.search(line)
                if found is not None and self.url is None:
                    self.url = found.group().decode()
                    self.has_spoken.set()
        await self.process.wait()
        self.has_spoken.set()


@asynccontextmanager
async def running_server(
    folder: Path, die: str | None = None, bug: str | None = None
) -> AsyncIterator[ServerProcess]:
    """A server on this folder; it is dead when the block ends, and all that it said is known."""
    arguments = ["--die", die] if die is not None else []
    arguments += ["--bug", bug] if bug is not None else []
    command = [sys.executable, "-m", "tests.torture.launcher", *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    clean.pop("PORT", None)
    process = await trio.lowlevel.open_process(
        [*command, "--port", "0", "--data", str(folder)],
        cwd=ROOT,
        env={**clean, "QSERVER_API_KEY": KEY},
        stderr=PIPE,
    )
    server = ServerProcess(process)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.listen)
        try:
            yield server
        finally:
            process.kill()
