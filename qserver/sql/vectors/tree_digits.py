"""Numbers whose digits after the point differ from row to row: averages, and sums of a CASE.

Each is what row code has, and is made of two integers when it is read: an average is its sum and
its count. What compares them takes them as numbers of one scale. Where 64 bits do not hold those,
they are integers of Python. Those of groups that a join drops are never made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qserver.sql.vectors.operations import Refused
from qserver.values.numerics import EXACT
from qserver.values.vectors import INTEGER_MAX, Array, Vector

Make = Callable[[int, int], Any]


class OwnDigits(Vector):
    """`values`, their bounds and `scale`, and `exact`, the numbers of row code, are made when one
    of them is read."""

    __slots__ = ("_make", "_ones", "_others", "exact")

    def __init__(self, make: Make, ones: Array, others: Array, nulls: Array | None) -> None:
        self._make = make
        self._ones = ones
        self._others = others
        self.nulls = nulls
        self.words = None

    def __getattr__(self, name: str) -> Any:
        if name == "exact":
            self.exact = self._exact()
        elif name in ("values", "low", "high", "scale"):
            self._fill()
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def _exact(self) -> list[Any]:
        known: dict[tuple[int, int], Any] = {}
        exact = []
        for pair in zip(self._ones.tolist(), self._others.tolist(), strict=True):
            if pair not in known:
                known[pair] = self._make(*pair)
            exact.append(known[pair])
        if self.nulls is not None:
            for at in np.flatnonzero(self.nulls).tolist():
                exact[at] = None
        return exact

    def _fill(self) -> None:
        present = {each for each in self.exact if each is not None}
        scale = max([max(0, -each.as_tuple().exponent) for each in present], default=0)
        number_of = {each: int(each.scaleb(scale, EXACT)) for each in present}
        number_of[None] = 0
        numbers = [number_of[each] for each in self.exact]
        self.low, self.high = min(numbers, default=0), max(numbers, default=0)
        fits = self.low >= -INTEGER_MAX and self.high <= INTEGER_MAX
        self.values = np.array(numbers, np.int64 if fits else np.object_)
        self.scale = scale

    @property
    def array_bytes(self) -> int:
        return int(self._ones.nbytes + self._others.nbytes)

    def chosen(self, rows: Any) -> Vector:
        nulls = None if self.nulls is None else self.nulls[rows]
        return OwnDigits(self._make, self._ones[rows], self._others[rows], nulls)

    def null(self) -> Vector:
        """Return one NULL, for the end of these."""
        return OwnDigits(self._make, self._ones[-1:], self._others[-1:], np.ones(1, np.bool_))

    def joined(self, parts: list[Vector]) -> Vector:
        """Return parts of one column together, with the digits of each."""
        ones, others, nulls = [], [], []
        for part in parts:
            if not isinstance(part, OwnDigits) or part._make is not self._make:
                raise Refused
            ones.append(part._ones)
            others.append(part._others)
            none = np.zeros(len(part._ones), np.bool_)
            nulls.append(none if part.nulls is None else part.nulls)
        every = np.concatenate(nulls)
        return OwnDigits(
            self._make,
            np.concatenate(ones),
            np.concatenate(others),
            every if every.any() else None,
        )
