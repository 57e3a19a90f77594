"""Runs multi-step operations that continue after the client disconnects.

Making or deleting a database takes a record, files, and a record again. A caller that hangs up
between two steps must not leave a half behind, so the steps run in a task of the control plane and
the caller only waits for it. The next start finishes what a crash or a stop of the service cut
short.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import trio

from qserver.engine.turns import in_turns_of_owner
from qserver.errors import ChangeUnconfirmed, DatabaseUnavailable, QserverError

Made = TypeVar("Made")


class BackgroundTasks:
    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self.was_cut_short = False
        """Another process was away, so an operation may have left something to finish."""

    def begin(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def end(self) -> None:
        self._nursery = None

    def start(self, operation: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Begin an operation that nobody waits for; one of our errors ends it."""

        async def go() -> None:
            with suppress(QserverError):
                await operation()

        if self._nursery is not None:
            self._nursery.start_soon(go)

    async def run(self, operation: Callable[[], Coroutine[Any, Any, Made]]) -> Made:
        """Return the result of an operation; cancelling this call does not cancel the operation."""
        if self._nursery is None:
            raise _stopping()
        done = trio.Event()
        results: list[Made] = []
        errors: list[Exception] = []

        async def go() -> None:
            try:
                results.append(await in_turns_of_owner(operation()))
            except Exception as error:
                errors.append(error)
                if isinstance(error, DatabaseUnavailable | ChangeUnconfirmed):
                    self.was_cut_short = True
            finally:
                done.set()

        self._nursery.start_soon(go)
        await done.wait()
        if errors:
            raise errors[0]
        if not results:
            raise _stopping()
        return results[0]


def _stopping() -> DatabaseUnavailable:
    return DatabaseUnavailable("the service is starting or stopping", hint="Try again.")
