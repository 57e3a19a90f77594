"""Followers hear how long the streams are of what they follow, soon and again and again."""

from __future__ import annotations

from typing import Any, cast

import trio
from trio.testing import MockClock

from qserver.control.databases import Databases
from qserver.control.nodes.hints import ALL_SECONDS, Hints
from qserver.control.nodes.owners import NodeOwners
from qserver.control.store import Store
from qserver.errors import DatabaseUnavailable


class Placed:
    number = 0


class Followed(NodeOwners):
    """Node 1 follows the family a, and nodes 1 and 2 the family b."""

    def __init__(self) -> None:
        self._membership = Placed()  # type: ignore[assignment]
        self.heard: list[tuple[int, dict[str, Any]]] = []
        self.away: set[int] = set()

    def followers_of(self, family: str, replicas: int | None) -> list[int]:
        return {"a": [1], "b": [1, 2]}.get(family, [])

    async def ask(self, process: int, method: str, *arguments: Any, seconds: float = 5.0) -> Any:
        assert method == "appended"
        await trio.sleep(seconds if process in self.away else 0.001)
        if process in self.away:
            raise DatabaseUnavailable("away")
        self.heard.append((process, arguments[1]))


class Opened:
    """Stands for the databases and the store: which are open, and of which family they are."""

    rows = (("a1", "a", None), ("a2", "a", None), ("b1", "b", 2), ("c1", "c", 0))

    def all_open(self) -> list[Any]:
        class One:
            id = "a1"

        return [One]

    async def read_here(self, text: str, *arguments: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return self


def hints(owners: Followed) -> Hints:
    opened = Opened()
    families = {"a", "b", "c"}
    return Hints(owners, cast(Store, opened), cast(Databases, opened), lambda: families)


async def test_a_follower_hears_of_what_is_new(autojump_clock: MockClock) -> None:
    owners = Followed()
    told = hints(owners)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(told.run)
        await trio.sleep(0.1)
        for length in range(1, 100):
            told.appended("a", length)
        told.appended("c", 7)
        await trio.sleep(0.05)
        assert owners.heard == [(1, {"a": (99, ["a1", "a2"])})], "once, and nobody follows c"
        told.appended("b", 3)
        await trio.sleep(0.05)
        assert sorted(owners.heard[1:]) == [(1, {"b": (3, ["b1"])}), (2, {"b": (3, ["b1"])})]
        nursery.cancel_scope.cancel()


async def test_all_that_is_open_is_told_again_for_who_was_away(autojump_clock: MockClock) -> None:
    owners = Followed()
    told = hints(owners)
    owners.away = {1}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(told.run)
        told.appended("a", 5)
        told.appended("b", 6)
        await trio.sleep(3.5)
        assert {process for process, _ in owners.heard} == {2}, "nobody waits for who is away"
        owners.away.clear()
        owners.heard.clear()
        await trio.sleep(2 * ALL_SECONDS + 2.0)
        assert (1, {"a": (5, ["a1", "a2"]), "b": (6, ["b1"])}) in owners.heard
        nursery.cancel_scope.cancel()
