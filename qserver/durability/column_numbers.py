"""Where the saved columns of a page are: among the pages, under numbers below zero.

    page 17        17
    its columns    -(17 * 4096 + 2 * position), one less for texts as they are

So they are stored, copied, restored and forgotten as pages are, and every file has room for them.
A log tells the page that a number belongs to, and forgets a page with its columns. The numbers from
-1 to -4095 belong to no page: they are those of notes, each of which is declared here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from qserver.values.vector_families import TEXTS, ColumnVector

BITS: Final = 12
COLUMNS: Final = 1 << BITS
"""So many numbers belong to a page: two for each column of the widest table."""
POSITION: Final = -1
"""Under this number a copy of a replicated log has its position, see `replication.position`."""
PENDING: Final = -2
"""Under this number the log has the note of columns that are still to be made, if there are any."""
LAST_PAGE: Final = (1 << 63 - BITS) - 1
"""Pages with greater numbers, those of a scratch, have no columns."""


def can_be_saved(page: int, wanted: ColumnVector) -> bool:
    return 0 < page < LAST_PAGE and 2 * wanted.position + 1 < COLUMNS


def column_number(page: int, wanted: ColumnVector) -> int:
    return -(page << BITS | 2 * wanted.position | (wanted.family == TEXTS))


def page_of(number: int) -> int:
    """Return which page a number belongs to: that of a page, or of a column."""
    return -number >> BITS if number <= -COLUMNS else number


def columns_between(pages: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of the columns of pages, of adjacent ones together."""
    first = last = 0
    for page in sorted(pages):
        if page < 1:
            continue
        if page > last + 1:
            if last:
                yield -(last << BITS | COLUMNS - 1), -(first << BITS)
            first = page
        last = page
    if last:
        yield -(last << BITS | COLUMNS - 1), -(first << BITS)
