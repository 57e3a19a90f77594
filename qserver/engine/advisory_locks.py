"""Advisory locks: numbers that sessions lock, which mean what their users agree on.

    take ─┬─ nobody is in the way ─► held
          └─ wait, first come first served ─► held
                 └─ a circle of waits: 40P01

They are in memory, of one database, and end with their sessions; no commit knows of them. A lock
that is held several times is released as often. Who waits, waits for those who hold the lock in a
way that excludes its own, and for those who wait so before it. Who holds a lock already passes by
the others, so that it never waits for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

import msgspec
import trio

from qserver.errors import DeadlockDetected, ProgramLimitExceeded
from qserver.limits import ADVISORY_LOCKS_MAX

Key: TypeAlias = int | tuple[int, int]


class Lock(msgspec.Struct, frozen=True):
    """One key, in one of two ways."""

    key: Key
    shared: bool = False

    def excludes(self, other: Lock) -> bool:
        return not (self.shared and other.shared)


class LockHolder:
    """What one session holds."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.held: Counter[Lock] = Counter()
        self.waits_for: Lock | None = None

    def __repr__(self) -> str:
        return f"session {self.number} with {self.held.total()} locks"


class _Waiter:
    def __init__(self, holder: LockHolder, lock: Lock) -> None:
        self.holder = holder
        self.lock = lock
        self.granted = trio.Event()


class AdvisoryLocks:
    """All of one database."""

    def __init__(self) -> None:
        self._holders: dict[Key, dict[LockHolder, None]] = {}
        self._waiters: dict[Key, list[_Waiter]] = {}

    def try_take(self, holder: LockHolder, lock: Lock) -> bool:
        """Take a lock if nobody is in the way."""
        if next(self._in_the_way(holder, lock, self._waiters.get(lock.key, [])), None) is not None:
            return False
        if holder.held.total() >= ADVISORY_LOCKS_MAX:
            raise ProgramLimitExceeded(f"a session has at most {ADVISORY_LOCKS_MAX} advisory locks")
        self._holders.setdefault(lock.key, {})[holder] = None
        holder.held[lock] += 1
        return True

    async def take(self, holder: LockHolder, lock: Lock) -> None:
        """Take a lock; wait while somebody is in the way."""
        if self.try_take(holder, lock):
            return
        assert holder.waits_for is None, "a session waits for one lock at a time"
        waiter = _Waiter(holder, lock)
        self._waiters.setdefault(lock.key, []).append(waiter)
        holder.waits_for = lock
        try:
            if self._is_circle(holder):
                raise DeadlockDetected(
                    "deadlock detected", hint="Lock in the same order everywhere."
                )
            await waiter.granted.wait()
        except BaseException:
            if waiter.granted.is_set():  # and the one who waited has gone
                self.release(holder, lock)
            raise
        finally:
            holder.waits_for = None
            if not waiter.granted.is_set():
                self._waiters[lock.key].remove(waiter)
                self._grant(lock.key)

    def release(self, holder: LockHolder, lock: Lock) -> None:
        assert holder.held[lock] > 0, "it is held"
        holder.held[lock] -= 1
        if not holder.held[lock]:
            del holder.held[lock]
            if not holder.held[Lock(lock.key, not lock.shared)]:
                holders = self._holders[lock.key]
                del holders[holder]
                if not holders:
                    del self._holders[lock.key]
            self._grant(lock.key)

    def listed(self) -> Iterator[tuple[int, Lock, bool]]:
        """Yield who has which lock, or waits for it, by the number of the session."""
        holders = dict.fromkeys(each for found in self._holders.values() for each in found)
        for holder in holders:
            for lock in holder.held:
                yield holder.number, lock, True
        for waiting in self._waiters.values():
            for waiter in waiting:
                yield waiter.holder.number, waiter.lock, False

    def blockers_of(self, number: int) -> tuple[int, ...]:
        """Return the sessions that a session waits for, by number."""
        for waiting in self._waiters.values():
            for at, waiter in enumerate(waiting):
                if waiter.holder.number == number:
                    found = self._in_the_way(waiter.holder, waiter.lock, waiting[:at])
                    return tuple(dict.fromkeys(other.number for other in found))
        return ()

    def _in_the_way(
        self, holder: LockHolder, lock: Lock, before: list[_Waiter]
    ) -> Iterator[LockHolder]:
        """Yield who keeps a session from a lock; `before` wait for the same key already."""
        holders = self._holders.get(lock.key, {})
        for other in holders:
            if other is not holder and any(
                other.held[each] and each.excludes(lock)
                for each in (Lock(lock.key), Lock(lock.key, True))
            ):
                yield other
        if holder not in holders:
            yield from (each.holder for each in before if each.lock.excludes(lock))

    def _grant(self, key: Key) -> None:
        """Give a key to those who wait and can have it now, in their order."""
        waiting = self._waiters.get(key, [])
        still: list[_Waiter] = []
        for each in waiting:
            if next(self._in_the_way(each.holder, each.lock, still), None) is None:
                self._holders.setdefault(key, {})[each.holder] = None
                each.holder.held[each.lock] += 1
                each.granted.set()
            else:
                still.append(each)
        if still:
            self._waiters[key] = still
        else:
            self._waiters.pop(key, None)

    def _is_circle(self, first: LockHolder) -> bool:
        """Return whether a session waits for itself, by way of others."""
        seen: set[LockHolder] = set()
        ahead = [first]
        while ahead:
            holder = ahead.pop()
            lock = holder.waits_for
            if lock is None or holder in seen:
                continue
            seen.add(holder)
            waiting = self._waiters.get(lock.key, [])
            at = next((n for n, each in enumerate(waiting) if each.holder is holder), 0)
            for other in self._in_the_way(holder, lock, waiting[:at]):
                if other is first:
                    return True
                ahead.append(other)
        return False

    def __repr__(self) -> str:
        return f"{len(self._holders)} advisory locks"
