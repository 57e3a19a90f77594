"""A family is opened where nobody else may still answer for it."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from qserver.control.nodes import handover
from qserver.control.nodes.lease import PREFIX
from qserver.control.nodes.placement import CONTROL
from qserver.errors import DatabaseMoved, QserverError
from tests.control.nodes.members import LEASE, Cluster, Member, in_time

FAMILY = "family 1"


def owner(made: list[Member], family: str = FAMILY) -> tuple[Member, Member]:
    """The node that owns a family, and another."""
    number = made[0].placement.owner_of(family)
    (other, *_) = [each for each in made if each.number != number]
    return next(each for each in made if each.number == number), other


async def test_the_owner_opens_a_family_and_another_node_does_not(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        one, two = owner(await Cluster().start(nursery, "one", "two"))
        assert await one.held.have(FAMILY, one)
        assert one.held.shows(FAMILY)
        assert (two.number, "release") in one.owners.asked
        with pytest.raises(DatabaseMoved, match="another node serves"):
            await two.held.have(FAMILY, two)
        nursery.cancel_scope.cancel()


async def test_who_opens_waits_until_the_other_has_closed_it(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = owner(await Cluster().start(nursery, "one", "two"))
        await one.held.have(FAMILY, one)
        one.held.close_seconds = 3.0
        await one.membership.move(FAMILY, two.name)
        moved = trio.current_time()
        await two.membership.look()
        assert await two.held.have(FAMILY, two)
        assert trio.current_time() - moved >= 3.0
        assert not one.held.shows(FAMILY)
        assert one.held.families() == []
        nursery.cancel_scope.cancel()


async def test_a_node_that_reads_what_lags_asks_now_and_then(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = owner(await Cluster().start(nursery, "one", "two"))
        await one.way.lag()
        await two.membership.move(FAMILY, two.name)
        nursery.start_soon(one.handover.release, FAMILY, two.placement.version)
        nursery.start_soon(one.membership.move, CONTROL, one.name)
        one.way.reads, one.way.writes = 0, []
        await trio.sleep(1.0)
        assert one.placement.version < two.placement.version
        assert 10 < one.way.reads < 200
        assert len(one.way.writes) < 50
        one.way.lag_no_more()
        await in_time(lambda: one.placement.version >= two.placement.version)
        nursery.cancel_scope.cancel()


async def test_who_answers_has_the_placement_of_who_asks(autojump_clock: MockClock) -> None:
    """A node that does not know of the move looks before it answers, and opens it no more."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = owner(await cluster.start(nursery, "one", "two"))
        one.scope.cancel()  # it does not look by itself
        two.membership.tell_others = lambda: None
        await two.membership.move(FAMILY, two.name)
        assert one.membership.may_own(FAMILY), "it knows nothing"
        assert await two.held.have(FAMILY, two)
        assert one.placement.version == two.placement.version
        assert not one.membership.may_own(FAMILY)
        nursery.cancel_scope.cancel()


async def test_a_node_that_is_cut_off_from_the_log_gives_no_answer(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        one, two = owner(await Cluster().start(nursery, "one", "two"))
        one.way.is_cut = True
        with pytest.raises(DatabaseMoved, match="are away"):
            await one.handover.release(FAMILY, two.placement.version + 1)
        nursery.cancel_scope.cancel()


async def test_a_family_that_is_served_by_a_later_placement_is_not_given_up(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        one, _ = owner(await Cluster().start(nursery, "one", "two"))
        await one.held.have(FAMILY, one)
        with pytest.raises(DatabaseMoved, match="this node serves"):
            await one.handover.release(FAMILY, one.placement.version - 1)
        assert one.held.shows(FAMILY)
        nursery.cancel_scope.cancel()


async def test_a_node_that_cannot_be_reached_keeps_what_it_has_while_its_lease_holds(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = owner(await cluster.start(nursery, "one", "two"))
        await one.held.have(FAMILY, one)
        cluster.cuts.add(frozenset(("one", "two")))
        one.way.is_cut = True
        one.membership.on_lost = trio.sleep_forever  # it is paused, and closes nothing
        opened = trio.Event()

        async def opens() -> None:
            while not opened.is_set():
                try:
                    if await two.held.have(FAMILY, two):
                        opened.set()
                except QserverError:
                    await trio.sleep(0.1)

        nursery.start_soon(opens)
        while not opened.is_set():
            assert one.held.shows(FAMILY) is one.membership.lease.holds()
            await trio.sleep(0.01)
        assert not one.held.shows(FAMILY)
        assert two.held.shows(FAMILY)
        nursery.cancel_scope.cancel()


async def test_no_node_opens_what_an_unknown_one_may_have(autojump_clock: MockClock) -> None:
    """A node has joined since the last look, and has opened the family."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        (one,) = await cluster.start(nursery, "one")
        one.scope.cancel()  # it looks no more by itself
        two = cluster.member("two")
        await two.start(nursery)
        await two.membership.join()
        await two.membership.move(FAMILY, "two")
        assert await two.held.have(FAMILY, two)
        del one.membership.seen[two.number]  # its look was before that node's life
        await one.membership.move(FAMILY, "one")
        cluster.cuts.add(frozenset(("one", "two")))
        with trio.move_on_after(0.5):
            await one.held.have(FAMILY, one)
        assert not (one.held.shows(FAMILY) and two.held.shows(FAMILY))
        nursery.cancel_scope.cancel()


async def test_an_end_is_proved_once_for_each_placement(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = await Cluster().start(nursery, "one", "two")
        two.die()
        await trio.sleep(2 * LEASE)
        key = f"{PREFIX}two"
        before = one.way.writes.count(key)
        for family in ("family 1", "family 2"):
            assert await one.held.have(family, one)
            assert one.way.writes.count(key) - before == 1
        await one.membership._change(lambda was: was.joined_by(one.number))
        assert await one.held.have("family 3", one)
        assert one.way.writes.count(key) - before == 2
        nursery.cancel_scope.cancel()


async def test_who_waits_for_too_long_is_told_so(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "OPEN_SECONDS", LEASE)
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = owner(await cluster.start(nursery, "one", "two"))
        await one.held.have(FAMILY, one)
        one.held.close_seconds = 1000.0
        await one.membership.move(FAMILY, two.name)
        cluster.cuts.add(frozenset(("one", "two")))
        await two.membership.look()
        with pytest.raises(DatabaseMoved, match="has not given up"):
            await two.held.have(FAMILY, two)
        assert two.held.families() == []
        nursery.cancel_scope.cancel()


async def test_values_say_what_was_given_up_where_nodes_do_not_reach_each_other(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = owner(await cluster.start(nursery, "one", "two"))
        await one.held.have(FAMILY, one)
        one.held.close_seconds = 2.0
        cluster.cuts.add(frozenset(("one", "two")))
        await one.membership.move(FAMILY, two.name)
        while not two.held.shows(FAMILY):
            try:
                await two.held.have(FAMILY, two)
            except DatabaseMoved:
                await trio.sleep(0.1)
            assert not (one.held.shows(FAMILY) and two.held.shows(FAMILY))
        assert one.held.families() == []
        assert one.membership.facts.released == one.placement.version
        nursery.cancel_scope.cancel()


async def test_nothing_is_asked_while_nothing_moves(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, _ = owner(await Cluster().start(nursery, "one", "two"))
        await trio.sleep(2 * LEASE)
        asked = len(one.owners.asked)
        assert await one.held.have(FAMILY, one)
        assert len(one.owners.asked) == asked
        nursery.cancel_scope.cancel()


async def test_who_is_asked_while_it_opens_stops(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        made = await cluster.start(nursery, "one", "two", "three")
        one, two = owner(made)
        (three,) = [each for each in made if each not in (one, two)]
        cluster.cuts.add(frozenset((one.name, three.name)))
        nursery.start_soon(one.held.have, FAMILY, one)
        await trio.sleep(1.0)
        assert one.held.families() == [FAMILY]
        await three.membership.move(FAMILY, two.name)
        await two.membership.look()
        assert await two.held.have(FAMILY, two)
        assert one.held.families() == []
        nursery.cancel_scope.cancel()


async def test_what_the_placement_gives_to_others_is_closed(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = owner(await Cluster().start(nursery, "one", "two"))
        await one.held.have(FAMILY, one)
        await two.membership.move(FAMILY, two.name)
        await trio.sleep(0.5)
        assert one.held.families() == []
        nursery.cancel_scope.cancel()


async def test_who_has_lost_its_lease_closes_within_its_margin(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, _ = owner(await Cluster().start(nursery, "one", "two"))
        await one.held.have(FAMILY, one)
        one.way.is_cut = True
        await trio.sleep(3 * LEASE)
        one.way.is_cut = False
        await in_time(lambda: one.lost == 1 and not one.held.families())
        assert one.held.given and max(one.held.given) <= LEASE * 0.101
        nursery.cancel_scope.cancel()
