"""One planted bug, and the hunt for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import getsourcelines
from itertools import product
from textwrap import dedent
from types import FunctionType
from typing import Any, Final

from simulations.faults import make_profile
from simulations.run import Plan, Result, Verdict, simulate

CLUMSY: Final = re.compile(r".*(TypeError|AttributeError|NameError)\(")
"""Raised by a mutation that was written for other code; being caught by that proves nothing."""

PROFILES_HUNTED: Final = ("calm", "storm", "swarm")


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


def hunt(mutant: Mutant, seeds: range) -> tuple[Result | None, int]:
    """Return the first run that fails with the mutant in place, and how many runs it took."""
    runs = 0
    with planted(mutant):
        for seed, workload, profile in product(seeds, mutant.workloads, PROFILES_HUNTED):
            runs += 1
            shaped = replace(make_profile(profile, seed), **dict(mutant.shape))
            result = simulate(Plan(seed, workload, shaped))
            if result.verdict is not Verdict.PASSED:
                clumsy = [each for each in result.problems if CLUMSY.match(each)]
                assert not clumsy, f"{mutant.name} does not fit the code any more: {clumsy}"
                return result, runs
    return None, runs


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
