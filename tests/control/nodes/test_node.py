"""A node's part in the control plane: terms, joining and leaving, and from when on it counts."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from qserver.control.nodes.placement import CONTROL
from qserver.errors import DatabaseUnavailable, LogFailed
from tests.control.nodes.members import LEASE, Cluster, in_time


async def test_a_node_is_admitted_with_the_version_of_the_leader(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        (one,) = await cluster.start(nursery, "one")
        one.node.control_version = lambda: 17
        one.scope.cancel()  # it does not look by itself
        two = cluster.member("two")
        await two.start(nursery)
        two.membership.tell_others = lambda: None
        await two.node.join()
        assert list(one.owners.everyone) == [0]
        admission = two.node.admission()
        assert await admission.ask() == 17
        assert list(one.owners.everyone) == [0, 1], "the leader counts it before it answers"
        assert not admission.holds()
        admission.is_given = True
        assert admission.holds()
        nursery.cancel_scope.cancel()


async def test_an_admission_is_of_one_life(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        _, two = await cluster.start(nursery, "one", "two")
        admission = two.node.admission()
        admission.is_given = True
        two.way.is_cut = True
        await trio.sleep(2 * LEASE)
        assert not admission.holds()
        two.way.is_cut = False
        await trio.sleep(LEASE)
        assert two.membership.lease.holds()
        assert not admission.holds()
        nursery.cancel_scope.cancel()


async def test_a_node_that_leaves_shows_no_copy(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = await Cluster().start(nursery, "one", "two")
        admission = two.node.admission()
        admission.is_given = True
        shown: list[bool] = []
        before = two.way.before_write

        async def look(key: str) -> None:
            shown.append(admission.holds())
            await before(key)

        two.way.before_write = look
        await two.node.leave()
        assert shown == [False], "not even while the placement is written"
        await two.node.join()
        assert two.placement.serving == (one.number,), "it is about to leave"
        nursery.cancel_scope.cancel()


async def test_who_does_not_lead_admits_nobody(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = await Cluster().start(nursery, "one", "two")
        with pytest.raises(DatabaseUnavailable, match="does not lead"):
            await two.owners.methods["admit"](1)
        with pytest.raises(DatabaseUnavailable, match="does not lead"):
            await one.owners.methods["admit"](1)  # it has not opened `control` yet
        one.way.is_cut = True
        with pytest.raises(DatabaseUnavailable, match="are away"):
            await one.owners.methods["admit"](one.placement.version + 1)
        nursery.cancel_scope.cancel()


async def test_a_term_ends_with_the_life_or_the_leader(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        _, two = await cluster.start(nursery, "one", "two")
        term = two.node.term
        await two.membership.move(CONTROL, "two")
        await two.node.wait_for_another(term)
        life, leader = term = two.node.term
        assert leader == two.number
        two.way.is_cut = True
        await trio.sleep(2 * LEASE)
        two.way.is_cut = False
        await two.node.wait_for_another(term)
        assert two.node.term[0] != life
        nursery.cancel_scope.cancel()


async def test_others_hear_of_a_change_at_once(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two, three = await cluster.start(nursery, "one", "two", "three")
        cluster.cuts.add(frozenset(("one", "three")))
        await one.membership.move("family 1", "two")
        await trio.sleep(0.1)
        assert two.placement.version == one.placement.version
        assert three.placement.version < one.placement.version, "it looks by itself"
        await trio.sleep(LEASE)
        assert three.placement.version == one.placement.version
        nursery.cancel_scope.cancel()


async def test_no_life_joins_before_it_has_begun(autojump_clock: MockClock) -> None:
    """An admission of the next lease would be shown though the leader counts no such node."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        two.way.is_cut = True
        await trio.sleep(2 * LEASE)
        assert one.placement.serving == (0,)

        async def lost() -> None:
            two.way.is_cut = True

        two.membership.on_lost = lost  # it begins anew, and the log is away again
        two.way.is_cut = False
        lease = two.membership.lease
        await in_time(lambda: two.membership.lease is not lease)
        with pytest.raises(LogFailed):
            await two.node.join()
        nursery.cancel_scope.cancel()
