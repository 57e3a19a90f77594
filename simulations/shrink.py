"""Shrinks a failure: fewer transactions, then fewer faults, as long as it still fails alike.

Faults have names that do not depend on each other (see `faults`), so a run can be repeated with any
subset of them. Delta debugging tries halves, then quarters, and so on; the remaining set has no
single fault that can be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simulations.results import Plan, Result, Verdict
from simulations.run import simulate

REPLAYS_MAX = 200


def shrink(result: Result, tried: Callable[[int], None] = lambda count: None) -> Result:
    """Return the smallest run found that ends in the same verdict."""
    return _Shrinker(result, tried).smallest()


class _Shrinker:
    def __init__(self, result: Result, tried: Callable[[int], None]) -> None:
        assert result.verdict is not Verdict.PASSED
        self._best = result
        self._tried = tried
        self._replays = 0

    def smallest(self) -> Result:
        self._fewer_transactions()
        faults = list(dict.fromkeys(self._best.struck))
        if not self._fails(replace(self._best.plan, only=frozenset())):
            self._fewer_faults(faults)
        return self._best

    def _fewer_transactions(self) -> None:
        profile = self._best.plan.profile
        count = profile.transactions_per_client // 2
        while count >= 1:
            shorter = replace(profile, transactions_per_client=count, shortened=True)
            if not self._fails(replace(self._best.plan, profile=shorter)):
                return
            count //= 2

    def _fewer_faults(self, faults: list[str]) -> None:
        """Apply Zeller's ddmin without complements of single parts, which the loop tries anyway."""
        parts = 2
        while len(faults) >= 2 and self._replays < REPLAYS_MAX:
            size = -(-len(faults) // parts)
            for start in range(0, len(faults), size):
                fewer = faults[:start] + faults[start + size :]
                if self._fails(replace(self._best.plan, only=frozenset(fewer))):
                    faults, parts = fewer, max(parts - 1, 2)
                    break
            else:
                if parts >= len(faults):
                    return
                parts = min(2 * parts, len(faults))

    def _fails(self, plan: Plan) -> bool:
        self._replays += 1
        self._tried(self._replays)
        result = simulate(plan)
        if result.verdict is not self._best.verdict:
            return False
        self._best = result
        return True
