"""Long reads of a database that is followed: while it is written, a follower takes them.

    owner ─► a read turns out to be long ─┬─ nothing was written since the last one: it stays
                                          └─► a follower ─┬─ answers
                                                          └─ cannot: the owner reads after all

A statement is known to be long when it would let others run for the first time, after some
milliseconds. It begins anew at the follower, which answers from a version as new as the owner's. So
commits share their process with the beginnings of long reads only.
"""

from __future__ import annotations

from qserver.control.owners import STAYS, OwnedElsewhere


class GivenAway(OwnedElsewhere):
    """A follower may answer instead. If it does not, the request is served here."""

    def __init__(self, process: int, database_id: str) -> None:
        super().__init__(process, database_id)
        self.visits = STAYS


class LongReads:
    """Those of one database, at its owner."""

    def __init__(self, database_id: str) -> None:
        self._id = database_id
        self._followers: list[int] = []
        self._turn = 0
        self._version = -1
        """Which the last long read saw."""

    def add(self, process: int) -> None:
        self._followers.append(process)

    def remove(self, process: int) -> None:
        self._followers.remove(process)

    def give_away(self, version: int) -> None:
        """Raise GivenAway for a read of this version that turns out to be long; or let it be."""
        is_written, self._version = version != self._version, version
        if is_written and self._followers:
            self._turn += 1
            raise GivenAway(self._followers[self._turn % len(self._followers)], self._id)

    def __repr__(self) -> str:
        return f"long reads of {self._id}, for {self._followers}"
