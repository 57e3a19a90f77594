"""Open transactions of an organization, over all processes, for those who look after it.

    each process ─► what it holds of the organization ─► one list, oldest first
    end one      ─► asked of all: the one that holds it ends it, after the use under way

A transaction itself answers only to the key or session that opened it. To list and to end those of
others needs the scope admin, and a key that is limited to some databases sees the ones of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from qserver.control.open_transactions import Held, OpenTransactions, not_found
from qserver.control.owners import Owners
from qserver.control.records import ADMIN, Grant
from qserver.control.requests import require
from qserver.errors import QserverError


class HeldTransaction(msgspec.Struct, frozen=True, array_like=True):
    """What is told of an open transaction; times are seconds since 1970."""

    id: str
    database_id: str
    database: str
    key_id: str
    session_id: str | None
    state: Literal["active", "failed"]
    is_used: bool
    read_only: bool
    version: int
    statements: int
    rows_changed: int
    bytes: int
    created_at: float
    expires_at: float


class HeldList:
    def __init__(self, owners: Owners, here: OpenTransactions) -> None:
        self._owners = owners
        self._here = here
        owners.answer("held", self._held_here)
        owners.answer("end held", self._end_here)

    async def every(self, grant: Grant) -> list[HeldTransaction]:
        """Return the open transactions, oldest first; raise if a process does not tell its own."""
        require(grant, ADMIN)
        found = await self._ask_all("held", grant.organization_id)
        parts = [msgspec.convert(part, list[HeldTransaction]) for part in found]
        shown = [each for part in parts for each in part if grant.may_use(each.database_id)]
        return sorted(shown, key=lambda each: (each.created_at, each.id))

    async def end(self, grant: Grant, name: str) -> None:
        """Roll one back; raise TransactionNotFound without one."""
        require(grant, ADMIN)
        databases = None if grant.database_ids is None else sorted(grant.database_ids)
        if not any(await self._ask_all("end held", grant.organization_id, databases, name)):
            raise not_found(name)

    async def _ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """Return all answers, or those before the one that settles it; an error is raised last."""
        found = (await self._owners.try_all(method, *arguments)).values()
        errors = [each for each in found if isinstance(each, QserverError)]
        if errors and True not in found:
            raise errors[0]
        return [each for each in found if not isinstance(each, QserverError)]

    async def _held_here(self, organization_id: str) -> list[HeldTransaction]:
        return [_told(held) for held in self._here.of_organization(organization_id)]

    async def _end_here(
        self, organization_id: str, databases: Sequence[str] | None, name: str
    ) -> bool:
        for held in self._here.of_organization(organization_id):
            if held.id == name and (databases is None or held.opened.id in databases):
                self._here.finish(held, "rolled_back")
                return True
        return False

    def __repr__(self) -> str:
        return f"{self._here!r} of {self._owners!r}, and others'"


def _told(held: Held) -> HeldTransaction:
    transaction = held.transaction
    return HeldTransaction(
        held.id,
        held.opened.id,
        held.opened.name,
        held.key_id,
        held.session_id,
        transaction.state,
        held.is_used,
        transaction.read_only,
        transaction.version,
        transaction.statements,
        transaction.rows_changed,
        transaction.bytes,
        held.created_at,
        held.expires_at(),
    )
