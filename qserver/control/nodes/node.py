"""This node's part in the control plane: when it leads or follows, and from when on it counts.

    begin ─► follow the leader ─► join the placement ─► admit: the leader counts this node
                                                          └─► from now on it answers clients

The leader answers a change when all nodes that serve have applied it. A node that has just joined
may have a copy that lacks what was answered before the leader knew of it: so it shows its copy only
when the leader has said which version was the newest when it began to count the node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn, TypeAlias

import trio

from qserver.control.nodes.handover import AGAIN_SECONDS, Handover
from qserver.control.nodes.lease import Lease
from qserver.control.nodes.membership import Membership, Report
from qserver.control.owners import Owners
from qserver.errors import DatabaseUnavailable, LogFailed, QserverError, first_of
from qserver.replication.port import Refused, Unanswered

TELL_SECONDS: Final = 1.0

Taking: TypeAlias = Callable[[], Awaitable[None]]
"""Takes a part in the control plane, and returns when that has ended."""


class Node:
    def __init__(self, membership: Membership, owners: Owners) -> None:
        self.membership = membership
        self.owners = owners
        self.control_version: Callable[[], int | None] = lambda: None
        """Returns the newest version of `control` that the leader may show."""
        self.is_leaving = False
        """From then on no copy of `control` is shown: the leader may count this node no more."""
        owners.answer("admit", self._admit)
        owners.answer("look", self._look)

    @property
    def term(self) -> tuple[str, int]:
        """This life of the node and its leader: with another one, its part begins anew."""
        membership = self.membership
        return membership.facts.life, membership.placement.leader

    async def wait_for_another(self, term: tuple[str, int]) -> None:
        while self.term == term:
            await self.membership.changed.wait()

    async def keep_part(self, lead: Taking, follow: Taking, report: Report) -> NoReturn:
        """Lead or follow, as the placement says, and begin anew with each term."""
        while True:
            term = self.term
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._take_part, lead, follow, report)
                await self.wait_for_another(term)
                nursery.cancel_scope.cancel()

    async def _take_part(self, lead: Taking, follow: Taking, report: Report) -> NoReturn:
        """Take the part of this term, and try again until that succeeds."""
        while True:
            try:
                await (lead() if self.owners.is_leader else follow())
            except* QserverError as errors:
                report("this node waits for its part", first_of(errors))
            await trio.sleep(AGAIN_SECONDS)

    async def join(self) -> None:
        """Be one of those that own databases, unless this node is about to leave."""
        if self.is_leaving:
            return
        try:
            await self.membership.join()
        except (Refused, Unanswered) as lost:
            raise LogFailed("the placement is not written", hint="It is tried again.") from lost

    async def leave(self) -> None:
        """Let other nodes have all databases."""
        self.is_leaving = True
        await self.membership.leave()

    def admission(self, before: Admission | None = None) -> Admission:
        """The admission of a copy, which replaces that of the one before."""
        return Admission(self, before)

    async def _admit(self, version: int) -> int:
        """Count a node that has joined with a version of the placement."""
        await self._look(version)
        found = self.control_version() if self.owners.is_leader else None
        if found is None:
            raise DatabaseUnavailable("this node does not lead", hint="Try again.")
        return found

    async def _look(self, version: int) -> None:
        """Look at the placement until it is that one, or a later one."""
        try:
            await self.membership.look_for(version)
        except Unanswered as lost:
            raise DatabaseUnavailable("the log's nodes are away", hint="Try again.") from lost

    async def tell_all(self) -> None:
        """Let all nodes look at the placement; who does not answer will look by itself."""
        membership = self.membership

        async def tell(number: int) -> None:
            with suppress(QserverError):
                await self.owners.ask(
                    number, "look", membership.placement.version, seconds=TELL_SECONDS
                )

        async with trio.open_nursery() as nursery:
            for number in membership.living():
                if number != membership.number:
                    nursery.start_soon(tell, number)

    async def watch(self, handover: Handover, changed: Callable[[], None]) -> NoReturn:
        """Heed each change of the placement."""
        while True:
            event = self.membership.changed
            changed()
            handover.give_up_foreign()
            await event.wait()

    def __repr__(self) -> str:
        return f"{self.membership!r}, led by node {self.membership.placement.leader}"


class Admission:
    """Whether a copy of `control` may be shown: in this life, and once the leader counts it."""

    def __init__(self, node: Node, before: Admission | None) -> None:
        self._before = before
        self._node = node
        self._lease: Lease = node.membership.lease
        self.is_given = False

    async def ask(self) -> int:
        """Return the version of `control` that this node must have."""
        owners = self._node.owners
        version = self._node.membership.placement.version
        found: int = await owners.ask(owners.leader, "admit", version)
        return found

    def hide(self) -> None:
        """Show the copy before this no more: from now on the leader counts this one."""
        if self._before is not None:
            self._before.is_given = False
            self._before = None

    def holds(self) -> bool:
        return self.is_given and not self._node.is_leaving and self._lease.holds()
