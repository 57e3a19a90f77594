"""ASGI's lifespan: the application is told to start, lives beside its requests, is told to stop.

An application that raises before it has asked for its first message does not know the protocol,
and is served without it. One that raises later has failed, and the server does not outlive it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from qserver.errors import first_of
from qserver.web.http1.asgi import VERSIONS, Application, Message
from qserver.web.http1.errors import ApplicationFailed


class Lifespan:
    """The application's own task. `failure` is what went wrong with it, once something did."""

    def __init__(self, application: Application, on_failure: Callable[[], None]) -> None:
        self._application = application
        self._on_failure = on_failure
        self.state: dict[str, Any] = {}
        self.supported = True
        self.failure: ApplicationFailed | None = None
        self._messages_taken = 0
        self._started = trio.Event()
        self._stop = trio.Event()
        self._stopped = trio.Event()

    async def run(self) -> None:
        scope = {"type": "lifespan", "asgi": VERSIONS, "state": self.state}
        try:
            await self._application(scope, self._receive, self._send)
        except Exception as error:
            if self._messages_taken:
                cause = first_of(error)
                self._fail(f"{type(cause).__name__}: {cause}", error)
            else:
                self.supported = False
        finally:
            if not self._started.is_set() and self.failure is None:
                self.supported = False
            self._started.set()
            self._stopped.set()

    async def start(self) -> None:
        """Return when the application has started, or failed to."""
        await self._started.wait()

    async def stop(self, seconds: float) -> bool:
        """Tell the application to stop; False if it has not in that time."""
        self._stop.set()
        with trio.move_on_after(seconds):
            await self._stopped.wait()
        return self._stopped.is_set()

    async def _receive(self) -> Message:
        self._messages_taken += 1
        if self._messages_taken == 1:
            return {"type": "lifespan.startup"}
        if self._messages_taken == 2:
            await self._stop.wait()
            return {"type": "lifespan.shutdown"}
        self._stopped.set()  # it asks for what will never come, so it has done everything else
        return await trio.sleep_forever()

    async def _send(self, message: Message) -> None:
        match message["type"]:
            case "lifespan.startup.complete":
                self._started.set()
            case "lifespan.shutdown.complete":
                pass  # what it still does before it returns is waited for
            case "lifespan.startup.failed" | "lifespan.shutdown.failed":
                self._fail(message.get("message") or "it gave no reason", None)
                self._started.set()
                self._stopped.set()
            case kind:
                raise RuntimeError(f"{kind!r} is not a message of the lifespan protocol")

    def _fail(self, reason: str, cause: Exception | None) -> None:
        if self.failure is not None:
            return  # its own word counts, not the exception that came of it
        if not self._started.is_set():
            does = "could not start"
        elif not self._stop.is_set():
            does = "failed while it was running"
        else:
            does = "could not shut down cleanly"
        self.failure = ApplicationFailed(f"the application {does}: {reason}")
        self.failure.__cause__ = cause
        self._on_failure()
