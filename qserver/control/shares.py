"""What each organization may have of what all share, and what it has now.

    Shares ─┬─ Share of organization a ── limits, memory, bodies, turns
            ├─ Share of organization b ── …              │       └─ among those of all others
            └─ anonymous                                 └─ parts of the server's pools

A grant carries the share of its organization, and a database that is opened gets it, too. There is
one object for an organization for as long as the process runs; its limits are those of the grant
that was looked up last.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from qserver.control.tiers import TIERS, Limits, Tier
from qserver.engine.turns import Turns
from qserver.errors import InvalidRequest, TooManyRequests
from qserver.limits import STATEMENT_SECONDS, STATEMENT_SECONDS_MAX, VALUE_BYTES_MAX
from qserver.query.memory_pool import MemoryPool

NO_LIMITS: Final[Mapping[str, int]] = MappingProxyType({})
_MOST: Final = 2**48
_COUNT_MAX: Final = 1_000_000
_TIMEOUT_MAX_MS: Final = int(STATEMENT_SECONDS_MAX * 1000)
BOUNDS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "requests_per_minute": (1, _MOST),
        "databases": (1, _COUNT_MAX),
        "branches": (0, _COUNT_MAX),
        "stored_bytes": (0, _MOST),
        "memory_bytes": (VALUE_BYTES_MAX, _MOST),
        "connections": (1, _COUNT_MAX),
        "open_transactions": (0, _COUNT_MAX),
        "feeds": (0, _COUNT_MAX),
        "live_queries": (0, _COUNT_MAX),
        "statement_timeout_ms": (1, _TIMEOUT_MAX_MS),
        "statement_timeout_max_ms": (1, _TIMEOUT_MAX_MS),
    }
)
"""The limits that an organization may have of its own, with the least and the most of each."""


def read_own(text: str | None) -> dict[str, int]:
    """Return an organization's own limits, as they are stored."""
    return {} if text is None else msgspec.json.decode(text, type=dict[str, int])


def changed_own(own: Mapping[str, int], change: Mapping[str, int | None]) -> dict[str, int]:
    """Return limits after a change, in which None means: what the tier says. Raise if it is bad."""
    for name, value in change.items():
        least, most = BOUNDS[name]
        if value is not None and not least <= value <= most:
            raise InvalidRequest(f"{name} is {least} to {most}, not {value}")
    made = {name: value for name, value in {**own, **change}.items() if value is not None}
    timeout_ms = made.get("statement_timeout_ms", 0)
    if timeout_ms > made.get("statement_timeout_max_ms", timeout_ms):
        raise InvalidRequest("statement_timeout_ms is more than statement_timeout_max_ms")
    return made


class Share:
    """The share of one organization."""

    __slots__ = ("bodies", "connections", "limits", "memory", "organization", "turns")

    def __init__(
        self,
        limits: Limits | None = None,
        memory: MemoryPool | None = None,
        bodies: MemoryPool | None = None,
        organization: str = "",
    ) -> None:
        self.organization = organization
        """Its id."""
        self.limits = limits or Limits()
        self.memory = memory or MemoryPool()
        """Of statements, open transactions and answers that are not read yet."""
        self.bodies = bodies or MemoryPool()
        """Of requests that are arriving."""
        self.turns = Turns()
        """Its place among those whose work takes long."""
        self.connections = 0
        """Requests and streams that are under way, and wait for something."""

    def check_connections(self) -> None:
        """Raise if the organization has as many requests under way as it may have."""
        most = self.limits.connections
        if self.connections >= most:
            raise TooManyRequests(
                f"the organization has {self.connections} requests and streams under way,"
                f" and {most} are allowed",
                hint="Wait for one of them, or end a stream.",
            )

    def __repr__(self) -> str:
        return f"a share: {self.memory!r}"


class Shares:
    def __init__(
        self,
        memory: MemoryPool | None = None,
        bodies: MemoryPool | None = None,
        *,
        tiers: Mapping[str, Tier] = TIERS,
        statement_seconds: float = STATEMENT_SECONDS,
        statement_seconds_max: float | None = None,
    ) -> None:
        """`statement_seconds_max`: the most that a request may ask for; None: no more."""
        self._memory = memory or MemoryPool()
        self._bodies = bodies or MemoryPool()
        self._tiers = tiers
        self._timeout_ms = round(statement_seconds * 1000)
        most = statement_seconds if statement_seconds_max is None else statement_seconds_max
        self._timeout_max_ms = round(most * 1000)
        self._shares: dict[str, Share] = {}
        self.anonymous = self._new(Limits())
        """Of requests that need no key."""

    def share(self, organization_id: str, tier: str, own: str | None = None) -> Share:
        """Return the share of an organization, with what it may have now.

        `own` are limits of its own, as JSON.
        """
        limits = self.limits(tier, read_own(own))
        found = self._shares.get(organization_id)
        if found is None:
            found = self._shares[organization_id] = self._new(limits, organization_id)
        found.limits = limits
        most = self._memory.most
        found.memory.most = most if limits.memory_bytes is None else min(limits.memory_bytes, most)
        return found

    def _new(self, limits: Limits, organization: str = "") -> Share:
        return Share(limits, self._memory.part(), self._bodies.part(), organization)

    def limits(self, tier: str, own: Mapping[str, int] = NO_LIMITS) -> Limits:
        """Return what an organization of a tier may have, if it has some limits of its own."""
        found = self._tiers[tier]
        timeout_ms, most_ms = own.get("statement_timeout_ms"), own.get("statement_timeout_max_ms")
        usual = Limits(
            requests_per_minute=found.requests_per_minute,
            databases=found.databases,
            branches=found.databases,
            stored_bytes=found.stored_bytes,
            statement_timeout_ms=min(self._timeout_ms, most_ms or self._timeout_ms),
            statement_timeout_max_ms=max(self._timeout_max_ms, timeout_ms or 0),
        )
        return msgspec.structs.replace(usual, **own)

    def note_organizations(self, count: int) -> None:
        """Note how many organizations there are: one alone need not leave room for others."""
        self._memory.has_one_user = self._bodies.has_one_user = count <= 1

    def __repr__(self) -> str:
        return f"the shares of {len(self._shares)} organizations"
