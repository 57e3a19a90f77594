"""Keeps room on log nodes for what makes room: no appends when they are nearly full.

At the bound of the account nodes refuse every message: also leases, and the parts of a base, after
which the front of a stream can be purged. So appends end before that. What is stored is asked for
now and then, so the share that is left must be more than what is appended meanwhile.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import LogFailed
from qserver.replication.nats.jetstream import FULL_HINT, JetStream

APPENDED_SHARE: Final = 0.9
"""Of what may be stored: past it nothing is appended to streams."""


class Room:
    def __init__(self, calls: JetStream) -> None:
        self._calls = calls
        self._used = self._most = 0

    async def check(self) -> None:
        """Ask how much is stored, in all copies together."""
        self._used, self._most = await self._calls.storage()

    def refuse(self) -> None:
        """Raise LogFailed if nothing may be appended now."""
        if 0 < APPENDED_SHARE * self._most < self._used:
            text = f"log nodes store {self._used:,} bytes of {self._most:,}"
            raise LogFailed(text, hint=FULL_HINT)
