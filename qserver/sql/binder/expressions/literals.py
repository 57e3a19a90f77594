"""The literals of a text, and the only access to their values.

A plan serves every statement of the same fingerprint, so it may depend on a literal's kind, not on
its value. Where it must (ORDER BY 1, VARCHAR(20), GROUP BY a + 1 beside SELECT a + 1), `value`
makes the literal part of the fingerprint, and so of the plan's key: there is no other access, so no
dependency can be forgotten.

Literals in the text of a view, a DEFAULT or a CHECK never change: they are `fixed`, become
constants of the plan, and belong to no fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RepeatedLiteralPinned(Exception):
    """The plan depends on values of rows of VALUES that were merged into one slot.

    Not an error of the user: the caller computes another fingerprint without merging the rows.
    """


class Literals:
    """Values by index; `fixed` if they belong to a definition."""

    __slots__ = ("_pinned", "_values", "fixed")

    def __init__(self, values: Sequence[Any], *, fixed: bool = False) -> None:
        self._values = values
        self._pinned: set[int] = set()
        self.fixed = fixed

    def value(self, index: int) -> Any:
        """Return the value and make it part of the fingerprint: the plan is for this value only."""
        if not self.fixed:
            self._pinned.add(index)
        return self._values[index]

    def is_worth(self, index: int, value: Any) -> bool:
        """Tell whether the literal has this value; only then it becomes part of the fingerprint.

        The plan that other values get must be correct for this value, too.
        """
        return bool(self._values[index] == value) and self.value(index) == value

    def guess(self, index: int) -> Any:
        """Return the value, outside of the fingerprint: only to guess which plan is fast.

        The plan must be correct for all values.
        """
        return self._values[index]

    @property
    def in_fingerprint(self) -> frozenset[int]:
        return frozenset(self._pinned)


class RepeatedLiterals(Literals):
    """The literals of a row that stands for many: they have no single value."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(())

    def value(self, index: int) -> Any:
        raise RepeatedLiteralPinned

    def is_worth(self, index: int, value: Any) -> bool:
        return False

    def guess(self, index: int) -> Any:
        return None
