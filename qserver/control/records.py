"""The records of the control plane as values, and what a token allows.

    Organization ─┬─ DatabaseRecord …
                  └─ KeyRecord ── SessionRecord …          Grant: a key or a session, resolved

None of them holds a secret, so all may be shown and logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from math import inf
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import msgspec
import trio
from msgspec.structs import force_setattr

from qserver.control.shares import Share
from qserver.control.tiers import Limits
from qserver.query.permissions import Allowed
from qserver.sql import Described

ADMIN: Final = "admin"
SCOPES: Final = ("data:read", "data:write", "schema", "databases", "keys", ADMIN)
"""What a key may do; `admin` implies all others."""

DatabaseState: TypeAlias = Literal["creating", "ready", "deleting", "deleted"]
"""`deleted`: gone for everybody, but branches still need pages in its file."""
KeyState: TypeAlias = Literal["active", "expired", "revoked"]


class Organization(msgspec.Struct, frozen=True):
    id: str
    name: str
    tier: str
    created_at: datetime


class DatabaseRecord(msgspec.Struct, frozen=True):
    id: str
    organization: str
    organization_id: str
    name: str
    state: DatabaseState
    created_at: datetime
    parent_id: str | None = None
    branch_of: str | None = None
    """The name of the database that it is a branch of; its id, if that was deleted."""
    branch_version: int | None = None
    """The last version that both have in common."""
    expires_at: datetime | None = None
    """When it is deleted, unless it is kept."""
    history: float | None = None
    """For how many seconds older versions are kept; None: as the service does."""
    family: str = ""
    """The id of the database at the root of its branches."""
    replicas: int | None = None
    """How many other processes may follow it; None: as the service does."""


class DatabaseFacts(msgspec.Struct, frozen=True):
    """Figures from the database itself; all 0 while it is not ready."""

    version: int = 0
    tables: int = 0
    rows: int = 0
    size_bytes: int = 0
    history: int = 0


class KeyRecord(msgspec.Struct, frozen=True):
    """A key without its secret.

    `databases` are the names of those that the key is limited to; None: it is not limited. `prefix`
    is the beginning of the secret, by which people tell keys apart.
    """

    id: str
    organization_id: str
    name: str
    scopes: tuple[str, ...]
    databases: tuple[str, ...] | None
    state: KeyState
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    statements: Mapping[str, str] | None = None
    """The only statements that the key can run, by name; None: its scopes decide."""
    bound: tuple[str, ...] | None = None
    """The parameters of these that every session must bind."""


class SessionRecord(msgspec.Struct, frozen=True):
    """A session; `database` is the default for requests that name none. `bound` are parameters."""

    id: str
    key_id: str
    scopes: tuple[str, ...]
    database: str
    created_at: datetime
    expires_at: datetime
    bound: Mapping[str, Any] | None = None


class ListedSession(msgspec.Struct, frozen=True):
    """A session as others see it; `database` is the one that it is limited to."""

    id: str
    key_id: str
    key: str
    scopes: tuple[str, ...]
    database: str | None
    created_at: datetime
    expires_at: datetime


class Use(msgspec.Struct, frozen=True):
    """What an organization has: living keys and sessions, requests of the last minute."""

    requests_this_minute: int
    databases: int
    keys: int
    sessions: int
    stored_bytes: int
    branches: int
    memory_bytes: int
    connections: int
    open_transactions: int
    feeds: int
    live_queries: int


class OrganizationOverview(msgspec.Struct, frozen=True):
    id: str
    name: str
    tier: str
    created_at: datetime
    limits: Limits
    use: Use


class ResetReport(msgspec.Struct, frozen=True):
    databases: int
    tables_dropped: int
    rows_deleted: int


class Grant(msgspec.Struct, frozen=True):
    """What a token allows, for as long as nothing in the control database changes.

    `database` is the default for requests that name none. `database_ids` are those that may be
    used, None for all. The booleans are computed once, because every request reads them.

    A grant with `statements` has no scope, so that no check of a scope lets it pass: it runs these
    statements, and `bound` parameters have the values that they have here. Sessions made with it
    bind those of `must_bind`.
    """

    organization_id: str
    organization: str
    tier: str
    key_id: str
    session_id: str | None
    scopes: frozenset[str]
    database_ids: frozenset[str] | None
    database: str = "main"
    expires_at: float = inf
    statements: Mapping[str, Described] | None = None
    bound: Mapping[str, Any] = MappingProxyType({})
    share: Share = msgspec.field(default_factory=Share)
    """What its organization has, and may have."""
    must_bind: tuple[str, ...] = ()
    is_unlimited: bool = False
    """Whether its requests are not counted."""
    may_read: bool = False
    may_write: bool = False
    may_define: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "is_unlimited", self.limits.requests_per_minute is None)
        force_setattr(self, "may_read", self.has("data:read"))
        force_setattr(self, "may_write", self.has("data:write"))
        force_setattr(self, "may_define", self.has("schema"))

    @property
    def limits(self) -> Limits:
        return self.share.limits

    def deadline(self) -> float:
        """Return until when a request that begins now may run, by Trio's clock."""
        return trio.current_time() + self.limits.statement_timeout_ms / 1000

    def allowed(self) -> Allowed:
        """Return what its statements may do."""
        whose = self.key_id, self.session_id
        if self.statements is not None:
            writes = any(each.writes for each in self.statements.values())
            return Allowed(True, writes, False, False, *whose, False)
        may = self.may_read, self.may_write, self.may_define
        return Allowed(*may, False, *whose, ADMIN in self.scopes)

    def has(self, scope: str) -> bool:
        return scope in self.scopes or ADMIN in self.scopes

    def has_all(self, scopes: frozenset[str] | tuple[str, ...]) -> bool:
        return ADMIN in self.scopes or self.scopes.issuperset(scopes)

    def may_use(self, database_id: str) -> bool:
        return self.database_ids is None or database_id in self.database_ids

    def may_use_all(self, database_ids: frozenset[str] | None) -> bool:
        """Return whether all of them (None: any database) may be used."""
        if self.database_ids is None:
            return True
        return database_ids is not None and self.database_ids.issuperset(database_ids)
