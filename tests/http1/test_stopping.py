"""Starting, draining and stopping: what was accepted is answered, and then the server ends."""

from __future__ import annotations

import inspect
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from qserver.errors import CannotListen, LogFailed
from qserver.http1 import PENDING, Answer, Headers, Respond, Response, ServerOptions, serve
from tests.http1.serving import App, Asked, Echo, Pieces, in_parts, reply, request, running


class Gated(App):
    """Begins each answer, and ends it when the gate is opened."""

    def __init__(self, streaming: bool = False) -> None:
        super().__init__(self.stream if streaming else self.answer)
        self.entered = trio.Event()
        self.gate = trio.Event()

    async def answer(self, asked: Asked) -> Response:
        self.entered.set()
        await self.gate.wait()
        return reply(b"done")

    def stream(self, asked: Asked) -> Response:
        return in_parts(self.parts())

    async def parts(self) -> AsyncGenerator[bytes, None]:
        yield b"begun, "
        self.entered.set()
        await self.gate.wait()
        yield b"done"


# --- draining ------------------------------------------------------------------------------------


async def test_an_idle_connection_is_closed_when_the_server_stops() -> None:
    async with running(Echo()) as server:
        async with await server.client() as used, await server.client() as unused:
            assert (await used.ask(request())).status == 200
            await server.until(lambda: server.counters.statistics().connections_open == 2)
            server.stop.set()
            assert await used.rest() == b""
            assert await unused.rest() == b""
            await server.ended.wait()


async def test_a_request_under_way_is_answered_and_told_that_the_connection_ends() -> None:
    gated = Gated()
    async with running(gated) as server, await server.client() as client:
        await client.send(request())
        await gated.entered.wait()
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        assert not server.ended.is_set()
        gated.gate.set()
        answer = await client.answer()
        assert (answer.body, answer.header("connection")) == (b"done", "close")
        assert await client.rest() == b""
        await client.stream.aclose()
        await server.ended.wait()
    assert server.reports == []


async def test_a_body_that_comes_no_more_does_not_keep_the_server_from_its_end() -> None:
    whole = request("/", "POST", b"12345678")
    async with running(Echo(), drain_body_seconds=0.05) as server:
        async with await server.client() as silent, await server.client() as coming:
            await silent.send(whole[:-4])
            await coming.send(whole[:-4])
            await server.until(lambda: server.counters.statistics().bytes_in >= 2 * len(whole[:-4]))
            await trio.testing.wait_all_tasks_blocked()
            server.stop.set()
            await trio.testing.wait_all_tasks_blocked()
            await coming.send(whole[-4:])
            assert (await coming.answer()).status == 200
            answer = await silent.answer()
            assert answer.status == 503 and b'"code":"57P03"' in answer.body
            assert answer.header("retry-after") == "1"
        await server.ended.wait()
    assert server.reports == []


async def test_a_body_that_begins_while_the_server_stops_is_waited_for_as_long() -> None:
    gated = Gated()
    whole = request("/", "POST", b"12345678")

    async def reading(asked: Asked) -> Response:
        gated.entered.set()
        await gated.gate.wait()
        return reply(await asked.read())

    async with running(App(reading), drain_body_seconds=0.05) as server:
        async with await server.client() as client:
            await client.send(whole[:-4])
            await gated.entered.wait()
            server.stop.set()
            await trio.testing.wait_all_tasks_blocked()
            gated.gate.set()
            assert (await client.answer()).status == 503
        await server.ended.wait()
    assert server.reports == []


async def test_a_stream_under_way_goes_on_to_its_end() -> None:
    gated = Gated(streaming=True)
    async with running(gated) as server, await server.client() as client:
        await client.send(request())
        await gated.entered.wait()
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        gated.gate.set()
        assert (await client.answer()).body == b"begun, done"
        assert await client.rest() == b""


async def test_nobody_new_is_let_in_while_the_server_drains() -> None:
    gated = Gated()
    async with running(gated) as server, await server.client() as client:
        await client.send(request())
        await gated.entered.wait()
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OSError, match="connect"):
            await server.client()
        gated.gate.set()
        assert (await client.answer()).body == b"done"


async def test_a_request_whose_first_byte_has_arrived_is_served() -> None:
    echo = Echo()
    async with running(echo) as server, await server.client() as client:
        await client.send(b"G")
        await server.until(lambda: server.counters.statistics().bytes_in == 1)
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        answer = await client.ask(request("/late")[1:])
        assert (answer.body, answer.header("connection")) == (b"GET /late ", "close")


async def test_a_request_that_the_kernel_has_taken_is_served() -> None:
    """Connected and sent before the server looked, stopped in the same moment."""
    echo = Echo()
    async with running(echo) as server:
        with socket.create_connection(server.addresses[0]) as client:
            client.sendall(request("/early"))
            server.stop.set()
            await server.ended.wait()
            assert b"GET /early " in client.recv(1000)


async def test_a_request_on_an_idle_connection_that_the_kernel_has_taken_is_served() -> None:
    echo = Echo()
    async with running(echo) as server:
        with socket.create_connection(server.addresses[0]) as client:
            await server.until(lambda: server.counters.statistics().connections_open == 1)
            await trio.testing.wait_all_tasks_blocked()
            client.sendall(request("/early"))
            server.stop.set()
            await server.ended.wait()
            assert b"GET /early " in client.recv(1000)


async def test_pipelined_requests_that_have_arrived_are_all_served() -> None:
    gated = Gated()
    async with running(gated) as server, await server.client() as client:
        await client.send(request() * 3)
        await gated.entered.wait()
        server.stop.set()
        gated.gate.set()
        closing = [(await client.answer()).header("connection") for _ in range(3)]
        assert closing == [None, None, "close"]
        assert await client.rest() == b""


async def test_a_pipelined_request_that_the_kernel_has_taken_is_served() -> None:
    gated = Gated()
    async with running(gated) as server, await server.client() as client:
        await client.send(request())
        await gated.entered.wait()
        await client.send(request())
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        gated.gate.set()
        closing = [(await client.answer()).header("connection") for _ in range(2)]
        assert closing == [None, "close"]


async def test_what_does_not_end_in_time_is_cut_off() -> None:
    gated = Gated()
    async with running(gated, drain_seconds=0.05) as server, await server.client() as client:
        await client.send(request())
        await gated.entered.wait()
        server.stop.set()
        assert await client.rest() == b""
        await server.ended.wait()
    assert server.reports == ["1 connections cut off while draining"]


async def test_a_slow_head_does_not_hold_up_the_end_for_longer_than_it_may() -> None:
    async with running(Echo(), header_seconds=0.05) as server, await server.client() as client:
        await client.send(b"GET /")
        await server.until(lambda: server.counters.statistics().bytes_in == 5)
        server.stop.set()
        assert (await client.answer()).status == 408
        await client.stream.aclose()
        await server.ended.wait()


# --- the application's own start and end ---------------------------------------------------------


class Living(App):
    """Has a start and an end; notes what happens to it."""

    def __init__(self, fails_at: str = "") -> None:
        super().__init__(self.answer)
        self.fails_at = fails_at
        self.events: list[str] = []
        self.hang = False
        self.dies = trio.Event()

    def answer(self, asked: Asked) -> Response:
        self.events.append("request")
        return reply(b"")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            self._enter("startup")
            nursery.start_soon(self._die)
            yield
            self._enter("shutdown")
            if self.hang:
                await trio.sleep_forever()
            await trio.testing.wait_all_tasks_blocked()
            self.events.append("end")
            nursery.cancel_scope.cancel()

    def _enter(self, phase: str) -> None:
        self.events.append(phase)
        if self.fails_at == phase:
            raise LogFailed("no disk")

    async def _die(self) -> None:
        await self.dies.wait()
        raise LogFailed("no disk")


FAILED = pytest.RaisesGroup(pytest.RaisesExc(LogFailed, match="no disk"), flatten_subgroups=True)


async def test_the_application_starts_before_its_requests_and_shuts_down_after_them() -> None:
    living = Living()
    async with running(living) as server, await server.client() as client:
        for _ in range(2):
            assert (await client.ask(request())).status == 200
    assert living.events == ["startup", "request", "request", "shutdown", "end"]


@pytest.mark.parametrize("phase", ["startup", "shutdown"])
async def test_what_keeps_an_application_from_starting_or_ending_is_raised(phase: str) -> None:
    stop = trio.Event()
    stop.set()
    with FAILED:
        await serve(Living(phase), ServerOptions(), stop=stop, report=print)


async def test_an_application_that_hangs_in_its_shutdown_is_left() -> None:
    living = Living()
    async with running(living, shutdown_seconds=0.02) as server:
        living.hang = True
    assert server.reports == ["the application did not shut down in 0.02 s"]


async def test_the_server_does_not_outlive_its_application() -> None:
    living = Living()
    started = partial(serve, living, ServerOptions(), stop=trio.Event(), report=print)
    with FAILED:
        async with trio.open_nursery() as nursery:
            await nursery.start(started)
            living.dies.set()


# --- listening -----------------------------------------------------------------------------------


async def test_a_port_in_use_is_a_clear_error_and_the_application_is_not_started() -> None:
    living = Living()
    async with running(Echo()) as server:
        options = ServerOptions(port=server.addresses[0][1])
        with pytest.raises(CannotListen, match="already in use") as caught:
            await serve(living, options, stop=trio.Event(), report=print)
        assert caught.value.hint
        assert living.events == []


async def test_a_port_that_another_takes_meanwhile_is_the_same_error() -> None:
    """Both may bind, as neither listens yet; the later to listen finds out."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))

        class SlowStart(Echo):
            @asynccontextmanager
            async def running(self) -> AsyncIterator[None]:
                other.listen()
                yield

        options = ServerOptions(port=other.getsockname()[1])
        with pytest.raises(CannotListen, match="already in use"):
            await serve(SlowStart(), options, stop=trio.Event(), report=print)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
async def test_an_address_of_another_machine_is_a_clear_error(host: str) -> None:
    with pytest.raises(CannotListen, match=host):
        await serve(Echo(), ServerOptions(host=host), stop=trio.Event(), report=print)


async def test_a_name_is_listened_on_at_all_its_addresses_and_one_port() -> None:
    async with running(Echo(), host="localhost") as server:
        assert len({port for _, port in server.addresses}) == 1
        for address in server.addresses:
            stream = await trio.open_tcp_stream(*address)
            await stream.send_all(request())
            assert b" 200 " in await stream.receive_some(1000)
            await stream.aclose()


async def test_a_server_can_start_again_on_the_same_port_at_once() -> None:
    async with running(Echo()) as server, await server.client() as client:
        await client.ask(request())
        server.stop.set()
        await client.rest()
    port = server.addresses[0][1]
    async with running(Echo(), port=port) as again:
        assert again.addresses == server.addresses


@pytest.mark.parametrize("kind", ["coroutine", "parts"])
async def test_what_is_cut_off_before_it_was_begun_is_closed(kind: str) -> None:
    """The second of two requests: between it and its task, others have a turn."""
    owed: list[Coroutine[Any, Any, Response]] = []
    pieces = Pieces(Gated().parts())

    def works(asked: Asked) -> Answer:
        if asked.request.path == "/first":
            return reply(b"")
        nursery.cancel_scope.cancel()
        if kind == "parts":
            return Response(200, Headers([]), pieces, "id")
        owed.append(Gated().answer(asked))
        return owed[0]

    async with trio.open_nursery() as nursery:
        run = partial(serve, App(works), ServerOptions(), stop=trio.Event(), report=print)
        [address] = await nursery.start(run)
        stream = await trio.open_tcp_stream(*address)
        await stream.send_all(request("/first") + request("/second"))
        await trio.sleep_forever()
    await stream.aclose()
    if kind == "parts":
        assert pieces.closed.is_set()
    else:
        assert inspect.getcoroutinestate(owed[0]) == inspect.CORO_CLOSED


async def test_an_answer_that_comes_while_its_connection_is_cut_off_is_closed() -> None:
    waiting: list[Respond] = []

    def waits(asked: Asked) -> Answer:
        waiting.append(asked.respond)
        return PENDING

    async with trio.open_nursery() as nursery:
        run = partial(serve, App(waits), ServerOptions(), stop=trio.Event(), report=print)
        [address] = await nursery.start(run)
        stream = await trio.open_tcp_stream(*address)
        await stream.send_all(request())
        await trio.testing.wait_all_tasks_blocked(0.02)
        nursery.cancel_scope.cancel()
        answer = Gated().answer(None)  # type: ignore[arg-type]
        assert waiting[0](answer), "it does not know yet"
    await stream.aclose()
    assert inspect.getcoroutinestate(answer) == inspect.CORO_CLOSED


async def test_cancelling_the_server_closes_its_connections() -> None:
    entered = trio.Event()

    async def works(asked: Asked) -> Response:
        entered.set()
        return await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        run = partial(serve, App(works), ServerOptions(), stop=trio.Event(), report=print)
        [address] = await nursery.start(run)
        stream = await trio.open_tcp_stream(*address)
        await stream.send_all(request())
        await entered.wait()
        nursery.cancel_scope.cancel()
    assert await stream.receive_some(100) == b""
    await stream.aclose()
