"""Calls between processes: values and errors, deadlines, cancelled callers, callees that die."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.cluster import Links, LocalDoors, Service
from qserver.errors import (
    DatabaseUnavailable,
    OutcomeUnknown,
    QserverError,
    RateLimited,
    TooManyRequests,
    UniqueViolation,
)
from qserver.limits import LINK_CALLS_MAX
from tests.cluster.linked import linked, made_doors, open_descriptors


class Callee:
    """Handlers that can be looked at."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.may_end = trio.Event()
        self.service = Service(
            {
                "echo": self.echo,
                "wait": self.wait,
                "refuse": self.refuse,
                "break": self.break_down,
                "odd": self.odd,
            }
        )

    async def echo(self, *values: Any) -> Any:
        return values

    async def wait(self) -> str:
        self.begun += 1
        try:
            await self.may_end.wait()
        except trio.Cancelled:
            self.cancelled += 1
            raise
        return "waited"

    async def refuse(self) -> None:
        raise RateLimited("too many", hint="Wait.", retry_after_seconds=7)

    async def break_down(self) -> None:
        async with trio.open_nursery():
            raise ZeroDivisionError("a bug")

    async def odd(self) -> object:
        return object()


async def test_values_come_back() -> None:
    at = datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=5)))
    sent = [None, 1, 1 << 70, 2.5, "ä", b"\0", at, Decimal("1.50"), UUID(int=1), [[], [1, (2,)]]]
    async with linked(Service(), Callee().service) as (zero, _):
        found = await zero.links.call(1, "echo", sent)
        assert found == [*sent[:-1], [[], [1, [2]]]]
        assert found[6] == at and found[6].tzinfo is not None


@pytest.mark.long
async def test_large_values_and_many_calls_at_once() -> None:
    large = bytes(24 * 1024 * 1024)
    async with linked(Callee().service, Callee().service) as processes:
        found: dict[tuple[int, int], Any] = {}

        async def call(caller: int, number: int) -> None:
            value = large if number % 50 == 0 else number
            found[caller, number] = await processes[caller].links.call(1 - caller, "echo", [value])

        async with trio.open_nursery() as nursery:
            for number in range(100):
                for caller in (0, 1):
                    nursery.start_soon(call, caller, number)
        assert len(found) == 200
        assert all(value == [large if key[1] % 50 == 0 else key[1]] for key, value in found.items())


async def test_a_process_can_call_itself() -> None:
    async with linked(Callee().service) as (zero,):
        assert await zero.links.call(0, "echo", [1]) == [1]


async def test_an_error_of_ours_arrives_as_it_is() -> None:
    async with linked(Service(), Callee().service) as (zero, one):
        with pytest.raises(RateLimited, match="too many") as refused:
            await zero.links.call(1, "refuse")
        assert (refused.value.retry_after_seconds, refused.value.hint) == (7, "Wait.")
        assert one.reports == []


@pytest.mark.parametrize("method", ["break", "odd", "unknown"])
async def test_a_bug_is_reported_where_it_is_and_arrives_as_an_internal_error(method: str) -> None:
    async with linked(Service(), Callee().service) as (zero, one):
        with pytest.raises(QserverError, match=f"process 1 failed in {method}") as failed:
            await zero.links.call(1, method)
        assert failed.value.code == "XX000"
        assert len(one.reports) == 1 and "Traceback" in one.reports[0]
        assert await zero.links.call(1, "echo") == [], "the link goes on"


async def test_a_caller_that_is_cancelled_cancels_the_call() -> None:
    callee = Callee()
    async with linked(Service(), callee.service) as (zero, _):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(zero.links.call, 1, "wait")
            await wait_all_tasks_blocked()
            assert callee.begun == 1
            nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked()
        assert callee.cancelled == 1


async def test_a_call_without_an_answer_at_its_deadline_has_an_unknown_outcome(
    autojump_clock: MockClock,
) -> None:
    callee = Callee()
    async with linked(Service(), callee.service) as (zero, _):
        with pytest.raises(OutcomeUnknown, match="process 1 was asked"):
            await zero.links.call(1, "wait", deadline=trio.current_time() + 5)
        await wait_all_tasks_blocked()
        assert callee.cancelled == 1


async def test_a_process_that_dies_in_the_middle_of_a_call_leaves_its_outcome_unknown() -> None:
    callee = Callee()
    async with linked(Service(), callee.service) as (zero, one):
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(OutcomeUnknown):
                    await zero.links.call(1, "wait")

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            await one.die()


async def test_a_link_that_is_cut_leaves_outcomes_unknown_and_the_next_call_is_answered() -> None:
    callee = Callee()
    async with linked(Service(), callee.service) as (zero, _):
        zero.links.cut(1)  # there is none
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(OutcomeUnknown):
                    await zero.links.call(1, "wait")

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            zero.links.cut(1)
        assert await zero.links.call(1, "echo", [2]) == [2]
        await wait_all_tasks_blocked()
        assert callee.cancelled == 1


async def test_a_call_waits_for_a_process_that_comes_back(autojump_clock: MockClock) -> None:
    async with linked(Service(), Callee().service) as (zero, one):
        assert await zero.links.call(1, "echo") == []
        await one.die()
        async with trio.open_nursery() as nursery:

            async def start_again() -> None:
                await trio.sleep(3)
                nursery.start_soon(one.run)

            nursery.start_soon(start_again)
            assert await zero.links.call(1, "echo", [2], deadline=trio.current_time() + 5) == [2]
            await one.die()


@pytest.mark.parametrize("was_there", [True, False])
async def test_a_process_that_does_not_come_back_has_done_nothing(
    was_there: bool, autojump_clock: MockClock
) -> None:
    async with linked(Service(), Callee().service) as (zero, one):
        if was_there:
            await zero.links.call(1, "echo")
        await one.die()
        began = trio.current_time()
        with pytest.raises(DatabaseUnavailable, match="process 1 does not answer") as failed:
            await zero.links.call(1, "echo", deadline=began + 5)
        assert failed.value.hint == "Try again."
        assert trio.current_time() == began + 5


async def test_a_door_that_is_closed_is_told(autojump_clock: MockClock) -> None:
    with made_doors(2) as doors:
        links = Links(0, LocalDoors(doors.inside[0], doors, print), Service(), print)
        doors.inside[1].close()
        async with trio.open_nursery() as nursery:
            await nursery.start(links.run)
            with pytest.raises(DatabaseUnavailable) as failed:
                await links.call(1, "echo", deadline=trio.current_time() + 1)
            assert failed.value.detail == "Broken pipe"
            nursery.cancel_scope.cancel()


async def test_a_process_that_does_not_exist_is_told(autojump_clock: MockClock) -> None:
    async with linked(Callee().service) as (zero,):
        for process in (1, -1):
            with pytest.raises(DatabaseUnavailable) as failed:
                await zero.links.call(process, "echo", deadline=trio.current_time() + 1)
            assert failed.value.detail == f"there is no process {process}"
        assert await zero.links.call(0, "echo") == [], "the others are called as before"


async def test_a_call_before_the_links_run_waits_for_them() -> None:
    with made_doors(1) as doors:
        links = Links(0, LocalDoors(doors.inside[0], doors, print), Callee().service, print)
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                assert await links.call(0, "echo", [1]) == [1]
                nursery.cancel_scope.cancel()

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            await nursery.start(links.run)


async def test_a_deadline_that_has_passed_sends_nothing() -> None:
    callee = Callee()
    async with linked(Service(), callee.service) as (zero, _):
        await zero.links.call(1, "echo")
        with pytest.raises(DatabaseUnavailable):
            await zero.links.call(1, "wait", deadline=trio.current_time())
        await wait_all_tasks_blocked()
        assert callee.begun == 0


async def test_callers_of_links_that_have_ended_are_told() -> None:
    async with linked(Service(), Callee().service) as (zero, one):
        await one.die()
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(DatabaseUnavailable):
                    await zero.links.call(1, "echo")

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            await zero.die()
        with pytest.raises(DatabaseUnavailable):
            await zero.links.call(1, "echo", deadline=math.inf)


async def test_so_many_calls_may_be_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qserver.cluster.calling.LINK_CALLS_MAX", 3)
    assert LINK_CALLS_MAX > 3
    callee = Callee()
    async with linked(Service(), callee.service) as (zero, _):
        async with trio.open_nursery() as nursery:
            for _number in range(3):
                nursery.start_soon(zero.links.call, 1, "wait")
            await wait_all_tasks_blocked()
            with pytest.raises(TooManyRequests):
                await zero.links.call(1, "echo")
            callee.may_end.set()
        assert await zero.links.call(1, "echo") == []


@pytest.mark.parametrize(
    "data", [b"nonsense", b"qf\0\0\0\0\0\x02\x91\x05", b"qf\x09\0\0\0\0\x01\xff"]
)
async def test_a_stranger_that_sends_nonsense_is_cut_off_with_a_report(data: bytes) -> None:
    before = open_descriptors()
    async with linked(Service(), Callee().service) as (zero, one):
        with one.doors.knock(1) as stranger:
            stranger.sendall(data)
            await wait_all_tasks_blocked()
            assert len(one.reports) == 1 and "damaged" in one.reports[0]
        assert await zero.links.call(1, "echo") == []
    assert open_descriptors() == before


async def test_nothing_stays_open_after_calls_and_deaths() -> None:
    before = open_descriptors()
    async with linked(Callee().service, Callee().service) as (zero, one):
        await zero.links.call(1, "echo")
        await one.links.call(0, "echo")
        await one.die()
    assert open_descriptors() == before


async def test_an_error_keeps_its_place_in_a_statement() -> None:
    async def fail() -> None:
        error = UniqueViolation("duplicate key", table="t", constraint="k", position=4)
        error.statement = 2
        raise error

    async with linked(Service(), Service({"fail": fail})) as (zero, _):
        with pytest.raises(UniqueViolation) as failed:
            await zero.links.call(1, "fail")
    found = failed.value
    assert (found.table, found.constraint, found.position, found.statement) == ("t", "k", 4, 2)


async def test_nobody_waits_for_a_process_that_is_away_when_all_end(
    autojump_clock: MockClock,
) -> None:
    async with linked(Service(), Callee().service) as (zero, one):
        assert await zero.links.call(1, "echo", [1]) == [1]
        await one.die()
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(DatabaseUnavailable):
                    await zero.links.call(1, "echo", [1])

            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            zero.links.drain()
            with pytest.raises(DatabaseUnavailable):
                await zero.links.call(2, "echo", [1])  # and for none that is first asked for now
