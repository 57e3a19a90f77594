"""Columns of pages as vectors: filled by the first scan that wants one, and kept by the page.

    Branch of height 1 ──► columns {(2, integer): PageColumn}      about 3,000 rows below it
                                                  vector [8, 8, 3, …]

A page never changes, so its vectors are never stale; they die with the page. The `VectorCache` of
the page cache bounds the bytes of all vectors: it holds columns weakly, and empties the least
recently used.

A store may have the columns of a saved page, see `saved_columns`. They are loaded when a scan wants
them, together with those of the pages that follow, and no leaf is loaded for it.

A scan yields a `Chunk` for a page of height 1. It yields plain rows for anything smaller, and where
the transaction has writes of its own. Code that cannot use a chunk reads its rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from qserver.limits import PAGE_ENTRIES_BUILT, VECTOR_ROWS_MIN
from qserver.storage.btree import LEAVES_OF_RUN, leaf_runs, value_runs
from qserver.storage.page import Branch, Key, Leaf, Tree, Value, read_leaf, read_stored
from qserver.storage.vector_cache import Columns, PageColumn, VectorCache
from qserver.values.encoding import restored
from qserver.values.keys import Bound
from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.values.vectors import Vector

FEW: Final = 16
"""So many rows of a chunk are picked one by one."""

COLUMNS_LOADED_AT_ONCE: Final = 32
"""Saved columns that are read together: that takes less than a millisecond."""

ROWS_OF_RUN: Final = LEAVES_OF_RUN * PAGE_ENTRIES_BUILT
"""Rows of a chunk that are handed out together."""


class Chunk:
    """The rows start..stop of a page of height 1."""

    __slots__ = (
        "_branch",
        "_following",
        "_is_stored",
        "_rows",
        "_start",
        "_stop",
        "_vectors",
        "filled",
        "is_ready",
        "length",
    )

    def __init__(
        self, branch: Branch, start: int, stop: int, following: Sequence[Tree] = ()
    ) -> None:
        """`following`: pages that the same scan is about to read."""
        self._branch = branch
        self._following = following
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
        yield from self.load(columns, vectors)
        kept = _columns_of(self._branch)
        is_ready = True
        for wanted in columns:
            column = kept.get(wanted)
            if column is None:
                column = kept[wanted] = PageColumn()
            is_here = column.is_filled or wanted in self._vectors
            if not is_here and is_ready and (is_eager or column.is_wanted):
                yield from self._read()
                if not column.is_filled:  # nor has another scan filled it meanwhile
                    self._fill(column, wanted)
                    vectors.add(column)
                    _note_filled(self._branch)
                    yield
            if column.is_filled:
                vectors.use(column)
            column.is_wanted = True
            if column.vector is not None:
                self._vectors[wanted] = column.vector
            is_ready = is_ready and wanted in self._vectors
        self.is_ready = is_ready

    def load(
        self, columns: tuple[ColumnVector, ...], vectors: VectorCache | None
    ) -> Iterator[None]:
        """Load those of the columns that the store has; then others may run."""
        branch = self._branch
        if vectors is None or not vectors.bytes_max or not branch.number:
            return
        gone = _gone(branch, columns)
        if not gone:
            return
        pages = [branch]
        for page in self._following:
            if (1 + len(pages)) * len(gone) > COLUMNS_LOADED_AT_ONCE:
                break
            if type(page) is Branch and page.number and _gone(page, columns) == gone:
                pages.append(page)
        store = branch.store
        assert store is not None
        found = store.load_columns(pages, gone)
        for page in pages:
            kept = _columns_of(page)
            for wanted in gone:
                column = kept.setdefault(wanted, PageColumn())
                column.is_sought = True
                if (page.number, wanted) in found:
                    vector = found[page.number, wanted]
                    column.fill(vector)
                    column.is_saved = True
                    if page is branch and vector is not None:
                        self._vectors[wanted] = vector
                    vectors.add(column)
        yield

    @property
    def is_unpacked(self) -> bool:
        """Whether rows need not be unpacked to be read, which takes longer than filling columns."""
        children = self._branch.children_here
        first = children[0] if children else None
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
            self._rows, self._is_stored = yield from _rows_of(self._branch)

    def _restored(self, rows: list[Value]) -> list[Value]:
        """Return some of the rows that were read as what they are."""
        return [tuple(restored(row)) for row in rows] if self._is_stored else rows

    def _fill(self, column: PageColumn, wanted: ColumnVector) -> None:
        assert self._rows is not None
        self.filled += len(self._rows)
        at = wanted.position
        column.fill(_vector_of([row[at] for row in self._rows], wanted, self._is_stored))

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


def _columns_of(branch: Branch) -> Columns:
    columns: Columns | None = branch.columns
    if columns is None:
        columns = branch.columns = {}
    return columns


def _gone(branch: Branch, columns: tuple[ColumnVector, ...]) -> list[ColumnVector]:
    """Return those of the columns that are not here, and that the store may have."""
    kept = branch.columns
    if not kept:
        return list(columns)
    return [
        wanted
        for wanted in columns
        if (column := kept.get(wanted)) is None or not (column.is_filled or column.is_sought)
    ]


def _note_filled(branch: Branch) -> None:
    if branch.number:
        store = branch.store
        assert store is not None
        store.note_filled(branch)


def _rows_of(branch: Branch) -> Generator[None, None, tuple[list[Value], bool]]:
    """Return all rows of a page, and whether some are as they are stored; yield now and then."""
    rows: list[Value] = []
    is_stored = False
    for leaves in leaf_runs(branch.children):
        for leaf in leaves:
            values, as_stored = read_stored(leaf)
            rows += values
            is_stored = is_stored or as_stored
        yield
    return rows, is_stored


def _vector_of(values: list[Any], wanted: ColumnVector, is_stored: bool) -> Vector | None:
    from qserver.values.vectors import vector_of, vector_of_stored  # imports numpy

    return vector_of_stored(values, wanted) if is_stored else vector_of(values, wanted)


def vectors_of(
    branch: Branch, columns: Iterable[ColumnVector]
) -> Iterator[tuple[ColumnVector, Vector | None] | None]:
    """Yield columns of a page without keeping them, and None where others may run."""
    kept = _columns_of(branch)
    values: list[tuple[Any, ...]] | None = None
    is_stored = False
    for wanted in columns:
        column = kept.get(wanted)
        if column is not None and column.is_filled:
            yield wanted, column.vector
            continue
        if values is None:
            rows, is_stored = yield from _rows_of(branch)
            values = list(zip(*rows, strict=True))
            yield None
        yield wanted, _vector_of(list(values[wanted.position]), wanted, is_stored)


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
            child = tree.children[at]
            below = low if at == first else None, high if at == last else None
            if child.height == 1 and below == (None, None):
                assert type(child) is Branch
                following = tree.children[at + 1 : min(last + 1, at + COLUMNS_LOADED_AT_ONCE)]
                yield Chunk(child, 0, child.length, following)
            else:
                yield from chunks(child, *below)
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
