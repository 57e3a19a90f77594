"""How much it may cost to plan a statement, counted in steps and not by a clock.

A step is one word or sign that is parsed, one expression that is bound, one node that a rule looks
at, one piece of code that is printed: each costs some tens of microseconds. Whoever plans says
what happens when the steps in hand are used up:

    where others wait meanwhile      `NotShort`: it has to be done elsewhere, from the start
    where nobody is held up          now and then look whether anybody still waits for the plan
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


class NotShort(Exception):  # news for whoever plans, not for users
    """Planning takes more steps than can be made where others wait. Nothing has been done."""


class Effort:
    """Counts steps. `more` is asked when they are used up: it gives some more, or raises."""

    __slots__ = ("_left", "_more")

    def __init__(self, steps: int, more: Callable[[], int]) -> None:
        self._left = steps
        self._more = more

    @staticmethod
    def short(steps: int) -> Effort:
        """For planning that keeps others waiting."""
        return Effort(steps, _refuse)

    @staticmethod
    def watched(steps: int, check: Callable[[], None]) -> Effort:
        """For planning that nobody waits for but who asked: after so many steps `check` is called,
        and raises when nobody does any more."""

        def more() -> int:
            check()
            return steps

        return Effort(steps, more)

    @staticmethod
    def boundless() -> Effort:
        return Effort(0, _plenty)

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            self._left = self._more()

    def __repr__(self) -> str:
        return f"an effort with {self._left} steps left"


def _refuse() -> NoReturn:
    raise NotShort


def _plenty() -> int:
    return 1 << 60
