"""The literals of a text, and the one way to look at their values.

A plan is kept for every statement of the same fingerprint, so it may not depend on what a literal
is worth, only on what kind it is. Where it must (ORDER BY 1, VARCHAR(20), GROUP BY a + 1 beside
SELECT a + 1), the value is asked for here, and asking makes the literal part of the fingerprint:
there is no other way to a value, so no dependency can be forgotten. Pinned literals are part of a
plan's key.

The text of a view, a DEFAULT or a CHECK has literals, too, but they never change: they are `fixed`,
become constants of the plan, and belong to no fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RepeatedLiteralPinned(Exception):
    """Not an error of the user: one row of VALUES stood for many, and their values matter.

    Whoever made the fingerprint has to make another in which each row stands for itself.
    """


class Literals:
    """Values by index; `fixed` if they belong to a definition."""

    __slots__ = ("_pinned", "_values", "fixed")

    def __init__(self, values: Sequence[Any], *, fixed: bool = False) -> None:
        self._values = values
        self._pinned: set[int] = set()
        self.fixed = fixed

    def value(self, index: int) -> Any:
        """What the literal is worth; from now on the plan is for this value only."""
        if not self.fixed:
            self._pinned.add(index)
        return self._values[index]

    def is_worth(self, index: int, value: Any) -> bool:
        """Is the literal worth exactly this? Pins it only if so.

        Only for a plan that is right for that value, too, if another literal made it.
        """
        return bool(self._values[index] == value) and self.value(index) == value

    def guess(self, index: int) -> Any:
        """What the literal is worth, without pinning it: only to guess which plan will be quick.

        The plan must be right for whatever comes.
        """
        return self._values[index]

    @property
    def in_fingerprint(self) -> frozenset[int]:
        return frozenset(self._pinned)


class RepeatedLiterals(Literals):
    """The literals of a row that stands for many: they have no one value."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(())

    def value(self, index: int) -> Any:
        raise RepeatedLiteralPinned

    def is_worth(self, index: int, value: Any) -> bool:
        return False

    def guess(self, index: int) -> Any:
        return None
