"""`make processes-torture`: several processes, their faults, and what became of what they promised.

faults        processes are killed and stopped under load
revocations   what was revoked is refused by all from its answer on
rates         a free organization gets no request too many
moves         connections move with every request, and leave nothing behind
strong_reads  reads at replicas are none older than an answer before them
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import SystemRandom
from typing import Final

import trio

from tests.processes.campaign import Campaign
from tests.processes.machine import Machine
from tests.processes.moves import Movers
from tests.processes.rates import SETTINGS, Spender
from tests.processes.revoking import Revocations
from tests.processes.strong_reads import StrongReads

TRIES_OF_FAULT: Final = 100
MOVES_OF_FAULT: Final = 1000
READS_OF_FAULT: Final = 1000
RATES_SECONDS_OF_FAULT: Final = 1.5
"""A hundred faults: 10,000 refused requests, 100,000 moves and strong reads, two and a half
windows."""


class Torture:
    def __init__(self, folder: Path, seed: int, faults: int) -> None:
        self._folder = folder
        self._seed = seed
        self._faults = faults

    async def faults(self) -> tuple[object, list[str]]:
        report = await Campaign(self._folder, self._seed, self._faults, tell).run()
        return report, report.problems

    async def revocations(self) -> tuple[object, list[str]]:
        async def run(machine: Machine) -> tuple[object, list[str]]:
            revocations = Revocations(machine, self._seed, kill_every=60)
            report = await revocations.run(self._faults * TRIES_OF_FAULT, tell)
            return report, report.problems

        return await self._with_machine(run)

    async def rates(self) -> tuple[object, list[str]]:
        async def run(machine: Machine) -> tuple[object, list[str]]:
            spender = Spender(machine, self._seed)
            report = await spender.run(400, 3, RATES_SECONDS_OF_FAULT * self._faults)
            return report, report.problems()

        return await self._with_machine(run)

    async def moves(self) -> tuple[object, list[str]]:
        async def run(machine: Machine) -> tuple[object, list[str]]:
            report = await Movers(machine, tell).run(self._faults * MOVES_OF_FAULT)
            return report, report.problems

        return await self._with_machine(run)

    async def strong_reads(self) -> tuple[object, list[str]]:
        async def run(machine: Machine) -> tuple[object, list[str]]:
            reads = StrongReads(machine, self._seed, kill_every=2 * READS_OF_FAULT)
            report = await reads.run(self._faults * READS_OF_FAULT, tell)
            return report, report.problems

        return await self._with_machine(run, {"QSERVER_REPLICAS": "2"})

    async def _with_machine(
        self,
        run: Callable[[Machine], Awaitable[tuple[object, list[str]]]],
        settings: Mapping[str, str] = SETTINGS,
    ) -> tuple[object, list[str]]:
        machine = Machine(self._folder, settings)
        try:
            await machine.start()
            report, problems = await run(machine)
            if code := await machine.stop():
                problems.append(f"it ended with {code}")
            return report, [*problems, *machine.bugs]
        finally:
            machine.kill()


PARTS: Final = ("faults", "revocations", "rates", "moves", "strong_reads")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.processes")
    parser.add_argument("--faults", type=int, default=100, help="and other parts in proportion")
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated")
    parser.add_argument("--part", choices=PARTS, help="only this")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    problems = []
    for part in (options.part,) if options.part else PARTS:
        folder = Path(tempfile.mkdtemp(prefix="qserver-processes-"))
        report, found = trio.run(getattr(Torture(folder, seed, options.faults), part))
        if sys.stdout.isatty():
            print()
        print(report, flush=True)
        if found:
            print(f"{part}: {found[0]}\nthe data are left in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        problems += found
    return 1 if problems else 0


class Lines:
    """On a terminal drawn over itself; elsewhere now and then."""

    _last = 0.0

    def __call__(self, line: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\x1b[K{line}", end="", flush=True)
        elif abs(trio.current_time() - self._last) >= 10:  # each part has its own clock
            self._last = trio.current_time()
            print(line, flush=True)


tell = Lines()


if __name__ == "__main__":
    sys.exit(main())
