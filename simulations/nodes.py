"""Two or three nodes that share families by leases and a placement, and clients of any of them.

    clients ──► any node ──► the owner of the family, as that node knows it
    nodes   ──► Membership, Handover, Lease, Placement, Node and Admission of the product
    chance  ──► they stand still, crash, leave, are cut off from the log or from each other;
                answers are lost or late; families are moved by hand; clocks run fast and slow

Families are registers (`registers`): sets of values that only grow. What must hold:

- who reads a family gets all that was acknowledged, or was read, before the read began
- at no moment two nodes may show the same family
- a change of control that was acknowledged is seen by every node that answers afterwards
- when faults have ceased every node serves again, and every family is there with all of it
"""

from __future__ import annotations

from random import Random
from typing import Final

import trio

from qserver.control.nodes.placement import CONTROL
from qserver.errors import QserverError
from qserver.replication.port import Refused, Unanswered
from simulations.cluster import Machines, Process
from simulations.faults import Faults
from simulations.judging import conclude
from simulations.results import Plan, Result
from simulations.stream import SimulatedNodes
from simulations.trace import Trace
from simulations.world import ACTOR, SimulatedWorld

NODES: Final = "nodes"
NODES_SOMETIMES: Final = (
    "an owner without a lease was asked",
    "two challengers raced",
    "a lease was ended, and its holder came back",
    "a proof of an end was refused",
    "an end was refused, because the lease was renewed",
    "a node that had ended served again, and another did not know",
    "the answer to a change of the placement came in the next life",
    "a renewal had no answer",
    "a read of values lagged behind",
    "who opened a family waited for its release",
    "a family was given up while requests used it",
    "a family was moved by hand",
    "a node left",
    "a node was admitted after a change",
    "a family was opened with what was followed",
)
"""What campaigns of these runs must reach, see `observations.SOMETIMES`."""
FAMILIES: Final = ("f0", "f1", "f2", CONTROL)
CLIENTS: Final = 6
WATCH_SECONDS: Final = 0.02
CHAOS_SECONDS: Final = 60.0
HEALING_SECONDS: Final = 150.0
REQUEST_SECONDS: Final = 4.0
SECONDS_MAX: Final = 1000.0
STEPS_MAX: Final = 2_000_000


class NodesRun:
    def __init__(self, plan: Plan, trace: Trace) -> None:
        faults = Faults(plan.seed, plan.profile.probabilities, plan.only)
        self.world = SimulatedWorld(plan.seed, plan.profile, faults, trace)
        self.problems: list[str] = []
        self.stuck = False
        self.transactions = 0
        self.crashes = 0
        self._chance = Random(f"nodes {plan.seed}")
        self._most = plan.profile.transactions_per_client * 8
        self._value = 0
        self._must: dict[str, set[int]] = {family: set() for family in FAMILIES}
        """What every read that begins now has to return."""
        self._last: dict[str, int] = {}
        """The value of each family that was acknowledged last."""
        self._machines: Machines

    async def main(self) -> None:
        async with trio.open_nursery() as nursery:
            nodes = SimulatedNodes(self.world, nursery)
            machines = self._machines = Machines(self.world, nodes, FAMILIES)
            for number in range(self._chance.choice((2, 3, 3))):
                nursery.start_soon(machines.add(f"n{number}").run)
            await self._all_are_well()
            self.world.faults.on = True
            nursery.start_soon(self._strike)
            nursery.start_soon(self._watch)
            with trio.move_on_after(CHAOS_SECONDS):
                async with trio.open_nursery() as clients:
                    for number in range(CLIENTS):
                        clients.start_soon(self._client, number)
            self.world.faults.on = False
            self.world.record("heal", "faults cease")
            machines.heal()
            with trio.move_on_after(HEALING_SECONDS) as scope:
                await self._all_are_well()
                await self._audit()
            if scope.cancelled_caught:
                self.stuck = True
                self.problems.append(f"not all nodes serve again: {self._unwell()}")
            self.crashes = sum(each.crashes for each in machines.machines)
            self.problems += machines.problems
            nursery.cancel_scope.cancel()

    def _unwell(self) -> list[str]:
        found = [each.process for each in self._machines.machines]
        return [each.name if each is not None else "?" for each in found if not _is_well(each)]

    async def _all_are_well(self) -> None:
        while True:
            await trio.sleep(0.1)
            if not self._unwell():
                return

    # --- faults ---

    async def _strike(self) -> None:
        world, machines = self.world, self._machines
        while world.faults.on:
            await trio.sleep(world.delays.uniform(0.1, 0.5))
            for machine in machines.machines:
                if world.faults.strikes("node_crashes"):
                    machine.crash()
                process = machine.process
                if process is None or not process.is_there:
                    continue
                if world.faults.strikes("node_leaves") and not process.node.is_leaving:
                    process.nursery.start_soon(process.leave)
                if world.faults.strikes("link_cut"):
                    others = [each for each in machines.machines if each is not machine]
                    machines.cut(machine, world.delays.choice(others))
                if world.faults.strikes("family_moved"):
                    process.nursery.start_soon(self._move, process)

    async def _move(self, process: Process) -> None:
        family = self.world.delays.choice(FAMILIES)
        to = self.world.delays.choice(self._machines.machines).name
        try:
            await process.membership.move(family, to)
        except (QserverError, Refused, Unanswered):
            return
        self.world.record("start", f"{family} is moved to {to}")
        self.world.reach("a family was moved by hand")

    async def _watch(self) -> None:
        """Look what nodes would show, all the time."""
        machines = self._machines
        while True:
            await trio.sleep(WATCH_SECONDS)
            for process in machines.processes():
                if process.is_there:
                    for register in process.registers.all():
                        if register.may_show():
                            machines.shown(register)
                            self._look(process, register.root, register.values)
                    if process.part.may_read():
                        self._look(process, CONTROL, process.part.read())

    def _look(self, process: Process, family: str, found: list[int]) -> None:
        last = self._last.get(family)
        if last is not None and last not in found:
            self.problems.append(f"{process.name} would show {family} without {last}")

    # --- clients ---

    async def _client(self, number: int) -> None:
        ACTOR.set(f"client {number}")
        chance = self._chance
        for _ in range(self._most):
            await trio.sleep(chance.uniform(0.0, 0.5))
            process = chance.choice(self._machines.machines).process
            if process is None:
                continue
            family = chance.choice((*FAMILIES, CONTROL))
            self.transactions += 1
            try:
                if chance.random() < 0.4:
                    await self._add(process, family)
                else:
                    await self._read(process, family)
            except QserverError:
                pass

    async def _add(self, process: Process, family: str) -> None:
        self._value += 1
        value = self._value
        await process.ask(family, value, REQUEST_SECONDS)
        self._must[family].add(value)
        self._last[family] = value

    async def _read(self, process: Process, family: str) -> None:
        must = set(self._must[family])
        found = await process.ask(family, None, REQUEST_SECONDS)
        self._compare(f"{process.name} shows {family}", must, found)
        if family != CONTROL:  # a copy may have what others do not have yet
            self._must[family].update(found)

    def _compare(self, what: str, must: set[int], found: list[int]) -> None:
        if missing := sorted(must - set(found)):
            self.problems.append(f"{what} without {missing[:3]}")
            self.world.record("anomaly", f"{what} without {missing[:3]}")
        if len(set(found)) < len(found):
            self.problems.append(f"{what} with a value twice")

    # --- at the end ---

    async def _audit(self) -> None:
        for machine in self._machines.machines:
            for family in FAMILIES:
                found = None
                while found is None:
                    try:
                        if machine.process is not None:
                            found = await machine.process.ask(family, None, REQUEST_SECONDS)
                    except QserverError:
                        await trio.sleep(0.1)
                self._compare(f"{machine.name} ends with {family}", self._must[family], found)


def _is_well(process: Process | None) -> bool:
    return process is not None and process.is_well()


def simulate_nodes(plan: Plan, *, keep_events: bool = False) -> Result:
    """Run a plan. The same plan gives the same trace."""
    run = NodesRun(plan, Trace(keep_events=keep_events))
    return conclude(plan, run, SECONDS_MAX, STEPS_MAX)
