"""TIMETZ: a time of day with its zone.

Values order by moment, then by zone: 12:00+02 and 10:00+00 are the same moment, but two values.
Python's `time` holds them equal, so groups, sets and hashes need this class.
"""

from __future__ import annotations

from datetime import time, tzinfo
from typing import Any, final

from qserver.values.zones import offset_of


@final
class ZonedTime(time):
    """A time whose zone, a fixed offset, is part of its value."""

    __slots__ = ()

    def moment_and_zone(self) -> tuple[int, int]:
        """Microseconds in UTC and seconds west of Greenwich, by which PostgreSQL compares."""
        west = -int(offset_of(self).total_seconds())
        seconds = (self.hour * 60 + self.minute) * 60 + self.second + west
        return seconds * 1_000_000 + self.microsecond, west

    def plain(self) -> time:
        """As Python's own time with a zone, which others know how to write."""
        return time(self.hour, self.minute, self.second, self.microsecond, self.tzinfo)

    def without_zone(self) -> time:
        return time(self.hour, self.minute, self.second, self.microsecond)

    def __eq__(self, other: object) -> bool:
        return type(other) is ZonedTime and self.moment_and_zone() == other.moment_and_zone()

    def __ne__(self, other: object) -> bool:
        return not self == other  # `time` defines its own

    def __hash__(self) -> int:
        return hash(self.moment_and_zone())

    # `Above` compares itself with a time.
    def __lt__(self, other: Any) -> bool:
        if type(other) is not ZonedTime:
            return NotImplemented
        return self.moment_and_zone() < other.moment_and_zone()

    def __le__(self, other: Any) -> bool:
        if type(other) is not ZonedTime:
            return NotImplemented
        return self.moment_and_zone() <= other.moment_and_zone()

    def __gt__(self, other: Any) -> bool:
        if type(other) is not ZonedTime:
            return NotImplemented
        return self.moment_and_zone() > other.moment_and_zone()

    def __ge__(self, other: Any) -> bool:
        if type(other) is not ZonedTime:
            return NotImplemented
        return self.moment_and_zone() >= other.moment_and_zone()


def in_zone(value: time, zone: tzinfo | None) -> ZonedTime:
    return ZonedTime(value.hour, value.minute, value.second, value.microsecond, zone)
