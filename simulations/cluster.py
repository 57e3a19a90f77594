"""Machines that are nodes of one cluster, and the processes that live on them.

    Machine ── a clock of its own speed, a folder; it may stand still
      └── one process after the other ── a link to the log's nodes ── Membership, Handover, Node
            └── registers (`registers`), its part in control (`control_part`), calls to the others

Calls between nodes are slow, are lost, or do not arrive while their link is cut. A call goes on at
the node that was called when its caller has given up.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

import trio

from qserver.control.databases import Databases
from qserver.control.nodes.handover import Handover
from qserver.control.nodes.lease import PREFIX, Lease
from qserver.control.nodes.membership import Identity, Membership
from qserver.control.nodes.node import Node
from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.placement import CONTROL
from qserver.control.nodes.values import facts_in
from qserver.errors import DatabaseMoved, DatabaseUnavailable, QserverError
from qserver.limits import CALL_SECONDS_MAX
from qserver.replication.port import Refused, Unanswered, Value
from simulations.cluster_link import ClusterLink, PastValues
from simulations.control_part import ControlPart
from simulations.registers import Register, Registers
from simulations.stream import SimulatedNodes
from simulations.world import ACTOR, SimulatedWorld

LEASE_SECONDS: Final = 3.0
SPEEDS: Final = (0.957, 1.0, 1.0, 1.045)
"""How fast clocks run: no two differ by a tenth."""
PAUSE_SECONDS: Final = (0.05, 2.5 * LEASE_SECONDS)
CUT_SECONDS: Final = (0.2, 4 * LEASE_SECONDS)
DOWN_SECONDS: Final = (0.0, 3 * LEASE_SECONDS)
ENDED_SECONDS: Final = 0.1
"""How soon a machine comes back whose lease others have just ended."""
LEAVE_SECONDS: Final = 5.0
CALL_SECONDS: Final = 0.01
BROKEN_SECONDS: Final = 4.0
"""After so long without an answer a connection to another node counts as broken."""
WANT_SECONDS: Final = 1.0


class Machines:
    """All of them, and the links between them."""

    def __init__(
        self, world: SimulatedWorld, nodes: SimulatedNodes, families: tuple[str, ...]
    ) -> None:
        self.world = world
        self.nodes = nodes
        self.families = families
        self.machines: list[Machine] = []
        self.problems: list[str] = []
        self._cuts: dict[frozenset[str], float] = {}
        self.values = PastValues(nodes.agreed, self._heed_ends)

    def add(self, name: str) -> Machine:
        self.machines.append(Machine(self, name))
        return self.machines[-1]

    def processes(self) -> list[Process]:
        return [each.process for each in self.machines if each.process is not None]

    def process(self, number: int) -> Process | None:
        """Return the process of a node, if it can be called."""
        for each in self.processes():
            if each.is_there and each.membership.number == number:
                return each
        return None

    # --- links ---

    def cut(self, one: Machine, two: Machine) -> None:
        seconds = self.world.delays.uniform(*CUT_SECONDS)
        self.world.record("fault", f"{one.name} and {two.name} are apart for {seconds:.1f} s")
        self._cuts[frozenset((one.name, two.name))] = trio.current_time() + seconds

    def are_apart(self, one: Machine, two: Machine) -> bool:
        return trio.current_time() < self._cuts.get(frozenset((one.name, two.name)), 0.0)

    def heal(self) -> None:
        self._cuts.clear()
        for each in self.machines:
            each.come_back(0.0)

    def _heed_ends(self, values: dict[str, Value]) -> None:
        """Let machines come back whose lease has ended, if they wait for that."""
        for each in self.machines:
            found = values.get(PREFIX + each.name)
            if found is not None and each.waits_for_its_end and facts_in(found).is_ended:
                each.come_back(self.world.delays.uniform(0.0, ENDED_SECONDS))

    # --- what must hold ---

    def shown(self, register: Register) -> None:
        """Complain if another node may show the same family at this moment."""
        for process in self.processes():
            for each in process.registers.all() if process.is_there else ():
                if each is not register and each.root == register.root and each.may_show():
                    self.problems.append(f"{register.root} is shown by two nodes at a time")


class Machine:
    def __init__(self, machines: Machines, name: str) -> None:
        self.machines = machines
        self.world = machines.world
        self.name = name
        self.process: Process | None = None
        self.waits_for_its_end = False
        """Whether it comes back as soon as others have ended its lease."""
        self._away_until = 0.0
        self._called_back = trio.Event()
        self.lives = 0
        self.crashes = 0
        self._speed = self.world.delays.choice(SPEEDS)
        self._offset = self.world.delays.uniform(0.0, 1000.0)

    def clock(self) -> float:
        return self._offset + self._speed * trio.current_time()

    async def run(self) -> None:
        """Run one process after the other, in the same folder."""
        while True:
            self.lives += 1
            process = self.process = Process(self)
            ACTOR.set(process.name)
            with process.scope:
                await process.run()
            self.process = None
            if self.world.faults.on:
                self._go_away(self.world.delays.uniform(*DOWN_SECONDS))
                await self._wait_while_away()

    def crash(self) -> None:
        if self.process is not None:
            self.crashes += 1
            self.come_back(0.0)
            self.world.record("crash", f"{self.name} crashes")
            self.process.scope.cancel()

    async def gate(self) -> None:
        """Wait while the machine stands still, which it may do from here on."""
        if self.world.faults.strikes("node_paused"):
            seconds = self.world.delays.uniform(*PAUSE_SECONDS)
            self.world.record("fault", f"{self.name} stands still for {seconds:.1f} s")
            self._go_away(seconds)
        await trio.lowlevel.checkpoint()
        await self._wait_while_away()

    def _go_away(self, seconds: float) -> None:
        """Be away for so long, or only until others have ended the lease."""
        self._away_until = trio.current_time() + seconds
        self.waits_for_its_end = self.world.delays.random() < 0.5

    async def _wait_while_away(self) -> None:
        while (left := self._away_until - trio.current_time()) > 0:
            with trio.move_on_after(left):
                await self._called_back.wait()

    def come_back(self, seconds: float) -> None:
        """Be away no longer than this from now on."""
        self.waits_for_its_end = False
        self._away_until = min(self._away_until, trio.current_time() + seconds)
        self._called_back.set()
        self._called_back = trio.Event()


class Process:
    """One process of a node: what `web.service.node` puts together, with small families."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.world = machine.world
        self.name = f"{machine.name}.{machine.lives}"
        self.scope = trio.CancelScope()
        self.begun = trio.Event()
        self._lives = 0
        name = machine.name
        link = ClusterLink(machine.machines.nodes, machine.machines.values, self.name, name)
        link.gate = machine.gate
        self.membership = Membership(
            link, lambda: Lease(machine.clock, LEASE_SECONDS), self._new_life, self._report
        )
        self.membership.identity = Identity(name, f"http://{name}", f"{name}:1", f"of {name}")
        self.owners = CallingOwners(self)
        self.node = Node(self.membership, self.owners)
        self._link = link
        self.wanted = machine.machines.families
        self.registers: Registers
        self.handover: Handover
        self.part: ControlPart
        self.nursery: trio.Nursery

    def _new_life(self) -> str:
        self._lives += 1
        return f"{self.name}.{self._lives}"

    def _report(self, text: str, error: Exception) -> None:
        self.world.record("recover", f"{text}: {error!r}")

    async def run(self) -> None:
        machine, membership = self.machine, self.membership
        await machine.gate()
        await self._begin()
        async with trio.open_nursery() as self.nursery:
            nursery = self.nursery
            machines = machine.machines
            self.registers = Registers(self.world, self._link, nursery, self.name, machines)
            databases = cast(Databases, self.registers)
            self.handover = Handover(membership, self.owners, databases, self.registers)
            self.registers.may_open = self.handover.may_open
            self.registers.guard_now = lambda: membership.lease.holds
            membership.on_lost = self._lost
            membership.tell_others = lambda: nursery.start_soon(self.node.tell_all)
            self.part = ControlPart(self.world, self.node, self.owners, self.registers)
            self.owners.answer("serve", self.serve)
            self.begun.set()
            nursery.start_soon(membership.run)
            nursery.start_soon(self.node.watch, self.handover, self.part.placement_changed)
            nursery.start_soon(self.part.run)
            nursery.start_soon(self._want_families)
            follows = partial(self.owners.follows, replicas=1)
            nursery.start_soon(self.registers.follow, machines.families, follows)

    async def _want_families(self) -> None:
        """Have all families open that this node owns, as with clients that always use them."""
        while True:
            with trio.move_on_after(self.world.delays.uniform(0.0, WANT_SECONDS)):
                await self.membership.changed.wait()
            await self.machine.gate()
            for family in self.wanted:
                is_open = family in self.registers.families()
                if not is_open and self.membership.may_own(family):
                    self.nursery.start_soon(self._want, family)

    async def _want(self, family: str) -> None:
        try:
            (await self.registers.use(family)).users -= 1
        except QserverError as error:
            self._report(f"{family} is not opened", error)

    async def _begin(self) -> None:
        while True:
            try:
                await self.membership.begin()
                return
            except QserverError as error:
                self._report("it begins again", error)

    async def _lost(self) -> None:
        self.world.reach("a lease was ended, and its holder came back")
        await self.handover.give_up_all()

    async def leave(self) -> None:
        """End as a process does that is told to."""
        ACTOR.set(self.name)
        self.world.record("stop", f"{self.name} leaves")
        with trio.move_on_after(LEAVE_SECONDS) as in_time:
            try:
                await self.node.leave()
                await self.membership.end()
            except (QserverError, Refused, Unanswered) as error:
                self._report("it leaves without a word", error)
            else:
                self.world.reach("a node left")
        if in_time.cancelled_caught:
            self.world.record("stop", f"{self.name} leaves without a word")
        self.scope.cancel()

    # --- requests ---

    async def ask(self, family: str, value: int | None, seconds: float) -> list[int]:
        """Send a request of a client; it goes on when that has given up, and dies with this."""
        answer = _Answer()
        if self.is_there:
            self.nursery.start_soon(self._answer, family, value, answer)
        with trio.move_on_after(seconds):
            await answer.done.wait()
        if not answer.done.is_set():
            raise DatabaseUnavailable("no answer")
        if answer.error is not None:
            raise answer.error
        found: list[int] = answer.result
        return found

    @property
    def is_there(self) -> bool:
        return self.begun.is_set() and not self.scope.cancel_called

    async def _answer(self, family: str, value: int | None, answer: _Answer) -> None:
        ACTOR.set(self.name)
        try:
            answer.result = await self._handle(family, value)
        except QserverError as error:
            answer.error = error
        answer.done.set()

    async def _handle(self, family: str, value: int | None) -> list[int]:
        """Handle a request, wherever the family is."""
        await self.machine.gate()
        if family == CONTROL and value is None:
            return self.part.read()
        owner = self.membership.placement.owner_of(family)
        found: list[int] = await self.owners.ask(owner, "serve", family, value, seconds=6.0)
        return found

    async def serve(self, family: str, value: int | None) -> list[int]:
        """Add a value, or return all."""
        if self.membership.placement.owner_of(family) != self.membership.number:
            raise DatabaseMoved("another node serves it")
        register = await self.registers.use(family)
        try:
            await self.machine.gate()
            if value is not None:
                version = await register.append(value)
                if family == CONTROL:
                    await self.part.wait_for_all(version)
                return []
            found = register.take()
        finally:
            register.users -= 1
        if found is None:
            self.world.reach("an owner without a lease was asked")
            raise DatabaseUnavailable("its lease has ended")
        return found

    def is_well(self) -> bool:
        """Whether it serves again."""
        membership = self.membership
        return (
            self.begun.is_set()
            and membership.lease.holds()
            and membership.is_serving
            and self.part.may_read()
        )


class CallingOwners(NodeOwners):
    """Calls the other nodes over simulated links."""

    def __init__(self, process: Process) -> None:
        self._caller = process
        self._world = process.world
        super().__init__(process.membership)

    async def ask(
        self, process: int, method: str, *arguments: Any, seconds: float = CALL_SECONDS_MAX
    ) -> Any:
        if process == self.process:
            return await self.methods[method](*arguments)
        await self._caller.machine.gate()
        answer = _Answer()
        self._caller.machine.machines.nodes.nursery.start_soon(
            self._deliver, process, method, arguments, answer
        )
        with trio.move_on_after(min(seconds, BROKEN_SECONDS)):
            await answer.done.wait()
        await self._caller.machine.gate()
        if not answer.done.is_set():
            raise DatabaseUnavailable(f"node {process} does not answer", hint="Try again.")
        if answer.error is not None:
            raise answer.error
        return answer.result

    async def _deliver(
        self, process: int, method: str, arguments: tuple[Any, ...], answer: _Answer
    ) -> None:
        if not await self._passes(process):
            return
        called = self._caller.machine.machines.process(process)
        if called is not None:
            called.nursery.start_soon(self._handle, called, method, arguments, answer)

    async def _handle(
        self, called: Process, method: str, arguments: tuple[Any, ...], answer: _Answer
    ) -> None:
        ACTOR.set(called.name)
        await called.machine.gate()
        if method == "release" and arguments[0] in called.registers.families():
            self._world.reach("who opened a family waited for its release")
        try:
            answer.result = await called.owners.methods[method](*arguments)
        except QserverError as error:
            answer.error = type(error)(error.message)
        await called.machine.gate()
        if await self._passes(called.membership.number):
            answer.done.set()

    async def _passes(self, process: int) -> bool:
        """Return, after its time, whether something gets through to a node, or back."""
        world, machines = self._world, self._caller.machine.machines
        await trio.sleep(world.delays.uniform(0.0, CALL_SECONDS))
        if world.faults.strikes("call_lost"):
            return False
        other = machines.process(process)
        return other is not None and not machines.are_apart(self._caller.machine, other.machine)


class _Answer:
    def __init__(self) -> None:
        self.done = trio.Event()
        self.result: Any = None
        self.error: QserverError | None = None
