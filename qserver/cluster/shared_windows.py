"""Requests of the last minute, counted by all processes of a machine together, in shared memory.

    slot of an organization       guarded by byte i of a lock file
    ┌────────┬──────┬───┬───┬───┬───┬─ ─ ─┬───┐
    │ digest │ last │ 3 │ 0 │ 7 │ 1 │     │ 2 │      one counter for each quarter of a second,
    └────────┴──────┴───┴───┴───┴───┴─ ─ ─┴───┘      in a ring; `last` is the newest quarter

**No stretch of 60 seconds ever holds more requests than the limit**, whichever processes let them
through and whichever die meanwhile. A request counts until 60 seconds after the end of its quarter:
for 60 seconds at least, and for a quarter more at most. So a caller may be refused a quarter of a
second longer than it must be. One process alone uses `SlidingLogs`, which is exact.

The memory and the lock file are made before the processes are forked. Locks are POSIX record locks:
they belong to a process, not to an open file that forked processes share, and the kernel frees them
when a process dies. (Which is why nobody may ever open and close that file a second time: to close
any descriptor of it frees them too.) They are held for microseconds. A process holds one lock at a
time, so none waits for another in a circle.

A process that is stopped in those microseconds keeps its lock. Who needs it waits for a moment, and
then refuses the request: to let it through uncounted could be one too many. All other tasks wait
meanwhile, so for the next second it refuses such requests at once.

A slot is right after each single write, so a process may die anywhere:

- To move on in time, the counters of new quarters are cleared, then `last` is written. What is
  cleared was too old to count.
- To count is one write. To take a slot over is to write the digest: all that it counts is old.

The slot of a name is one of a few that follow its hash. Whoever finds none with its digest takes
one over that had nothing for a window, and locks all of the few for that: so a name never has two
slots. If all are in use the request is refused.
"""

from __future__ import annotations

import fcntl
import mmap
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import accumulate, compress
from time import monotonic, sleep
from typing import Final, NamedTuple

from qserver.errors import DatabaseUnavailable, TooManyRequests
from qserver.limits import (
    RATE_LOCK_SECONDS_MAX,
    RATE_SLOTS,
    RATE_SLOTS_PROBED,
    RATE_WINDOW_SECONDS,
)

_SECOND: Final = 1_000_000
_QUARTER: Final = _SECOND // 4
_DIGEST_BYTES: Final = 16
_GIVEN_BACK_QUARTERS: Final = 4
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.00002, 0.001


class _Window(NamedTuple):
    """A slot at a moment."""

    slot: int
    moment: int
    last: int
    counts: list[int]
    """By quarters, the oldest first; the last one is the present."""

    def seconds_until_gone(self, count: int) -> int:
        """Return the seconds until so many, the oldest, no longer count."""
        if count <= 0:
            return 0
        newest = len(self.counts) - 1
        if count == 1:  # each request asks for that
            place = next(compress(range(newest), self.counts), newest)
        else:
            place = min(newest, bisect_left([*accumulate(self.counts)], count))
        end = (self.last + 1 + place) * _QUARTER
        return -((self.moment - end) // _SECOND)


class SharedWindows:
    """The counts of all names. Make it before the processes are forked.

    `clock` must be the same in all processes and never go back, as CLOCK_MONOTONIC is.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        window_seconds: int = RATE_WINDOW_SECONDS,
        slots: int = RATE_SLOTS,
    ) -> None:
        self._clock = clock
        self._quarters = window_seconds * 4 + 1
        self._homes = slots
        size = _DIGEST_BYTES + 8 + 4 * self._quarters
        self._slot_bytes = -(-size // 8) * 8
        slots += RATE_SLOTS_PROBED  # those that follow the last hash
        self._memory = memoryview(mmap.mmap(-1, slots * self._slot_bytes))
        self._lasts = self._memory.cast("Q")
        self._counts = self._memory.cast("I")
        self._nothing = memoryview(bytes(4 * self._quarters)).cast("I")
        self._lock_file = tempfile.TemporaryFile()  # noqa: SIM115 until `close`
        self._found: dict[str, tuple[int, bytes]] = {}
        """Slots and digests of names that were seen: they may have lost their slot since."""
        self._stuck: dict[int, int] = {}
        """Until when nobody waits for the locks of slots, because one did in vain."""

    def take(self, name: str, limit: int, count: int = 1) -> tuple[int, int, int]:
        """Count so many requests if they fit under the limit: one step for all processes.

        Return the seconds until they will fit (0: they were counted), how many count now, and the
        seconds until the oldest no longer does.
        """
        with self._window(name) as window:
            total = sum(window.counts)
            wait = window.seconds_until_gone(total + count - limit)
            if not wait:
                self._add(window, count)
                total += count
            return wait, total, window.seconds_until_gone(1)

    async def wait(self, name: str, limit: int, count: int = 1) -> None:
        """All is known to all processes."""

    def seconds_until_room(self, name: str, limit: int, count: int = 1) -> int:
        """Return the seconds until `count` more fit under the limit: 0 if they do now."""
        with self._window(name) as window:
            return window.seconds_until_gone(sum(window.counts) + count - limit)

    def add(self, name: str, count: int = 1) -> None:
        with self._window(name) as window:
            self._add(window, count)

    def give_back(self, name: str, count: int = 1) -> None:
        """Count requests no longer that were counted within the last second.

        Of the last second the oldest go: so no other ceases to count before its time.
        """
        with suppress(DatabaseUnavailable), self._window(name) as window:  # it counts on, if so
            for age in range(_GIVEN_BACK_QUARTERS, -1, -1):
                back = min(count, window.counts[-1 - age])
                self._counts[self._count_at(window.slot, window.last - age)] -= back
                count -= back

    def count(self, name: str) -> int:
        with self._window(name) as window:
            return sum(window.counts)

    def seconds_until_first_ends(self, name: str) -> int:
        """Return the seconds until the oldest no longer counts."""
        with self._window(name) as window:
            return window.seconds_until_gone(1)

    def close(self) -> None:
        """Let go of the lock file, in this process."""
        self._lock_file.close()

    def forget_old(self) -> None:
        """Forget which names were seen. Slots are taken over when they are needed."""
        self._found.clear()
        self._stuck.clear()

    def __len__(self) -> int:
        """The number of slots that are in use."""
        oldest = self._moment() // _QUARTER - self._quarters
        every = range(0, len(self._memory), self._slot_bytes)
        return sum(self._lasts[self._last_at(slot)] > oldest for slot in every)

    @contextmanager
    def _window(self, name: str) -> Iterator[_Window]:
        """Lock the slot of a name, and bring it to the present."""
        known = self._found.get(name)
        try:
            if known is not None:
                slot, digest = known
                self._lock(slot, 1)
                if self._memory[slot : slot + _DIGEST_BYTES] == digest:
                    yield self._present(slot)
                    return
                self._unlock()
            digest = blake2b(name.encode(), digest_size=_DIGEST_BYTES).digest()
            home = int.from_bytes(digest[:8], "big") % self._homes * self._slot_bytes
            self._lock(home, RATE_SLOTS_PROBED)
            slot = self._find(home, digest)
            self._found[name] = slot, digest
            yield self._present(slot)
        finally:
            self._unlock()

    def _lock(self, slot: int, count: int) -> None:
        pause, waited = _PAUSE_SECONDS, 0.0
        while not self._try_lock(slot, count):
            now = self._moment()
            if waited >= RATE_LOCK_SECONDS_MAX:
                self._stuck[slot] = now + _SECOND
            if now < self._stuck.get(slot, 0):
                raise DatabaseUnavailable(
                    "requests cannot be counted: another process stands still", hint="Try again."
                )
            sleep(pause)
            waited += pause
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    def _try_lock(self, slot: int, count: int) -> bool:
        try:
            place = slot // self._slot_bytes
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB, count, place)
        except (BlockingIOError, PermissionError):  # systems differ
            return False
        return True

    def _unlock(self) -> None:
        """Unlock everything: no process holds more than it has locked last."""
        fcntl.lockf(self._lock_file, fcntl.LOCK_UN)

    def _find(self, home: int, digest: bytes) -> int:
        """Return the slot of a digest among those that follow its hash, or take one over."""
        oldest = self._moment() // _QUARTER - self._quarters
        free = None
        for slot in range(home, home + RATE_SLOTS_PROBED * self._slot_bytes, self._slot_bytes):
            if self._memory[slot : slot + _DIGEST_BYTES] == digest:
                return slot
            if free is None and self._lasts[self._last_at(slot)] <= oldest:
                free = slot
        if free is None:
            raise TooManyRequests("too many organizations send requests at once")
        self._memory[free : free + _DIGEST_BYTES] = digest
        return free

    def _present(self, slot: int) -> _Window:
        at = self._last_at(slot)
        last = self._lasts[at]
        moment = max(self._moment(), last * _QUARTER)
        now = moment // _QUARTER
        if now - last >= self._quarters:
            self._clear(slot)
        else:
            for quarter in range(last + 1, now + 1):
                self._counts[self._count_at(slot, quarter)] = 0
        self._lasts[at] = now
        begin = self._count_at(slot, 0)
        newest, end = self._count_at(slot, now) + 1, begin + self._quarters
        counts = self._counts[newest:end].tolist() + self._counts[begin:newest].tolist()
        return _Window(slot, moment, now, counts)

    def _add(self, window: _Window, count: int) -> None:
        self._counts[self._count_at(window.slot, window.last)] += count

    def _clear(self, slot: int) -> None:
        begin = self._count_at(slot, 0)
        self._counts[begin : begin + self._quarters] = self._nothing

    def _moment(self) -> int:
        """In microseconds; later than that of a slot that was never used, which is 0."""
        return round(self._clock() * _SECOND) + (self._quarters + 1) * _QUARTER

    def _last_at(self, slot: int) -> int:
        return (slot + _DIGEST_BYTES) // 8

    def _count_at(self, slot: int, quarter: int) -> int:
        return (slot + _DIGEST_BYTES + 8) // 4 + quarter % self._quarters
