"""The nodes of a cluster as owners: the placement says who owns what, links reach them by TCP."""

from __future__ import annotations

from collections.abc import Sequence

from qserver.control.nodes.membership import Membership
from qserver.control.owners import OwnedElsewhere, Owners

STAYS = 1 << 30
"""So many requests are forwarded: a connection of a client cannot move to another machine."""


class NodeOwners(Owners):
    def __init__(self, membership: Membership, replicas: int = 0) -> None:
        self._membership = membership
        super().__init__(replicas=replicas)

    @property
    def process(self) -> int:
        return self._membership.number

    @process.setter
    def process(self, number: int) -> None:
        """The log's nodes give a node its number."""

    @property
    def leader(self) -> int:
        return self._membership.placement.leader

    @property
    def is_alone(self) -> bool:
        return False

    @property
    def shares_files(self) -> bool:
        return False

    @property
    def everyone(self) -> Sequence[int]:
        return self._membership.placement.serving

    @property
    def living(self) -> Sequence[int]:
        """All nodes whose lease was not ended: one of them may be about to leave."""
        return self._membership.living()

    @property
    def owning(self) -> Sequence[int]:
        return self._membership.placement.owning

    def owner_of(self, family: str) -> int:
        return self._membership.placement.owner_of(family)

    @property
    def version(self) -> int:
        return self._membership.placement.version

    def follows(self, family: str, replicas: int | None) -> bool:
        return self.process in self.followers_of(family, replicas)

    def followers_of(self, family: str, replicas: int | None) -> list[int]:
        """Return the nodes that follow a database which has so many replicas."""
        wanted = self._replicas if replicas is None else replicas
        return self._membership.placement.followers_of(family, wanted) if wanted else []

    def elsewhere(
        self, process: int, followed: str | None = None, name: str = ""
    ) -> OwnedElsewhere:
        found = super().elsewhere(process, followed, name)
        found.visits = STAYS
        return found

    def __repr__(self) -> str:
        return repr(self._membership)
