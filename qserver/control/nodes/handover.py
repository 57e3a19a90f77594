"""A family is opened where nobody else may still answer for it.

    new owner ── release(family, version) ──► every other node ── closes it, if it has it ─► answers
              ├─ its value says that it has nothing that this placement gives to others
              └─ its life has ended, proved by a write: it shows nothing, and cannot come back
                 without knowing this placement

A node that answers has the placement that the new owner goes by, or a later one, and opens the
family no more under an earlier one. With each renewal of its lease a node says the same of all
families at once, so databases are opened without a word between nodes while nothing moves, also
where two nodes cannot reach each other. So whoever opens it is the only one: no clock but that of
leases is part of this, and none at all in what is written (`replication` fences that).

While a family moves, requests for it wait at its new owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, Protocol

import trio

from qserver.control.databases import Databases
from qserver.control.nodes.lease import MARGIN
from qserver.control.nodes.membership import Membership
from qserver.control.owners import Owners
from qserver.errors import DatabaseMoved, QserverError
from qserver.limits import DATABASE_CLOSE_SECONDS_MAX
from qserver.replication.port import Unanswered

TAKEN_SECONDS: Final = 0.5
AGAIN_SECONDS: Final = 0.05
RELEASE_SECONDS: Final = 1.0
"""A node that does not answer for so long is asked again, unless it has ended by then."""
OPEN_SECONDS: Final = 60.0
"""Then whoever waits for a database is told so, and the next request tries again."""


class Families(Protocol):
    """The families that this node has."""

    def families(self) -> list[str]:
        """Return the roots of those that are open, or are being opened or closed."""

    def members(self, root: str) -> list[str]:
        """Return which databases of a family are open."""

    def stop_base(self, root: str) -> None:
        """Give up what is copied of a family."""

    def is_taken(self, root: str) -> bool:
        """Return whether another node has claimed a family that is open here."""


class Handover:
    def __init__(
        self, membership: Membership, owners: Owners, databases: Databases, families: Families
    ) -> None:
        self._membership = membership
        self._owners = owners
        self._databases = databases
        self._families = families
        self._proved: dict[int, int] = {}
        """Nodes that have ended, and under which version of the placement this was proved."""
        self._released = 0
        owners.answer("release", self.release)
        membership.released = self.released

    async def may_open(self, root: str) -> Callable[[], bool]:
        """Return when this node alone may open a family; raise DatabaseMoved if it may not.

        What is returned says whether the life that may open it still holds: it must be asked again
        when the family is claimed, because a process may pause between.
        """
        until = trio.current_time() + OPEN_SECONDS
        while self._membership.may_own(root):
            version, lease = self._membership.placement.version, self._membership.lease
            if await self._is_released(root, version):
                if self._membership.may_own(root) and self._membership.lease is lease:
                    return lease.holds
            elif trio.current_time() > until:
                raise DatabaseMoved(f"another node has not given up {root} yet", hint="Try again.")
            else:
                await trio.sleep(AGAIN_SECONDS)
        raise DatabaseMoved(f"another node serves {root}", hint="Try again.")

    async def _is_released(self, root: str, version: int) -> bool:
        """Return whether nobody else has a family, of all that ever served by this placement."""
        answers: list[bool] = []

        async def ask(node: int) -> None:
            answers.append(await self._is_free(node, root, version))

        async with trio.open_nursery() as nursery:
            for number in self._membership.placement.known:
                if number != self._membership.number:
                    nursery.start_soon(ask, number)
        return all(answers)

    async def _is_free(self, node: int, root: str, version: int) -> bool:
        """Return whether a node has given a family up, or has ended."""
        if self._proved.get(node, -1) >= version:
            return True
        seen = self._membership.seen.get(node)
        if seen is not None and seen.facts.released >= version and not seen.facts.is_ended:
            return True
        if await self._membership.has_ended(node):
            self._proved[node] = version
            return True
        try:
            await self._owners.ask(node, "release", root, version, seconds=RELEASE_SECONDS)
        except QserverError:
            return False
        return True

    async def release(self, root: str, version: int) -> None:
        """Return when this node does not have a family that another has by a placement."""
        membership = self._membership
        try:
            await membership.look_for(version)
        except Unanswered as lost:
            raise DatabaseMoved("the log's nodes are away", hint="Try again.") from lost
        while root in self._families.families():
            if membership.placement.owner_of(root) == membership.number:
                raise DatabaseMoved(f"this node serves {root} now", hint="Try again.")
            self._give_up(root)
            await trio.sleep(AGAIN_SECONDS)

    def released(self) -> int:
        """Return the version of the placement of which nothing is here that others own."""
        membership = self._membership
        placement = membership.placement
        owners = map(placement.owner_of, self._families.families())
        if all(owner == membership.number for owner in owners):
            self._released = placement.version
        return self._released

    def give_up_foreign(self) -> None:
        """Begin to close what the placement gives to other nodes."""
        membership = self._membership
        for root in self._families.families():
            if membership.placement.owner_of(root) != membership.number:
                self._give_up(root)

    async def watch_taken(self) -> NoReturn:
        """Close what another node has claimed, so that it can be opened again.

        Whoever claims late, after its lease, shows nothing; but it has fenced out this node.
        """
        while True:
            await trio.sleep(TAKEN_SECONDS)
            for root in self._families.families():
                if self._families.is_taken(root):
                    self._give_up(root)

    async def give_up_all(self) -> None:
        """Close everything: the lease is lost, so nothing of it is shown any more.

        Users and commits cannot end well, so they have no longer than others wait for this node.
        """
        lease = self._membership.lease
        seconds = lease.seconds * (MARGIN - 1)
        while self._families.families():
            for root in self._families.families():
                self._give_up(root, seconds)
            await trio.sleep(AGAIN_SECONDS)

    def _give_up(self, root: str, seconds: float = DATABASE_CLOSE_SECONDS_MAX) -> None:
        self._families.stop_base(root)
        for name in self._families.members(root) or [root]:
            self._databases.give_up(name, seconds)

    def __repr__(self) -> str:
        return f"the handover of {len(self._families.families())} families"
