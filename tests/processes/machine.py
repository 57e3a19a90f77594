"""`qserver serve` with several processes: which of them is which, and how each comes to its end.

    supervisor, the leader of a session ─┬─ process 0      found by their names, which they set:
                                         ├─ process 1      `qserver 0`, `qserver 1`, …
                                         └─ process 2

Nothing is asked of the server for this, so it works while processes come and go. It needs /proc.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final, Self

import trio

from qserver.cluster import supervisor
from qserver.control.owners import Owners
from tests.forked import Forked
from tests.patience import PATIENCE_SECONDS
from tests.processes.wire import Lost, Wire

KEY: Final = "svc_k_processes0123456789abcdef"
PROCESSES: Final = 3
PAUSE_SECONDS: Final = 0.01
PORTS: Final = (20_000, 30_000)
"""Below those that Linux gives to clients."""
BUGS: Final = ("Traceback", "met a bug", "internal error")
"""What a server must never say, whatever happens to it."""


def endless() -> None:
    """However often processes die, the supervisor goes on."""
    supervisor.PROCESS_ENDS_MAX = 1_000_000  # type: ignore[attr-defined]


async def until(holds: Callable[[], object], otherwise: str) -> None:
    """Look again and again until it holds."""
    with trio.move_on_after(PATIENCE_SECONDS):
        while True:
            if holds():
                return
            await trio.sleep(PAUSE_SECONDS)
    raise AssertionError(otherwise)


def port_of_no_client() -> int:
    """A free port that the system gives to no client.

    One that asks again and again for a server which is away could get the port that it asks for,
    and be connected with itself; then the server could not have it.
    """
    while True:
        port = SystemRandom().randrange(*PORTS)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


class Machine:
    """One data folder and one port; a supervisor and its processes, again and again."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        processes: int = PROCESSES,
        prepare: Callable[[], None] | None = endless,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = port_of_no_client()
        self.count = processes
        self._prepare = prepare
        self.settings = dict(settings or {})
        self._supervisor: Forked | None = None
        self._connections: list[Wire] = []

    # --- its life ---

    def launch(self, processes: int | None = None) -> None:
        """Start it, and do not wait for it."""
        self.count = processes or self.count
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "QSERVER_DATA_DIR": str(self.data),
            "QSERVER_API_KEY": KEY,
            "QSERVER_HOST": "127.0.0.1",
            "QSERVER_PROCESSES": str(self.count),
            "PORT": str(self.port),
            "QSERVER_DRAIN_TIMEOUT_S": "60",
            **self.settings,
        }
        with (self.folder / "output").open("ab") as output:
            self._supervisor = Forked(
                ["serve"], self.folder, environment, output.fileno(), self._prepare
            )

    async def start(self, processes: int | None = None) -> None:
        self.launch(processes)
        await self.wait_until_ready()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Serve during the block; it must end well."""
        try:
            await self.start()
            yield self
            assert await self.stop() == 0, self.output
            assert self.bugs == []
        finally:
            self.kill()

    async def wait_until_ready(self) -> None:
        with trio.move_on_after(PATIENCE_SECONDS):
            while not await self._is_ready():
                assert self.supervisor.poll() is None, f"it ended:\n{self.output}"
                await trio.sleep(PAUSE_SECONDS)
            return
        raise AssertionError(f"it is not ready:\n{self.output}")

    async def _is_ready(self) -> bool:
        async with self.connected() as wire:
            try:
                return (await wire.ask("GET", "/ready")).status == 200
            except Lost:
                return False

    async def ended(self) -> int:
        """Wait until all of them have ended; return the exit code."""
        await until(lambda: self.supervisor.poll() is not None, "the supervisor does not end")
        await until(lambda: not self.members(), "a process does not end")
        code = self.supervisor.poll()
        assert code is not None
        return code

    async def stop(self) -> int:
        """Ask it to end; return the exit code."""
        self.supervisor.send_signal(signal.SIGTERM)
        return await self.ended()

    def kill(self) -> None:
        """Whatever they are doing: nothing outlives its tests."""
        if self._supervisor is None:
            return
        self._supervisor.kill()
        self._supervisor.wait()
        for process in self.members():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    # --- who is who ---

    @property
    def supervisor(self) -> Forked:
        assert self._supervisor is not None, "it was started"
        return self._supervisor

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    @property
    def bugs(self) -> list[str]:
        """What it said of bugs, each with the lines around it."""
        lines = self.output.splitlines()
        found = [at for at, line in enumerate(lines) if any(bug in line for bug in BUGS)]
        return ["\n".join(lines[max(0, at - 2) : at + 60]) for at in found]

    def members(self) -> list[int]:
        """The processes of the supervisor's session that live, without itself."""
        session = self.supervisor.pid
        return [pid for pid, of in _sessions() if of == session != pid]

    def numbers(self) -> dict[int, int]:
        """Process ids by number, of those that serve or are about to."""
        found = {}
        for process in self.members():
            with suppress(OSError):
                name = Path(f"/proc/{process}/comm").read_text().split()
                if name[0] == "qserver":  # otherwise it was forked just now
                    found[int(name[1])] = process
        return found

    async def process(self, number: int) -> int:
        """The id of a process, which may be starting."""
        await until(lambda: number in self.numbers(), f"there is no process {number}")
        return self.numbers()[number]

    async def signal(self, number: int, order: signal.Signals) -> int:
        process = await self.process(number)
        with suppress(ProcessLookupError):
            os.kill(process, order)
        return process

    async def kill_process(self, number: int) -> None:
        """Kill a process, and wait until it is gone."""
        process = await self.signal(number, signal.SIGKILL)
        await until(lambda: process not in self.members(), f"process {number} does not end")

    def owner_of(self, family: str) -> int:
        return Owners(0, self.count).owner_of(family)

    # --- how it is talked to ---

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connected(self, key: str = KEY) -> Wire:
        return Wire(self.port, key)

    async def make_databases(self, count: int, prefix: str = "d") -> dict[str, int]:
        """Make databases; return their names with the numbers of the processes that own them."""
        made = {}
        async with self.connected() as wire:
            for number in range(count):
                record = await wire.made("/v1/databases", name=f"{prefix}{number}")
                made[record["name"]] = self.owner_of(record["id"])
        return made

    def __repr__(self) -> str:
        return f"a machine with {self.numbers()}"


def memory_bytes(process: int) -> int:
    """What it has of the machine's memory for itself alone."""
    shared = ("Private_Clean", "Private_Dirty")
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(shared))


def descriptors(process: int) -> list[str]:
    """What it has open, as the kernel names it."""
    found = []
    for each in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            found.append(str(each.readlink()))
    return found


def connections(process: int) -> int:
    """How many connections of clients it has open."""
    lines = Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]
    listening = "0A"
    of_clients = {each[9] for each in map(str.split, lines) if each[3] != listening}
    return len(of_clients.intersection(_sockets_of(process)))


def _sessions() -> Iterator[tuple[int, int]]:
    """The processes that live, each with its session."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            threads = int(fields[17])  # one that has ended may have others, which end more slowly
            if fields[0] != "Z" or threads > 1:
                yield int(folder.name), int(fields[3])


def _sockets_of(process: int) -> list[str]:
    with suppress(OSError):
        return [each[8:-1] for each in descriptors(process) if each.startswith("socket:[")]
    return []
