"""Long work in pieces: a generator yields now and then, so that others can run.

The caller decides what happens at each yield: nothing, if the work is known to be short
(`at_once`); a pause, if it may be long (`durability.pauses`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

Made = TypeVar("Made")

Steps: TypeAlias = Generator[None, None, Made]
"""Yields now and then, so that others can run; returns the result."""


def capturing_result(steps: Steps[Made], made: list[Made]) -> Steps[None]:
    """Run the steps, and append their result to a list: a `for` loop over steps discards it."""
    made.append((yield from steps))


def at_once(steps: Steps[Made]) -> Made:
    """Return the result of a few steps, without pauses."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        made: Made = end.value
        return made
