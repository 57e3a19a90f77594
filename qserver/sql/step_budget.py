"""Limits the cost of planning, counted in steps instead of time.

    while other tasks wait       `NotShort`: planning restarts elsewhere
    while no task waits          check now and then whether the client still waits for the plan

A step is one token parsed, one expression bound, one node that an optimizer rule visits, or one
piece of code printed: each costs some tens of microseconds. The planner's caller decides what
happens when the steps are used up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


class NotShort(Exception):  # a signal to the planner's caller, not to users
    """Planning takes more steps than allowed while other tasks wait. It has had no side effects."""


class StepBudget:
    """Counts steps. When they are used up, `more` returns further steps or raises."""

    __slots__ = ("_left", "_more")

    def __init__(self, steps: int, more: Callable[[], int]) -> None:
        self._left = steps
        self._more = more

    @staticmethod
    def short(steps: int) -> StepBudget:
        """For planning that delays other tasks."""
        return StepBudget(steps, _refuse)

    @staticmethod
    def watched(steps: int, check: Callable[[], None]) -> StepBudget:
        """For planning that delays nobody else: `check` is called after every `steps` steps, and
        raises when the client has gone."""

        def more() -> int:
            check()
            return steps

        return StepBudget(steps, more)

    @staticmethod
    def boundless() -> StepBudget:
        return StepBudget(0, _plenty)

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            self._left = self._more()

    def __repr__(self) -> str:
        return f"a budget with {self._left} steps left"


def _refuse() -> NoReturn:
    raise NotShort


def _plenty() -> int:
    return 1 << 60
