"""One planted bug, and the hunt for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import getsourcelines
from itertools import chain, product
from pathlib import Path
from textwrap import dedent
from types import FunctionType, MappingProxyType
from typing import Any, Final, TypeAlias

from simulations.faults import make_profile
from simulations.results import Plan, Result, Verdict
from simulations.run import simulate

CLUMSY: Final = re.compile(r".*(TypeError|AttributeError|NameError)\(")
"""Raised by a mutation that was written for other code; being caught by that proves nothing."""

PROFILES_HUNTED: Final = ("calm", "storm", "swarm")

Catch: TypeAlias = tuple[int, str, str, int]
"""The seed, workload, profile and transactions of each client of a run that caught a mutant."""

NOT_CAUGHT: Final[Mapping[str, Catch]] = MappingProxyType({})

CATCHES_FILE: Final = Path(__file__).parent / "caught.txt"


@dataclass(frozen=True, slots=True)
class Mutant:
    """Attributes of the product to replace, each by a function of the original."""

    name: str
    explanation: str
    workloads: tuple[str, ...]
    changes: tuple[tuple[Any, str, Callable[[Any], Any]], ...]
    shape: tuple[tuple[str, Any], ...] = ()
    """Settings of the profile, whatever the seed says: where the bug can show at all."""


def current(owner: Any, name: str) -> Any:
    """Return the present attribute; of a class, its own."""
    return getattr(owner, name) if isinstance(owner, FunctionType) else owner.__dict__[name]


def edited(function: Any, old: str, new: str) -> tuple[Any, str, Callable[[Any], Any]]:
    """Change one place in the text of a function, wherever it was imported to."""
    lines, _ = getsourcelines(function)
    text = dedent("".join(lines))
    assert text.count(old) == 1, f"{function.__qualname__} has {old!r} not once: {text}"
    code = compile(
        f"from __future__ import annotations\n{text.replace(old, new)}",
        f"a mutant of {function.__qualname__}",
        "exec",
    )
    made: dict[str, Any] = {}
    exec(code, function.__globals__, made)
    return function, "__code__", lambda _: made[function.__name__].__code__


def hunt(
    mutant: Mutant, seeds: range, caught: Mapping[str, Catch] = NOT_CAUGHT
) -> tuple[Result | None, int]:
    """Return the first run that fails with the mutant in place, and how many runs it took.

    Begin with the run that caught it the last time, if `caught` has one. Then look where that one
    was: any change of the engine lets the same seed go another way.
    """
    plans = (_plan(mutant, *each) for each in product(seeds, mutant.workloads, PROFILES_HUNTED))
    first: list[Plan] = []
    if mutant.name in caught:
        known, workload, profile, transactions = caught[mutant.name]
        whole = [_plan(mutant, seed, workload, profile) for seed in (known, *seeds)]
        first = [_shorter(whole[0], transactions), *whole]
    runs = 0
    with planted(mutant):
        for plan in chain(first, plans):
            runs += 1
            result = simulate(plan)
            if result.verdict is not Verdict.PASSED:
                clumsy = [each for each in result.problems if CLUMSY.match(each)]
                assert not clumsy, f"{mutant.name} does not fit the code any more: {clumsy}"
                return result, runs
    return None, runs


def shortest(mutant: Mutant, caught: Plan) -> Plan:
    """Return the plan with the fewest transactions, of powers of 2, that catches the mutant.

    Without the mutant it passes: some workloads need more than one transaction.
    """
    for power in range(caught.profile.transactions_per_client.bit_length()):
        plan = _shorter(caught, 2**power)
        with planted(mutant):
            result = simulate(plan)
        if result.verdict is Verdict.PASSED or any(map(CLUMSY.match, result.problems)):
            continue
        if simulate(plan).verdict is Verdict.PASSED:
            return plan
    return caught


def catch_of(plan: Plan) -> Catch:
    return plan.seed, plan.workload, plan.profile.name, plan.profile.transactions_per_client


def _plan(mutant: Mutant, seed: int, workload: str, profile: str) -> Plan:
    return Plan(seed, workload, replace(make_profile(profile, seed), **dict(mutant.shape)))


def _shorter(plan: Plan, transactions: int) -> Plan:
    profile = replace(plan.profile, transactions_per_client=transactions, shortened=True)
    return replace(plan, profile=profile)


def known_catches(path: Path = CATCHES_FILE) -> dict[str, Catch]:
    """Return the runs that caught each mutant the last time somebody asked."""
    catches: dict[str, Catch] = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, seed, workload, profile, transactions = line.split()
            catches[name] = int(seed), workload, profile, int(transactions)
    return catches


def keep_catches(catches: Mapping[str, Catch], path: Path = CATCHES_FILE) -> None:
    lines = ["# The run that caught each planted bug, for the tests to begin with."]
    lines += [f"{name} {' '.join(map(str, catch))}" for name, catch in sorted(catches.items())]
    path.write_text("\n".join(lines) + "\n")


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    kept = [(owner, name, current(owner, name)) for owner, name, _ in mutant.changes]
    for owner, name, change in mutant.changes:
        setattr(owner, name, change(current(owner, name)))
    try:
        yield
    finally:
        for owner, name, original in kept:
            setattr(owner, name, original)
