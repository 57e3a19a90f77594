"""How long one call may search for one match after the other.

Most expressions find the next match within microseconds. Some look at the whole rest of the text
before each of them, and would take the square of its length. What was searched is not seen from
outside, so its time is measured, and a call that is far slower than the many ends with 54000.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time
from typing import Final, TypeVar

from qserver.errors import ProgramLimitExceeded
from qserver.limits import REGEX_MATCHES_MAX
from qserver.sql.functions.regex.syntax import too_long

Found = TypeVar("Found")

SECONDS_MOST: Final = 0.15
"""What all searches of a call may take, beside what each is allowed."""

SECONDS_OF_SEARCH: Final = 0.000_05
"""What a search may take without being counted: whoever takes matches one by one can let others
run in between."""

_LOOK_EVERY: Final = 32


def few(matches: Iterator[Found]) -> Iterator[Found]:
    """Matches that a call goes through in one breath: not too many, and not for too long."""
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


class Stopwatch(Iterator[Found]):
    """The matches of a text, as long as finding them does not take too long."""

    __slots__ = ("_left", "_length", "_matches")

    def __init__(self, matches: Iterator[Found], length: int) -> None:
        self._matches = matches
        self._length = length
        self._left = SECONDS_MOST

    def __next__(self) -> Found:
        if self._left < 0:
            raise too_long(self._length)
        began = thread_time()
        found = next(self._matches)
        self._left -= max(thread_time() - began - SECONDS_OF_SEARCH, 0)
        return found
