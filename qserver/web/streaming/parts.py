"""The parts of an answer that is made while it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from qserver.http1 import Parts


class AnswerParts:
    """The parts of an answer, and a callback for its end, even if it never began."""

    def __init__(self, parts: Parts, ended: Callable[[], Awaitable[None]]) -> None:
        self._parts = parts
        self._ended: Callable[[], Awaitable[None]] | None = ended

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts.__aiter__()

    async def aclose(self) -> None:
        ended, self._ended = self._ended, None
        try:
            await self._parts.aclose()
        finally:
            if ended is not None:
                await ended()
