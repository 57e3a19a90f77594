"""Records: a row's values as one value. Never in a column, but they sort, print and nest.

A record has its own tuple class, because a plain tuple is an array: an array of records must not
look like an array with two dimensions.
"""

from __future__ import annotations

from typing import Any, final


@final
class Record(tuple[Any, ...]):
    """`ROW(1, 'a')`; equality and hash are those of the tuple."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Record{super().__repr__()}"
