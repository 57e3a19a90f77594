"""INTERVAL: months, days and microseconds, kept apart because none of them is a fixed number of
the next.

    '1 mon' added to January 31st is February 28th or 29th; '30 days' is not
    '1 day' added in a zone keeps the time of day; '24:00:00' might not

Only comparison mixes them: a month counts as 30 days, a day as 24 hours. So `1 mon` equals
`30 days`, hashes the same and is the same key (`normal`), but each is stored as given. Each part
has its own sign. Months and days have 32 bits, microseconds 64, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from qserver.errors import DatetimeFieldOverflow

MICROSECONDS_PER_SECOND: Final = 1_000_000
MICROSECONDS_PER_MINUTE: Final = 60 * MICROSECONDS_PER_SECOND
MICROSECONDS_PER_HOUR: Final = 60 * MICROSECONDS_PER_MINUTE
MICROSECONDS_PER_DAY: Final = 24 * MICROSECONDS_PER_HOUR
DAYS_PER_MONTH: Final = 30
MONTHS_PER_YEAR: Final = 12

PART_MIN, PART_MAX = -(2**31), 2**31 - 1
TIME_MIN, TIME_MAX = -(2**63), 2**63 - 1


@final
class Interval:
    """An immutable length of time; the constructor raises if a part is out of range."""

    __slots__ = ("days", "microseconds", "months")

    months: int
    days: int
    microseconds: int

    def __init__(self, months: int = 0, days: int = 0, microseconds: int = 0) -> None:
        if not (
            PART_MIN <= months <= PART_MAX
            and PART_MIN <= days <= PART_MAX
            and TIME_MIN <= microseconds <= TIME_MAX
        ):
            raise DatetimeFieldOverflow("interval out of range")
        set_field = object.__setattr__
        set_field(self, "months", months)
        set_field(self, "days", days)
        set_field(self, "microseconds", microseconds)

    @property
    def span(self) -> int:
        """The length in microseconds, by which intervals compare; may exceed 64 bits."""
        days = self.months * DAYS_PER_MONTH + self.days
        return days * MICROSECONDS_PER_DAY + self.microseconds

    def normal(self) -> Interval:
        """The representative of all equal intervals, for keys: no part outgrows the next.

        Its months may need more than 32 bits.
        """
        days, microseconds = divmod(self.span, MICROSECONDS_PER_DAY)
        months, days = divmod(days, DAYS_PER_MONTH)
        return interval_of_parts(months, days, microseconds)

    @property
    def parts(self) -> tuple[int, int, int]:
        return self.months, self.days, self.microseconds

    def __lt__(self, other: object) -> bool:
        return self.span < other.span if isinstance(other, Interval) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.span <= other.span if isinstance(other, Interval) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.span > other.span if isinstance(other, Interval) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.span >= other.span if isinstance(other, Interval) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.span == other.span if isinstance(other, Interval) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.span)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Interval does not change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an Interval does not change: {name}")

    def __reduce__(self) -> tuple[Callable[[int, int, int], Interval], tuple[int, int, int]]:
        return interval_of_parts, self.parts

    def __repr__(self) -> str:
        return f"Interval(months={self.months}, days={self.days}, microseconds={self.microseconds})"


def interval_of_parts(months: int, days: int, microseconds: int) -> Interval:
    """Make an interval from parts of an earlier one, perhaps a normal one, without a check."""
    interval = Interval.__new__(Interval)
    set_field = object.__setattr__
    set_field(interval, "months", months)
    set_field(interval, "days", days)
    set_field(interval, "microseconds", microseconds)
    return interval


ZERO: Final = Interval()
