"""Runs clients in a loop until the time is over, and reports their measurements.

    set up ─► client ×n:  operate, note the latency, yield ─► … ─► time is over ─► check

Each client has its own random generator, made from the seed and its number, so a client sends the
same requests in each run with the same seed; how many it sends may differ. Clients yield after each
operation, even if the engine answers without waiting, so that the service keeps serving others.
Nothing is cancelled at the end: every operation is finished and counted, so the check is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec
import trio

from qserver.engine.world import World
from qserver.errors import InvalidRequest
from qserver.limits import BENCH_CLIENTS_MAX, BENCH_MILLISECONDS_MAX, SHARDS_DEFAULT
from qserver.query.scratch import scratch_database
from qserver.query.sql_database import SqlDatabase
from qserver.workloads.standard import WORKLOADS, Workload


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


async def run_workload(
    name: str,
    *,
    duration_ms: int,
    clients: int,
    seed: int,
    world: World,
    shards: int = SHARDS_DEFAULT,
    clock: Callable[[], float] = trio.current_time,
) -> BenchReport:
    """Run a workload in a scratch database. `clock` counts seconds."""
    _check_arguments(name, duration_ms, clients)
    workload = WORKLOADS[name]()
    async with scratch_database(world, shards=shards) as database:
        await workload.set_up(database)
        conflicts, retries = _counts(database)
        began = clock()
        loop = _Loop(workload, database, clock, began + duration_ms / 1000)
        async with trio.open_nursery() as nursery:
            for client in range(clients):
                nursery.start_soon(loop.run, Random(f"{seed} {client}"))
        seconds = max(clock() - began, 1e-6)
        wrong = await workload.check(database)
        conflicts_after, retries_after = _counts(database)
    operations = len(loop.latencies)
    return BenchReport(
        name,
        round(seconds * 1000),
        clients,
        seed,
        operations,
        round(operations / seconds, 1),
        latency_of(loop.latencies),
        loop.commits,
        conflicts_after - conflicts,
        retries_after - retries,
        "ok" if wrong is None else wrong,
        wrong is None,
    )


class _Loop:
    """The state that the clients of one run share."""

    def __init__(
        self,
        workload: Workload,
        database: SqlDatabase,
        clock: Callable[[], float],
        end: float,
    ) -> None:
        self.workload = workload
        self.database = database
        self.clock = clock
        self.end = end
        self.latencies: list[float] = []
        self.commits = 0

    async def run(self, chance: Random) -> None:
        """Run one client: at least one operation, then until the time is over."""
        while True:
            began = self.clock()
            commits = await self.workload.operate(self.database, chance)
            ended = self.clock()
            self.latencies.append(ended - began)
            self.commits += commits
            await trio.lowlevel.checkpoint()
            if ended >= self.end:
                return


def latency_of(seconds: list[float]) -> Latency:
    """Percentiles by nearest rank: each is a latency that occurred."""
    ordered = sorted(seconds)

    def rank(percent: int) -> int:
        at = -(-percent * len(ordered) // 100) - 1
        return round(ordered[at] * 1_000_000)

    return Latency(rank(50), rank(95), rank(99), rank(100))


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
