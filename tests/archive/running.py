"""A continuous backup in this process, which runs, or takes one step after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from qserver.archive.continuous import Continuous, Options
from qserver.archive.layout import Generation, complete, generations_in
from qserver.archive.objects import Objects
from qserver.archive.reading import Reader
from qserver.archive.rebuilding import Goal, Rebuilding
from qserver.archive.status import StatusFile
from qserver.durability.files import make_folder
from tests.patience import PATIENCE_SECONDS, PAUSE_SECONDS

DAY = 86_400.0
OPTIONS = Options(0.02, 7 * DAY, DAY)


class Running:
    """A backup in this process, with a clock that can be put forward."""

    def __init__(
        self, folder: Path, objects: Objects, options: Options = OPTIONS, chance: str = "0f"
    ) -> None:
        self._chance = chance
        self.said: list[str] = []
        self.later = 1_000_000.0
        self.objects = objects
        self._folder = folder
        self._options = options
        self.continuous: Continuous

    @asynccontextmanager
    async def run(self, *, is_killed: bool = False) -> AsyncIterator[None]:
        status = StatusFile(self._folder, self.objects.place)
        try:
            self.continuous = Continuous(
                *(self._folder, self.objects, status, self._options),
                *(self.now, lambda: self._chance, self.said.append, "a test"),
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.continuous.run)
                yield
                if is_killed:
                    nursery.cancel_scope.cancel()
                self.continuous.stop()
        finally:
            status.close()

    @asynccontextmanager
    async def stepped(self) -> AsyncIterator[Continuous]:
        """Have a backup that does nothing by itself."""
        status = StatusFile(self._folder, self.objects.place)
        try:
            continuous = Continuous(
                *(self._folder, self.objects, status, self._options),
                *(self.now, lambda: self._chance, self.said.append, "a test"),
            )
            await continuous.begin()
            yield continuous
        finally:
            status.close()

    def now(self) -> float:
        return self.later + trio.current_time()

    async def saved(self) -> None:
        """Return when everything until now is saved."""
        began = self.now()
        await self.eventually(lambda: self.continuous.status().until > began)

    async def eventually(self, holds: Callable[[], object]) -> None:
        with trio.fail_after(PATIENCE_SECONDS):
            while not holds():  # noqa: ASYNC110 - it is another task that gets on, by itself
                await trio.sleep(PAUSE_SECONDS)

    def generations(self) -> list[Generation]:
        return complete(generations_in(self.objects.keys()))

    async def rebuilt(self, folder: Path, goal: Goal | None = None) -> Rebuilding:
        reader = Reader(self.objects, self.generations()[-1])
        make_folder(folder)
        rebuilding = Rebuilding(reader, folder, goal or Goal(), lambda share: None)
        await rebuilding.run()
        return rebuilding
