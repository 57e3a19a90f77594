"""A plan run with its parameters, where there may be megabytes of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from qserver.query.cursor import StatementSteps
from qserver.query.plan_cache import Plan
from qserver.query.planning import slots_of
from qserver.sql.execution import Context
from qserver.sql.parameter_steps import is_heavy
from qserver.sql.parameter_steps import slots_in_steps as heavy_slots
from qserver.sql.parameters import Given


def slots_in_steps(
    plan: Plan, literals: Sequence[Any], given: Given, context: Context
) -> Generator[None, None, Any]:
    """Like `slots_of`; where much was given, others run in between, and the deadline holds."""
    if plan.parameters is None or not is_heavy(given):
        return slots_of(plan, literals, given)
    return (yield from heavy_slots(plan.parameters, literals, given, context))


def run_heavy(
    plan: Plan,
    literals: Sequence[Any],
    given: Given,
    context: Context,
    run: Callable[[Any], StatementSteps],
) -> StatementSteps:
    """Call `run` with the slots, which take long to convert: that is the first of the steps."""
    slots = yield from slots_in_steps(plan, literals, given, context)
    return (yield from run(slots))
