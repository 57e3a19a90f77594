"""Slow clients, silent clients, too many clients: each costs a bounded time and one connection."""

from __future__ import annotations

import json
import socket
from collections import Counter
from math import inf
from typing import Any

import pytest
import trio
import trio.testing

from qserver.http1 import ClientGone, Response
from qserver.http1.context import ServerContext
from qserver.http1.counters import Counters
from qserver.http1.options import ServerOptions
from tests.engine.passes import Passes, counted_passes
from tests.http1.serving import App, Asked, Client, Echo, reply, request, running
from tests.http1.test_failures_and_disconnects import Streams
from tests.http1.ways import alone, expected, fast, hesitant
from tests.steady_clock import SteadyClock

SOON = 0.05
MANY = 30
LONG = 60.0


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with running(Echo(), header_seconds=SOON) as server, await server.client() as client:
        assert await client.rest() == b""


class Late:
    """A connection whose time is over; it notes in which pass of the loop it was ended."""

    address = "127.0.0.1"

    def __init__(self, passes: Passes, ended: list[int]) -> None:
        self._passes, self._ended = passes, ended

    def end_if_idle(self) -> None: ...

    def end_if_rests(self) -> bool:
        return False

    def end_if_late(self, now: float) -> bool:
        self._ended.append(self._passes.count)
        return True


async def test_many_connections_that_are_late_together_are_ended_one_in_a_pass() -> None:
    context = ServerContext(Echo(), ServerOptions(header_seconds=SOON), Counters(), print)
    ended: list[int] = []
    async with counted_passes() as passes, trio.open_nursery() as nursery:
        for _ in range(MANY):
            context.add(Late(passes, ended))
        nursery.start_soon(context.sweep)
        while len(ended) < MANY:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert max(Counter(ended).values()) <= 2, "tasks of one pass run in any order"


async def test_a_head_that_does_not_end_in_time_is_answered_with_408() -> None:
    echo = Echo()
    async with running(echo, header_seconds=SOON) as server, await server.client() as client:
        answer = await client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n")
        assert answer.status == 408
        assert json.loads(answer.body)["error"]["retryable"] is True
        assert await client.rest() == b""
        assert echo.asked == []


async def test_a_head_that_drips_does_not_get_more_time() -> None:
    async with running(Echo(), header_seconds=SOON) as server, await server.client() as client:
        answers: list[int] = []
        with trio.CancelScope() as dripping:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_drip, client)
                answers.append((await client.answer()).status)
                dripping.cancel()
        assert answers == [408]


async def _drip(client: Client) -> None:
    await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
    for _ in range(1000):
        await client.send(b"A")
        await trio.sleep(SOON / 20)


async def test_the_head_of_a_later_request_must_end_in_time_too(steady_clock: SteadyClock) -> None:
    async with running(Echo(), header_seconds=SOON) as server, await server.client() as client:
        assert (await client.ask(request())).status == 200
        assert (await client.ask(b"GET /")).status == 408


async def test_an_idle_connection_is_closed_without_a_word(steady_clock: SteadyClock) -> None:
    async with running(Echo(), idle_seconds=SOON) as server, await server.client() as client:
        assert (await client.ask(request())).status == 200
        assert await client.rest() == b""


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("before", ["nothing", "a request", "a part of the head", "a part of both"])
async def test_a_request_that_waits_in_the_socket_is_read_before_its_connection_is_ended(
    before: str, ends: bool
) -> None:
    """As after a process was stopped for longer than any deadline: time and bytes come together."""
    async with alone(hesitant) as (_, connection, far, client):
        await trio.testing.wait_all_tasks_blocked()
        rest = fast(b"quick")
        if before in ("a request", "a part of both"):
            assert (await client.ask(rest)).body == expected(b"quick")
        if before.startswith("a part"):
            await client.send(rest[:10])
            rest = rest[10:]
        await trio.testing.wait_all_tasks_blocked()
        far.send(rest)
        if ends:
            far.shutdown(socket.SHUT_WR)
        connection.end_if_late(inf)
        assert (await client.answer()).body == expected(b"quick")


async def test_time_that_the_application_takes_is_not_held_against_the_client(
    steady_clock: SteadyClock,
) -> None:
    async def slow(asked: Asked) -> Response:
        await trio.sleep(3 * SOON)
        return reply(b"at last")

    options: dict[str, Any] = {"header_seconds": SOON, "idle_seconds": SOON, "body_seconds": SOON}
    async with running(App(slow), **options) as server, await server.client() as client:
        await client.send(request() * 3)
        for _ in range(3):
            assert (await client.answer()).body == b"at last"


async def test_a_body_that_stops_is_answered_with_408() -> None:
    left: list[str] = []

    async def reads(asked: Asked) -> Response:
        try:
            return reply(await asked.read())
        except ClientGone:
            left.append("gone")
            raise

    async with running(App(reads), body_seconds=SOON) as server, await server.client() as client:
        answer = await client.ask(
            b"POST / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nContent-Length: 9\r\n\r\nab"
        )
        assert answer.status == 408
        assert answer.header("x-request-id") == "mine"
        assert await client.rest() == b""
        assert left == ["gone"]
        assert server.reports == [], "not the application's fault"


async def test_a_body_that_drips_is_answered_with_408() -> None:
    async with running(Echo(), body_seconds=SOON) as server, await server.client() as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n")
        with trio.CancelScope() as dripping:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_drip_body, client)
                assert (await client.answer()).status == 408
                dripping.cancel()


async def _drip_body(client: Client) -> None:
    for _ in range(900):
        await client.send(b"A")
        await trio.sleep(SOON / 20)


async def test_an_application_that_reads_slowly_does_not_make_the_client_late(
    steady_clock: SteadyClock,
) -> None:
    begun = trio.Event()

    async def reads(asked: Asked) -> Response:
        begun.set()
        await trio.sleep(3 * SOON)
        return reply(await asked.read())

    async with running(App(reads), body_seconds=SOON) as server, await server.client() as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
        await begun.wait()
        await client.send(b"cd")
        assert (await client.answer()).body == b"abcd"


@pytest.mark.parametrize(
    ("bad", "status"), [(b"zz\r\n", 400), (b"400\r\n" + b"x" * 1024 + b"\r\n", 413)]
)
async def test_a_chunked_body_that_goes_wrong_later_is_refused(bad: bytes, status: int) -> None:
    heard: list[str] = []
    begun = trio.Event()

    async def reads(asked: Asked) -> Response:
        begun.set()
        try:
            return reply(await asked.read())
        except ClientGone:
            heard.append("gone")
            raise

    async with running(App(reads), body_bytes_max=1000) as server, await server.client() as client:
        await client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
        )
        await begun.wait()
        assert (await client.ask(bad)).status == status
        assert await client.rest() == b""
        assert heard == ["gone"]
        assert server.reports == []


async def test_a_reader_that_takes_nothing_is_cut_off() -> None:
    streams = Streams(1_000_000)
    async with running(streams, send_seconds=SOON) as server, await server.client() as client:
        await client.send(request())
        await streams.pieces.closed.wait()
        assert server.reports == []


async def test_one_connection_too_many_is_told_to_come_back() -> None:
    echo = Echo()
    async with running(echo, connections_max=2) as server:
        async with await server.client() as first, await server.client() as second:
            assert (await first.ask(request())).status == 200
            assert (await second.ask(request())).status == 200
            async with await server.client() as third:
                answer = await third.ask(request())
                assert answer.status == 503
                assert answer.header("retry-after") is not None
                assert await third.rest() == b""
            assert (await first.ask(request())).status == 200
            assert server.counters.statistics().connections_refused == 1
        await server.until(lambda: server.counters.statistics().connections_open == 0)
        async with await server.client() as fourth:
            assert (await fourth.ask(request())).status == 200


async def test_of_very_many_connections_too_many_the_rest_is_closed_unheard() -> None:
    async with running(Echo(), connections_max=1, linger_seconds=LONG, drain_seconds=1) as server:
        async with await server.client() as first:
            assert (await first.ask(request())).status == 200
            told: list[bytes] = []
            clients = [await server.client() for _ in range(70)]
            for client in clients:
                told.append(await client.rest())
            assert sum(b" 503 " in each for each in told) == 64
            assert told[64:] == [b""] * 6 or told[64:] == [b"<reset>"] * 6
            for client in clients:
                await client.stream.aclose()
