"""Faults of several processes under load, and what became of all that was promised.

    kill         SIGKILL to one process
    stop         SIGSTOP, for longer than the watchdog's patience, then SIGCONT
    kill all     SIGKILL to all processes, the supervisor lives
    supervisor   SIGKILL to the supervisor: the others drain and end. All is started again
    drain        SIGTERM to the supervisor; started again
    drain all    SIGTERM to every process, as a platform may send it; started again

After each fault every database must be served again. Meanwhile those of other processes go on.
At the end all is compared, the files are checked, and one process serves what several have written.
"""

from __future__ import annotations

import os
import signal
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import trio

from qserver.durability.copy_mark import COPY_FILE
from qserver.durability.folder import LOCK_FILE
from qserver.durability.reserve import RESERVE_FILE
from tests.processes.clients import Writer, follow, settled, watch
from tests.processes.ledger import SETUP, Followed, Ledger
from tests.processes.machine import PROCESSES, Machine, endless, until
from tests.processes.under_load import DATABASES, FaultsReport, UnderLoad
from tests.processes.wire import posted, query
from tests.torture.branching import problems_of_files

FAULTS: Final[Mapping[str, int]] = {
    "kill": 60,
    "stop": 14,
    "kill all": 6,
    "supervisor": 8,
    "drain": 6,
    "drain all": 6,
}
WANDERERS: Final = 2
STALL_SECONDS: Final = 3
STOPPED_SECONDS: Final = 4.0
LIFE_SECONDS_MAX: Final = 0.6
"""Between two faults."""
OTHERS_ANSWERS_MIN: Final = 5


@dataclass(slots=True)
class Report(FaultsReport):
    gaps: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds from a fault to the moment when all databases were served again."""
    others: list[int] = field(default_factory=list)
    """Answers of the databases of other processes, while one was away."""

    def lines(self) -> Iterator[str]:
        ledger = self.ledger
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.faults.items() if count)
        yield f"faults: {self.total} ({kinds})"
        yield (
            f"acknowledged writes: {ledger.acknowledged:,}; branches: {ledger.branches}; answers to"
            f" pipelined requests: {ledger.pipelined:,}; versions followed:"
            f" {self.versions_followed:,}"
        )
        yield self.repeated()
        for kind, times in self.gaps.items():
            if times:
                yield (
                    f"until all is served after {kind}: {min(times):.2f} s at best,"
                    f" {statistics.median(times):.2f} s in the middle, {max(times):.2f} s at worst"
                )
        others = self.others or [0]
        yield (
            f"answers of other processes in such a time: {min(others)} at least,"
            f" {statistics.median(others):g} in the middle"
        )


class Campaign(UnderLoad[Report]):
    """One data folder, many faults."""

    kinds = FAULTS
    """How often there is one of each, compared with the others."""
    once: Sequence[tuple[str, int]] = (
        *[("kill", number) for number in range(PROCESSES)],
        *[("stop", 0), ("supervisor", 0), ("drain all", 0)],
    )
    """Those that come first; kinds are drawn by lot then."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        faults: int,
        tell: Callable[[str], None] = lambda line: None,
        settings: Mapping[str, str] | None = None,
        prepare: Callable[[], None] = endless,
    ) -> None:
        stall = {"QSERVER_STALL_S": str(STALL_SECONDS)}
        self._machine = Machine(folder, {**stall, **(settings or {})}, prepare=prepare)
        super().__init__(self._machine, Random(seed), Report(seed, Ledger()))
        self._planned = self._plan(faults)
        self._tell = tell
        self._owners: dict[str, int] = {}
        self._followed: list[Followed] = []

    def _plan(self, count: int) -> list[tuple[str, int]]:
        """Kinds, with numbers of processes."""
        plan = list(self.once)
        kinds, weights = list(self.kinds), list(self.kinds.values())
        while len(plan) < count:
            (kind,) = self._chance.choices(kinds, weights)
            plan.append((kind, self._chance.randrange(PROCESSES)))
        return plan[:count]

    async def run(self) -> Report:
        try:
            return await self._run()
        finally:
            self._machine.kill()

    async def _run(self) -> Report:
        await self._set_up()
        async with trio.open_nursery() as readers:
            for followed in self._followed:
                readers.start_soon(follow, self._machine, followed)
            for name in list(self._owners)[:3]:
                readers.start_soon(watch, self._machine, name, self._live)
            async with trio.open_nursery() as nursery:
                self._begin_writing(nursery)
                for kind, number in self._planned:
                    if not self._problems():
                        await self._fault(kind, number)
                self._ledger.is_over = True
            await self._compare_entries(self._owners)
            await self._compare_readers(self._followed)
            self.report.versions_followed = sum(each.version for each in self._followed)
            readers.cancel_scope.cancel()
        await self._finish()
        self._problems()
        return self.report

    async def _set_up(self) -> None:
        machine = self._machine
        await machine.start()
        self._owners = await machine.make_databases(DATABASES)
        assert set(self._owners.values()) == set(range(PROCESSES)), "each process has some"
        async with machine.connected() as wire:
            for name in self._owners:
                made = await wire.send(
                    posted("/v1/transaction", {"statements": SETUP, "database": name})
                )
                assert made.is_good, made.body
        self._followed = [Followed(name, 0) for name in list(self._owners)[:4]]

    def _begin_writing(self, nursery: trio.Nursery) -> None:
        machine, ledger = self._machine, self._ledger
        every = list(self._owners)
        homes = [[each for each in every if self._owners[each] == n] for n in range(PROCESSES)]
        for number, databases in enumerate([*homes, *[every] * WANDERERS]):
            writer = Writer(machine, ledger, self._chance_of_its_own(), databases, number)
            nursery.start_soon(writer.run, writer.write)
        brancher = self._make_brancher(every)
        nursery.start_soon(brancher.run, brancher.branch)

    # --- faults ---

    async def _fault(self, kind: str, number: int) -> None:
        await trio.sleep(self._chance.uniform(0.0, LIFE_SECONDS_MAX))
        machine, began = self._machine, trio.current_time()
        away, others = {number}, self._answers_of_others(number)
        if kind == "kill":
            await machine.signal(number, signal.SIGKILL)
        elif kind == "stop":
            began = await self._stop(number)
        else:
            away = set(range(PROCESSES))
            await self._fault_of_all(kind)
        await self._until_served(away)
        self.report.gaps[kind].append(trio.current_time() - began)
        if len(away) == 1:
            self.report.others.append(self._answers_of_others(number) - others)
        self.report.faults[kind] += 1
        line = f"{self.report.total} faults, {self._ledger.acknowledged:,} acknowledged writes"
        self._tell(f"{line}, the last: {kind} {number}")

    def _answers_of_others(self, number: int) -> int:
        answers = self._ledger.answers
        return sum(answers[name] for name, owner in self._owners.items() if owner != number)

    async def _stop(self, number: int) -> float:
        """Return when the process could go on; until then others must have answered."""
        before = self._answers_of_others(number)
        process = await self._machine.signal(number, signal.SIGSTOP)
        await trio.sleep(STOPPED_SECONDS)
        await until(
            lambda: self._answers_of_others(number) >= before + OTHERS_ANSWERS_MIN,
            f"all wait for process {number}, which is stopped",
        )
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
        return trio.current_time()

    async def _fault_of_all(self, kind: str) -> None:
        machine, ledger = self._machine, self._ledger
        if kind == "kill all":
            for process in machine.members():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return
        halves = ledger.half_answers
        if kind == "supervisor":
            machine.supervisor.send_signal(signal.SIGKILL)
            await machine.ended()
        else:
            for process in machine.members() if kind == "drain all" else ():
                os.kill(process, signal.SIGTERM)
            machine.supervisor.send_signal(signal.SIGTERM)
            if code := await machine.ended():
                ledger.problems.append(f"it drained, and ended with {code}")
        if ledger.half_answers > halves:
            ledger.problems.append(f"an answer was cut off by: {kind}")
        machine.launch()

    async def _until_served(self, processes: set[int]) -> None:
        """Wait until each database of these processes is served."""

        async def ask(name: str) -> None:
            async with self._machine.connected() as wire:
                answer = await settled(wire, query("SELECT 1 AS one", database=name))
                if not answer.is_good:
                    self._ledger.problems.append(f"{name} answers {answer.body!r}")

        async with trio.open_nursery() as nursery:
            for name, owner in self._owners.items():
                if owner in processes:
                    nursery.start_soon(ask, name)

    # --- what must be there ---

    async def _finish(self) -> None:
        """Drain, check the files, and serve them with one process."""
        machine, ledger = self._machine, self._ledger
        if code := await machine.stop():
            ledger.problems.append(f"it drained in peace, and ended with {code}")
        ledger.problems += await problems_of_files(machine.data, at_rest=True)
        await machine.start(processes=1)
        await self._compare_entries(self._owners)
        async with machine.connected() as wire:
            listed = (await wire.ask("GET", "/v1/databases?limit=100")).json["databases"]
        others = {LOCK_FILE, RESERVE_FILE, COPY_FILE}
        files = {each.name for each in machine.data.iterdir()} - others
        there = {each.partition(".")[0] for each in files if not each.startswith("stall")}
        if odd := there ^ {"control", *(each["id"] for each in listed)}:
            ledger.problems.append(f"files without a database, or the reverse: {odd}")
        if code := await machine.stop():
            ledger.problems.append(f"one process ended with {code}")
        ledger.problems += [f"a server said: {line}" for line in machine.bugs]
