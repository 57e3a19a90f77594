"""The part of a node in the control plane: it leads or follows, as the placement says.

    term: this life, this leader ─┬─ leads     control itself, once nobody else has it
                                  └─ follows   a copy, which is shown once the leader counts it
    another term ─► the part begins anew; what is shown stays until the next is there

In one life the old copy may be shown meanwhile, until the new one tells its leader that it has
applied something: before that the leader answers no change without this node. In another life it is
not: its lease has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from qserver.control.databases import Databases, OpenDatabase
from qserver.control.leading import LeaderSource, follow_leader
from qserver.control.nodes.node import Admission, Node
from qserver.control.nodes.placement import CONTROL
from qserver.control.store import Store
from qserver.engine.follower import FollowedDatabase
from qserver.engine.world import World
from qserver.query.sql_database import SqlDatabase


class _Closing:
    """Tells who leads that `control` is to be closed here."""

    def __init__(self) -> None:
        self.begun = trio.Event()

    def close(self) -> None:
        self.begun.set()


class Part:
    """Start `run` in a nursery; it is started when the node has taken its part."""

    def __init__(
        self,
        node: Node,
        store: Store,
        databases: Databases,
        world: World,
        lead: Callable[[OpenDatabase], Awaitable[None]],
    ) -> None:
        """`lead` begins with the control database."""
        self._node = node
        self._owners = node.owners
        self._store = store
        self._store.gets_another = True
        self._databases = databases
        self._world = world
        self._lead = lead
        self._begun = trio.Event()
        self._copies: trio.Nursery  # of `run`
        self._copy: FollowedDatabase | None = None
        """That is shown, or was until the next is there."""
        self._admission: Admission | None = None
        """Of that copy."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as self._copies:
            self._copies.start_soon(
                self._node.keep_part, self._lead_here, self._follow, self._world.report
            )
            await self._begun.wait()
            task_status.started()

    async def _lead_here(self) -> None:
        await self._node.join()
        with await self._databases.use(CONTROL) as control:
            closing = _Closing()
            control.held.add(closing)
            try:
                await self._lead(control)
                self._show(None)
                await closing.begun.wait()
            finally:
                control.held.discard(closing)

    async def _follow(self) -> None:
        """Begin with a copy, show it when the leader counts this node, and go on following."""
        control = FollowedDatabase(self._world, name=CONTROL, cache=self._databases.cache)
        admission = self._node.admission(self._admission)
        control.snapshots.guard_by(admission.holds)
        self._copies.start_soon(control.run)
        try:
            async with trio.open_nursery() as nursery:
                report = self._world.report
                nursery.start_soon(follow_leader, self._owners, control, report, admission.hide)
                await control.wait_applied()
                await self._node.join()
                await control.wait_applied(await admission.ask())
                admission.is_given = True
                self._admission = admission
                plans, pool = self._databases.plans, self._databases.pool
                sql = SqlDatabase(control, self._world, pool, plans=plans)
                self._store.follow(sql, LeaderSource(self._owners, control))
                self._show(control)
                await trio.sleep_forever()
        finally:
            if self._copy is not control:
                control.close()

    def _show(self, control: FollowedDatabase | None) -> None:
        """Close the copy that was shown before."""
        before, self._copy = self._copy, control
        if before is not None:
            before.close()
        self._begun.set()

    def __repr__(self) -> str:
        return f"the part of {self._node!r}"
