"""How many requests an organization may still send: a sliding log, exact over every window.

    now - 60 s                                              now
    ────┤  ·  · ··    ·      ···  ·        ·   ·  ··   ·     ├──►     fewer than the limit? go on
        └── the oldest: when it leaves, there is room for one more, and that is Retry-After

A window is 60 seconds with its beginning and without its end: no such stretch of time, wherever
it begins, ever holds more requests than the limit. Counters by the minute, which are cheaper, let
twice as many through around the turn of a minute; a bucket of tokens lets a burst through on top of
the steady flow. A request that is refused does not count, so a caller who waits gets through.

The log of an organization has at most as many times as its limit, and is dropped when all of them
are old. Who has no limit has no log. Times are whole microseconds: with those, "60 seconds later"
is exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from qserver.control.records import Tier
from qserver.errors import RateLimited
from qserver.limits import RATE_WINDOW_SECONDS

_SECOND: Final = 1_000_000
_WINDOW: Final = RATE_WINDOW_SECONDS * _SECOND


class Allowance(msgspec.Struct, frozen=True):
    """Where an organization stands. `limit` and `remaining` are None where there is none.

    `reset_seconds` is when the oldest request that counts no longer will.
    """

    policy: str
    limit: int | None
    remaining: int | None
    reset_seconds: int


UNLIMITED: Final = Allowance("unlimited", None, None, 0)


class Rates:
    """`clock` never goes back; that of people may."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logs: dict[str, deque[int]] = {}

    def take(self, organization_id: str, tier: Tier) -> Allowance:
        """Count a request, or raise RateLimited."""
        limit = tier.requests_per_minute
        if limit is None:
            return UNLIMITED
        moment = self._moment()
        log = self._logs.get(organization_id)
        if log is None:
            log = self._logs[organization_id] = deque()
        _drop_old(log, moment)
        if len(log) >= limit:
            # Should the tier have become a lower one, more than one request has to leave.
            wait = _seconds_until(log[len(log) - limit] + _WINDOW, moment)
            raise RateLimited(
                f"more than {limit} requests in {RATE_WINDOW_SECONDS} seconds,"
                f" which is the limit of the tier {tier.name}",
                hint=f"Wait {wait} seconds.",
                retry_after_seconds=wait,
            )
        log.append(moment)
        return Allowance(
            tier.name, limit, limit - len(log), _seconds_until(log[0] + _WINDOW, moment)
        )

    def count(self, organization_id: str) -> int:
        """Requests of the last window."""
        log = self._logs.get(organization_id)
        if log is None:
            return 0
        _drop_old(log, self._moment())
        return len(log)

    def forget_old(self) -> None:
        """Drop the logs of organizations that have sent nothing for a window."""
        oldest = self._moment() - _WINDOW
        self._logs = {
            organization_id: log
            for organization_id, log in self._logs.items()
            if log and log[-1] > oldest
        }

    def _moment(self) -> int:
        return round(self._clock() * _SECOND)

    def __repr__(self) -> str:
        return f"the recent requests of {len(self._logs)} organizations"


def _drop_old(log: deque[int], moment: int) -> None:
    oldest = moment - _WINDOW
    while log and log[0] <= oldest:
        log.popleft()


def _seconds_until(then: int, moment: int) -> int:
    """Whole seconds, rounded up."""
    return -((moment - then) // _SECOND)
