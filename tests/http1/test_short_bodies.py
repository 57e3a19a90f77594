"""Short bodies that arrive behind their heads: the endpoint gets them whole, unless they are late.

Many clients send head and body one after the other. Where a request is cut makes no difference.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from qserver.http1 import Response
from qserver.limits import RECEIVE_BYTES
from tests.http1.serving import App, Asked, Client, Running, reply, request, running
from tests.http1.test_tls import TLS, tls_client
from tests.steady_clock import SteadyClock

SOON = 0.05
"""After so long a server of these tests looks for what is late."""


class Whole(App):
    """Answers at once, with how it got the body."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.whole: list[bool] = []

    def answer(self, asked: Asked) -> Response:
        self.whole.append(isinstance(asked.body, bytes))
        return reply(asked.body if isinstance(asked.body, bytes) else b"refused", 401)


async def plain(server: Running) -> Client:
    return await server.client()


@pytest.mark.parametrize("connect", [plain, tls_client])
async def test_it_makes_no_difference_where_a_request_is_cut(
    connect: Callable[[Running], Awaitable[Client]],
) -> None:
    options = TLS if connect is tls_client else {}
    app, data = Whole(), request("/", "POST", b"hello")
    async with running(app, **options) as server, await connect(server) as client:
        for cut in range(len(data) - 12, len(data)):
            await client.send(data[:cut])
            await trio.testing.wait_all_tasks_blocked()
            assert (await client.ask(data[cut:])).body == b"hello"
        assert set(app.whole) == {True} and server.counters.requests == 12


async def test_a_body_may_come_byte_by_byte_with_the_next_request_behind_it() -> None:
    app, data = Whole(), request("/", "POST", b"one") + request("/", "POST", b"two")
    async with running(app) as server, await server.client() as client:
        for at in range(len(data)):
            await client.send(data[at : at + 1])
        assert [(await client.answer()).body for _ in range(2)] == [b"one", b"two"]
        assert app.whole == [True, True]


async def test_a_long_body_is_read_by_who_handles_the_request() -> None:
    for length, whole in ((RECEIVE_BYTES - 200, True), (RECEIVE_BYTES, False)):
        app, data = Whole(), request("/", "POST", b"x" * length)
        async with running(app) as server, await server.client() as client:
            await client.send(data[:-1])
            await trio.testing.wait_all_tasks_blocked()
            await client.send(data[-1:])
            await client.answer()
            assert app.whole == [whole]


async def test_a_request_whose_body_does_not_come_is_handled_without_it(
    steady_clock: SteadyClock,
) -> None:
    """It may be refused for what its head says: its client may wait for that."""
    app, data = Whole(), request("/", "POST", b"hello")
    async with (
        running(app, header_seconds=8 * SOON) as server,
        await server.client() as client,
    ):
        assert (await client.ask(data[:-2])).body == b"refused"
        assert app.whole == [False]
        assert (await client.ask(data[-2:] + data)).body == b"hello", "the rest was skipped"


async def test_a_client_that_leaves_within_its_body_is_logged() -> None:
    async def reads(asked: Asked) -> Response:
        return reply(await asked.read())

    async with running(App(reads)) as server:
        async with await server.client() as client:
            await client.send(request("/", "POST", b"hello")[:-2])
            await trio.testing.wait_all_tasks_blocked()
            assert server.log == []
        await server.until(lambda: server.log != [])
        assert "POST / 499" in server.log[0] and server.reports == []


async def test_a_server_that_stops_gives_a_body_the_time_that_bodies_have_then() -> None:
    async def reads(asked: Asked) -> Response:
        return reply(await asked.read())

    async with running(App(reads), drain_body_seconds=60) as server:
        async with await server.client() as client:
            data = request("/", "POST", b"hello")
            await client.send(data[:-2])
            await trio.testing.wait_all_tasks_blocked()
            server.stop.set()
            await trio.testing.wait_all_tasks_blocked()
            assert (await client.ask(data[-2:])).body == b"hello"
        await server.ended.wait()
