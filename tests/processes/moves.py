"""Connections that move all the time: nothing of them may stay behind in any process.

A connection moves with its first request, if another process has accepted it, and again after some
in a row for one other process; requests in between are forwarded. So each has one request for a
database, and then some for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio

from qserver.web.service.processes import Mover
from tests.processes.machine import Machine, connections, descriptors, memory_bytes, until
from tests.processes.wire import Wire, query

CONNECTIONS: Final = 8
IN_ROW: Final = (0, 0, 0, 2, Mover.visits_in_row + 1)
ROUND: Final = 200
"""Connections between two looks at how often they have moved."""
MORE_BYTES_MAX: Final = 12_000_000
MORE_SHARE_MAX: Final = 0.1
MORE_DESCRIPTORS_MAX: Final = 12
"""Links between processes, and files, that are opened when they are needed."""


@dataclass(slots=True)
class Report:
    moves: int = 0
    descriptors: dict[int, tuple[int, int]] = field(default_factory=dict)
    memory: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By process, each: after a tenth of the moves, and after all."""
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"moves: {self.moves:,}"]
        for process, (before, after) in self.memory.items():
            files = "{} and {}".format(*self.descriptors[process])
            lines.append(
                f"process {process}, after a tenth of them and after all: {files} descriptors,"
                f" {before / 1e6:.1f} and {after / 1e6:.1f} MB of its own"
            )
        return "\n".join([*lines, *(f"PROBLEM: {each}" for each in self.problems)])


class Movers:
    def __init__(self, machine: Machine, tell: Callable[[str], None] = lambda line: None) -> None:
        self._machine = machine
        self._tell = tell
        self._databases: list[str] = []
        self._sent = 0
        self.report = Report()

    async def run(self, moves: int) -> Report:
        owners = await self._machine.make_databases(self._machine.count, "moved")
        assert len(set(owners.values())) == self._machine.count, "one for each process"
        self._databases = list(owners)
        report = self.report
        await self._move(moves // 10)
        numbers = self._machine.numbers()
        before = await self._at_rest(numbers)
        await self._move(moves)
        after = await self._at_rest(numbers)
        report.moves = await self._moves_counted()
        for process in sorted(numbers):
            (files, held), (more_files, more_held) = before[process], after[process]
            report.descriptors[process] = len(files), len(more_files)
            report.memory[process] = held, more_held
            if len(more_files) > len(files) + MORE_DESCRIPTORS_MAX:
                left = Counter(more_files) - Counter(files)
                report.problems.append(f"process {process} has left open: {sorted(left)}")
            if more_held > held * (1 + MORE_SHARE_MAX) + MORE_BYTES_MAX:
                report.problems.append(f"process {process} has grown to {more_held:,} bytes")
        if report.moves < moves:
            report.problems.append(f"only {report.moves} moves")
        return report

    async def _move(self, moves: int) -> None:
        """Make connections until they have moved so often."""
        target = await self._moves_counted() + moves
        while (moved := await self._moves_counted()) < target:
            self._tell(f"{moved:,} moves, {self._sent:,} requests")
            async with trio.open_nursery() as nursery:
                for first in range(CONNECTIONS):
                    nursery.start_soon(self._connect_often, first)

    async def _connect_often(self, first: int) -> None:
        count = len(self._databases)
        for number in range(first, first + ROUND // CONNECTIONS):
            async with self._machine.connected() as wire:
                await self._ask(wire, self._databases[number % count])
                for _ in range(IN_ROW[number % len(IN_ROW)]):
                    await self._ask(wire, self._databases[(number + 1) % count])

    async def _ask(self, wire: Wire, database: str) -> None:
        answer = await wire.send(query("SELECT 1 AS n", database=database))
        assert answer.is_good, answer.body
        self._sent += 1

    async def _at_rest(self, numbers: dict[int, int]) -> dict[int, tuple[list[str], int]]:
        """What each process has open, when no connection of a client is, and its memory."""
        for number, process in numbers.items():
            await until(
                partial(_has_no_connection, process), f"process {number} keeps a connection"
            )
        return {each: (descriptors(pid), memory_bytes(pid)) for each, pid in numbers.items()}

    async def _moves_counted(self) -> int:
        async with self._machine.connected() as wire:
            page = (await wire.ask("GET", "/metrics")).body.decode()
        lines = [each for each in page.splitlines() if "connections_moved_out" in each]
        return int(sum(float(each.split()[-1]) for each in lines if not each.startswith("#")))


def _has_no_connection(process: int) -> bool:
    return connections(process) == 0
