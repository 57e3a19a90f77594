"""What campaigns of faults have in common: a report, clients that write, and what must be there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final, Generic, TypeVar

from tests.processes.clients import SUM, Brancher, settled
from tests.processes.ledger import COUNTERS, ENTRIES, Followed, Ledger
from tests.processes.machine import until
from tests.processes.wire import Reached, query

DATABASES: Final = 8
PROBLEMS_MAX: Final = 12


@dataclass(slots=True)
class FaultsReport:
    seed: int
    ledger: Ledger
    faults: Counter[str] = field(default_factory=Counter)
    versions_followed: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.faults.total()

    def lines(self) -> Iterator[str]:
        """What is told of this kind of campaign."""
        yield f"faults: {self.total}"

    def repeated(self) -> str:
        ledger = self.ledger
        return (
            f"sent again: {ledger.repeated:,}; answered from store: {ledger.replayed}; without an"
            f" answer: {ledger.found_applied} applied, {ledger.found_not_applied} not"
        )

    def __str__(self) -> str:
        lines = [*self.lines(), *(f"PROBLEM: {each}" for each in self.problems[:PROBLEMS_MAX])]
        lines.append("nothing was lost" if not self.problems else f"repeat with SEED={self.seed}")
        return "\n".join(lines)


Report = TypeVar("Report", bound=FaultsReport)


class UnderLoad(Generic[Report]):
    """A campaign, with its databases and the clients that are told of here."""

    _brancher: Brancher

    def __init__(self, reached: Reached, chance: Random, report: Report) -> None:
        self._reached = reached
        self._chance = chance
        self.report = report
        self._ledger = report.ledger
        self._live: dict[str, list[Any]] = {}
        """What live queries show, by database."""

    def _chance_of_its_own(self) -> Random:
        return Random(self._chance.random())

    def _problems(self) -> list[str]:
        """Report what the clients have found since; return all of it."""
        found = self._ledger.problems
        self.report.problems += found
        found.clear()
        return self.report.problems

    def _make_brancher(self, databases: Sequence[str]) -> Brancher:
        chance = self._chance_of_its_own()
        self._brancher = Brancher(self._reached, self._ledger, chance, databases)
        return self._brancher

    # --- what must be there ---

    async def _compare_entries(self, databases: Iterable[str]) -> None:
        async with self._reached.connected() as wire:
            for name in databases:
                entries, counters = [
                    dict((await settled(wire, query(sql, database=name))).rows)
                    for sql in (ENTRIES, COUNTERS)
                ]
                self._ledger.compare(name, entries, counters)
        for name in self._brancher.held:
            await self._brancher.look(name)
        self._brancher.close()

    async def _compare_readers(self, feeds: Iterable[Followed]) -> None:
        """What feeds and live queries have seen, when they have come to the end."""
        async with self._reached.connected() as wire:
            for followed in feeds:
                found = await settled(wire, query(ENTRIES, database=followed.database))
                entries = dict(found.rows)
                await until(
                    partial(followed.has_come_to, found.json["version"], sum(entries.values())),
                    f"the feed of {followed.database} stays at {followed.version}",
                )
                self._ledger.problems += followed.compare(entries)
            for name, seen in self._live.items():
                expected = (await settled(wire, query(SUM, database=name))).rows
                await until(
                    partial(self._shows, name, expected),
                    f"the live query of {name} shows {seen}, not {expected}",
                )

    def _shows(self, name: str, expected: list[Any]) -> bool:
        return self._live[name] == expected
