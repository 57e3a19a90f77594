"""Locks of another process: first come, first served; lost with their connection."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.cluster import RemoteLocks, Service
from qserver.cluster.locks import Claim
from qserver.errors import DatabaseUnavailable, OutcomeUnknown
from tests.cluster.linked import linked

NAMES = ("control", "other")
steps = st.lists(
    st.tuples(st.sampled_from(["ask", "release", "begin", "end"]), st.integers(0, 7)), max_size=60
)


@given(steps)
def test_a_lock_has_one_holder_and_is_granted_in_order(steps: list[tuple[str, int]]) -> None:
    locks = RemoteLocks()
    claims: list[Claim] = []
    granted: list[int] = []
    released: set[int] = set()
    calls: dict[int, int] = {}
    for what, number in steps:
        if what == "ask":
            at = len(claims)
            claims.append(locks.ask(NAMES[number % 2], lambda at=at: granted.append(at)))  # type: ignore[misc]
            continue
        if number >= len(claims):
            continue
        claim = claims[number]
        if what == "release":
            claim.release()
            released.add(number)
        elif what == "begin" and claim.holds:
            claim.begin()
            calls[number] = calls.get(number, 0) + 1
        elif what == "end" and calls.get(number):
            calls[number] -= 1
            claim.end()
        for name in NAMES:
            named = [at for at, each in enumerate(claims) if each.name == name]
            left = [at for at in named if at not in released or calls.get(at)]
            assert [at for at in left if claims[at].holds] == [
                at for at in left[:1] if at not in released
            ]
            assert [at for at in granted if at in named] == sorted(
                at for at in granted if at in named
            )
            assert not left or left[0] in granted
            assert not set(left[1:]) & set(granted)


async def test_a_lock_is_for_one_process_at_a_time_and_they_take_turns() -> None:
    order: list[tuple[int, int]] = []
    holders = 0

    async def work(caller: int, turn: int) -> None:
        nonlocal holders
        async with processes[caller].links.lock(0, "control") as lock:
            holders += 1
            assert holders == 1
            order.append((caller, turn))
            assert await lock.call("echo", [turn]) == turn
            holders -= 1

    async def echo(value: int) -> int:
        return value

    async with linked(Service({"echo": echo}), Service(), Service()) as processes:
        async with trio.open_nursery() as nursery:
            for turn in range(5):
                for caller in range(3):
                    nursery.start_soon(work, caller, turn)
        assert len(order) == 15
        await wait_all_tasks_blocked()
        assert repr(processes[0].service.locks) == "0 locks are held, 0 claims wait"


async def test_the_owner_takes_its_place_in_the_queue(autojump_clock: MockClock) -> None:
    async with linked(Service(), Service()) as (zero, one):
        order = []

        async def hold_there(name: str) -> None:
            async with one.links.lock(0, "control"):
                order.append(name)
                await trio.sleep(1)

        async def hold_here() -> None:
            async with zero.service.locks.hold("control"):
                order.append("here")
                await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold_there, "first")
            await wait_all_tasks_blocked()
            nursery.start_soon(hold_here)
            await wait_all_tasks_blocked()
            nursery.start_soon(hold_there, "last")
            await wait_all_tasks_blocked()
            assert repr(zero.service.locks) == "1 locks are held, 2 claims wait"
        assert order == ["first", "here", "last"]


@pytest.mark.parametrize("held", [True, False], ids=["holder", "waiter"])
async def test_a_cancelled_caller_gives_the_lock_back(held: bool) -> None:
    async with linked(Service(), Service()) as (zero, one):
        locks = zero.service.locks

        async def hold() -> None:
            async with one.links.lock(0, "control"):
                await trio.sleep_forever()

        other = None if held else locks.ask("control", lambda: None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold)
            await wait_all_tasks_blocked()
            assert locks.first("control") is not None
            nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked()
        assert locks.first("control") is other


async def test_a_process_that_dies_gives_back_what_it_held() -> None:
    async with linked(Service(), Service(), Service()) as (_, one, two):
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                async with one.links.lock(0, "control"):
                    await one.die()

            nursery.start_soon(hold)
            await wait_all_tasks_blocked()
            async with two.links.lock(0, "control"):
                pass


async def test_the_next_holder_waits_for_calls_that_are_still_under_way() -> None:
    may_end = trio.Event()

    async def work() -> None:
        with trio.CancelScope(shield=True):
            await may_end.wait()

    async with linked(Service({"work": work}), Service()) as (zero, one):
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                async with one.links.lock(0, "control") as lock:
                    await lock.call("work")

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        granted = trio.Event()
        zero.service.locks.ask("control", granted.set)
        await wait_all_tasks_blocked()
        was_granted = granted.is_set()
        may_end.set()
        await granted.wait()
        assert not was_granted


async def test_a_block_whose_lock_is_lost_can_call_nothing_more() -> None:
    calls = 0

    async def work() -> None:
        nonlocal calls
        calls += 1

    async with linked(Service({"work": work}), Service()) as (zero, one):
        async with trio.open_nursery() as nursery:
            async with one.links.lock(0, "control") as lock:
                await lock.call("work")
                await zero.die()
                await nursery.start(zero.run)
                assert await one.links.call(0, "work") is None, "there is a new connection"
                with pytest.raises(DatabaseUnavailable, match="the lock is lost that work needs"):
                    await lock.call("work")
            with pytest.raises(DatabaseUnavailable):
                await lock.call("work")
            assert calls == 2
            await zero.die()


async def test_a_ticket_is_good_only_while_its_lock_is_held() -> None:
    async def work() -> None:
        raise AssertionError

    async with linked(Service({"work": work}), Service()) as (_, one):
        async with one.links.lock(0, "control") as lock:
            pass
        with pytest.raises(DatabaseUnavailable, match="the lock is lost that work needs"):
            await lock.call("work")


async def test_a_call_under_a_lock_that_breaks_in_the_middle_has_an_unknown_outcome() -> None:
    async with linked(Service({"work": trio.sleep_forever}), Service()) as (zero, one):
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                async with one.links.lock(0, "control") as lock:
                    with pytest.raises(OutcomeUnknown):
                        await lock.call("work")

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            await zero.die()


async def test_a_lock_is_waited_for_until_the_deadline(autojump_clock: MockClock) -> None:
    async with linked(Service(), Service()) as (zero, one):
        claim = zero.service.locks.ask("control", lambda: None)
        began = trio.current_time()
        with pytest.raises(DatabaseUnavailable, match="the lock control of process 0 is busy"):
            async with one.links.lock(0, "control", deadline=began + 5):
                raise AssertionError
        assert trio.current_time() == began + 5
        claim.release()
        await wait_all_tasks_blocked()
        assert zero.service.locks.first("control") is None


async def test_who_waits_for_a_lock_queues_up_again_when_its_owner_was_away() -> None:
    async with linked(Service(), Service()) as (zero, one):
        zero.service.locks.ask("control", lambda: None)
        got = trio.Event()
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                async with one.links.lock(0, "control"):
                    got.set()

            nursery.start_soon(hold)
            await wait_all_tasks_blocked()
            await zero.die()
            zero.service = Service()
            await nursery.start(zero.run)
            await got.wait()
            await zero.die()
