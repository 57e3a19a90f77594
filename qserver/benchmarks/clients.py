"""Clients in a nursery: each sends, waits for the answer, counts it, and sends again.

|-- warm-up --|------------ measured ------------|
connections open, plans are made                 clients stop after their last answer

With a rate, requests are due at even intervals, and the next free client sends the next one. Its
latency counts from when it was due: a server that is too slow for the rate does not look fast.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from typing import Final

import trio

from qserver.benchmarks.report import Measured
from qserver.benchmarks.server_clock import ServerClock
from qserver.benchmarks.wire import Address, Connection
from qserver.benchmarks.workloads import Workload
from qserver.client import ConnectionFailed, ConnectionLost

WARM_UP_PART: Final = 0.2
WARM_UP_SECONDS_MAX: Final = 1.0
LAST_ANSWERS_SECONDS_MAX: Final = 60.0
STREAMS_BEGIN_SECONDS_MAX: Final = 30.0
_REPORT_SECONDS: Final = 0.25
_PAUSE_AFTER_LOSS_SECONDS: Final = 0.02
_VERSION: Final = re.compile(rb'"version": ?(\d+)')
_CODE: Final = re.compile(rb'"code": ?"(\w+)"')

Watch = Callable[[Measured, float], None]
"""Called a few times a second with the counts so far and the seconds since the start."""


class Pace:
    """When the requests of all clients are due; without a rate, each at once."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._began: float | None = None
        self._requests = 0
        self._over = trio.Event()

    async def next_due(self) -> float:
        """Wait until the next request is due, or until the end; return when it was due."""
        now = time.perf_counter()
        if self._rate is None:
            return now
        if self._began is None:
            self._began = now
        due = self._began + self._requests / self._rate
        self._requests += 1
        if due > now:
            with trio.move_on_after(due - now):
                await self._over.wait()
        return due

    def end(self) -> None:
        """No client waits any longer."""
        self._over.set()


class Load:
    def __init__(
        self, workload: Workload, address: Address, clients: int, rate: float | None = None
    ) -> None:
        self._workload = workload
        self._address = address
        self._clients = clients
        self._pace = Pace(rate)
        self._measured = Measured(workload)
        self._is_measuring = False
        self._is_over = False
        self._failure: ConnectionFailed | None = None

    async def run(self, seconds: float, watch: Watch, clock: ServerClock) -> Measured:
        started, used = time.perf_counter(), None
        async with trio.open_nursery() as nursery:
            followers = await nursery.start(self._follow_all)
            for number in range(self._clients):
                nursery.start_soon(self._client, random.Random(number), nursery.cancel_scope)
            await trio.sleep(min(seconds * WARM_UP_PART, WARM_UP_SECONDS_MAX))
            used = await clock()
            self._is_measuring = True
            started = time.perf_counter()
            while (passed := time.perf_counter() - started) < seconds:
                watch(self._measured, passed)
                await trio.sleep(min(_REPORT_SECONDS, seconds - passed))
            self._is_over = True
            self._pace.end()
            followers.cancel()
            nursery.cancel_scope.deadline = trio.current_time() + LAST_ANSWERS_SECONDS_MAX
        self._measured.seconds = time.perf_counter() - started
        self._measured.set_cpu(used, await clock())
        if self._failure is not None:
            raise self._failure
        return self._measured

    async def _follow_all(
        self, *, task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Follow the streams of the workload; they have begun when this has started."""
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                requests = await self._streams()
                connections = [Connection(self._address) for _ in requests]
                for connection, request in zip(connections, requests, strict=True):
                    nursery.start_soon(self._follow, connection, request)
                with trio.move_on_after(STREAMS_BEGIN_SECONDS_MAX):
                    for connection in connections:
                        await connection.begun.wait()
                task_status.started(scope)
                await trio.sleep_forever()

    async def _streams(self) -> Sequence[bytes]:
        """Return the requests for streams, from the version on that a first request answers."""
        if self._workload.streams is None:
            return ()
        connection = Connection(self._address)
        try:
            await connection.ask(next(self._workload.requests(random.Random(0), connection)))
        finally:
            connection.close()
        version = _VERSION.search(connection.head)
        return self._workload.streams(int(version.group(1)) if version else 0)

    async def _follow(self, connection: Connection, request: bytes) -> None:
        """Read a stream without an end; each end is an error."""
        try:
            await connection.ask(request)
            self._measured.errors[_reason(connection)] += 1
        except (ConnectionLost, ConnectionFailed) as error:
            self._measured.errors[error.message] += 1
        finally:
            connection.begun.set()
            connection.close()

    async def _client(self, chance: random.Random, scope: trio.CancelScope) -> None:
        connection = Connection(self._address)
        try:
            for request in self._workload.requests(chance, connection):
                due = await self._pace.next_due()
                if self._is_over:
                    break
                await self._ask(connection, request, due)
        except ConnectionFailed as error:
            self._failure = error
            scope.cancel()
        finally:
            connection.close()

    async def _ask(self, connection: Connection, request: bytes, due: float) -> None:
        before = connection.received_bytes
        try:
            await connection.ask(request)
        except ConnectionLost as error:
            self._count_error(error.message)
            await trio.sleep(_PAUSE_AFTER_LOSS_SECONDS)
            return
        latency = time.perf_counter() - due
        if not self._is_measuring:
            return
        if self._workload.succeeded(connection):
            self._measured.add(latency)
            self._measured.received_bytes += connection.received_bytes - before
        else:
            self._count_error(_reason(connection))

    def _count_error(self, reason: str) -> None:
        if self._is_measuring:
            self._measured.errors[reason] += 1


def _reason(connection: Connection) -> str:
    code = _CODE.search(connection.head) or _CODE.search(connection.tail)
    named = f" {code.group(1).decode()}" if code else ""
    return f"HTTP {connection.status}{named}"
