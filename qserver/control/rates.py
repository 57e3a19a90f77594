"""Limits the requests of an organization: a sliding log, exact over every window.

    now - 60 s                                              now
    ────┤  ·  · ··    ·      ···  ·        ·   ·  ··   ·     ├──►     fewer than the limit? go on
        └── the oldest: when it leaves, there is room for one more, and that is Retry-After

A window is 60 seconds with its beginning and without its end: no such stretch of time, wherever it
begins, ever holds more requests than the limit. Counters by the minute, which are cheaper, let
twice as many through around the turn of a minute; a token bucket lets a burst through on top of the
steady flow. A refused request does not count, so a caller who waits gets through.

Several processes count together in `SharedWindows`, a quarter of a second stricter, and nodes in
`NodeWindows`. `Rates` takes any: to look whether there is room and to count is one step of theirs.

The log of an organization has at most as many times as its limit, and is dropped when all of them
are old. An organization without a limit has no log. Times are whole microseconds, so that "60
seconds later" is exact. A request that does much more work than others counts as several.

Signups are counted the same way over an hour, by their address and all together: a signup has no
organization yet that could be limited.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from qserver.control.tiers import Tier
from qserver.errors import RateLimited
from qserver.limits import RATE_WINDOW_SECONDS, SIGNUP_WINDOW_SECONDS

_SECOND: Final = 1_000_000


class Allowance(msgspec.Struct, frozen=True):
    """An organization's use of its limit; `limit` and `remaining` are None if there is no limit.

    `reset_seconds` is when the oldest counted request leaves the window.
    """

    policy: str
    limit: int | None
    remaining: int | None
    reset_seconds: int


UNLIMITED: Final = Allowance("unlimited", None, None, 0)


class Uncounted(Exception):  # for whoever can wait, not for users
    """Another process has to be asked before a request can be counted: `wait`, and take again."""


class Windows(Protocol):
    """Requests of the last window, by name, with which others may count too."""

    def take(self, name: str, limit: int, count: int = 1) -> tuple[int, int, int]: ...

    async def wait(self, name: str, limit: int, count: int = 1) -> None:
        """Return when `take` can tell what it could not; it raised Uncounted."""

    def give_back(self, name: str, count: int = 1) -> None: ...

    def count(self, name: str) -> int: ...

    def forget_old(self) -> None: ...

    def __len__(self) -> int: ...


class SlidingLogs:
    """The moments of the last window, by name. `clock` never goes back; the wall clock may."""

    def __init__(self, clock: Callable[[], float], window_seconds: int) -> None:
        self._clock = clock
        self._window = window_seconds * _SECOND
        self._logs: dict[str, deque[int]] = {}

    def take(self, name: str, limit: int, count: int = 1) -> tuple[int, int, int]:
        """Count so many requests if they fit under the limit.

        Return the seconds until they will fit (0: they were counted), how many count now, and the
        seconds until the oldest no longer does.
        """
        wait = self.seconds_until_room(name, limit, count)
        if not wait:
            self.add(name, count)
        return wait, self.count(name), self.seconds_until_first_ends(name)

    async def wait(self, name: str, limit: int, count: int = 1) -> None:
        """All is known here."""

    def give_back(self, name: str, count: int = 1) -> None:
        """Count requests no longer that were counted within the last second.

        Of the last second the oldest go: so no other ceases to count before its time.
        """
        log = self._recent(name)
        begin = bisect_left(log, self._moment() - _SECOND)
        for _ in range(min(count, len(log) - begin)):
            del log[begin]

    def seconds_until_room(self, name: str, limit: int, count: int = 1) -> int:
        """Return the seconds until `count` more fit under the limit: 0 if they do now."""
        log = self._recent(name)
        over = len(log) + count - limit
        if over <= 0:
            return 0
        # If the limit was lowered, more than one has to leave.
        return self._seconds_until_end(log[min(over, len(log)) - 1]) if log else 0

    def add(self, name: str, count: int = 1) -> None:
        self._logs.setdefault(name, deque()).extend([self._moment()] * count)

    def count(self, name: str) -> int:
        return len(self._recent(name))

    def seconds_until_first_ends(self, name: str) -> int:
        """Return the seconds until the oldest no longer counts."""
        return self._seconds_until_end(self._logs[name][0])

    def forget_old(self) -> None:
        """Drop the logs of names that had nothing for a window."""
        oldest = self._moment() - self._window
        self._logs = {name: log for name, log in self._logs.items() if log and log[-1] > oldest}

    def _recent(self, name: str) -> deque[int]:
        log = self._logs.get(name)
        if log is None:
            return deque()
        oldest = self._moment() - self._window
        while log and log[0] <= oldest:
            log.popleft()
        return log

    def _moment(self) -> int:
        return round(self._clock() * _SECOND)

    def _seconds_until_end(self, moment: int) -> int:
        """Return the whole seconds until a moment leaves the window, rounded up."""
        return -((self._moment() - moment - self._window) // _SECOND)

    def __len__(self) -> int:
        return len(self._logs)


class Rates:
    """Requests of organizations, over a minute."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def take(self, organization_id: str, tier: Tier, cost: int = 1) -> Allowance:
        limit = tier.requests_per_minute
        if limit is None:
            return UNLIMITED
        assert 1 <= cost <= limit, "a request that no organization could ever send"
        wait, count, reset = self._windows.take(organization_id, limit, cost)
        # What all processes count ends up to a quarter of a second late: nobody is told of that.
        wait, reset = min(wait, RATE_WINDOW_SECONDS), min(reset, RATE_WINDOW_SECONDS)
        if wait:
            raise RateLimited(
                f"more than {limit} requests in {RATE_WINDOW_SECONDS} seconds,"
                f" which is the limit of the tier {tier.name}",
                detail=f"This one counts as {cost}." if cost > 1 else None,
                hint=f"Wait {wait} seconds.",
                retry_after_seconds=wait,
            )
        return Allowance(tier.name, limit, limit - count, reset)

    async def wait(self, organization_id: str, tier: Tier, cost: int = 1) -> None:
        """Return when a request that was Uncounted can be counted, or is known to be too many."""
        if tier.requests_per_minute is not None:
            await self._windows.wait(organization_id, tier.requests_per_minute, cost)

    def give_back(self, organization_id: str, tier: Tier, cost: int = 1) -> None:
        """Count a request no longer, of the last second, that another process takes and counts."""
        if tier.requests_per_minute is not None:
            self._windows.give_back(organization_id, cost)

    def count(self, organization_id: str) -> int:
        return self._windows.count(organization_id)

    def forget_old(self) -> None:
        self._windows.forget_old()

    def __repr__(self) -> str:
        return f"the recent requests of {len(self._windows)} organizations"


class SignupRates:
    """Signups over an hour: of one address, and of all."""

    def __init__(self, clock: Callable[[], float], address_max: int, all_max: int) -> None:
        self._addresses = SlidingLogs(clock, SIGNUP_WINDOW_SECONDS)
        self._all = SlidingLogs(clock, SIGNUP_WINDOW_SECONDS)
        self._address_max = address_max
        self._all_max = all_max

    def take(self, address: str) -> None:
        """Count an attempt, or raise RateLimited.

        An attempt that fails later counts too: asking which names are taken is an attempt.
        """
        for logs, name, limit, whose in (
            (self._addresses, address, self._address_max, "from this address"),
            (self._all, "", self._all_max, "on this server"),
        ):
            wait = logs.seconds_until_room(name, limit)
            if wait:
                raise RateLimited(
                    f"more than {limit} signups an hour {whose}",
                    hint=f"Wait {wait} seconds.",
                    retry_after_seconds=wait,
                )
        self._addresses.add(address)
        self._all.add("")

    def forget_old(self) -> None:
        self._addresses.forget_old()
        self._all.forget_old()

    def __repr__(self) -> str:
        return f"the recent signups of {len(self._addresses)} addresses"
