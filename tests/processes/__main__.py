"""`make processes-torture`: several processes, their faults, and what became of what they promised.

faults        processes are killed and stopped under load
revocations   what was revoked is refused by all from its answer on
rates         a free organization gets no request too many
moves         connections move with every request, and leave nothing behind
strong_reads  reads at replicas are none older than an answer before them
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tests.processes.campaign import Campaign
from tests.processes.command import Outcome, campaign_parser, chosen_seed, run_campaign, tell
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

    async def faults(self) -> Outcome:
        report = await Campaign(self._folder, self._seed, self._faults, tell).run()
        return report, report.problems

    async def revocations(self) -> Outcome:
        async def run(machine: Machine) -> Outcome:
            revocations = Revocations(machine, self._seed, kill_every=60)
            report = await revocations.run(self._faults * TRIES_OF_FAULT, tell)
            return report, report.problems

        return await self._with_machine(run)

    async def rates(self) -> Outcome:
        async def run(machine: Machine) -> Outcome:
            spender = Spender(machine, self._seed)
            report = await spender.run(400, 3, RATES_SECONDS_OF_FAULT * self._faults)
            return report, report.problems()

        return await self._with_machine(run)

    async def moves(self) -> Outcome:
        async def run(machine: Machine) -> Outcome:
            report = await Movers(machine, tell).run(self._faults * MOVES_OF_FAULT)
            return report, report.problems

        return await self._with_machine(run)

    async def strong_reads(self) -> Outcome:
        async def run(machine: Machine) -> Outcome:
            reads = StrongReads(machine, self._seed, kill_every=2 * READS_OF_FAULT)
            report = await reads.run(self._faults * READS_OF_FAULT, tell)
            return report, report.problems

        return await self._with_machine(run, {"QSERVER_REPLICAS": "2"})

    async def _with_machine(
        self,
        run: Callable[[Machine], Awaitable[Outcome]],
        settings: Mapping[str, str] = SETTINGS,
    ) -> Outcome:
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
    parser = campaign_parser("tests.processes")
    parser.add_argument(
        "--part", choices=PARTS, help="only this, as much as so many faults stand for"
    )
    options = parser.parse_args()
    seed = chosen_seed(options)

    def run(part: str, folder: Path) -> Awaitable[Outcome]:
        found: Awaitable[Outcome] = getattr(Torture(folder, seed, options.faults), part)()
        return found

    parts = (options.part,) if options.part else PARTS
    went_well = [run_campaign(part, partial(run, part)) for part in parts]
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
