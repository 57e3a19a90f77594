"""The CPU time of the server, which its metrics tell.

A rate depends on the client as well: where both run on one machine, the client is often the slower
one. The CPU time that a request takes is the server's own.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Final, Self

import httpx

from qserver.client.requests import checked_url

_SECONDS: Final = re.compile(r"^process_cpu_seconds_total (\S+)$", re.MULTILINE)


class ServerClock:
    """Unknown (None) to a key that may not see the server's metrics, and where there are none."""

    def __init__(self, url: str, key: str) -> None:
        self._page = checked_url(url).rstrip("/") + "/metrics"
        self._http = httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"})

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.__aexit__(kind, error, traceback)

    async def cpu_seconds(self) -> float | None:
        """The CPU time that the server has used since its start."""
        try:
            page = await self._http.get(self._page)
        except httpx.HTTPError:
            return None
        found = _SECONDS.search(page.text)
        return float(found.group(1)) if found else None
