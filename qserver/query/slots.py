"""Runs a plan with parameters, of which there may be megabytes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from qserver.functions.context import Context
from qserver.query.cursor import StatementSteps
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import slots_of
from qserver.sql import Given, is_heavy
from qserver.sql import slots_in_steps as heavy_slots


def slots_in_steps(
    plan: CachedPlan, literals: Sequence[Any], given: Given, context: Context
) -> Generator[None, None, Any]:
    """Call `slots_of`; for heavy values, yield in between and check the deadline."""
    if plan.parameters is None or not is_heavy(given):
        return slots_of(plan, literals, given)
    return (yield from heavy_slots(plan.parameters, literals, given, context))


def run_heavy(
    plan: CachedPlan,
    literals: Sequence[Any],
    given: Given,
    context: Context,
    run: Callable[[Any], StatementSteps],
) -> StatementSteps:
    """Convert heavy parameters as the first of the steps, then `run` with them."""
    slots = yield from slots_in_steps(plan, literals, given, context)
    return (yield from run(slots))
