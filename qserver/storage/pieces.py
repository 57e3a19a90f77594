"""Long work in pieces: a generator yields now and then, so that others can run.

Whoever runs it decides what happens in between: nothing, if the work is known to be short; a pause,
if it may be long.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

Made = TypeVar("Made")

Steps: TypeAlias = Generator[None, None, Made]
"""Yields now and then, so that others can run; returns the result."""


def at_once(steps: Steps[Made]) -> Made:
    """Return the result of few steps without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: Made = end.value
            return made
