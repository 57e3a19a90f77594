"""Runs a vector tree: each part gives batches of rows to the one above, and None to let others run.

All of it comes before the first row is given out, so that row code can begin anew if a part is
refused. What is kept counts as memory of the statement: right sides, groups, and the answer.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import inf
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from qserver.errors import OutOfMemory
from qserver.functions.context import STEPS_BETWEEN_PAUSES, Context, row_bytes
from qserver.sql.execution import Chunk
from qserver.sql.vectors.attempts import constant_vectors
from qserver.sql.vectors.joins import Lookup
from qserver.sql.vectors.operations import Refused
from qserver.sql.vectors.plans import ROWS_OF_STEP, VALUES_FILLED_OF_STEP, Check, Constants
from qserver.sql.vectors.program import JoinedColumn, joined_columns
from qserver.sql.vectors.row_chunks import all_chunks
from qserver.sql.vectors.tree_answers import answers, averages_of
from qserver.sql.vectors.tree_digits import OwnDigits
from qserver.sql.vectors.tree_first_rows import FirstTreeRows
from qserver.sql.vectors.tree_folding import WAITING_MAX
from qserver.sql.vectors.tree_grouping import Grouping
from qserver.sql.vectors.tree_rows import ScannedColumns, TreeRows, together
from qserver.sql.vectors.trees import (
    FilterPart,
    Finish,
    GroupPart,
    JoinPart,
    Part,
    ProjectPart,
    Scanned,
    ScanPart,
    Tree,
)
from qserver.values import vector_families as families
from qserver.values.keys import Row
from qserver.values.vector_families import ColumnVector, as_texts
from qserver.values.vectors import Array, Vector

Batches: TypeAlias = Iterator[TreeRows | None]
Made = TypeVar("Made")

BATCH_ROWS_MAX: Final = 32_768
"""Rows of a batch: a program of some steps takes a millisecond for them."""

RIGHT_ROWS_MAX: Final = 2**23
"""A right side with more rows is joined by row code: a step over all of its keys takes as long as
a statement may keep others waiting."""

TABLE_BYTES_OF_ROW: Final = 24
"""What the table of a right side takes at most while it is filled."""

FIRST_ROWS_MAX: Final = 2**20
"""If more rows are wanted, all are given."""

FIRST_ROWS_AT_ONCE_MIN: Final = 8192
FIRST_ROWS_OF_WANTED: Final = 4
"""Rows among which the first are looked for at once: at least so many, and so many for each that is
wanted. Python needs ten milliseconds to sort the texts of a key."""

FIRST_ROWS_OF_STEP: Final = 8
"""The rows that cost one step where the first are looked for: texts are compared by Python."""

SLOW_ROWS_MAX: Final = 256
SLOW_STEPS: Final = 8
"""Averages that are divided at once, and the steps that one costs."""

WORDS_MAX: Final = 2**16
"""A right side with more texts as keys is joined by row code: numbering them takes too long."""

PAIRS_MAX: Final = 2**17
"""A batch that meets more rows is joined by halves."""


class TreeRun:
    """One execution."""

    def __init__(
        self,
        tree: Tree,
        context: Context,
        scans: tuple[Scanned, ...],
        constants: Constants,
        finishes: tuple[Finish, ...],
    ) -> None:
        self._tree = tree
        self._context = context
        self._scans = scans
        self._finishes = finishes
        self._constants = constant_vectors(constants, tree.constants)

    def rows(self, most: float = inf) -> Generator[None, None, list[Any] | None]:
        """Return the rows that the tree gives, or of a top-n those that may be the first `most`;
        None if it is refused."""
        found: list[Any] = []
        context, outputs = self._context, self._tree.outputs
        width = 1 + sum([len(output.columns) for output in outputs])
        held = context.held
        try:
            for batch in self._wanted(most):
                if batch is not None and batch.length:
                    averages = averages_of(batch, outputs)
                    for page in answers(batch, outputs, averages):
                        context.charge_memory(len(page), width)
                        found += page
                        yield from self._worked(len(page) * (1 + SLOW_STEPS * averages))
                else:
                    yield None
        except (Refused, OutOfMemory):
            context.free_bytes(context.held - held)
            return None
        context.free_bytes(context.held - held - len(found) * row_bytes(width))
        if found:
            context.note_large(found)
        return found

    def _wanted(self, most: float) -> Batches:
        batches, plan = self._batches(self._tree.root), self._tree.first
        if plan is None or most > FIRST_ROWS_MAX:
            yield from batches
            return
        first = FirstTreeRows(plan, int(most))
        at_once = max(FIRST_ROWS_AT_ONCE_MIN, FIRST_ROWS_OF_WANTED * int(most))
        for rows in batches:
            if rows is None or not rows.length:
                yield None
                continue
            for piece in rows.pieces(min(at_once, BATCH_ROWS_MAX)):
                yield first.among(piece)
                yield from self._worked(piece.length // FIRST_ROWS_OF_STEP)

    def _worked(self, steps: int) -> Iterator[None]:
        """Charge steps, and yield if that is due."""
        context = self._context
        context.work += steps
        if context.work > STEPS_BETWEEN_PAUSES:
            context.work = context.made = 0
            context.check()
            yield None

    def _in_turns(
        self, work: Generator[None, None, Made], rows: int
    ) -> Generator[None, None, Made]:
        """Do work whose steps visit so many rows, and yield after each of them if that is due."""
        try:
            while True:
                next(work)
                yield from self._worked(1 + rows // ROWS_OF_STEP)
        except StopIteration as end:
            made: Made = end.value
            return made

    def _computed(self, rows: TreeRows, steps: int) -> Iterator[None]:
        yield from self._worked(rows.length * (1 + steps) // ROWS_OF_STEP)

    def _batches(self, part: Part) -> Batches:
        batches, watch = self._batches_of(part), self._tree.watch
        return batches if watch is None else watch.batches(part, batches)

    def _batches_of(self, part: Part) -> Batches:
        match part:
            case ScanPart():
                return self._scan(part)
            case FilterPart():
                return self._filter(part)
            case JoinPart():
                return self._join(part)
            case ProjectPart():
                return self._project(part)
            case GroupPart():
                return self._group(part)

    def _filter(self, part: FilterPart) -> Batches:
        for rows in self._batches(part.input):
            if rows is None or not rows.length:
                yield None
                continue
            if part.is_slow:
                for piece in rows.pieces(SLOW_ROWS_MAX):
                    yield self._passing(piece, part.check)
                    yield from self._worked(SLOW_STEPS * piece.length)
                continue
            yield self._passing(rows, part.check)
            yield from self._computed(rows, len(part.check.program.steps))

    def _passing(self, rows: TreeRows, check: Check) -> TreeRows:
        return rows.passing(check.program, check.truth) if rows.length else rows

    def _project(self, part: ProjectPart) -> Batches:
        program = part.program
        wanted = [(at, step) for at, step in enumerate(part.steps) if step is not None]
        for rows in self._batches(part.input):
            if rows is None or not rows.length:
                yield None
                continue
            vectors = rows.values(program, tuple([step for _, step in wanted]))
            columns = {
                JoinedColumn(part.source, ColumnVector(at, program.families[step])): vector
                for (at, step), vector in zip(wanted, vectors, strict=True)
            }
            yield TreeRows({part.source: (columns, None)}, rows.length, self._constants)
            yield from self._computed(rows, len(program.steps))

    # --- scans ---

    def _scan(self, part: ScanPart) -> Batches:
        columns = self._tree.columns_of(part.source)
        vectors = None if self._context.pages is None else self._context.pages.vectors
        texts = [as_texts(each) for each in columns if each.family == families.TEXT]
        loaded = (*columns, *texts)
        batch: list[Chunk] = []
        rows = 0
        steps = 1 if part.check is None else len(part.check.program.steps)
        for chunk in all_chunks(self._parts(part), self._context, len(columns)):
            yield from chunk.load(loaded, vectors)
            for wanted in columns:
                yield from self._prepared(chunk, wanted, vectors)
            is_plain = any(not chunk.has(each) for each in columns)
            batch.append(chunk)
            rows += chunk.length
            if rows >= BATCH_ROWS_MAX or is_plain or chunk.filled:
                yield from self._scanned(part, batch, rows, steps)
                batch, rows = [], 0
        if batch:
            yield from self._scanned(part, batch, rows, steps)

    def _prepared(self, chunk: Chunk, wanted: ColumnVector, vectors: Any) -> Iterator[None]:
        """Find or fill a column; texts as they are, if there are too many."""
        before = chunk.filled
        yield from chunk.prepare((wanted,), vectors, True)
        if not chunk.has(wanted) and wanted.family == families.TEXT:
            yield from chunk.prepare((as_texts(wanted),), vectors, True)
        if not chunk.is_ready:
            raise Refused
        yield from self._worked((chunk.filled - before) // VALUES_FILLED_OF_STEP)

    def _parts(self, part: ScanPart) -> Iterator[Chunk | list[Row]]:
        yield from self._scans[part.number]()

    def _scanned(self, part: ScanPart, batch: list[Chunk], rows: int, steps: int) -> Batches:
        for chunk in batch:
            chunk.forget_rows()
        columns = ScannedColumns(batch)
        found = TreeRows({part.source: (columns, None)}, rows, self._constants)
        if self._tree.watch is not None:
            self._tree.watch.looked_at(part, rows)
        if part.check is not None:
            found = self._passing(found, part.check)
        yield found
        yield from self._worked(rows * (1 + steps) // ROWS_OF_STEP)

    # --- joins ---

    def _join(self, part: JoinPart) -> Batches:
        """The right side first: it becomes a table of its keys."""
        gathered = _RightSide(part, self._tree.read)
        for rows in self._batches(part.right):
            if rows is None or not rows.length:
                yield None
                continue
            self._context.hold_bytes(gathered.add(rows))
            if gathered.length > RIGHT_ROWS_MAX:
                raise Refused
            yield from self._computed(rows, 2 * len(part.right_program.steps))
        expected = TABLE_BYTES_OF_ROW * gathered.length
        self._context.hold_bytes(expected)
        right = yield from self._in_turns(gathered.finished(), gathered.length)
        self._context.free_bytes(expected)
        self._context.hold_bytes(right.size)
        for rows in self._batches(part.left):
            if rows is None or not rows.length:
                yield None
                continue
            for found in self._joined(part, right, rows):
                if found is not None:
                    for check in part.checks if part.kind in ("inner", "left") else ():
                        found = self._passing(found, check)
                yield found

    def _joined(self, part: JoinPart, right: _Right, rows: TreeRows) -> Batches:
        yield from self._computed(rows, len(part.left_program.steps) + 2 * len(part.left_keys))
        if part.kind == "one":
            if right.length != 1:
                raise Refused
            first = np.zeros(rows.length, np.int64)
            yield rows.joined_with(part.right_sources, right.columns, first)
            return
        if right.lookup is None:
            if part.kind in ("anti", "not_in"):
                yield rows
            elif part.kind == "left":
                none = np.zeros(rows.length, np.int64)
                yield rows.joined_with(part.right_sources, right.columns, none)
            return
        keys = list(map(_asked, rows.values(part.left_program, part.left_keys)))
        found = right.lookup.matches(keys, rows.length)
        if part.kind == "not_in":
            if right.has_null:
                return
            there = found.exists()
            if keys[0].nulls is not None:
                there |= keys[0].nulls
            yield rows.some(np.flatnonzero(~there))
        elif part.kind in ("semi", "anti") and not part.checks:
            yield rows.some(np.flatnonzero(found.exists() == (part.kind == "semi")))
        elif found.count() > PAIRS_MAX and rows.length > 1:
            half = rows.length // 2
            yield from self._joined(part, right, rows.part(0, half))
            yield from self._joined(part, right, rows.part(half, rows.length))
        elif part.kind in ("semi", "anti"):
            yield self._with_pairs(part, right, rows, found.pairs(False))
        else:
            left, matches = found.pairs(part.kind == "left")
            some = rows if left is None else rows.some(left)
            yield some.joined_with(part.right_sources, right.columns, matches)

    def _with_pairs(
        self, part: JoinPart, right: _Right, rows: TreeRows, pairs: tuple[Array | None, Array]
    ) -> TreeRows:
        """Return the rows that have a pair that passes the checks, or those that have none."""
        left, matches = pairs
        if left is None:
            left = np.arange(rows.length)
        numbered = rows.some(left).joined_with(part.right_sources, right.columns, matches)
        has_one = np.zeros(rows.length, np.bool_)
        if len(left):
            (check,) = part.checks
            (truth,) = numbered.values(check.program, (check.truth,))
            has_one[left[truth.values]] = True
        return rows.some(np.flatnonzero(has_one == (part.kind == "semi")))

    # --- groups ---

    def _group(self, part: GroupPart) -> Batches:
        grouping, held = Grouping(part, self._finishes), 0
        for rows in self._batches(part.input):
            if rows is None or not rows.length:
                yield None
                continue
            yield from self._in_turns(grouping.add(rows), WAITING_MAX)
            size = grouping.size
            self._context.hold_bytes(size - held)
            held = size
            yield from self._computed(rows, len(part.program.steps) + 4 * len(part.calls))
        columns, length = yield from self._in_turns(grouping.finished(), WAITING_MAX)
        found = TreeRows({part.source: (columns, None)}, length, self._constants)
        for piece in found.pieces(BATCH_ROWS_MAX):
            yield piece
            yield from self._worked(piece.length // ROWS_OF_STEP)


class _RightSide:
    """Gathers the rows of a right side."""

    def __init__(self, part: JoinPart, read: frozenset[JoinedColumn]) -> None:
        self._part = part
        self._keys: list[list[Vector]] = [[] for _ in part.right_keys]
        is_shown = part.kind not in ("semi", "anti", "not_in")
        seen = read if is_shown else joined_columns(*[check.program for check in part.checks])
        wanted = sorted([each for each in seen if each.source in part.right_sources])
        self._columns: dict[JoinedColumn, list[Vector]] = {each: [] for each in wanted}
        self._counts_only = not is_shown and not part.checks
        self.length = 0

    def add(self, rows: TreeRows) -> int:
        """Keep rows, and return their bytes."""
        self.length += rows.length
        found = rows.values(self._part.right_program, self._part.right_keys)
        for key, vector in zip(self._keys, found, strict=True):
            if vector.values.dtype == np.object_ and self.length > WORDS_MAX:
                raise Refused  # `_key` would refuse them all
            key.append(vector)
        shown = list(map(rows.joined_column, self._columns))
        for vectors, vector in zip(self._columns.values(), shown, strict=True):
            vectors.append(vector)
        return sum([vector.array_bytes for vector in (*found, *shown)])

    def finished(self) -> Generator[None, None, _Right]:
        """Return the whole; others may run after each column."""
        with_null = self._part.kind == "left"
        columns: dict[JoinedColumn, Vector] = {}
        for wanted, vectors in self._columns.items():
            if vectors or with_null:
                columns[wanted] = _with_null(vectors, wanted) if with_null else together(vectors)
                yield None
        keys = []
        for vectors in self._keys:
            if vectors:
                keys.append(_key(vectors))
                yield None
        right = _Right(columns, keys, self.length, self._counts_only)
        if right.lookup is not None:
            yield from right.lookup.filled()
        return right


class _Right:
    def __init__(
        self,
        columns: dict[JoinedColumn, Vector],
        keys: list[Vector],
        length: int,
        counts_only: bool,
    ) -> None:
        self.columns = columns
        self.length = length
        self.has_null = bool(keys) and keys[0].nulls is not None and bool(keys[0].nulls.any())
        self.lookup = Lookup({}, keys, length, counts_only) if keys and length else None

    @property
    def size(self) -> int:
        """Bytes in memory, but for the columns."""
        return 0 if self.lookup is None else self.lookup.size


def _asked(key: Vector) -> Vector:
    """Return a key for a look-up: texts as they are need no order."""
    if key.values.dtype != np.object_:
        return key
    words = key.values.tolist()
    return Vector(np.arange(len(words)), key.nulls, 0, len(words) - 1, 0, words)


def _key(vectors: list[Vector]) -> Vector:
    """Return a key of the right side: the words of a look-up differ, but need no order."""
    key = together(vectors)
    if key.values.dtype != np.object_:
        return key
    if len(key.values) > WORDS_MAX:
        raise Refused
    places: dict[str, int] = {}
    codes = [places.setdefault(text, len(places)) for text in key.values.tolist()]
    return Vector(np.array(codes), key.nulls, 0, max(0, len(places) - 1), 0, list(places))


def _with_null(vectors: list[Vector], wanted: JoinedColumn) -> Vector:
    """Concatenate vectors, with a NULL at the end."""
    if not vectors:
        kinds = {families.TEXT: np.object_, families.BOOLEAN: np.bool_}
        values: Array = np.ones(1, kinds.get(wanted.vector.family, np.int64))
        if wanted.vector.family == families.TEXT:
            values[0] = ""
        if wanted.vector.family == families.BOOLEAN:
            values[0] = False
        return Vector(values, np.ones(1, np.bool_), 1, 1)
    last = vectors[-1]
    if isinstance(last, OwnDigits):
        return together([*vectors, last.null()])
    value = last.values[-1:]
    if value.dtype == np.bool_:
        value = np.zeros(1, np.bool_)
    null = Vector(value, np.ones(1, np.bool_), last.low, last.high, last.scale, last.words)
    return together([*vectors, null])
