"""Streams between processes: bounded both ways, and ended with whatever they hang on."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.cluster import Service, Stream
from qserver.cluster.connection import Connection
from qserver.cluster.messages import Item
from qserver.cluster.outgoing import Outgoing
from qserver.errors import DatabaseUnavailable, QserverError, UniqueViolation
from qserver.limits import LINK_FRAME_BYTES_MAX, LINK_STREAM_VALUES_MAX, LINK_UNSENT_BYTES_MAX
from tests.cluster.linked import linked


class Source:
    """Streams that can be looked at."""

    def __init__(self) -> None:
        self.yielded = 0
        self.ended = trio.Event()
        self.service = Service(
            {"echo": self.echo},
            {
                "numbers": self.numbers,
                "blocks": self.blocks,
                "doubled": self.doubled,
                "deaf": self.deaf,
                "failing": self.failing,
                "broken": self.broken,
            },
        )

    async def echo(self, value: object) -> object:
        return value

    async def numbers(self, back: Stream, count: int) -> AsyncGenerator[int, None]:
        try:
            for number in range(count):
                self.yielded += 1
                yield number
        finally:
            self.ended.set()

    async def blocks(self, back: Stream) -> AsyncGenerator[bytes, None]:
        while True:
            self.yielded += 1
            yield bytes(LINK_UNSENT_BYTES_MAX)

    async def doubled(self, back: Stream) -> AsyncGenerator[object, None]:
        async for value in back:
            yield [value, value]

    async def deaf(self, back: Stream) -> AsyncGenerator[int, None]:
        try:
            await trio.sleep_forever()
            yield 1
        finally:
            self.ended.set()

    async def failing(self, back: Stream) -> AsyncGenerator[int, None]:
        yield 1
        raise UniqueViolation("duplicate", table="t")

    async def broken(self, back: Stream) -> AsyncGenerator[int, None]:
        yield 1
        raise ZeroDivisionError


async def test_all_values_arrive_in_order() -> None:
    async with linked(Source().service, Service()) as (_, one):
        async with one.links.follow(0, "numbers", [1000]) as stream:
            assert [value async for value in stream] == [*range(1000)]
            with pytest.raises(StopAsyncIteration):
                await anext(stream)


async def test_a_slow_consumer_holds_its_producer_back_and_nobody_else() -> None:
    source = Source()
    async with linked(source.service, Service()) as (_, one):
        async with one.links.follow(0, "numbers", [1000]) as stream:
            await wait_all_tasks_blocked()
            assert source.yielded == LINK_STREAM_VALUES_MAX + 1
            assert await one.links.call(0, "echo", [1]) == 1
            assert await anext(stream) == 0
            await wait_all_tasks_blocked()
            assert source.yielded == LINK_STREAM_VALUES_MAX + 2


async def test_values_go_back_on_the_same_stream() -> None:
    async with linked(Source().service, Service()) as (_, one):
        async with one.links.follow(0, "doubled") as stream:
            for number in range(100):
                await stream.send(number)
                assert await anext(stream) == [number, number]


async def test_what_goes_back_is_bounded_too() -> None:
    async with linked(Source().service, Service()) as (_, one):
        async with one.links.follow(0, "deaf") as stream:
            for number in range(LINK_STREAM_VALUES_MAX):
                await stream.send(number)
            with trio.move_on_after(0) as full:
                await stream.send("one more")
            assert full.cancelled_caught


async def test_who_leaves_a_stream_ends_its_generator() -> None:
    source = Source()
    async with linked(source.service, Service()) as (zero, one):
        async with one.links.follow(0, "numbers", [1000]) as stream:
            assert await anext(stream) == 0
        await source.ended.wait()
        assert zero.reports == []


async def test_a_process_that_dies_ends_the_streams_that_it_follows() -> None:
    source = Source()
    async with linked(source.service, Service()) as (_, one):
        async with trio.open_nursery() as nursery:

            async def follow() -> None:
                with pytest.raises(DatabaseUnavailable):
                    async with one.links.follow(0, "deaf") as stream:
                        await anext(stream)

            nursery.start_soon(follow)
            await wait_all_tasks_blocked()
            await one.die()
        await source.ended.wait()


async def test_a_stream_whose_source_dies_gives_what_has_arrived_and_fails() -> None:
    async with linked(Source().service, Service()) as (zero, one):
        async with one.links.follow(0, "numbers", [1000]) as stream:
            await wait_all_tasks_blocked()
            await zero.die()
            await wait_all_tasks_blocked()
            for number in range(LINK_STREAM_VALUES_MAX):
                assert await anext(stream) == number
            with pytest.raises(DatabaseUnavailable, match="process 0 does not answer"):
                await anext(stream)
            with pytest.raises(DatabaseUnavailable):
                await stream.send(1)


async def test_a_stream_fails_with_the_error_of_its_source() -> None:
    async with linked(Source().service, Service()) as (zero, one):
        async with one.links.follow(0, "failing") as stream:
            assert await anext(stream) == 1
            with pytest.raises(UniqueViolation, match="duplicate") as failed:
                await anext(stream)
            assert failed.value.table == "t" and zero.reports == []
        for name in ("broken", "unknown"):
            async with one.links.follow(0, name) as stream:
                with pytest.raises(QserverError, match=f"process 0 failed in {name}"):
                    [value async for value in stream]
        assert len(zero.reports) == 2


async def test_large_values_wait_for_room_and_can_be_left() -> None:
    source = Source()
    async with linked(source.service, Service()) as (_, one):
        async with one.links.follow(0, "blocks") as stream:
            await wait_all_tasks_blocked()
            for _number in range(40):
                assert len(await anext(stream)) == LINK_UNSENT_BYTES_MAX
            assert source.yielded <= 40 + LINK_STREAM_VALUES_MAX + 1
        assert await one.links.call(0, "echo", [1]) == 1


async def test_a_sender_that_is_cancelled_while_the_link_is_full_loses_no_place() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        connection = Connection(ours, "the peer", print)
        full = Outgoing(Item(1, bytes(LINK_UNSENT_BYTES_MAX)))
        connection.send_nowait(full)
        stream = Stream(1, connection)
        large = bytes(LINK_FRAME_BYTES_MAX)
        for _ in range(2 * LINK_STREAM_VALUES_MAX):
            with trio.move_on_after(0) as waiting:
                await stream.send(large)
            assert waiting.cancelled_caught
        connection.withdraw(full)
        for number in range(LINK_STREAM_VALUES_MAX):
            await stream.send(number)
        connection.close()
