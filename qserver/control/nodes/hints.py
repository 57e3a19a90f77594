"""Tells the nodes that follow this one's databases how long the streams of these are.

    appended ─► a moment for more ─► each follower: {family: length, which databases it follows}
    each second ─► the same of all that is open: so a node that comes back begins to follow

A hint carries no data: its receiver reads the stream. So a hint that is lost costs time, not truth.
To each node one call is on its way; what is new meanwhile is the next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, NoReturn

import trio

from qserver.control.databases import Databases
from qserver.control.nodes.owners import NodeOwners
from qserver.control.store import Store
from qserver.errors import QserverError

GATHER_SECONDS: Final = 0.005
ALL_SECONDS: Final = 1.0
CALL_SECONDS: Final = 2.0

_OPEN: Final = "select id, family, replicas from databases where id = any($1) and state = 'ready'"

News = dict[str, tuple[int, list[str]]]


class Hints:
    """Start `run` in a nursery."""

    def __init__(
        self,
        owners: NodeOwners,
        store: Store,
        databases: Databases,
        families: Callable[[], Collection[str]],
    ) -> None:
        """`families` returns those that this node has."""
        self._owners = owners
        self._store = store
        self._databases = databases
        self._families = families
        self._lengths: dict[str, int] = {}
        """Of the streams of families, as of their last messages."""
        self._new: set[str] = set()
        """Families to which something was appended."""
        self._has_news = trio.Event()
        self._followers: dict[int, dict[str, list[str]]] = {}
        """By node: the families and databases that it follows."""
        self._waiting: dict[int, News] = {}
        self._calling: set[int] = set()
        self._nursery: trio.Nursery

    def appended(self, root: str, length: int) -> None:
        self._lengths[root] = length
        self._new.add(root)
        self._has_news.set()

    async def run(self) -> NoReturn:
        async with trio.open_nursery() as self._nursery:
            while True:
                await self._find_followers()
                until = trio.current_time() + ALL_SECONDS
                self._tell(self._lengths)
                while trio.current_time() < until:
                    with trio.move_on_at(until):
                        await self._has_news.wait()
                        await trio.sleep(GATHER_SECONDS)
                    self._has_news = trio.Event()
                    new, self._new = self._new, set()
                    self._tell(new)

    async def _find_followers(self) -> None:
        """Look which nodes follow what is open here."""
        has = set(self._families())
        self._lengths = {root: each for root, each in self._lengths.items() if root in has}
        found: dict[int, dict[str, list[str]]] = {}
        with suppress(QserverError):  # it is looked at again
            opened = [each.id for each in self._databases.all_open()]
            rows = (await self._store.read_here(_OPEN, opened)).rows if opened else []
            for database_id, family, replicas in rows:
                for node in self._owners.followers_of(family, replicas):
                    found.setdefault(node, {}).setdefault(family, []).append(database_id)
            self._followers = found

    def _tell(self, roots: Collection[str]) -> None:
        for node, followed in self._followers.items():
            news = {
                root: (self._lengths[root], followed[root])
                for root in roots
                if root in followed and root in self._lengths
            }
            if news:
                self._waiting.setdefault(node, {}).update(news)
                if node not in self._calling:
                    self._calling.add(node)
                    self._nursery.start_soon(self._call, node)

    async def _call(self, node: int) -> None:
        try:
            while news := self._waiting.pop(node, None):
                with suppress(QserverError):  # it is away: the next second is another try
                    await self._owners.ask(
                        node, "appended", self._owners.process, news, seconds=CALL_SECONDS
                    )
        finally:
            self._calling.discard(node)

    def __repr__(self) -> str:
        return f"hints for {len(self._followers)} nodes"
