"""The items of an IN, or the elements of an array, that the values of a vector are looked up in.

Numbers are kept in order, once per execution. Few are compared one after the other, which is what
numpy does best; more are searched by halves. Only those within the bounds of a vector are tried.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qserver.values.vector_families import TEXT
from qserver.values.vectors import INTEGER_MAX, Array, Vector, constant

ITEMS_MAX: Final = 4096
"""More items are left to row code: searching them for a batch would take too long at once."""

COMPARED_MAX: Final = 24
"""More items are searched."""

_SCALE_DIFFERENCE_MAX: Final = 40
"""No number of 64 bits but 0 has so many digits more or fewer."""


class Members:
    """Distinct items without NULL: texts, or vectors of one value."""

    __slots__ = ("_by_scale", "_items", "_words", "has_null", "is_empty")

    def __init__(self, items: list[Vector], words: frozenset[str], has_null: bool) -> None:
        self._items = items
        self._words = words
        self._by_scale: dict[int, Array] = {}
        self.has_null = has_null
        self.is_empty = not (items or words or has_null)

    def found(self, operand: Vector) -> Any:
        """Return which values are among the items; anything where they are NULL."""
        if operand.words is not None:
            wanted = [word in self._words for word in operand.words]
            if not any(wanted):
                return False
            return np.fromiter(wanted, np.bool_, len(wanted))[operand.values]
        if getattr(operand.values, "dtype", None) == np.object_:  # texts as they are
            texts = operand.values.tolist()
            return np.fromiter([text in self._words for text in texts], np.bool_, len(texts))
        items = self._at(operand.scale)
        first = np.searchsorted(items, operand.low, "left")
        last = np.searchsorted(items, operand.high, "right")
        near = items[first:last]
        if not len(near):
            return False
        values = operand.values
        if len(near) > COMPARED_MAX:
            places = np.searchsorted(near, values)
            places[places == len(near)] = 0
            return near[places] == values
        found = values == near[0]
        for item in near[1:]:
            found = found | (values == item)
        return found

    def _at(self, scale: int) -> Array:
        """Return the items that a vector with these digits after the point can hold, in order."""
        known = self._by_scale.get(scale)
        if known is None:
            numbers = {_scaled(item, scale) for item in self._items} - {None}
            known = self._by_scale[scale] = np.array(sorted(numbers))
        return known


def _scaled(item: Vector, scale: int) -> Any:
    if item.scale == scale:
        return item.values
    more = scale - item.scale
    if abs(more) > _SCALE_DIFFERENCE_MAX:
        return None if item.values else 0
    if more > 0:
        number = item.values * 10**more
        return number if -INTEGER_MAX <= number <= INTEGER_MAX else None
    number, rest = divmod(item.values, 10**-more)
    return None if rest else number


def members(values: tuple[Any, ...], family: str) -> Members | None:
    """Return the items of a list; None if they are too many, or one does not fit."""
    present = [value for value in values if value is not None]
    has_null = len(present) < len(values)
    if len(present) > ITEMS_MAX:
        return None
    if family == TEXT:
        return Members([], frozenset(present), has_null)
    items = [constant(value, family) for value in present]
    fitting = [item for item in items if item is not None]
    return Members(fitting, frozenset(), has_null) if len(fitting) == len(items) else None
