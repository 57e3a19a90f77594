"""The advisory locks of a session: what it has taken, as its statements see it.

A statement may run several times, and a step of a transaction may be undone. So what is *taken* is
an immutable value, which a session puts back like its settings, while the locks themselves stay
with the session until `settle`, at the end of the request. A run that begins anew finds there what
the last one, or a wait between the two, has left; and nobody else can come between.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeAlias

from qserver.engine.advisory_locks import AdvisoryLocks, Lock, LockHolder


class TakenLock(NamedTuple):
    lock: Lock
    of_transaction: bool
    """Whether it ends with the transaction; otherwise with the session, or by an unlock."""


Taken: TypeAlias = tuple[TakenLock, ...]


class SessionLocks:
    __slots__ = ("_holder", "_locks", "taken")

    def __init__(self, locks: AdvisoryLocks, number: int) -> None:
        self._locks = locks
        self._holder = LockHolder(number)
        self.taken: Taken = ()

    def take(self, lock: Lock, of_transaction: bool) -> bool:
        """Take a lock, if that needs no wait."""
        has_spare = self._holder.held[lock] > sum(each.lock == lock for each in self.taken)
        if not has_spare and not self._locks.try_take(self._holder, lock):
            return False
        self.taken += (TakenLock(lock, of_transaction),)
        return True

    async def wait(self, lock: Lock) -> None:
        """Wait for a lock, which the next run takes."""
        await self._locks.take(self._holder, lock)

    def unlock(self, lock: Lock) -> bool:
        """Give up a lock of the session; return whether there was one."""
        last = TakenLock(lock, of_transaction=False)
        if last not in self.taken:
            return False
        at = len(self.taken) - 1 - self.taken[::-1].index(last)
        self.taken = self.taken[:at] + self.taken[at + 1 :]
        return True

    def unlock_all(self) -> None:
        self.taken = tuple([each for each in self.taken if each.of_transaction])

    def end_transaction(self) -> None:
        self.taken = self.of_session

    @property
    def of_session(self) -> Taken:
        return tuple([each for each in self.taken if not each.of_transaction])

    def settle(self) -> None:
        """Release what is no longer taken."""
        taken = Counter([each.lock for each in self.taken])
        for lock, count in list(self._holder.held.items()):
            for _ in range(count - taken[lock]):
                self._locks.release(self._holder, lock)

    def close(self) -> None:
        self.taken = ()
        self.settle()

    def __repr__(self) -> str:
        return f"{len(self.taken)} locks"
