"""Starting, draining and stopping: what was accepted is answered, and then the server ends."""

from __future__ import annotations

import socket
from functools import partial

import pytest
import trio

from qserver.errors import CannotListen
from qserver.web.http1 import ApplicationFailed, ServerOptions, serve
from qserver.web.http1.asgi import Receive, Scope, Send
from tests.web.http1.serving import Echo, part, read_body, reply, request, running, start


class Gated:
    """Begins each answer, and ends it when the gate is opened."""

    def __init__(self, streaming: bool = False) -> None:
        self.streaming = streaming
        self.entered = trio.Event()
        self.gate = trio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        if self.streaming:
            await send(start())
            await send(part(b"begun, "))
        self.entered.set()
        await self.gate.wait()
        if self.streaming:
            await send(part(b"done", False))
        else:
            await reply(send, b"done")


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


class Living:
    """Knows the lifespan protocol; notes what happens to it."""

    def __init__(self, fails_at: str = "", raises_at: str = "") -> None:
        self.fails_at = fails_at
        self.raises_at = raises_at
        self.events: list[str] = []
        self.hang = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.events.append(f"request, knows {scope['state']['known']}")
            scope["state"]["known"] = "changed"
            await reply(send, b"")
            return
        scope["state"]["known"] = "all"
        for phase in ("startup", "shutdown"):
            assert (await receive())["type"] == f"lifespan.{phase}"
            self.events.append(phase)
            if self.hang:
                await trio.sleep_forever()
            if self.raises_at == phase:
                raise ValueError("no disk")
            if self.fails_at == phase:
                await send({"type": f"lifespan.{phase}.failed", "message": "no disk"})
                return
            await send({"type": f"lifespan.{phase}.complete"})


async def test_the_application_starts_before_its_requests_and_shuts_down_after_them() -> None:
    living = Living()
    async with running(living, lifespan=True) as server, await server.client() as client:
        for _ in range(2):
            assert (await client.ask(request())).status == 200
    assert living.events == [
        "startup",
        "request, knows all",
        "request, knows all",
        "shutdown",
    ]


@pytest.mark.parametrize("living", [Living(fails_at="startup"), Living(raises_at="startup")])
async def test_an_application_that_cannot_start_is_a_clear_error(living: Living) -> None:
    with pytest.raises(ApplicationFailed, match=r"could not start: .*no disk"):
        await serve(living, ServerOptions(), stop=trio.Event(), report=print)


@pytest.mark.parametrize("living", [Living(fails_at="shutdown"), Living(raises_at="shutdown")])
async def test_an_application_that_cannot_shut_down_is_a_clear_error(living: Living) -> None:
    stop = trio.Event()
    stop.set()
    with pytest.raises(ApplicationFailed, match=r"could not shut down cleanly: .*no disk"):
        await serve(living, ServerOptions(), stop=stop, report=print)


async def test_what_an_application_does_after_its_last_word_is_waited_for() -> None:
    tidied: list[bool] = []

    async def tidy(scope: Scope, receive: Receive, send: Send) -> None:
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})
        await trio.testing.wait_all_tasks_blocked()
        tidied.append(True)

    stop = trio.Event()
    stop.set()
    await serve(tidy, ServerOptions(), stop=stop, report=print)
    assert tidied == [True]


async def test_an_application_that_never_returns_from_its_lifespan_is_not_waited_for() -> None:
    async def loops(scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})

    stop = trio.Event()
    stop.set()
    reports: list[str] = []
    await serve(loops, ServerOptions(shutdown_seconds=60), stop=stop, report=reports.append)
    assert reports == []


async def test_an_application_that_hangs_in_its_shutdown_is_left() -> None:
    living = Living()
    async with running(living, lifespan=True, shutdown_seconds=0.02) as server:
        living.hang = True
    assert server.reports == ["the application did not shut down in 0.02 s"]


async def test_the_server_does_not_outlive_its_application() -> None:
    dies = trio.Event()

    async def mortal(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await dies.wait()
        raise ValueError("log lost")

    started = partial(serve, mortal, ServerOptions(), stop=trio.Event(), report=print)
    with pytest.RaisesGroup(pytest.RaisesExc(ApplicationFailed, match="while it was running")):
        async with trio.open_nursery() as nursery:
            await nursery.start(started)
            dies.set()


async def test_an_application_that_does_not_know_lifespan_is_served_without_state() -> None:
    echo = Echo()
    async with running(echo, lifespan=True) as server, await server.client() as client:
        assert (await client.ask(request())).status == 200
        assert "state" not in echo.scopes[0]


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

        async def slow_start(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            other.listen()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})

        options = ServerOptions(port=other.getsockname()[1])
        with pytest.raises(CannotListen, match="already in use"):
            await serve(slow_start, options, stop=trio.Event(), report=print)


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


async def test_cancelling_the_server_closes_its_connections() -> None:
    entered = trio.Event()

    async def works(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        entered.set()
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        run = partial(serve, works, ServerOptions(), stop=trio.Event(), report=print)
        [address] = await nursery.start(run)
        stream = await trio.open_tcp_stream(*address)
        await stream.send_all(request())
        await entered.wait()
        nursery.cancel_scope.cancel()
    assert await stream.receive_some(100) == b""
    await stream.aclose()
