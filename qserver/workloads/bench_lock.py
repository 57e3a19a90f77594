"""Runs one benchmark at a time: two would measure each other."""

from __future__ import annotations

from typing import Final

from qserver.engine.world import World
from qserver.errors import AlreadyExists
from qserver.limits import SHARDS_DEFAULT
from qserver.workloads.measuring import BenchReport, run_workload

# The defaults: long enough to compare, short enough to wait for.
WORKLOAD: Final = "mixed"
DURATION_MS: Final = 1000
CLIENTS: Final = 8
SEED: Final = 1


class Bench:
    """Runs workloads, and refuses a second one while one runs."""

    def __init__(self) -> None:
        self._running: str | None = None

    async def run(
        self,
        workload: str = WORKLOAD,
        *,
        world: World,
        duration_ms: int = DURATION_MS,
        clients: int = CLIENTS,
        seed: int = SEED,
        shards: int = SHARDS_DEFAULT,
    ) -> BenchReport:
        """See `run_workload`; raises AlreadyExists while another one runs."""
        if self._running is not None:
            raise AlreadyExists(
                f"a benchmark is running: {self._running}",
                hint="Only one runs at a time. Try again when it is over, in a few seconds.",
            )
        self._running = workload
        try:
            return await run_workload(
                workload,
                duration_ms=duration_ms,
                clients=clients,
                seed=seed,
                world=world,
                shards=shards,
            )
        finally:
            self._running = None

    def __repr__(self) -> str:
        return f"a bench that runs {self._running}" if self._running else "a bench that is free"
