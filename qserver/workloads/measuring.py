"""Runs clients in a loop until the time is over, and reports their measurements.

    set up ─► client ×n:  operate, note the latency, yield ─► … ─► time is over ─► check

Each client has its own random generator, made from the seed and its number, so a client sends the
same requests in each run with the same seed; how many it sends may differ. Clients yield after each
operation, even if the engine answers without waiting, so that the service keeps serving others.
Nothing is cancelled at the end: every operation is finished and counted, so the check is exact.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec
import trio

from qserver.engine.world import World
from qserver.errors import AlreadyExists, InvalidRequest
from qserver.limits import BENCH_CLIENTS_MAX, BENCH_MILLISECONDS_MAX, SHARDS_DEFAULT
from qserver.query.scratch import scratch_database
from qserver.query.sql_database import SqlDatabase
from qserver.workloads.histogram import Histogram
from qserver.workloads.standard import WORKLOADS, Run

# The defaults: long enough to compare, short enough to wait for.
WORKLOAD: Final = "mixed"
DURATION_MS: Final = 1000
CLIENTS: Final = 8
SEED: Final = 1


class Latency(msgspec.Struct, frozen=True):
    """Microseconds of one operation."""

    p50: int
    p95: int
    p99: int
    max: int


class BenchReport(msgspec.Struct, frozen=True):
    workload: str
    duration_ms: int
    """The actual duration."""
    clients: int
    seed: int
    operations: int
    operations_per_second: float
    latency_us: Latency
    commits: int
    conflicts: int
    retries: int
    check: str
    """The result of the check afterwards: "ok", or the problem."""
    check_ok: bool


class Bench:
    """Runs workloads, and refuses a second one while one runs: two would measure each other."""

    def __init__(self) -> None:
        self._running: str | None = None

    async def run(self, workload: str = WORKLOAD, *, world: World, **options: int) -> BenchReport:
        """See `run_workload`; raises AlreadyExists while another one runs."""
        if self._running is not None:
            raise AlreadyExists(
                f"a benchmark is running: {self._running}",
                hint="Only one runs at a time. Try again when it is over, in a few seconds.",
            )
        self._running = workload
        try:
            return await run_workload(workload, world=world, **options)
        finally:
            self._running = None

    def __repr__(self) -> str:
        return f"a bench that runs {self._running}" if self._running else "a bench that is free"


async def run_workload(
    name: str,
    *,
    world: World,
    duration_ms: int = DURATION_MS,
    clients: int = CLIENTS,
    seed: int = SEED,
    shards: int = SHARDS_DEFAULT,
) -> BenchReport:
    """Run a workload in a scratch database."""
    _check_arguments(name, duration_ms, clients)
    async with scratch_database(world, shards=shards) as database:
        run = Run(name, database)
        await run.set_up()
        conflicts, retries = _counts(database)
        began = trio.current_time()
        loop = _Loop(run, began + duration_ms / 1000)
        async with trio.open_nursery() as nursery:
            for client in range(clients):
                nursery.start_soon(loop.run_client, Random(f"{seed} {client}"))
        seconds = max(trio.current_time() - began, 1e-6)
        wrong = await run.check()
        conflicts_after, retries_after = _counts(database)
    operations = loop.histogram.count
    return BenchReport(
        name,
        round(seconds * 1000),
        clients,
        seed,
        operations,
        round(operations / seconds, 1),
        latency_of(loop.histogram),
        loop.commits,
        conflicts_after - conflicts,
        retries_after - retries,
        "ok" if wrong is None else wrong,
        wrong is None,
    )


class _Loop:
    """What the clients of one run have in common."""

    def __init__(self, run: Run, end: float) -> None:
        self._run = run
        self._end = end
        self.histogram = Histogram()
        self.commits = 0

    async def run_client(self, chance: Random) -> None:
        """Run one client: at least one operation, then until the time is over."""
        for operation in self._run.operations(chance):
            began = trio.current_time()
            commits = await self._run.operate(operation)
            ended = trio.current_time()
            self.histogram.add(ended - began)
            self.commits += commits
            await trio.lowlevel.checkpoint()
            if ended >= self._end:
                return


def latency_of(histogram: Histogram) -> Latency:
    return Latency(*(round(histogram.percentile(part) * 1e6) for part in (0.5, 0.95, 0.99, 1.0)))


def _check_arguments(name: str, duration_ms: int, clients: int) -> None:
    if name not in WORKLOADS:
        raise InvalidRequest(
            f'there is no workload "{name}"', hint=f"The workloads are {', '.join(WORKLOADS)}."
        )
    if not 1 <= duration_ms <= BENCH_MILLISECONDS_MAX:
        raise InvalidRequest(
            f"duration_ms is {duration_ms}; it may be 1 to {BENCH_MILLISECONDS_MAX}",
            hint="Ask for less; the default of a second is enough to compare.",
        )
    if not 1 <= clients <= BENCH_CLIENTS_MAX:
        raise InvalidRequest(
            f"clients is {clients}; it may be 1 to {BENCH_CLIENTS_MAX}",
            hint="For more clients, load the server from outside with `qserver bench`.",
        )


def _counts(database: SqlDatabase) -> tuple[int, int]:
    statistics = database.database.statistics()
    generation = statistics.generation
    conflicts = 0 if generation is None else generation.coordinator.conflicts
    return conflicts, statistics.gateway.retries
