"""A node's part in control, as `control.nodes.part` has it: it leads, or follows with a copy.

Control is a register. Its leader answers a change when all nodes that serve have it (`Barrier`); a
node shows its copy once the leader counts it (`Admission`).
"""

from __future__ import annotations

from typing import Final, NoReturn

import trio

from qserver.control.barrier import Barrier
from qserver.control.nodes.node import Admission, Node
from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.placement import CONTROL
from qserver.errors import DatabaseUnavailable, QserverError
from simulations.registers import Register, Registers
from simulations.world import SimulatedWorld

AGAIN_SECONDS: Final = 0.05
POLL_SECONDS: Final = 1.0


class Copy:
    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.values: list[int] | None = None
        self.changed = trio.Event()

    def apply(self, values: list[int]) -> None:
        self.values = [*(self.values or []), *values]
        self.changed.set()
        self.changed = trio.Event()

    async def wait_applied(self, version: int = 0) -> None:
        while self.values is None or len(self.values) < version:
            await self.changed.wait()


class ControlPart:
    def __init__(
        self, world: SimulatedWorld, node: Node, owners: NodeOwners, registers: Registers
    ) -> None:
        self._world = world
        self._node = node
        self._owners = owners
        self._registers = registers
        self._leading: Register | None = None
        self._barrier: Barrier | None = None
        self._copy: Copy | None = None
        node.control_version = self._version
        owners.answer("follow", self._begin_following)
        owners.answer("records", self._records)
        owners.answer("applied", self._applied)

    # --- for requests ---

    def may_read(self) -> bool:
        if self._leading is not None:
            return self._leading.may_show()
        return self._copy is not None and self._copy.admission.holds()

    def read(self) -> list[int]:
        """Return what this node shows of control at this moment."""
        if self._leading is not None:
            found = self._leading.take()
        elif self._copy is not None and self._copy.admission.holds():
            found = list(self._copy.values or [])
        else:
            found = None
        if found is None:
            raise DatabaseUnavailable("control is not shown here")
        return found

    async def wait_for_all(self, version: int) -> None:
        """Return when every node that serves has a version."""
        await self._leads()[1].wait(version)

    def placement_changed(self) -> None:
        if self._barrier is not None:
            self._barrier.look_again()

    # --- the part ---

    async def run(self) -> NoReturn:
        await self._node.keep_part(self._lead, self._follow, self._report)

    def _report(self, text: str, error: Exception) -> None:
        self._world.record("recover", f"{text}: {error!r}")

    async def _lead(self) -> None:
        await self._node.join()
        register = await self._registers.use(CONTROL)
        try:
            self._barrier = Barrier(lambda: self._owners.others)
            self._leading, self._copy = register, None
            while not register.is_closed:
                await register.changed.wait()
        finally:
            register.users -= 1
            self._leading = self._barrier = None

    async def _follow(self) -> None:
        admission = self._node.admission(None if self._copy is None else self._copy.admission)
        copy = Copy(admission)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_leader, copy)
            await copy.wait_applied()
            await self._node.join()
            await copy.wait_applied(await admission.ask())
            admission.is_given = True
            self._copy = copy
            if copy.values:
                self._world.reach("a node was admitted after a change")
            await trio.sleep_forever()

    async def _follow_leader(self, copy: Copy) -> NoReturn:
        number = self._owners.process
        while True:
            leader = self._owners.leader
            try:
                await self._owners.ask(leader, "follow", number)
                while True:
                    known = len(copy.values or [])
                    found = await self._owners.ask(leader, "records", known, seconds=3.0)
                    copy.apply(found)
                    copy.admission.hide()
                    applied = len(copy.values or [])
                    await self._owners.ask(leader, "applied", number, applied, seconds=3.0)
            except QserverError:
                await trio.sleep(AGAIN_SECONDS)

    # --- for followers ---

    def _leads(self) -> tuple[Register, Barrier]:
        if self._leading is None or self._barrier is None:
            raise DatabaseUnavailable("this node does not lead")
        return self._leading, self._barrier

    def _version(self) -> int | None:
        found = None if self._leading is None else self._leading.take()
        return None if found is None else len(found)

    async def _begin_following(self, number: int) -> None:
        await trio.lowlevel.checkpoint()
        self._leads()[1].begin(number)

    async def _records(self, known: int) -> list[int]:
        """Return what follows, when there is something, or after a while."""
        register, _ = self._leads()
        with trio.move_on_after(POLL_SECONDS):
            while len(register.values) <= known and not register.is_closed:
                await register.changed.wait()
        if register.is_closed:
            raise DatabaseUnavailable("it is closed")
        return register.values[known:]

    async def _applied(self, number: int, version: int) -> None:
        await trio.lowlevel.checkpoint()
        self._leads()[1].applied(number, version)
