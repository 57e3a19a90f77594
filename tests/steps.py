"""Work in steps, run to its end as an actor runs it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

Made = TypeVar("Made")


def taken(steps: Generator[Any, Any, Made]) -> tuple[int, Made]:
    """How many pauses there were, and the result."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return pauses, end.value
        pauses += 1
