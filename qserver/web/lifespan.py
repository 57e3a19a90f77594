"""The life of the application as an ASGI server tells it: startup, shutdown."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from qserver.errors import QserverError, first_of
from qserver.web.exchange import Receive, Send


class Lifespan:
    """Runs the service from startup to shutdown. What keeps it from starting is said in words."""

    def __init__(self, running: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        self._running = running

    async def __call__(self, receive: Receive, send: Send) -> None:
        message = await receive()
        assert message["type"] == "lifespan.startup"
        started = False
        try:
            async with self._running():
                started = True
                await send({"type": "lifespan.startup.complete"})
                message = await receive()
                assert message["type"] == "lifespan.shutdown"
        except Exception as error:
            problem = first_of(error)
            if started or not isinstance(problem, QserverError):
                raise
            hint = f" {problem.hint}" if problem.hint else ""
            failed = {"type": "lifespan.startup.failed", "message": f"{problem.message}.{hint}"}
            await send(failed)
            return
        await send({"type": "lifespan.shutdown.complete"})
