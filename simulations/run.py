"""One run: a seed, a workload and a profile in; a verdict and a trace out.

set up ─► chaos: clients work while faults strike ─► heal: faults cease, all clients must finish
    ─► nothing left over ─► power cycle that loses every unsynced byte ─► audit ─► checkers
    ─► nothing left over, in the process or on the disk
"""

from __future__ import annotations

from typing import Final

import trio

from simulations.checkers.versions import version_regressions
from simulations.disk import Disk
from simulations.faults import PROFILES, Faults, make_profile
from simulations.judging import conclude
from simulations.nodes import NODES, simulate_nodes
from simulations.replicated import REPLICATED, simulate_replicated
from simulations.results import Plan, Result
from simulations.service import Service
from simulations.trace import Trace
from simulations.workloads import WORKLOADS, Workload
from simulations.world import ACTOR, SimulatedWorld

CHAOS_SECONDS: Final = 20.0
HEALING_SECONDS: Final = 60.0
STEPS_MAX: Final = 2_000_000


def plan_for(seed: int, workload: str | None = None, profile: str | None = None) -> Plan:
    """Return the run that a seed stands for by default."""
    names = list(WORKLOADS)
    workload = workload or names[seed % len(names)]
    # One run in ten is calm; of the others half are swarms and half are storms.
    profile = profile or ("calm" if seed // len(names) % 10 == 9 else PROFILES[1 + seed // 7 % 2])
    return Plan(seed, workload, make_profile(profile, seed))


def simulate(plan: Plan, *, keep_events: bool = False) -> Result:
    """Run a plan. The same plan gives the same trace."""
    if plan.workload == REPLICATED:
        return simulate_replicated(plan, keep_events=keep_events)
    if plan.workload == NODES:
        return simulate_nodes(plan, keep_events=keep_events)
    trace = Trace(keep_events=keep_events)
    faults = Faults(plan.seed, plan.profile.probabilities, plan.only)
    world = SimulatedWorld(plan.seed, plan.profile, faults, trace)
    workload = WORKLOADS[plan.workload](plan.seed, plan.profile)
    run = _Run(world, workload)
    return conclude(plan, run, CHAOS_SECONDS + 3 * HEALING_SECONDS, STEPS_MAX)


class _Run:
    def __init__(self, world: SimulatedWorld, workload: Workload) -> None:
        self.world = world
        self.workload = workload
        self.problems = workload.problems
        self.stuck = False
        self.transactions = 0
        self.crashes = 0
        self._clients_left = 0
        self._clients_finished = trio.Event()

    async def main(self) -> None:
        with self.workload.bounds(self.world):
            await self._whole()

    async def _whole(self) -> None:
        async with trio.open_nursery() as nursery:
            disk = Disk(self.world, nursery)
            service = Service(self.world, disk)
            nursery.start_soon(service.run)
            await self.workload.setup(service)
            await self._chaos_and_healing(service)
            self.crashes = service.crashes
            if not self.stuck:
                await self._audit(service)
            self.problems += service.problems
            self.transactions = len(service.history.attempts)
            nursery.cancel_scope.cancel()

    async def _chaos_and_healing(self, service: Service) -> None:
        profile = self.world.profile
        self.world.faults.on = True
        with trio.move_on_after(CHAOS_SECONDS + HEALING_SECONDS) as scope:
            async with trio.open_nursery() as clients:
                clients.start_soon(self._heal_after_chaos)
                for number in range(profile.clients):
                    self._clients_left += 1
                    clients.start_soon(self._client, service, number)
        if scope.cancelled_caught:
            self.stuck = True
            self.problems.append(
                f"{self._clients_left} clients had not finished"
                f" {HEALING_SECONDS:.0f} s after the last fault"
            )

    async def _heal_after_chaos(self) -> None:
        """Stop all faults when the time is over, or as soon as all clients have finished."""
        with trio.move_on_after(CHAOS_SECONDS):
            await self._clients_finished.wait()
        self.world.faults.on = False
        self.world.record("heal", "faults cease")

    async def _client(self, service: Service, number: int) -> None:
        ACTOR.set(f"client {number}")
        per_client = self.world.profile.transactions_per_client
        await self.workload.client(service, 1 + number * per_client)
        self._clients_left -= 1
        if not self._clients_left:
            self._clients_finished.set()

    async def _audit(self, service: Service) -> None:
        """Check what is there after everything unsynced is lost, and that nothing is left over."""
        self.world.faults.on = False
        with trio.move_on_after(HEALING_SECONDS) as scope:
            await service.rest()
            service.crash(lose_all=True)
            self.world.record("check", "power cycle and audit")
            await self.workload.check(service)
            self.problems += map(str, version_regressions(service.history.attempts))
            await service.rest()
            await service.tidy_up()
        if scope.cancelled_caught:
            self.stuck = True
            self.problems.append("the audit did not end")
