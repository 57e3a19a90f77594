"""Runs programs on both sides until enough statements are done, and tells what it met."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.differential.accepted import RULES, accepted_by
from tests.differential.comparison import Difference, Step, first_difference
from tests.differential.engines import Outcome, Postgres, Qserver
from tests.differential.large.programs import LargeProgram
from tests.differential.programs import Program
from tests.differential.shrinking import Attempt, Shrinker
from tests.differential.templates import all_names
from tests.sql.databases import opened_sql

SORTS: Final = ("query", "probe", "change", "definition", "look")
"""The sorts of statements whose success is counted."""

READS: Final = ("query", "look", "probe")
"""Those that are run more than once."""

ONLY_READS: Final = re.compile(r"\(*\s*(?:SELECT|VALUES|TABLE)\b(?!.*\bINTO\b)", re.I | re.S)

LARGE_SHARE: Final = 12
"""Of so many programs, one has large tables."""


@dataclass(slots=True)
class Failure:
    """A difference that no rule accepts, with the shortest program that shows it."""

    seed: int
    steps: list[Step]
    difference: Difference


@dataclass(slots=True)
class Report:
    """What a campaign met."""

    large: bool = False
    statements: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(count for name, count in self.statements.items() if " " not in name)

    def share(self, sort: str = "") -> float:
        """Of the statements that were run, how many succeeded on both sides and gave rows."""
        sorts = [sort] if sort else list(SORTS)
        all_of = sum(self.statements[each] for each in sorts)
        good = sum(self.statements[f"{each} useful"] for each in sorts)
        return good / all_of if all_of else 0.0

    def __str__(self) -> str:
        known = all_names()
        templates = sum(1 for name in self.reached if name in known)
        lines = [
            f"{self.total} statements, {len(self.failures)} unnamed differences",
            "useful (both succeed, with rows or effects): "
            + ", ".join(
                f"{sort} {self.share(sort):.0%} of {self.statements[sort]}" for sort in SORTS
            )
            + f", all {self.share():.0%}",
            f"templates reached: {templates} of {len(known)}",
            "constructs: "
            + ", ".join(
                f"{name} {count}"
                for name, count in sorted(self.reached.items())
                if name not in known
            ),
            "accepted: "
            + (", ".join(f"{name} {count}" for name, count in self.rules.most_common()) or "none"),
        ]
        idle = [rule.name for rule in RULES if not self.rules[rule.name]]
        if idle:
            lines.append(f"rules that matched nothing: {', '.join(idle)}")
        lines.append(
            "errors on both sides: "
            + ", ".join(f"{code} {count}" for code, count in self.errors.most_common(12))
        )
        return "\n".join(lines)


class Campaign:
    """Programs of one seed after the other. `tell` is called after each."""

    def __init__(
        self,
        postgres: Postgres,
        *,
        large: bool = False,
        shrink: bool = True,
        tell: Callable[[Report, int], None] = lambda report, seed: None,
    ) -> None:
        self.postgres = postgres
        self.report = Report(large)
        self._large = large
        self._shrink = shrink
        self._tell = tell

    async def run(self, first_seed: int, enough: Callable[[Report], bool]) -> Report:
        seed = first_seed
        while not enough(self.report):
            await self.run_seed(seed)
            self._tell(self.report, seed)
            seed += 1
        return self.report

    async def run_seed(self, seed: int) -> None:
        """One program, to its end: a difference does not stop it, unless rows may differ now."""
        is_large = self._large or seed % LARGE_SHARE == 0
        program = LargeProgram(seed) if is_large else Program(seed)
        with program.bounds():
            await self._run(program)

    async def _run(self, program: Program | LargeProgram) -> None:
        seed = program.seed
        history: list[Step] = []
        self.postgres.reset()
        async with opened_sql() as database:
            qserver = Qserver(database)
            for drawn in program.steps():
                expected = self.postgres.run(drawn.step.sql)
                outcomes = await qserver.outcomes(drawn.step.sql, again=drawn.sort in READS)
                self._count(drawn.sort, expected, outcomes[0])
                if expected.error is None:
                    drawn.then()
                differs = first_difference(drawn.step.after(history), expected, outcomes)
                history.append(drawn.step)
                if differs is None:
                    continue
                rule = accepted_by(differs)
                if rule is not None:
                    self.report.rules[rule.name] += 1
                else:
                    self.report.failures.append(Failure(seed, list(history), differs))
                if drawn.sort not in READS:
                    break
        self.report.reached.update(program.queries.reached)
        if self._shrink:
            for failure in self.report.failures:
                if failure.seed == seed:
                    await self._make_small(failure)

    def _count(self, sort: str, expected: Outcome, found: Outcome) -> None:
        self.report.statements[sort] += 1
        if expected.error is not None and found.error == expected.error:
            self.report.errors[expected.error] += 1
        useful = expected.rows or expected.affected or sort in ("definition", "schema")
        if useful and expected.error is None and found.error is None:
            self.report.statements[f"{sort} useful"] += 1

    async def _make_small(self, failure: Failure) -> None:
        shrinker = Shrinker(self.prepared, failure.difference)
        failure.steps = await shrinker.shrink(failure.steps)
        failure.difference = shrinker.last

    @asynccontextmanager
    async def prepared(self, steps: list[Step]) -> AsyncIterator[Attempt]:
        """Both sides anew, with these statements run."""
        self.postgres.reset()
        async with opened_sql() as database:
            qserver = Qserver(database)
            done: list[Step] = []

            async def attempt(step: Step) -> Difference | None:
                again = ONLY_READS.match(step.sql) is not None
                expected = self.postgres.run(step.sql)
                outcomes = await qserver.outcomes(step.sql, again=again)
                differs = first_difference(step.after(done), expected, outcomes)
                done.append(step)
                return None if differs is None or accepted_by(differs) is not None else differs

            for step in steps:
                await attempt(step)
            yield attempt

    async def replay(self, steps: list[Step]) -> list[Difference]:
        """Run a kept program; what no rule accepts."""
        async with self.prepared([]) as attempt:
            found = [await attempt(step) for step in steps]
        return [each for each in found if each is not None]
