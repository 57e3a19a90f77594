"""A node among others: its lease, theirs, and the placement, though answers are lost or late."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock

from qserver.control.nodes.lease import PREFIX
from qserver.control.nodes.placement import CONTROL
from qserver.errors import InvalidRequest, LogFailed, LogTaken, NotFound
from qserver.replication.port import Refused
from tests.control.nodes.members import LEASE, Cluster, Member, in_time

FAMILIES = [f"family {number}" for number in range(20)]
HELD_SECONDS = LEASE * 1.1


async def test_the_first_node_owns_everything(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        (one,) = await Cluster().start(nursery, "one")
        assert one.number == 0
        assert one.placement.serving == (0,)
        assert all(map(one.membership.may_own, [*FAMILIES, CONTROL]))
        await trio.sleep(100 * LEASE)
        assert all(map(one.membership.may_own, FAMILIES)), "it renews its lease"
        assert one.lost == 0
        nursery.cancel_scope.cancel()


async def test_three_nodes_share_the_families(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        made = await cluster.start(nursery, "one", "two", "three")
        await trio.sleep(LEASE)
        assert [each.number for each in made] == [0, 1, 2]
        assert made[0].placement == made[1].placement == made[2].placement
        for family in [*FAMILIES, CONTROL]:
            assert sum(each.membership.may_own(family) for each in made) == 1
        assert all(each.membership.living() == [0, 1, 2] for each in made)
        nursery.cancel_scope.cancel()


async def test_nothing_is_owned_before_the_life_has_written_the_placement(
    autojump_clock: MockClock,
) -> None:
    one = Cluster().member("one")
    await one.membership.begin()
    assert one.membership.lease.holds()
    assert not one.membership.may_own(CONTROL)
    await one.membership.join()
    assert one.membership.may_own(CONTROL)
    version = one.placement.version
    await one.membership.join()
    assert one.placement.version == version, "once is enough in a life"


async def test_a_name_is_refused_to_another_folder_while_its_node_lives(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        (one,) = await cluster.start(nursery, "one")
        with pytest.raises(LogTaken, match="another node has the name one"):
            await cluster.member("one", "another folder").membership.begin()
        assert one.membership.lease.holds()
        one.die()
        began = trio.current_time()
        other = cluster.member("one", "another folder")
        await other.membership.begin()
        assert trio.current_time() - began >= HELD_SECONDS
        assert other.number == 0, "the number belongs to the name"
        nursery.cancel_scope.cancel()


async def test_the_same_folder_begins_at_once(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        before = await cluster.facts("two")
        two.die()
        began = trio.current_time()
        again = cluster.member("two")
        await again.start(nursery)
        assert trio.current_time() - began < 1
        assert again.number == two.number
        after = await cluster.facts("two")
        assert after.life != before.life and not after.is_ended
        assert not any(map(again.membership.may_own, FAMILIES)), "it has not joined"
        await again.membership.join()
        await trio.sleep(3 * LEASE)
        assert one.placement.serving == (0, 1)
        assert one.seen(again).facts.life == after.life
        nursery.cancel_scope.cancel()


async def test_a_silent_node_is_ended_when_its_lease_is_over_and_not_before(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        await trio.sleep(LEASE)
        two.die()
        died = trio.current_time()
        while (await cluster.facts("two")).is_ended is False:
            assert trio.current_time() - died < 2 * LEASE, "nobody ends it"
            await trio.sleep(0.01)
        renewed = LEASE / 3
        assert trio.current_time() - died > HELD_SECONDS - renewed - 1
        assert not two.membership.lease.holds()
        await trio.sleep(0.5)
        assert one.placement.serving == (0,)
        assert all(map(one.membership.may_own, FAMILIES))
        nursery.cancel_scope.cancel()


async def test_a_node_that_was_paused_for_less_is_not_ended(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        _, two = await cluster.start(nursery, "one", "two")
        for _ in range(5):
            two.way.is_cut = True
            await trio.sleep(0.5 * LEASE)
            two.way.is_cut = False
            await trio.sleep(LEASE)
        assert two.lost == 0
        nursery.cancel_scope.cancel()


def once() -> Callable[[str], bool]:
    """A test of keys that says yes to each of them once."""
    seen: set[str] = set()

    def is_first(key: str) -> bool:
        is_new = key not in seen
        seen.add(key)
        return is_new

    return is_first


@pytest.mark.parametrize("what", ["lose_answer", "lose_request"])
async def test_a_lost_answer_to_any_write_of_a_start_changes_nothing(
    autojump_clock: MockClock, what: str
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        for name in ("one", "two"):
            member = cluster.member(name)
            setattr(member.way, what, once())
            await member.start(nursery)
            await member.membership.join()
            assert member.membership.lease.holds()
        assert {"numbers", f"{PREFIX}one"} <= set(cluster.members[0].way.writes)
        placement = await cluster.placement()
        assert placement.serving == (0, 1)
        assert [each.lost for each in cluster.members.values()] == [0, 0]
        nursery.cancel_scope.cancel()


async def test_a_lost_answer_to_a_renewal_loses_no_lease(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = await Cluster().start(nursery, "one", "two")
        life = two.membership.facts.life
        for _ in range(10):
            two.way.lose_answer = once()
            await trio.sleep(LEASE / 2)
        assert two.membership.facts.life == life
        assert two.lost == 0
        assert two.membership.lease.holds()
        assert one.placement.serving == (0, 1)
        nursery.cancel_scope.cancel()


async def test_a_renewal_without_an_answer_extends_nothing(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        (one,) = await Cluster().start(nursery, "one")
        one.way.lose_answer = lambda key: key.startswith(PREFIX)
        await trio.sleep(1.2 * LEASE)
        assert not one.membership.lease.holds()
        one.way.lose_answer = lambda key: False
        await trio.sleep(LEASE)
        assert one.membership.lease.holds()
        assert one.lost == 0, "nobody has ended it"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("what", ["lose_answer", "lose_request"])
async def test_a_lost_answer_to_an_end_or_a_change(autojump_clock: MockClock, what: str) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        two.die()
        setattr(one.way, what, once())
        await trio.sleep(2 * LEASE)
        assert (await cluster.facts("two")).is_ended
        assert one.placement.serving == (0,)
        assert all(map(one.membership.may_own, FAMILIES))
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("what", ["lose_answer", "lose_request"])
async def test_a_lost_answer_to_the_last_write_of_a_life(
    autojump_clock: MockClock, what: str
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        await two.membership.leave()
        setattr(two.way, what, once())
        await two.membership.end()
        assert (await cluster.facts("two")).is_ended
        two.die()
        await one.membership.look()
        assert await one.membership.has_ended(two.number)
        nursery.cancel_scope.cancel()


async def test_a_life_that_ends_begins_no_other(autojump_clock: MockClock) -> None:
    """Its renewals are refused from then on, and it was its own write that did that."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        _, two = await cluster.start(nursery, "one", "two")
        on_its_way = trio.Event()

        async def late(key: str) -> None:
            on_its_way.set()
            await trio.sleep(0.2)

        two.way.before_write = late
        await on_its_way.wait()  # a renewal
        two.way.before_write = _soon
        await two.membership.end()
        life = two.membership.facts.life
        await trio.sleep(3 * LEASE)
        facts = await cluster.facts("two")
        assert (facts.life, facts.is_ended) == (life, True)
        assert two.lost == 0
        nursery.cancel_scope.cancel()


async def _soon(key: str) -> None:
    await trio.lowlevel.checkpoint()


async def test_a_late_write_of_an_earlier_life_changes_nothing(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        _, two = await cluster.start(nursery, "one", "two")
        found = await cluster.agreed.value(f"{PREFIX}two")
        assert found is not None
        two.die()
        again = cluster.member("two")
        await again.start(nursery)
        with pytest.raises(Refused):
            await cluster.agreed.set_value(f"{PREFIX}two", found.data, found.revision)
        await again.membership.join()
        await trio.sleep(LEASE)
        assert again.membership.lease.holds()
        assert again.lost == 0
        nursery.cancel_scope.cancel()


async def test_a_change_of_the_placement_is_made_on_top_of_one_that_was_first(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")

        async def after_another(key: str) -> None:
            if key == "placement":
                two.way.before_write = _soon
                await one.membership.move("family 0", "two")

        two.way.before_write = after_another
        await two.membership.move("family 1", "one")
        placement = await cluster.placement()
        assert placement.owner_of("family 0") == two.number
        assert placement.owner_of("family 1") == one.number
        nursery.cancel_scope.cancel()


async def test_everything_is_closed_before_the_next_life_begins(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        family = next(each for each in FAMILIES if two.membership.may_own(each))
        assert await two.held.have(family, two)
        two.held.close_seconds = 2.0
        shows = two.held.open[family]
        lives: list[str] = []
        closes = two.membership.on_lost

        async def lost() -> None:
            lives.append((await cluster.facts("two")).life)
            assert not two.membership.lease.holds()
            await closes()
            assert two.held.families() == []
            lives.append((await cluster.facts("two")).life)

        two.membership.on_lost = lost
        two.way.is_cut = True
        await trio.sleep(2 * LEASE)
        assert one.placement.serving == (0,)
        assert not shows()
        two.way.is_cut = False
        await trio.sleep(LEASE)
        assert len(lives) == 2 and len(set(lives)) == 1
        assert (await cluster.facts("two")).life not in lives
        assert two.membership.lease.holds()
        assert not shows(), "what was opened in a life is shown only in it"
        assert not two.membership.may_own(family)
        await two.membership.join()
        assert two.membership.may_own(family)
        nursery.cancel_scope.cancel()


async def test_a_renewal_that_another_node_has_not_seen_keeps_the_lease(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        await trio.sleep(LEASE)
        await one.way.lag()
        await trio.sleep(2 * LEASE)
        assert one.seen(two).is_over(one.clock())
        assert PREFIX + "two" in one.way.writes, "it tries to end it"
        assert two.lost == 0 and two.membership.lease.holds()
        assert (await cluster.placement()).serving == (0, 1)
        nursery.cancel_scope.cancel()


async def test_two_challengers_end_a_node_once_and_for_all(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two, three = await cluster.start(nursery, "one", "two", "three")
        three.die()
        await trio.sleep(3 * LEASE)
        assert (await cluster.placement()).serving == (0, 1)
        assert one.lost == two.lost == 0
        for family in FAMILIES:
            assert one.membership.may_own(family) is not two.membership.may_own(family)
        assert await one.membership.has_ended(three.number)
        assert not await two.membership.has_ended(three.number), "it knows an older revision"
        await two.membership.look()
        assert await two.membership.has_ended(three.number)
        nursery.cancel_scope.cancel()


async def test_an_end_is_no_proof_when_another_life_has_begun(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two = await cluster.start(nursery, "one", "two")
        assert not await one.membership.has_ended(two.number)
        two.die()
        await trio.sleep(2 * LEASE)
        assert one.seen(two).facts.is_ended
        await cluster.member("two").membership.begin()
        assert not await one.membership.has_ended(two.number)
        assert not await one.membership.has_ended(17), "nobody knows it"
        nursery.cancel_scope.cancel()


async def test_who_leaves_hands_over_at_once(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = await Cluster().start(nursery, "one", "two")
        await one.membership.leave()
        await trio.sleep(0.1)
        assert two.placement.serving == (1,)
        assert two.placement.leader == 1
        assert all(map(two.membership.may_own, [*FAMILIES, CONTROL]))
        assert not any(map(one.membership.may_own, FAMILIES))
        await two.membership.leave()
        assert two.placement.serving == (1,), "somebody has to serve"
        nursery.cancel_scope.cancel()


async def test_a_family_is_moved_by_hand(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        one, two = await Cluster().start(nursery, "one", "two")
        for family in [*FAMILIES[:3], CONTROL]:
            for to in (one, two):
                await one.membership.move(family, to.name)
                await trio.sleep(0.1)
                assert to.membership.may_own(family)
                assert two.placement.owner_of(family) == to.number
        version = one.placement.version
        await one.membership.move(CONTROL, "two")
        assert one.placement.version == version, "it is there"
        with pytest.raises(NotFound, match="no node three") as missing:
            await one.membership.move("family 0", "three")
        assert missing.value.hint == "Nodes are one, two."
        await two.membership.leave()
        with pytest.raises(InvalidRequest, match="does not serve"):
            await one.membership.move("family 0", "two")
        nursery.cancel_scope.cancel()


async def test_nodes_go_on_when_the_log_comes_back(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        made = await cluster.start(nursery, "one", "two", "three")
        for each in made:
            each.way.is_cut = True
        await trio.sleep(5 * LEASE)
        assert not any(each.membership.lease.holds() for each in made)
        for each in made:
            each.way.is_cut = False
        await trio.sleep(2 * LEASE)
        for each in made:
            with suppress(LogFailed):
                await each.node.join()
        await trio.sleep(LEASE)
        assert all(each.membership.lease.holds() for each in made)
        for family in FAMILIES:
            assert sum(each.membership.may_own(family) for each in made) == 1
        nursery.cancel_scope.cancel()


async def test_a_start_waits_for_a_log_that_is_away_for_a_moment(
    autojump_clock: MockClock,
) -> None:
    cluster = Cluster()
    one = cluster.member("one")

    async def cut_after_the_life(key: str) -> None:
        if key == f"{PREFIX}one":
            nursery.start_soon(cut)

    async def cut() -> None:
        await trio.sleep(0.0)
        one.way.is_cut = True
        await trio.sleep(1.0)
        one.way.is_cut = False

    async with trio.open_nursery() as nursery:
        one.way.before_write = cut_after_the_life
        await one.membership.begin()
    assert one.membership.seen[0].facts.name == "one"


# --- what goes wrong between two calls ---


async def _ended(nursery: trio.Nursery) -> tuple[Cluster, Member, Member]:
    """Two nodes, of which the second was ended, and does not know it yet."""
    cluster = Cluster()
    one, two = await cluster.start(nursery, "one", "two")
    two.way.is_cut = True
    await trio.sleep(2 * LEASE)
    assert one.placement.serving == (0,)
    return cluster, one, two


async def test_a_placement_from_before_the_life_makes_no_owner(
    autojump_clock: MockClock,
) -> None:
    """The placement is written while the life's value is on its way."""
    async with trio.open_nursery() as nursery:
        _, one, two = await _ended(nursery)
        on_its_way, arrives = trio.Event(), trio.Event()
        life = two.membership.facts.life

        async def keep_the_life(key: str) -> None:
            if key == f"{PREFIX}two" and two.membership.facts.life != life:
                on_its_way.set()
                await arrives.wait()

        two.way.before_write = keep_the_life
        two.way.is_cut = False
        await on_its_way.wait()
        with pytest.raises(LogFailed, match="no lease"):
            await two.membership.join()
        await two.membership.move("family 0", "one")
        await one.membership.move("family 1", "one")
        arrives.set()
        await in_time(lambda: two.membership.lease.holds())
        assert not two.membership.is_current
        nursery.cancel_scope.cancel()


async def test_a_node_that_has_joined_anew_is_not_taken_out(autojump_clock: MockClock) -> None:
    """Who takes it out has read that it has ended, and is slow."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        one, two, three = await cluster.start(nursery, "one", "two", "three")
        three.way.is_cut = True
        on_its_way, arrives = trio.Event(), trio.Event()

        async def keep_the_placement(key: str) -> None:
            if key == "placement":
                on_its_way.set()
                await arrives.wait()

        one.way.before_write = two.way.before_write = keep_the_placement
        await on_its_way.wait()
        assert (await cluster.facts("three")).is_ended
        three.way.is_cut = False
        await in_time(lambda: three.membership.lease.holds())
        await three.membership.join()
        life = three.membership.facts.life
        arrives.set()
        await trio.sleep(LEASE)
        assert three.membership.facts.life == life
        assert (await cluster.placement()).serving == (0, 1, 2)
        nursery.cancel_scope.cancel()
