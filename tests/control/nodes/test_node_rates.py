"""Limits of requests hold for all nodes together, and nobody waits who is far from them."""

from __future__ import annotations

from math import inf
from random import Random
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.placement import Placement, chosen
from qserver.control.nodes.rates import PERMIT_SECONDS, NodeWindows, Stock
from qserver.control.rates import Rates, Uncounted
from qserver.control.tiers import TIERS, Tier
from qserver.errors import DatabaseUnavailable, RateLimited

FREE = TIERS["free"]
LIMIT = FREE.requests_per_minute or 0
CALL_SECONDS = 0.002


class Placed:
    """What owners need of a membership."""

    def __init__(self, number: int, cluster: Cluster) -> None:
        self.number = number
        self._cluster = cluster
        self.placement = cluster.placement

    def living(self) -> list[int]:
        return list(self._cluster.owners)


class CalledOwners(NodeOwners):
    """Owners whose calls take a moment, and do not arrive where a link is cut."""

    def __init__(self, placed: Placed, cluster: Cluster) -> None:
        super().__init__(placed)  # type: ignore[arg-type]
        self._cluster = cluster
        self.calls = 0
        self.answer("look", self._look)

    async def _look(self, version: int) -> None:
        if self._membership.placement.version < version:
            self._membership.placement = self._cluster.placement

    async def ask(self, process: int, method: str, *arguments: Any, seconds: float = 5.0) -> Any:
        self.calls += 1
        await trio.sleep(self._cluster.seconds)
        if {self.process, process} & self._cluster.cut:
            raise DatabaseUnavailable("cut")
        found = await self._cluster.owners[process].methods[method](*arguments)
        await trio.sleep(self._cluster.seconds)
        return found


class Cluster:
    def __init__(self, count: int = 3) -> None:
        self.placement = Placement(1, 0, tuple(range(count)))
        self.cut: set[int] = set()
        self.seconds = CALL_SECONDS
        self.owners: dict[int, CalledOwners] = {}
        self.windows: dict[int, NodeWindows] = {}
        self.rates: dict[int, Rates] = {}
        self.let_through: list[float] = []
        self.waited = 0
        for number in range(count):
            self.add(number)

    def add(self, number: int) -> None:
        owners = self.owners[number] = CalledOwners(Placed(number, self), self)
        self.windows[number] = NodeWindows(trio.current_time, owners)
        self.rates[number] = Rates(self.windows[number])

    def place(self, *serving: int) -> None:
        """Other nodes serve from now on; each hears of it when it is asked, or by `tell`."""
        self.placement = Placement(self.placement.version + 1, serving[0], serving)

    def tell(self) -> None:
        for owners in self.owners.values():
            owners._membership.placement = self.placement

    async def request(self, number: int, name: str = "org", tier: Tier = FREE) -> bool:
        """Send a request as the web room does; return whether it was let through."""
        rates = self.rates[number]
        for attempt in range(4):
            try:
                rates.take(name, tier)
            except Uncounted:
                self.waited += not attempt
                await rates.wait(name, tier)
            except RateLimited:
                return False
            else:
                self.let_through.append(trio.current_time())
                return True
        return False

    def most_in_a_minute(self) -> int:
        times = sorted(self.let_through)
        return max(
            (sum(begin <= each < begin + 60 for each in times) for begin in times), default=0
        )


async def _run(cluster: Cluster, nursery: trio.Nursery) -> None:
    for windows in cluster.windows.values():
        nursery.start_soon(windows.run)


@pytest.mark.parametrize("seed", range(6))
async def test_no_minute_has_more_requests_than_the_limit_over_three_nodes(
    seed: int, autojump_clock: MockClock
) -> None:
    cluster, chance = Cluster(), Random(seed)
    refused = 0
    async with trio.open_nursery() as nursery:
        await _run(cluster, nursery)
        end = trio.current_time() + 200
        while trio.current_time() < end:
            burst = chance.choice((1, 1, 3, 40))
            for _ in range(burst):
                refused += not await cluster.request(chance.randrange(3))
            await trio.sleep(chance.choice((0.0, 0.01, 0.3, 2.0)))
        nursery.cancel_scope.cancel()
    assert refused, "it was tried"
    assert cluster.most_in_a_minute() <= LIMIT
    assert cluster.most_in_a_minute() > 0.8 * LIMIT, "and not much less"


@pytest.mark.parametrize("seed", range(3))
async def test_concurrent_requests_are_counted_as_those_one_after_the_other(
    seed: int, autojump_clock: MockClock
) -> None:
    cluster, chance = Cluster(), Random(seed)
    cluster.seconds = 0.1
    async with trio.open_nursery() as nursery:
        await _run(cluster, nursery)
        async with trio.open_nursery() as clients:
            for _ in range(600):
                await trio.sleep(chance.uniform(0.0, 0.02))
                clients.start_soon(cluster.request, chance.randrange(3))
        nursery.cancel_scope.cancel()
    assert LIMIT * 0.8 < cluster.most_in_a_minute() <= LIMIT


async def test_who_is_far_from_the_limit_waits_for_the_first_request_alone(
    autojump_clock: MockClock,
) -> None:
    cluster = Cluster()
    away = next(each for each in range(3) if each != chosen("org", range(3)))
    async with trio.open_nursery() as nursery:
        await _run(cluster, nursery)
        for _ in range(90):
            assert await cluster.request(away)
            await trio.sleep(1.0)
        nursery.cancel_scope.cancel()
    assert cluster.waited == 1
    assert cluster.owners[away].calls <= 2 * 90, "about one report in a second"


async def test_permits_that_are_not_used_come_back(autojump_clock: MockClock) -> None:
    cluster = Cluster()
    home = chosen("org", range(3))
    async with trio.open_nursery() as nursery:
        await _run(cluster, nursery)
        for number in range(3):
            assert await cluster.request(number)
        await trio.sleep(2 * PERMIT_SECONDS)
        for _ in range(LIMIT - 3):
            assert await cluster.request(home)
        assert not await cluster.request(home)
        nursery.cancel_scope.cancel()


def never_lapses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has permits can use them for ever."""
    get = Stock.get

    def keep(self: Stock, *given: Any) -> None:
        get(self, *given)
        self.until = inf

    monkeypatch.setattr(Stock, "get", keep)


@pytest.mark.parametrize("is_planted", [False, True])
async def test_permits_lapse_while_their_node_stands_still(
    is_planted: bool, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others get all of the limit; a node that wakes and has permits from before gets none."""
    if is_planted:
        never_lapses(monkeypatch)
    cluster = Cluster()
    home = chosen("org", range(3))
    away = next(each for each in range(3) if each != home)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.windows[home].run)
        assert await cluster.request(away)
        assert cluster.windows[away]._stocks["org"].left, "it has more, and does not report them"
        await trio.sleep(2 * PERMIT_SECONDS)
        assert await cluster.request(home)
        await trio.sleep(61)
        assert all([await cluster.request(home) for _ in range(LIMIT)]), "those have come back"
        found = [await cluster.request(away) for _ in range(LIMIT)]
        nursery.cancel_scope.cancel()
    assert any(found) is is_planted
    assert (cluster.most_in_a_minute() > LIMIT) is is_planted


async def test_a_node_without_its_home_has_a_bounded_share(autojump_clock: MockClock) -> None:
    cluster = Cluster()
    home = chosen("org", range(3))
    away = next(each for each in range(3) if each != home)
    cluster.cut = {home}
    async with trio.open_nursery() as nursery:
        await _run(cluster, nursery)
        found = [await cluster.request(away) for _ in range(LIMIT)]
        assert sum(found) == LIMIT // 3
        cluster.cut = set()
        await trio.sleep(61)
        assert await cluster.request(away)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("after", [(0, 1, 2, 3), (1, 2), (0, 2), (0, 1)])
@pytest.mark.parametrize("tells", [False, True])
async def test_a_new_home_knows_what_was_let_through(
    after: tuple[int, ...], tells: bool, autojump_clock: MockClock
) -> None:
    cluster = Cluster(4)
    cluster.place(0, 1, 2)
    cluster.tell()
    names = [f"org{number}" for number in range(12)]
    async with trio.open_nursery() as nursery:
        await _run(cluster, nursery)
        for name in names:
            for number in range(150):
                assert await cluster.request(number % 3, name)
        cluster.place(*after)
        if tells:
            cluster.tell()
        for owners in (each for number, each in cluster.owners.items() if number in after):
            owners._membership.placement = cluster.placement
            break  # one of them has heard of it first
        for name in names:
            begun = sum(cluster.windows[number]._own.count(name) for number in range(4))
            assert begun == 150
            more = [await cluster.request(after[n % len(after)], name) for n in range(90)]
            assert sum(more) <= LIMIT - 150, name
        nursery.cancel_scope.cancel()


async def test_a_node_alone_counts_by_itself(autojump_clock: MockClock) -> None:
    cluster = Cluster(1)
    assert all([await cluster.request(0) for _ in range(LIMIT)])
    assert not await cluster.request(0)
    assert not cluster.owners[0].calls and not cluster.waited


async def test_a_request_that_moves_is_given_back(autojump_clock: MockClock) -> None:
    cluster = Cluster()
    home = chosen("org", range(3))
    away = next(each for each in range(3) if each != home)
    async with trio.open_nursery() as nursery:
        await _run(cluster, nursery)
        for _ in range(3 * LIMIT):
            for number in (home, away):
                assert await cluster.request(number)
                cluster.rates[number].give_back("org", FREE)
                cluster.let_through.clear()
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
