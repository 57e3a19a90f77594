"""Limits the time of a call that searches for match after match.

Most expressions find the next match within microseconds. Some scan the whole rest of the text for
each match, and would take quadratic time. The engines do not report their work, so the time is
measured, and a call that is far too slow ends with 54000.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time
from typing import Final, TypeVar

from qserver.errors import ProgramLimitExceeded
from qserver.functions.regex.syntax import too_long
from qserver.limits import REGEX_MATCHES_MAX

T = TypeVar("T")

SECONDS_MOST: Final = 0.09
"""The limit for all searches of a call, beyond the allowance of each."""

SECONDS_OF_SEARCH: Final = 0.000_05
"""The time of a search that is not counted: callers can yield between searches."""

_LOOK_EVERY: Final = 32


def few(matches: Iterator[T]) -> Iterator[T]:
    """Limit the number and the time of matches that a call consumes without a yield."""
    began = thread_time()
    for count, match in enumerate(matches):
        if count >= REGEX_MATCHES_MAX or (
            not count % _LOOK_EVERY and thread_time() - began > SECONDS_MOST
        ):
            raise ProgramLimitExceeded(
                "the regular expression matches too often for a single call",
                detail=f"It has matched {count} times.",
                hint="regexp_matches and regexp_split_to_table give any number as rows.",
            )
        yield match


class Stopwatch(Iterator[T]):
    """The matches of a text, until finding them takes too long."""

    __slots__ = ("_left", "_length", "_matches")

    def __init__(self, matches: Iterator[T], length: int) -> None:
        self._matches = matches
        self._length = length
        self._left = SECONDS_MOST

    def __next__(self) -> T:
        if self._left < 0:
            raise too_long(self._length)
        began = thread_time()
        found = next(self._matches)
        self._left -= max(thread_time() - began - SECONDS_OF_SEARCH, 0)
        return found
