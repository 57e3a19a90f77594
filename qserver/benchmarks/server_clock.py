"""The CPU time of the server, which its metrics tell.

A rate depends on the client as well: where both run on one machine, the client is often the slower
one. The CPU time that a request takes is the server's own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import httpx

from qserver.client.requests import checked_url

_SECONDS: Final = re.compile(r"^process_cpu_seconds_total(?:{.*})? (\S+)$", re.MULTILINE)

ServerClock = Callable[[], Awaitable[float | None]]
"""Tells the CPU time that all processes of the server have used since their start. It is unknown
(None) to a key that may not see the server's metrics, and where there are none."""


@asynccontextmanager
async def server_clock(url: str, key: str) -> AsyncIterator[ServerClock]:
    page = checked_url(url).rstrip("/") + "/metrics"
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:

        async def cpu_seconds() -> float | None:
            try:
                found = _SECONDS.findall((await http.get(page)).text)
            except httpx.HTTPError:
                return None
            return sum(map(float, found)) if found else None

        yield cpu_seconds
