"""Keeps columns of pages, and bounds the bytes of their vectors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import ref

from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.values.vectors import Vector

COLUMN_BYTES: Final = 200
"""The overhead of a column that a page keeps, and the size of one that has no vector."""


class PageColumn:
    """One column of a page: its vector, or None if one of its values does not fit."""

    __slots__ = ("__weakref__", "is_filled", "is_saved", "is_sought", "is_wanted", "size", "vector")

    def __init__(self) -> None:
        self.vector: Vector | None = None
        self.is_filled = False
        self.is_saved = False
        """Whether the store has it, or will not."""
        self.is_sought = False
        """Whether it is known that the store has none, or that it has this one."""
        self.is_wanted = False
        """A scan has wanted it before."""
        self.size = 0

    def fill(self, vector: Vector | None) -> None:
        self.vector = vector
        self.size = COLUMN_BYTES + (0 if vector is None else vector.size)
        self.is_filled = True

    def empty(self) -> None:
        self.vector = None
        self.is_filled = self.is_wanted = self.is_sought = False


Columns: TypeAlias = dict[ColumnVector, PageColumn]


class VectorCache:
    """Counts the bytes of all vectors, and empties columns when they exceed the bound."""

    def __init__(self, bytes_max: int, make_room: Callable[[], None] = lambda: None) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self._make_room = make_room
        self._known: OrderedDict[int, tuple[ref[PageColumn], int]] = OrderedDict()

    @property
    def columns(self) -> int:
        return len(self._known)

    def use(self, column: PageColumn) -> None:
        self._known.move_to_end(id(column))

    def add(self, column: PageColumn) -> None:
        """Count a filled column, and empty others until it fits."""
        number = id(column)

        def died(_: ref[PageColumn]) -> None:
            self._remove(number)

        self._known[number] = ref(column, died), column.size
        self.bytes += column.size
        self.shrink(self.bytes_max)
        self._make_room()

    def clear(self) -> None:
        """Empty all columns."""
        self.shrink(0)

    def shrink(self, bytes_left: int) -> None:
        """Empty the least recently used columns."""
        while self.bytes > bytes_left:
            oldest = next(iter(self._known))
            found = self._known[oldest][0]()
            self._remove(oldest)
            if found is not None:
                found.empty()

    def _remove(self, number: int) -> None:
        _, size = self._known.pop(number, (None, 0))
        self.bytes -= size
