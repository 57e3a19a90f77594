"""Columns of pages as vectors: filled by the first scan that wants one, and kept by the page.

    Branch of height 1 ──► columns {(2, integer): PageColumn}      about 3,000 rows below it
                                                  vector [8, 8, 3, …]

A page never changes, so its vectors are never stale; they die with the page. The `VectorCache` of
the page cache bounds the bytes of all vectors: it holds columns weakly, and empties the least
recently used.

A scan yields a `Chunk` for a page of height 1. It yields plain rows for anything smaller, and where
the transaction has writes of its own. Code that cannot use a chunk reads its rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import ref

from qserver.limits import PAGE_ENTRIES_BUILT, VECTOR_ROWS_MIN
from qserver.storage.btree import LEAVES_OF_RUN, leaf_runs, value_runs
from qserver.storage.page import Branch, Key, Leaf, Tree, Value, read_leaf, read_stored
from qserver.values.encoding import restored
from qserver.values.keys import Bound
from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.values.vectors import Vector

COLUMN_BYTES: Final = 200
"""The overhead of a column that a page keeps, and the size of one that has no vector."""

FEW: Final = 16
"""So many rows of a chunk are picked one by one."""

ROWS_OF_RUN: Final = LEAVES_OF_RUN * PAGE_ENTRIES_BUILT
"""Rows of a chunk that are handed out together."""


class PageColumn:
    """One column of a page: its vector, or None if one of its values does not fit."""

    __slots__ = ("__weakref__", "is_filled", "is_wanted", "size", "vector")

    def __init__(self) -> None:
        self.vector: Vector | None = None
        self.is_filled = False
        self.is_wanted = False
        """A scan has wanted it before."""
        self.size = 0


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
                found.vector, found.is_filled, found.is_wanted = None, False, False

    def _remove(self, number: int) -> None:
        _, size = self._known.pop(number, (None, 0))
        self.bytes -= size


class Chunk:
    """The rows start..stop of a page of height 1."""

    __slots__ = (
        "_branch",
        "_is_stored",
        "_rows",
        "_start",
        "_stop",
        "_vectors",
        "filled",
        "is_ready",
        "length",
    )

    def __init__(self, branch: Branch, start: int, stop: int) -> None:
        self._branch = branch
        self._start = start
        self._stop = stop
        self._vectors: dict[ColumnVector, Vector] = {}
        self._rows: list[Value] | None = None
        """All rows of the page, once a column was filled: their leaves may still be packed."""
        self._is_stored = False
        """Whether some of them are as they are stored."""
        self.length = stop - start
        self.filled = 0
        """Values that were made vectors for this chunk, which costs the most."""
        self.is_ready = False
        """Whether all columns that were prepared have vectors."""

    def prepare(
        self, columns: tuple[ColumnVector, ...], vectors: VectorCache | None, is_eager: bool = True
    ) -> Iterator[None]:
        """Find or fill these columns, if there is a cache; yield between short steps.

        Unless `is_eager`, a column is filled when it is wanted for the second time.
        """
        self.is_ready = False
        if vectors is None or not vectors.bytes_max:
            return
        kept = self._branch.columns
        if kept is None:
            kept = {}
            self._branch.columns = kept
        is_ready = True
        for wanted in columns:
            column = kept.get(wanted)
            if column is None:
                column = kept[wanted] = PageColumn()
            if not column.is_filled and is_ready and (is_eager or column.is_wanted):
                yield from self._read()
                if not column.is_filled:  # nor has another scan filled it meanwhile
                    self._fill(column, wanted)
                    vectors.add(column)
                    yield
            if column.is_filled:
                vectors.use(column)
            column.is_wanted = True
            if column.vector is None:
                is_ready = False
            else:
                self._vectors[wanted] = column.vector
        self.is_ready = is_ready

    @property
    def is_unpacked(self) -> bool:
        """Whether rows need not be unpacked to be read, which takes longer than filling columns."""
        first = self._branch.children[0]
        return type(first) is Leaf and first.values_here is not None

    def has(self, wanted: ColumnVector) -> bool:
        """Whether a column was prepared, and has a vector."""
        return wanted in self._vectors

    def column(self, wanted: ColumnVector) -> Vector:
        """Return a prepared column."""
        vector = self._vectors[wanted]
        if self.length == self._branch.length:
            return vector
        return vector.cut(self._start, self._stop)

    def _read(self) -> Iterator[None]:
        """Read all rows of the page."""
        if self._rows is None:
            rows: list[Value] = []
            is_stored = False
            for leaves in leaf_runs(self._branch.children):
                for leaf in leaves:
                    values, as_stored = read_stored(leaf)
                    rows += values
                    is_stored = is_stored or as_stored
                yield
            self._rows, self._is_stored = rows, is_stored

    def _restored(self, rows: list[Value]) -> list[Value]:
        """Return some of the rows that were read as what they are."""
        return [tuple(restored(row)) for row in rows] if self._is_stored else rows

    def _fill(self, column: PageColumn, wanted: ColumnVector) -> None:
        from qserver.values.vectors import vector_of, vector_of_stored  # imports numpy

        assert self._rows is not None
        at = wanted.position
        values = [row[at] for row in self._rows]
        self.filled += len(values)
        fill = vector_of_stored if self._is_stored else vector_of
        vector = column.vector = fill(values, wanted)
        column.size = COLUMN_BYTES + (0 if vector is None else vector.size)
        column.is_filled = True

    def forget_rows(self) -> None:
        """Drop the cached rows; a later reader reads them again."""
        self._rows = None

    def runs(self, places: list[int] | None = None) -> Iterator[list[Value]]:
        """Yield the rows at ascending positions, or all, as a scan of values does."""
        if places is None:
            yield from self._all_runs()
            return
        if self._start:
            places = [self._start + place for place in places]
        if self._rows is not None:
            yield self._restored(_at(self._rows, places))
        elif len(places) > FEW:
            yield from self._picked(places)
        else:
            yield from self._few(places)

    def _all_runs(self) -> Iterator[list[Value]]:
        if self.length == self._branch.length and self._rows is None:
            yield from value_runs(self._branch)
            return
        for _ in self._read():
            yield []
        rows = self._rows
        assert rows is not None
        for at in range(self._start, self._stop, ROWS_OF_RUN):
            yield self._restored(rows[at : min(at + ROWS_OF_RUN, self._stop)])

    def _picked(self, places: list[int]) -> Iterator[list[Value]]:
        """Yield the rows at positions of the page."""
        rows: list[Value] = []
        start = 0
        for leaves in leaf_runs(self._branch.children):
            for leaf in leaves:
                rows += read_leaf(leaf)[1]
            stop = bisect_left(places, len(rows), start)
            yield _at(rows, places[start:stop])
            start = stop
            if start == len(places):
                return

    def _few(self, places: list[int]) -> Iterator[list[Value]]:
        """Yield the same, without reading leaves that have no such row."""
        leaves: list[Leaf] = []
        picked: list[list[int]] = []
        end = start = 0
        for leaf in self._branch.children:
            begin, end = end, end + leaf.length
            stop = bisect_left(places, end, start)
            if stop > start:
                leaves.append(leaf)  # type: ignore[arg-type]  # below a page of height 1
                picked.append([place - begin for place in places[start:stop]])
                start = stop
        at = 0
        for run in leaf_runs(leaves):
            found: list[Value] = []
            for leaf in run:
                values = read_leaf(leaf)[1]
                found += [values[place] for place in picked[at]]
                at += 1
            yield found

    def __repr__(self) -> str:
        return f"a chunk of {self.length} rows"


def _at(rows: list[Value], places: list[int]) -> list[Value]:
    if len(places) > FEW:
        return list(itemgetter(*places)(rows))
    return [rows[place] for place in places]


ScanPart: TypeAlias = Chunk | list[Value]


def chunks(tree: Tree, low: Bound = None, high: Bound = None) -> Iterator[ScanPart]:
    """Yield the values of a range in order: chunks, and runs of values where there are few."""
    if tree.height > 1:
        assert type(tree) is Branch
        separators = tree.separators
        first = 0 if low is None else bisect_right(separators, low)
        last = len(separators) if high is None else bisect_left(separators, high)
        for at in range(first, last + 1):
            yield from chunks(
                tree.children[at], low if at == first else None, high if at == last else None
            )
        return
    if type(tree) is Branch:
        if low is None and high is None:
            yield Chunk(tree, 0, tree.length)
            return
        start = 0 if low is None else _place(tree, low)
        stop = tree.length if high is None else _place(tree, high)
        if stop - start >= VECTOR_ROWS_MIN:
            yield Chunk(tree, start, stop)
            return
    yield from value_runs(tree, low, high)


def pieces(
    tree: Tree, low: Bound = None, high: Bound = None
) -> Iterator[tuple[Tree, Bound, Bound]]:
    """Yield the pages of height 1 (or the one leaf), each with the bounds of its share."""
    if tree.height < 2:
        yield tree, low, high
        return
    assert type(tree) is Branch
    separators = tree.separators
    first = 0 if low is None else bisect_right(separators, low)
    last = len(separators) if high is None else bisect_left(separators, high)
    for at in range(first, last + 1):
        yield from pieces(
            tree.children[at],
            low if at == first else separators[at - 1],
            high if at == last else separators[at],
        )


def _place(branch: Branch, key: Key) -> int:
    """Return how many keys of a page of height 1 are smaller."""
    at = bisect_right(branch.separators, key)
    leaf = branch.children[at]
    assert type(leaf) is Leaf
    before = sum([each.length for each in branch.children[:at]])
    return before + bisect_left(read_leaf(leaf)[0], key)
