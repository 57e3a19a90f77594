"""Tiers: what an organization may have, unless it has limits of its own."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import msgspec

from qserver.limits import (
    CONNECTIONS_OF_ORGANIZATION_MAX,
    DATABASES_FREE,
    DATABASES_OF_ORGANIZATION_MAX,
    DATABASES_PRO,
    FEED_READERS_MAX,
    KEYS_OF_ORGANIZATION_MAX,
    LIVE_QUERIES_MAX,
    OPEN_TRANSACTIONS_MAX,
    REQUESTS_PER_WINDOW_FREE,
    REQUESTS_PER_WINDOW_PRO,
    SESSIONS_OF_KEY_MAX,
    STATEMENT_SECONDS,
    STORED_BYTES_FREE,
    STORED_BYTES_PRO,
)

_TIMEOUT_MS: Final = int(STATEMENT_SECONDS * 1000)


class Tier(msgspec.Struct, frozen=True):
    """What an organization may have; None is no limit."""

    name: str
    requests_per_minute: int | None
    databases: int = DATABASES_OF_ORGANIZATION_MAX
    stored_bytes: int | None = None


TIERS: Final = MappingProxyType(
    {
        tier.name: tier
        for tier in (
            Tier("free", REQUESTS_PER_WINDOW_FREE, DATABASES_FREE, STORED_BYTES_FREE),
            Tier("pro", REQUESTS_PER_WINDOW_PRO, DATABASES_PRO, STORED_BYTES_PRO),
            Tier("unlimited", None),
        )
    }
)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What an organization may have; None is no limit."""

    requests_per_minute: int | None = None
    databases: int = DATABASES_OF_ORGANIZATION_MAX
    keys: int = KEYS_OF_ORGANIZATION_MAX
    sessions_per_key: int = SESSIONS_OF_KEY_MAX
    branches: int = DATABASES_OF_ORGANIZATION_MAX
    """Databases that are branches of others; they count as databases, too."""
    stored_bytes: int | None = None
    memory_bytes: int | None = None
    """Of statements, open transactions and unread answers; never more than they leave free."""
    connections: int = CONNECTIONS_OF_ORGANIZATION_MAX
    """Requests and streams that are under way, except those that are answered at once."""
    open_transactions: int = OPEN_TRANSACTIONS_MAX
    feeds: int = FEED_READERS_MAX
    live_queries: int = LIVE_QUERIES_MAX
    statement_timeout_ms: int = _TIMEOUT_MS
    """How long a request may take that does not say how long."""
    statement_timeout_max_ms: int = _TIMEOUT_MS
    """The longest time that a request may ask for."""
