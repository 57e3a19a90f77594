"""Many lives of one data folder: write, die, start, compare, and again.

    start ─► look and compare ─► clients write ─► death ─► start …
      └── or death before it is ready ──────────────┘

How a life ends is drawn by lot:

    answer     SIGKILL at the moment when some client gets an answer
    moment     SIGKILL after a random time
    drain      SIGTERM, and SIGKILL while it drains
    step       the server kills itself at a step of its log, see `launcher`
    start      SIGKILL while it starts

After the last life the server is stopped in the ordinary way, and every file is checked to its last
page; then all branches are deleted, and it is stopped and checked again. The same seed draws the
same lots; what the machine makes of them is never the same twice.
"""

from __future__ import annotations

import signal
import statistics
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import trio

from qserver.client import ConnectionFailed, ConnectionLost, TrioClient
from qserver.durability.folder import LOCK_FILE
from qserver.durability.reserve import RESERVE_FILE
from qserver.errors import QserverError
from tests.torture.branching import BranchingClient, problems_of_files
from tests.torture.clients import ACCOUNTS, SETUP, TorturedClient
from tests.torture.deaths import STEPS
from tests.torture.looking import look, sweep_if_large
from tests.torture.model import Model
from tests.torture.processes import KEY, Nest, ServerProcess, opened_nest

ENDS: Final[Mapping[str, int]] = {"answer": 35, "moment": 20, "drain": 10, "step": 25, "start": 10}
CLIENTS: Final = 6
FAMILIES: Final = 2
FILES_CHECKED: Final = 0.3
"""How often the files of the families are read to their last page after a death."""
CONTROL: Final = "control"
ANSWERS_MAX: Final = 120
LIFE_SECONDS_MAX: Final = 0.8
LIFE_SECONDS_LIMIT: Final = 3.0
"""A death that does not come by itself comes then."""
START_SECONDS_MAX: Final = 1.2
HANG_SECONDS: Final = 60.0
PROBLEMS_MAX: Final = 10


@dataclass(slots=True)
class Report:
    seed: int
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))
    acknowledged: int = 0
    found_applied: int = 0
    found_not_applied: int = 0
    recovery_seconds: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        return sum(self.kills.values())

    def __str__(self) -> str:
        ends = ", ".join(f"{count} by {end}" for end, count in self.kills.items() if count)
        times = sorted(self.recovery_seconds) or [0.0]
        lines = [
            f"kills: {self.killed} ({ends})",
            f"acknowledged writes: {self.acknowledged:,}",
            f"writes without an answer: {self.found_applied} were applied,"
            f" {self.found_not_applied} were not",
            f"from start to first answer: {times[0]:.2f} s at best,"
            f" {statistics.median(times):.2f} s in the middle, {times[-1]:.2f} s at worst",
        ]
        lines += [f"PROBLEM: {problem}" for problem in self.problems[:PROBLEMS_MAX]]
        lines.append("nothing was lost" if not self.problems else f"repeat with SEED={self.seed}")
        return "\n".join(lines)


class Campaign:
    """Lives of one folder, until enough deaths were died or a problem was found."""

    _nest: Nest

    def __init__(
        self,
        folder: Path,
        seed: int,
        kills: int,
        ends: Mapping[str, int] = ENDS,
        bug: str | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = folder
        self._chance = Random(seed)
        self._kills = kills
        self._ends = ends
        self._bug = bug
        self._tell = tell or (lambda line: None)
        self._model = Model(ACCOUNTS)
        self._clients = [
            TorturedClient(self._model, Random(self._chance.random())) for _ in range(CLIENTS)
        ]
        self._families = [
            BranchingClient(self._model, Random(self._chance.random()), number)
            for number in range(FAMILIES)
        ]
        self.report = Report(seed)

    async def run(self) -> Report:
        async with opened_nest() as self._nest:
            return await self._run()

    async def _run(self) -> Report:
        report = self.report
        await self._set_up()
        while report.killed < self._kills and not report.problems:
            (end,) = self._chance.choices(list(self._ends), list(self._ends.values()))
            await self._live(end)
            self._note()
            self._tell(f"{report.killed} kills, {report.acknowledged:,} acknowledged writes")
        if not report.problems:
            await self._finish()
            self._note()
        return report

    def _note(self) -> None:
        model, report = self._model, self.report
        report.acknowledged = model.acknowledged
        report.found_applied = model.found_applied
        report.found_not_applied = model.found_not_applied
        report.problems += model.problems
        model.problems.clear()

    async def _set_up(self) -> None:
        async with self._in_peace() as client:
            await client.transaction(SETUP)

    async def _live(self, end: str) -> None:
        """One life, and its end."""
        die = self._step() if end == "step" else None
        began = trio.current_time()
        async with self._nest.running_server(self._folder, die, self._bug) as server:
            with trio.move_on_after(HANG_SECONDS) as scope:
                if end == "start":
                    await trio.sleep(START_SECONDS_MAX * self._chance.random() ** 2)
                    server.kill()
                await server.has_spoken.wait()
                if server.url is not None:
                    await self._compare_and_write(server, end, began)
            if scope.cancelled_caught:
                self._model.problems.append(f"a server hung; it said: {server.said[-3:]}")
        self._expect_killed(server)
        if self._chance.random() < FILES_CHECKED:
            names = [name for family in self._families for name in family.files]
            self._model.problems += await problems_of_files(self._folder, names)
        # One that had drained before it could be killed has died in peace, and does not count.
        self.report.kills[end] += server.returncode == -signal.SIGKILL

    def _step(self) -> str:
        step = self._chance.choice(STEPS)
        number = self._chance.choice([1, 2, 3, self._chance.randint(4, 60)])
        return f"{step}:{number}:{self._chance.choice(['before', 'after'])}"

    async def _compare_and_write(self, server: ServerProcess, end: str, began: float) -> None:
        async with self._connected(server) as client:
            try:
                seen = await look(client)
                self.report.recovery_seconds.append(trio.current_time() - began)
                self._model.compare(seen)
                for family in self._families:
                    await family.compare(client)
                await sweep_if_large(client, self._model, seen)
            except (ConnectionLost, ConnectionFailed):
                return  # it died while it was looked at
            except QserverError as error:
                self._model.problems.append(f"the database cannot be read: {error}")
                return
            async with trio.open_nursery() as nursery:
                for each in (*self._clients, *self._families):
                    nursery.start_soon(each.run, client)
                await self._end(server, end)

    async def _end(self, server: ServerProcess, end: str) -> None:
        if end == "answer":
            await self._model.wait_for_answers(self._chance.randint(1, ANSWERS_MAX), server.kill)
        elif end == "step":
            with trio.move_on_after(LIFE_SECONDS_LIMIT):
                await server.wait()
        else:
            await trio.sleep(self._chance.uniform(0.01, LIFE_SECONDS_MAX))
            if end == "drain":
                server.send_signal(signal.SIGTERM)
                await trio.sleep(self._chance.uniform(0, 0.3))
        server.kill()

    def _expect_killed(self, server: ServerProcess) -> None:
        code = server.returncode
        if code not in (0, -signal.SIGKILL):
            self._model.problems.append(f"a server ended with {code}; it said: {server.said[-3:]}")
        self._model.problems += [f"a server said: {line}" for line in server.bugs]

    async def _finish(self) -> None:
        """Twice more in peace: compare and check every file; delete all branches, and check again.

        Nothing may be left of a database that was deleted, neither a page nor a file.
        """
        async with self._in_peace() as client:
            self._model.compare(await look(client))
            for family in self._families:
                await family.compare(client)
        self._model.problems += await problems_of_files(self._folder, at_rest=True)
        async with self._in_peace() as client:
            for family in self._families:
                await family.delete_all(client)
            names = {CONTROL, *(each["id"] for each in await client.databases())}
        self._model.problems += await problems_of_files(self._folder, at_rest=True)
        files = {each.name for each in self._folder.iterdir()} - {LOCK_FILE, RESERVE_FILE}
        there = {name.partition(".")[0] for name in files}
        if there != names:
            problem = f"files without a database, or the reverse: {there ^ names}"
            self._model.problems.append(problem)

    @asynccontextmanager
    async def _in_peace(self) -> AsyncIterator[TrioClient]:
        """A server that nobody kills, and that is stopped in the ordinary way."""
        async with self._nest.running_server(self._folder) as server:
            await server.has_spoken.wait()
            async with self._connected(server) as client:
                yield client
            server.send_signal(signal.SIGTERM)
            await server.wait()

    def _connected(self, server: ServerProcess) -> TrioClient:
        assert server.url is not None, f"the server did not start; it said: {server.said[-3:]}"
        return TrioClient(server.url, KEY, silence_seconds=20)
