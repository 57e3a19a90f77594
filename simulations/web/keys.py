"""Stands in for the control plane, at the one interface between it and the data plane.

    ordinary    is always admitted
    limited     belongs to an organization that has hardly any requests left in its minute
    brief       is admitted so many times, and then revoked, perhaps in the middle of a stream
    owner       can only run named statements, with its owner bound: one session for each owner

A key's grant and its database are available at once or after a while, by chance. Grants, rates and
counts of users are the product's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

from qserver.control.databases import OpenDatabase
from qserver.control.plane import ControlPlane
from qserver.control.records import ADMIN, Grant
from qserver.control.shares import Shares
from qserver.control.tiers import TIERS
from qserver.errors import Unauthorized
from qserver.sql.described import Described
from simulations.world import SimulatedWorld

ORDINARY: Final = "svc_k_ordinary"
LIMITED: Final = "svc_k_limited"
BRIEF: Final = "svc_k_brief"
OWNER: Final = "svc_s_owner"

REQUESTS_LEFT: Final = 2
"""How many requests of the limited organization each process lets in within a minute."""

AVAILABLE_AT_ONCE: Final = 0.85
"""How often a request need not wait for the grant of its key, or for its database."""


def brief_key(name: str, times: int) -> str:
    """Return a new key that is valid `times` times."""
    return f"{BRIEF}-{name}-{times}"


def owner_session(owner: int) -> str:
    return f"{OWNER}-{owner}"


class Keys:
    """The callers that a process knows, and the one database that they use."""

    def __init__(self, world: SimulatedWorld, opened: OpenDatabase, plane: ControlPlane) -> None:
        self.opened = opened
        self._world = world
        self._asked: dict[str, int] = {}
        self.ordinary = _grant("unlimited")
        self._limited = _grant("free")
        self._owners: dict[str, Grant] = {}
        self.statements: Mapping[str, Described] = {}
        """What the sessions of owners can run."""
        tier = TIERS["free"]
        assert tier.requests_per_minute is not None
        plane.take_request(self._limited, tier.requests_per_minute - REQUESTS_LEFT)
        plane.grant_nowait = self.grant_nowait
        plane.authenticate = self.authenticate
        plane.database_nowait = self.database_nowait
        plane.database = self.database

    def grant_nowait(self, token: str) -> Grant | None:
        if token.startswith(BRIEF) or not self._is_at_hand():
            return None
        return self._grant_of(token)

    def _grant_of(self, token: str) -> Grant:
        if not token.startswith(OWNER):
            return self._limited if token == LIMITED else self.ordinary
        grant = self._owners.get(token)
        if grant is None:
            owner = int(token.rpartition("-")[2])
            grant = self._owners[token] = Grant(
                *("org_unlimited", "unlimited", "unlimited", "key_owners", f"ses_{owner}"),
                frozenset(),
                None,
                statements=self.statements,
                bound={"owner": owner},
            )
        return grant

    async def authenticate(self, token: str) -> Grant:
        await self._wait()
        if token.startswith(BRIEF):
            asked = self._asked[token] = self._asked.get(token, 0) + 1
            if asked > int(token.rpartition("-")[2]):
                raise Unauthorized("the key was revoked", hint="Use another key.")
        return self._grant_of(token)

    def database_nowait(self, grant: Grant, name: str | None = None) -> OpenDatabase | None:
        if not self._is_at_hand():
            return None
        self.opened.users += 1
        return self.opened

    async def database(self, grant: Grant, name: str | None = None) -> OpenDatabase:
        await self._wait()
        self.opened.users += 1
        return self.opened

    def _is_at_hand(self) -> bool:
        return self._world.delays.random() < AVAILABLE_AT_ONCE

    async def _wait(self) -> None:
        world = self._world
        await trio.sleep(world.delays.expovariate(1.0) * world.profile.delay_seconds)


def _grant(tier: str) -> Grant:
    name = f"org_{tier}"
    share = Shares().share(name, tier)
    return Grant(name, tier, tier, f"key_{tier}", None, frozenset([ADMIN]), None, share=share)
