"""Checks that a sequence gives values as it promises, by what clients saw, and when.

A sequence begins *epochs*: the first when it is made, another with each setval or RESTART. Here
each begins at a height of its own, so a value shows its epoch. What must hold:

    no value is given twice
    a value is beyond all of its epoch that were answered before its request began
    no value is of an epoch that was over when its request began: another one had been asked for
    after this one was answered, and answered itself
    no value is of an epoch that was begun by a transaction that failed
"""

from __future__ import annotations

from dataclasses import dataclass, field

HEIGHT = 1_000_000
"""Values of one epoch; no run draws so many."""


@dataclass(slots=True)
class Epoch:
    """When its beginning was asked for and answered, in moments of the checker."""

    asked: int
    answered: int | None = None
    failed: bool = False
    highest: int = -1


@dataclass(slots=True)
class Asked:
    """What was known when a drawing request began."""

    at: int
    highest: dict[int, int] = field(default_factory=dict)


class NumbersChecker:
    """One sequence. Epoch 0 begins with 1, epoch n with n times HEIGHT."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._moment = 0
        self._epochs = {0: Epoch(0, 0)}
        self._given: dict[int, int] = {}

    def _next_moment(self) -> int:
        self._moment += 1
        return self._moment

    # --- what clients do ---

    def ask(self) -> Asked:
        highest = {number: epoch.highest for number, epoch in self._epochs.items()}
        return Asked(self._next_moment(), highest)

    def answer(self, asked: Asked, numbers: list[int], taker: int) -> list[str]:
        """Note the values that a request got; return what is wrong with them."""
        problems: list[str] = []
        last: int | None = None
        for number in numbers:
            problems += self._judge(asked, number, taker)
            if last is not None and last // HEIGHT == number // HEIGHT and number <= last:
                problems.append(f"{self.name} gave {number} after {last} to {taker}")
            last = number
        for number in numbers:
            epoch = self._epochs.get(number // HEIGHT)
            if epoch is not None:
                epoch.highest = max(epoch.highest, number)
        self._next_moment()
        return problems

    def ask_epoch(self, number: int) -> None:
        self._epochs[number] = Epoch(self._next_moment())

    def answer_epoch(self, number: int, *, failed: bool = False) -> None:
        epoch = self._epochs[number]
        epoch.answered, epoch.failed = self._next_moment(), failed

    # --- what must hold ---

    def _judge(self, asked: Asked, number: int, taker: int) -> list[str]:
        other = self._given.setdefault(number, taker)
        if other != taker:
            return [f"{self.name} gave {number} to {other} and to {taker}"]
        epoch = self._epochs.get(number // HEIGHT)
        if epoch is None:
            return [f"{self.name} gave {number}, of an epoch that nobody has asked for"]
        if epoch.failed:
            return [f"{self.name} gave {number}, of an epoch whose beginning failed"]
        highest = asked.highest.get(number // HEIGHT, -1)
        if number <= highest:
            return [f"{self.name} gave {number} after {highest} had been answered"]
        if epoch.answered is not None and self._was_over(epoch.answered, asked.at):
            return [f"{self.name} gave {number}, of an epoch that was over"]
        return []

    def _was_over(self, answered: int, at: int) -> bool:
        return any(
            not other.failed
            and other.answered is not None
            and other.asked > answered
            and other.answered < at
            for other in self._epochs.values()
        )
