"""What decides a run, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from simulations.faults import Profile
from simulations.trace import Event


class Verdict(Enum):
    """How a run ended; the value is the exit code of a program that ran it."""

    PASSED = 0
    ANOMALY = 3
    """What clients saw, or what is there at the end, is wrong."""
    STUCK = 4
    """Faults had ceased, and still something did not end."""
    BROKEN = 5
    """The engine failed in a way that no injected fault explains."""
    MISSED = 6
    """A campaign never reached a point that it must sometimes reach."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides a run."""

    seed: int
    workload: str
    profile: Profile
    only: frozenset[str] | None = None
    """The faults that may strike, by name; None for all."""

    @property
    def command(self) -> str:
        command = (
            f"python -m simulations --seed {self.seed}"
            f" --workload {self.workload} --profile {self.profile.name}"
        )
        if self.profile.shortened:
            command += f" --transactions {self.profile.transactions_per_client}"
        if self.only is not None:
            command += f" --only {','.join(sorted(self.only)) or 'none'}"
        return command


@dataclass(slots=True)
class Result:
    plan: Plan
    verdict: Verdict
    problems: list[str]
    digest: str
    struck: list[str]
    reached: dict[str, int]
    transactions: int
    crashes: int
    events: list[Event] = field(repr=False, default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"seed {self.plan.seed} {self.plan.workload} {self.plan.profile.name}:"
            f" {self.verdict.name.lower()}, {self.transactions} transactions,"
            f" {len(self.struck)} faults, {self.crashes} crashes, trace {self.digest[:16]}"
        ]
        lines += [f"  {problem}" for problem in self.problems]
        return "\n".join(lines)


def leaves(errors: BaseExceptionGroup[Any] | BaseException) -> Iterable[str]:
    """Yield each error of a group, as text."""
    if isinstance(errors, BaseExceptionGroup):
        for error in errors.exceptions:
            yield from leaves(error)
    else:
        yield repr(errors)
