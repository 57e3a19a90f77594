"""A real server in a process of its own, and what it uses: CPU time, memory, threads."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

import trio

from qserver.benchmarks.target import Target
from qserver.benchmarks.wire import Address, Connection
from qserver.workloads.operations import Tables

KEY: Final = "svc_k_growth0123456789abcdef"
BATCHES: Final = 5
BATCH_CPU_SECONDS: Final = 0.25
LONG_CPU_SECONDS: Final = 1.0
"""Requests that take longer are measured twice, not BATCHES times."""
ACCOUNTS: Final = 10_000
ROWS_AT_ONCE: Final = 20_000
PIECE: Final = 1_000_000
"""A table is read in pieces of so many rows: a statement has 30 seconds."""
_ADDRESS: Final = re.compile(rb"http://[\d.:]+")

Requests = Callable[[], bytes]
"""Makes the next request."""


def status_of(process: int | str, name: str) -> int:
    """A number that Linux knows of a process; of memory in kilobytes."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


class Server(Target):
    def __init__(self, process: trio.Process, url: str) -> None:
        super().__init__(Address.of(url), KEY)
        self._process = process

    def cpu_seconds(self) -> float:
        """CPU time of all its threads, those that have ended included, to the nanosecond."""
        return time.clock_gettime((~self._process.pid << 3) | 2)  # Linux: a process's CPU clock

    def resident_bytes(self) -> int:
        return self._status("VmRSS") * 1024

    def peak_bytes(self) -> int:
        """The most that was resident since the start, or since `forget_peak`."""
        return self._status("VmHWM") * 1024

    def forget_peak(self) -> None:
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def threads(self) -> int:
        return self._status("Threads")

    def _status(self, name: str) -> int:
        return status_of(self._process.pid, name)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        connection = Connection(self.address)
        try:
            yield connection
        finally:
            connection.close()

    async def do(self, *requests: bytes) -> None:
        """Send requests one after the other."""
        async with self.connected() as connection:
            for request in requests:
                await ask(connection, request)

    async def fill(
        self, sql: str, filled: int, size: int, at_once: int = ROWS_AT_ONCE
    ) -> dict[str, float]:
        """Insert rows from one number up to another, some at a time."""
        for first in range(filled, size, at_once):
            await self.do(self.query(sql, first, min(first + at_once, size) - 1))
        return {}

    async def read_all(self, sql: str, size: int) -> dict[str, float]:
        for first in range(0, size, PIECE):
            await self.do(self.query(sql, first, first + PIECE))
        return {}

    async def make_accounts(self) -> Tables:
        """Create a table with rows to be read, and an empty one."""
        tables = Tables("growth", ACCOUNTS)
        await self.do(*map(self.query, tables.set_up()))
        return tables

    async def cpu_of(self, requests: Requests, clients: int = 1) -> float:
        """CPU seconds per request: the best of some batches, each long enough to be measured."""
        connections = [Connection(self.address) for _ in range(clients)]
        try:
            await self._batch(requests, connections, clients)  # connects, and makes the plan
            once = await self._batch(requests, connections, 2 * clients)
            batches = BATCHES if once < LONG_CPU_SECONDS else 2
            count = max(clients, round(BATCH_CPU_SECONDS / max(once, 1e-6)))
            return min([await self._batch(requests, connections, count) for _ in range(batches)])
        finally:
            for connection in connections:
                connection.close()

    async def _batch(self, requests: Requests, connections: list[Connection], count: int) -> float:
        waiting = iter(range(count))
        began = self.cpu_seconds()
        async with trio.open_nursery() as nursery:
            for connection in connections:
                nursery.start_soon(self._ask_all, connection, requests, waiting)
        return (self.cpu_seconds() - began) / count

    async def _ask_all(
        self, connection: Connection, requests: Requests, waiting: Iterator[int]
    ) -> None:
        for _ in waiting:
            await ask(connection, requests())


async def ask(connection: Connection, request: bytes) -> None:
    await connection.ask(request)
    if connection.status >= 300 or connection.head.startswith(b'{"success":false'):
        raise RuntimeError(f"HTTP {connection.status}: {connection.head.decode(errors='replace')}")


@asynccontextmanager
async def serving(folder: Path, *flags: str) -> AsyncIterator[Server]:
    """A server on a data folder; after the block it has stopped cleanly."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    clean.pop("PORT", None)
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "qserver", "serve", "--port", "0", "--data", str(folder), *flags],
        env={**clean, "QSERVER_API_KEY": KEY},
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        async with trio.open_nursery() as nursery:
            url = await nursery.start(partial(_listen, process))
            yield Server(process, url)
            process.terminate()
    finally:
        with trio.CancelScope(shield=True):
            process.terminate()
            await process.wait()


async def _listen(process: trio.Process, task_status: trio.TaskStatus[str]) -> None:
    """Find the address in what the server says; then read on, because a full pipe stops it."""
    assert process.stderr is not None
    said, is_known = b"", False
    async for piece in process.stderr:
        if not is_known:
            said += piece
            found = _ADDRESS.search(said)
            if found is not None and b"\n" in said[found.start() :]:
                is_known = True
                task_status.started(found.group().decode())
    if not is_known:
        raise RuntimeError(f"the server did not start: {said.decode(errors='replace')}")
