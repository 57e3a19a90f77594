"""A scan that runs again and again, each time for other values of some columns, becomes look-ups.

A subquery runs once for each distinct combination of the outer columns that it names. If it looks
for rows of a table by them, and there is no index, each run would read the whole table:

    … WHERE price < (SELECT avg(price) FROM items i WHERE i.shop = o.shop AND i.kind = o.kind)

Its first runs do. Then one more reads the table into a hash table, and the others look up there:

hashed0 = HashedScan(context, 1, lambda r1: r1[3] > slot0, lambda r1: (r1[1], r1[2]))
for page0 in hashed0.parts((a0, a1), lambda: scan_values(7, None, None, None)):
    for r0 in page0:
        if r0[1] == a0 and r0[2] == a1 and r0[3] > slot0:

The condition is checked again, and the rows come in their order: which way a run took shows in
nothing but its time. So what cannot be decided in advance is left to that check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from qserver.functions.context import Context
from qserver.sql.codegen.pipeline import ROWS_BETWEEN_CHECKS
from qserver.sql.codegen.runtime import pages_of
from qserver.values.keys import Row

RUNS_BY_ROWS: Final = 1
"""The runs that read the whole table before one makes the hash table."""

RUNS_OVER_VECTORS: Final = 24
"""The same where a run computes over vectors: so much quicker is it than filling a hash table."""

ROWS_HASHED_MAX: Final = 1_000_000
"""With more rows in it, a hash table is given up."""

MEMORY_SHARE: Final = 4
"""A hash table takes at most this part of the memory of a statement."""

KEY_WIDTH: Final = 4
"""A key and its list count as much memory as a row of so many columns."""

Parts = Callable[[], Iterable[Any]]


class HashedScan:
    """The rows of one table by the values of some columns, for one execution of a statement."""

    __slots__ = ("_context", "_key", "_most", "_runs_left", "_table", "_wanted")

    def __init__(
        self,
        context: Context,
        runs: int,
        wanted: Callable[[Row], Any],
        key: Callable[[Row], Any],
    ) -> None:
        """`wanted` is the condition of a row alone, `key` what is looked up."""
        self._context = context
        self._runs_left: int | None = runs
        self._wanted = wanted
        self._key = key
        self._table: dict[Any, list[Row]] | None = None
        self._most = context.memory_bytes_most // MEMORY_SHARE

    def parts(self, key: tuple[Any, ...], read: Parts, read_rows: Parts) -> Iterable[Any]:
        """Return pages or chunks with all rows of a key; `read` gives all of the table."""
        if None in key:
            return ()
        if self._table is not None:
            return pages_of(self._table.get(key, []))
        if self._runs_left is None:
            return read()
        if self._runs_left:
            self._runs_left -= 1
            return read()
        return self._filled(key, read, read_rows)

    def _filled(self, key: tuple[Any, ...], read: Parts, read_rows: Parts) -> Iterator[Any]:
        """Fill the table, with an empty page after each that was read; then yield the rows."""
        table: dict[Any, list[Row]] = {}
        context, kept = self._context, 0
        for page in read_rows():
            context.work += 2 * len(page)
            before = kept
            try:
                kept += self._add(page, table)
            except Exception:  # whatever is wrong with a row, its own look-up raises it
                return (yield from self._given_up(read))
            crossed = kept // ROWS_BETWEEN_CHECKS - before // ROWS_BETWEEN_CHECKS
            if crossed:
                if kept > ROWS_HASHED_MAX or context.held > self._most:
                    return (yield from self._given_up(read))
                context.charge_memory(crossed * ROWS_BETWEEN_CHECKS, KEY_WIDTH, table)
            yield []
        self._table = table
        yield from pages_of(table.get(key, []))

    def _given_up(self, read: Parts) -> Iterator[Any]:
        self._runs_left = None
        yield from read()

    def _add(self, page: list[Row], table: dict[Any, list[Row]]) -> int:
        wanted, key_of, added = self._wanted, self._key, 0
        for row in page:
            if wanted(row):
                key = key_of(row)
                if None not in key:
                    added += 1
                    same = table.get(key)
                    if same is None:
                        table[key] = [row]
                    else:
                        same.append(row)
        return added
