"""A scan whose key is in the rows of a query: look-ups if they are few, else a scan of its own.

    UPDATE jobs SET state = 'taken' WHERE id IN (SELECT id FROM jobs WHERE … LIMIT 10)

found0, _, _ = (yield from query0())
for steps0, page0 in sought_pages(
    found0, 5000,
    lambda k0: ([r1] for r1 in (get_entry(7, (k0,)),) if r1 is not None),
    lambda: scan_values(7, None, None, None), 0,
):
    for r0 in page0:

How many rows a query has is known when it has been read, which is before the scan begins. So no
estimate decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from qserver.values.keys import Row

LOOKUP_STEPS: Final = 2
"""The steps of a key look-up."""

Pages: TypeAlias = Iterable[Sequence[Row]]


def sought_pages(
    values: set[Any],
    few: int,
    find: Callable[[Any], Pages],
    every: Callable[[], Pages],
    position: int,
) -> Iterator[tuple[int, Sequence[Row]]]:
    """Yield the rows whose column at `position` is one of the values, a page at a time, each with
    the steps that it took."""
    if len(values) > few:
        for page in every():
            yield len(page), [row for row in page if row[position] in values]
        return
    for value in sorted(values):
        yield LOOKUP_STEPS, ()
        for page in find(value):
            yield LOOKUP_STEPS * len(page), page
