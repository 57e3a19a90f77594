"""What each organization may have: its tier's limits, and those of the server.

settings of the server ─┐
tier ───────────────────┴─► Limits, which every grant carries
"""

from __future__ import annotations

from collections.abc import Mapping

from qserver.control.records import TIERS, Limits, Tier
from qserver.limits import STATEMENT_SECONDS


class Shares:
    def __init__(
        self,
        tiers: Mapping[str, Tier] = TIERS,
        statement_seconds: float = STATEMENT_SECONDS,
        statement_seconds_max: float | None = None,
    ) -> None:
        """`statement_seconds_max`: the most that a request may ask for; None: no more."""
        self._tiers = tiers
        self._timeout_ms = round(statement_seconds * 1000)
        most = statement_seconds if statement_seconds_max is None else statement_seconds_max
        self._timeout_max_ms = round(most * 1000)

    def limits(self, tier: str) -> Limits:
        """Return what an organization of a tier may have."""
        found = self._tiers[tier]
        return Limits(
            requests_per_minute=found.requests_per_minute,
            databases=found.databases,
            stored_bytes=found.stored_bytes,
            statement_timeout_ms=self._timeout_ms,
            statement_timeout_max_ms=self._timeout_max_ms,
        )

    def __repr__(self) -> str:
        return f"limits of {len(self._tiers)} tiers"
