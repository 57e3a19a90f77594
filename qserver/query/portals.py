"""A portal: the rows of a query that has begun, which are fetched as somebody wants them.

    DECLARE c CURSOR …, or Bind and Execute of the wire ─► Portal ─► FETCH, or rows as messages

      1   2   3   4   5   6            rows in the order of the query
              ▲       └───────── still in the stream, of which a page is in memory
              position: on row 3; 0 is before the first, one more than there are behind the last

It reads what its transaction had when it began. A statement that may change that comes after all
rows are kept in memory (`stand_aside`), and so does the commit, for a cursor WITH HOLD. A portal
that cannot go back forgets rows that it has given. Those that the running request has fetched it
keeps, because the request may have to run again.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any, Protocol

from qserver.engine.work import Step
from qserver.errors import InvalidCursorState, NotInPrerequisiteState, OutOfMemory
from qserver.functions.context import row_bytes
from qserver.query.memory_pool import MemoryPool
from qserver.sql import Rows
from qserver.values.schema import Table
from qserver.values.sizes import size_of_rows
from qserver.values.types import SqlType

KEPT_BYTES_FREE = 64 * 1024
"""Texts and parameters of a portal up to this size are not worth counting."""

Stepping = Generator[Step, Any, Any]


class Fetcher(Protocol):
    """The request that wants rows."""

    def check(self) -> None:
        """Raise if its time is over."""


class Stream(Protocol):
    """Where rows come from, see `row_stream`."""

    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    ended: bool

    def stepping(self) -> Generator[Step, Any, Rows | None]: ...
    def pause(self) -> Step: ...
    def go_on_for(self, request: Any) -> None: ...
    def close(self) -> None: ...


class Portal:
    __slots__ = (
        "_created",
        "_failed",
        "_fetcher",
        "_first",
        "_held",
        "_held_text",
        "_pool",
        "_rows",
        "columns",
        "hold",
        "is_binary",
        "is_held",
        "name",
        "position",
        "scroll",
        "sql",
        "stream",
        "table",
        "types",
    )

    def __init__(
        self,
        name: str,
        sql: str,
        stream: Stream,
        created: float,
        pool: MemoryPool | None,
        *,
        hold: bool = False,
        scroll: bool = False,
        is_binary: bool = False,
        table: Table | None = None,
        kept: int = 0,
    ) -> None:
        """`table`: the one that can be changed WHERE CURRENT OF the portal; its key stands behind
        the columns of each row. `kept`: bytes of its text and its parameters."""
        self.name = name
        self.sql = sql
        self.stream = stream
        self.table = table
        shown = len(stream.columns) - (0 if table is None else len(table.primary_key))
        self.columns, self.types = stream.columns[:shown], stream.types[:shown]
        self._created = created
        self.hold = hold
        self.is_held = False
        """Whether the transaction that made it has committed."""
        self.scroll = scroll
        self.is_binary = is_binary
        self.position = 0
        self._rows: Rows = []
        self._first = 0
        """The number of rows before those in memory."""
        self._pool = pool
        self._held_text = self._hold(kept)
        self._held = 0
        self._fetcher: Fetcher | None = None
        self._failed = False

    def _hold(self, size: int) -> int:
        """Count long texts and values as memory: there may be many portals."""
        if self._pool is None or size <= KEPT_BYTES_FREE:
            return 0
        try:
            self._pool.take(size)
        except OutOfMemory:
            self.stream.close()
            raise
        return size

    @property
    def created(self) -> datetime:
        return datetime.fromtimestamp(self._created, UTC)

    @property
    def has_ended(self) -> bool:
        """Whether it has no more rows ahead."""
        return self.stream.ended and self.position >= self._count

    @property
    def _count(self) -> int:
        """The number of rows that have come out of the stream."""
        return self._first + len(self._rows)

    # --- rows in their order, for the wire ---

    def pull(self, most: int) -> Stepping:
        """Return the next rows, a page or so many at most (0: any number); empty: none yet."""
        behind = self.position - self._first
        rows = self._rows[behind:] if behind else self._rows
        if not rows and not self.stream.ended:
            rows = (yield from self._stepped()) or []
        if most and len(rows) > most:
            rows, rest = rows[:most], rows[most:]
        else:
            rest = []
        self.position += len(rows)
        self._first, self._rows = self.position, rest
        return rows

    # --- FETCH and MOVE ---

    def fetch(self, request: Fetcher, direction: str, count: int | None) -> Stepping:
        """Move as FETCH does; return the rows that it gives. `count`: None for all."""
        if self._failed:
            raise NotInPrerequisiteState(f'portal "{self.name}" cannot be run')
        self.stream.go_on_for(request)
        if request is not self._fetcher:
            self._fetcher = request
            self._forget()
        if direction == "absolute":
            assert count is not None
            return (yield from self._go_to(count))
        if direction == "relative":
            assert count is not None
            return (yield from self._go_by(count))
        if direction == "backward":
            direction, count = ("forward", -count) if count else ("backward", count)
        if count == 0:
            return (yield from self._go_by(0))
        if direction == "backward":  # all
            return self._backward(self.position)
        if count is not None and count < 0:
            return self._backward(-count)
        return (yield from self._forward(count))

    def _forward(self, count: int | None) -> Stepping:
        before = self.position
        last = None if count is None else before + count
        there = yield from self._read(last)
        rows = self._rows[before - self._first : None if last is None else last - self._first]
        self.position = last if there and last is not None else self._count + 1
        return rows

    def _backward(self, count: int) -> Rows:
        self._check_scroll()
        low, high = max(1, self.position - count), self.position
        rows = self._rows[low - 1 : max(0, high - 1)][::-1]
        self.position = high - count if high - count >= 1 else 0
        return rows

    def _go_to(self, target: int) -> Stepping:
        if target < 0:
            self._check_scroll()
            yield from self._read(None)
            target = max(0, self._count + 1 + target)
        elif target <= self.position and self.position:
            self._check_scroll()
        there = yield from self._read(target)
        self.position = target if there else self._count + 1
        return self._here()

    def _go_by(self, distance: int) -> Stepping:
        is_behind_last = self.stream.ended and self.position > self._count
        if distance < 0 or (distance == 0 and self.position and not is_behind_last):
            self._check_scroll()
        target = max(0, self.position + distance)
        there = yield from self._read(target)
        self.position = target if there else self._count + 1
        return self._here()

    def _here(self) -> Rows:
        """Return the row that it stands on, if it stands on one."""
        at = self.position - 1 - self._first
        return self._rows[at : at + 1] if at >= 0 else []

    def shown(self, rows: Rows) -> Rows:
        """Return the rows that FETCH has given, without the key behind their columns."""
        if self.table is None:
            return rows
        width = len(self.columns)
        return [row[:width] for row in rows]

    def current_key(self, table: Table) -> tuple[Any, ...]:
        """Return the key of the row of a table on which it stands, for WHERE CURRENT OF."""
        if self.is_held:
            raise InvalidCursorState(
                f'cursor "{self.name}" is held from a previous transaction',
                hint="Declare it in the transaction that changes the table.",
            )
        if self.table is None or self.table.id != table.id:
            raise InvalidCursorState(
                f'cursor "{self.name}" is not a simply updatable scan of table "{table.name}"',
                hint="Declare it over the rows of this table alone, without joins, groups, DISTINCT"
                " and set operations.",
            )
        here = self._here()
        if not here:
            raise InvalidCursorState(
                f'cursor "{self.name}" is not positioned on a row', hint="FETCH a row first."
            )
        return tuple(here[0][len(self.columns) :])

    def _check_scroll(self) -> None:
        if not self.scroll:
            raise NotInPrerequisiteState(
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )

    def _forget(self) -> None:
        if self.scroll or self.position <= self._first:
            return
        gone = self._rows[: self.position - self._first]
        del self._rows[: len(gone)]
        self._first += len(gone)
        self._give_back(self._size_of(gone))

    # --- the stream ---

    def _stepped(self) -> Stepping:
        try:
            return (yield from self.stream.stepping())
        except BaseException:
            self._failed = True
            self.close()
            raise

    def _read(self, last: int | None) -> Stepping:
        """Have rows up to a number in memory, or all; return whether there are so many."""
        steps = 0
        while not self.stream.ended and (last is None or self._count < last):
            if steps > 1:
                yield self.stream.pause()
            steps += 1
            if self._fetcher is not None:
                self._fetcher.check()
            page = yield from self._stepped()
            if page:
                size = self._size_of(page)
                if self._pool is not None:
                    self._pool.take(size)
                self._held += size
                self._rows += page
        return last is not None and self._count >= last

    def _size_of(self, rows: Rows) -> int:
        columns = len(self.stream.columns)
        return size_of_rows(rows, row_bytes(columns), range(columns)) if rows else 0

    def _give_back(self, size: int) -> None:
        size = min(size, self._held)
        self._held -= size
        if self._pool is not None:
            self._pool.give_back(size)

    def stand_aside(self, request: Fetcher | None = None) -> Stepping:
        """Have all rows in memory: what they are from may change, or end."""
        if not self.stream.ended:
            if request is not None:
                self.stream.go_on_for(request)
            yield from self._read(None)

    def close(self) -> None:
        """End it; a second call does nothing."""
        if not self.stream.ended:
            self.stream.close()
        self._rows = []
        self._give_back(self._held)
        if self._pool is not None:
            self._pool.give_back(self._held_text)
        self._held_text = 0
