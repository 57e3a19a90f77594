"""Replicas of databases that other nodes own.

    read, any or session ─► what is here, if it is as new as the request wants
    read, strong ─► the owner's newest version, asked ─► here once the replica has it

Between machines there is no memory that all see, so a strong read asks the owner for the number:
a small call in place of the whole request, which pays for long reads. Who asks while a call is on
its way shares the next one: a number counts for a read that began before it was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from qserver.control.access import Access, no_database
from qserver.control.owners import OwnedElsewhere, Owners
from qserver.control.replicas import Replicas
from qserver.control.store import Store
from qserver.errors import DatabaseMoved, QserverError
from qserver.limits import REPLICA_WAIT_SECONDS_MAX


class AskedVersions:
    """The versions that this node tells others: when they ask."""

    def __init__(self, owners: Owners, access: Access) -> None:
        self._access = access
        owners.answer("newest_version", self._newest)

    async def _newest(self, database_id: str) -> int:
        opened = await self._access.whole(database_id)
        if opened is None:
            raise no_database(database_id)
        with opened:
            snapshot = opened.database.snapshots.take()
            if snapshot is None:
                raise DatabaseMoved(f"{database_id} is not open here", hint="Try again.")
            return snapshot.version


class _NoVersions:
    """Nobody reads the versions of this node in memory."""

    def find(self, database_id: str) -> None:
        """Return what announces versions: nothing does."""

    def enter(self, database_id: str) -> tuple[int, Callable[[int], None]]:
        return 0, _told_to_nobody


def _told_to_nobody(version: int) -> None:
    """A version is shown: whoever wants to know asks."""


class NodeReplicas(Replicas):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(None, *arguments, **options)
        self._asking: dict[str, _Asking] = {}

    def join(self, owners: Owners, store: Store) -> _NoVersions:
        self.owners, self._store = owners, store
        self.own_versions = _NoVersions()
        return self.own_versions

    def _takes_long_reads(self) -> None:
        """Owners of other machines answer long reads themselves: rows are not sent through them."""

    async def _newest(self, elsewhere: OwnedElsewhere, deadline: float) -> int | None:
        """Ask the owner for its newest version; raise `elsewhere` if it does not answer soon."""
        database_id = elsewhere.followed
        assert database_id is not None
        asking = self._asking.setdefault(database_id, _Asking(self.owners, database_id))
        try:
            with trio.fail_at(min(deadline, trio.current_time() + REPLICA_WAIT_SECONDS_MAX)):
                return await asking.ask(elsewhere.process)
        except (QserverError, trio.TooSlowError) as error:
            raise elsewhere from error
        finally:
            if asking.is_idle:
                self._asking.pop(database_id, None)


class _Asking:
    """Calls for the number of one database: one on its way, one that waits behind it."""

    def __init__(self, owners: Owners, database_id: str) -> None:
        self._owners = owners
        self._id = database_id
        self._lock = trio.Lock()
        self._asked = 0
        self._answered = 0
        self._number = 0
        self._users = 0

    @property
    def is_idle(self) -> bool:
        return not self._users

    async def ask(self, owner: int) -> int:
        """Return the number by a call that begins after this."""
        wanted = self._asked + 1
        self._users += 1
        try:
            async with self._lock:
                if self._answered < wanted:
                    self._asked += 1
                    mine = self._asked
                    found = await self._owners.ask(owner, "newest_version", self._id)
                    self._number, self._answered = found, mine
                return self._number
        finally:
            self._users -= 1
