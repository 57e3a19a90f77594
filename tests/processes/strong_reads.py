"""Reads of one hot database at all processes: none is older than an answer before it began.

    writers ──► owner                    each answer has a version: the greatest so far is the floor
    readers ──► any process ──► replica  a read that begins now must have the floor, or more
    kills   ──► owner, followers         at any moment

All clients run here, in one loop: so it is known which answer had come before which request left.
The row that is read holds a number that grows with each write: so one version has one number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import trio

from tests.processes.floor import Floor
from tests.processes.machine import Machine, until
from tests.processes.wire import Lost, Wire

READERS, WRITERS = 6, 2
ANSWERS_OF_CONNECTION: Final = 40
"""Then another one is made, which any process may accept."""
READ: Final = "SELECT n FROM hot WHERE id = 1"
WRITE: Final = "UPDATE hot SET n = n + 1 WHERE id = 1"


@dataclass(slots=True)
class Report:
    reads: int = 0
    writes: int = 0
    by_replicas: int = 0
    """Reads that replicas have answered, as far as their processes still live."""
    kills: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"strong reads: {self.reads:,}, by replicas: {self.by_replicas:,} or more",
            f"writes: {self.writes:,}; processes killed: {self.kills}; no answer: {self.lost}",
        ]
        return "\n".join([*lines, *(f"PROBLEM: {each}" for each in self.problems[:5])])


class StrongReads:
    def __init__(self, machine: Machine, seed: int, kill_every: int | None = None) -> None:
        self._machine = machine
        self._chance = Random(seed)
        self._kill_every = kill_every
        self._floor = Floor()
        self._counted: dict[str, int] = {}
        """What each replica had answered when it was looked at last."""
        self.report = Report()

    async def run(self, reads: int, tell: Callable[[str], None] = lambda line: None) -> Report:
        async with self._machine.connected() as wire:
            await wire.query("CREATE TABLE IF NOT EXISTS hot (id int PRIMARY KEY, n bigint)")
            await wire.query("INSERT INTO hot VALUES (1, 0) ON CONFLICT DO NOTHING")
        async with trio.open_nursery() as nursery:
            for _ in range(WRITERS):
                nursery.start_soon(self._write)
            for _ in range(READERS):
                nursery.start_soon(self._read)
            while self.report.reads < reads and not self.report.problems:
                await self._pause()
                tell(f"{self.report.reads:,} reads, {self.report.writes:,} writes")
            nursery.cancel_scope.cancel()
        await self._count()
        return self.report

    async def _pause(self) -> None:
        """Let some reads be answered; then kill a process, now and then."""
        report, enough = self.report, self.report.reads + (self._kill_every or 200)
        await until(lambda: report.reads >= enough or report.problems, f"it stands still: {report}")
        if self._kill_every:
            await self._count()
            await self._machine.kill_process(self._chance.randrange(self._machine.count))
            self.report.kills += 1

    async def _count(self) -> None:
        try:
            async with self._machine.connected() as wire:
                page = (await wire.ask("GET", "/metrics")).body.decode()
        except Lost:
            return
        for line in page.splitlines():
            if line.startswith("qserver_replica_reads_total{"):
                name, _, value = line.rpartition(" ")
                before, now = self._counted.get(name, 0), round(float(value))
                self.report.by_replicas += now - before if now >= before else now  # it began anew
                self._counted[name] = now

    async def _read(self) -> None:
        while True:
            async with self._machine.connected() as wire:
                for _ in range(ANSWERS_OF_CONNECTION):
                    if not await self._read_once(wire):
                        break

    async def _read_once(self, wire: Wire) -> bool:
        floor = self._floor.version
        try:
            answer = await wire.query(READ)
        except Lost:
            self.report.lost += 1
            return False
        if not answer.is_good:
            self.report.lost += 1
            return True
        self.report.reads += 1
        version, rows = answer.json["version"], answer.rows
        number = rows[0][0] if rows else -1
        wrong = self._floor.judge(version, number, floor)
        self.report.problems += [f"a read {each}" for each in wrong]
        return True

    async def _write(self) -> None:
        while True:
            async with self._machine.connected() as wire:
                for _ in range(ANSWERS_OF_CONNECTION):
                    try:
                        answer = await wire.query(WRITE)
                    except Lost:
                        break
                    if answer.is_good:
                        self.report.writes += 1
                        self._floor.raise_to(answer.json["version"])
                    await trio.sleep(self._chance.uniform(0, 0.005))
