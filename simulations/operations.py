"""Operations of a simulated disk: each runs in a task of the device, after those before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from typing import Any

import trio

from qserver.durability.port import UnderWay
from qserver.errors import QserverError
from simulations.world import ACTOR, SimulatedWorld


class Appending(UnderWay):
    """An append that a task awaits, or whose end is noticed without one."""

    def __init__(
        self,
        wait: Callable[[], Coroutine[Any, Any, None]],
        operation: Operation,
        world: SimulatedWorld,
    ) -> None:
        self._wait, self._operation, self._world = wait, operation, world

    def then(self, callback: Callable[[], None]) -> None:
        self._operation.callback = partial(copy_context().run, self._end, callback)

    def _end(self, callback: Callable[[], None]) -> None:
        self.error = self._operation.error
        self._world.reach("the end of a group's append was noticed without a task")
        callback()

    def __await__(self) -> Generator[Any, Any, None]:
        self._operation.callback = None
        self._world.reach("a group that began at the end of a batch was awaited")
        return self._wait().__await__()


class Operation:
    callback: Callable[[], None] | None = None

    def __init__(self, before: Operation | None) -> None:
        self.done = trio.Event()
        self.abandoned = False
        self._before = before
        self._scope = trio.CancelScope()
        self._result: Any = None
        self.error: QserverError | None = None

    async def run(self, operation: Callable[[], Awaitable[Any]]) -> None:
        ACTOR.set("disk")
        try:
            with self._scope:
                if self._before is not None:
                    await self._before.done.wait()
                    self._before = None
                self._result = await operation()
        except QserverError as error:
            self.error = error
        except trio.Cancelled:  # the run is over
            self.abandoned = True
            raise
        finally:
            self.done.set()
            if self.callback is not None and not self.abandoned:
                self.callback()

    def abandon(self) -> None:
        self.abandoned = True
        self._scope.cancel()
        self.done.set()

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self._result
