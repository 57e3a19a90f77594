"""The same server over TLS. The certificate beside this file is good for localhost, and no more."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trio

from qserver.errors import CannotListen
from qserver.http1 import ServerOptions, serve
from tests.http1.serving import (
    PATIENCE_SECONDS,
    App,
    Client,
    Echo,
    Running,
    reply,
    request,
    running,
)
from tests.http1.test_failures_and_disconnects import Streams

SIZE, PIECE = 4_000_000, 100_000
HERE = Path(__file__).parent
TLS: dict[str, Any] = {"certificate": HERE / "localhost.pem", "key": HERE / "localhost.key.pem"}


async def tls_client(server: Running) -> Client:
    context = ssl.create_default_context(cafile=TLS["certificate"])
    context.set_alpn_protocols(["h2", "http/1.1"])
    stream = await trio.open_ssl_over_tcp_stream(
        *server.addresses[0], ssl_context=context, https_compatible=True
    )
    await stream.do_handshake()
    assert stream.selected_alpn_protocol() == "http/1.1"
    return Client(stream)


async def test_requests_and_answers_go_through_tls() -> None:
    echo = Echo()
    async with running(echo, **TLS) as server, await tls_client(server) as client:
        for body in (b"", b"hello", b"x" * 1_000_000):
            assert (await client.ask(request("/a", "POST", body))).body == b"POST /a " + body
        assert echo.asked[0].request.scheme == "https"
        answer = await client.ask(request("/", "GET", None, "Connection: close"))
        assert answer.status == 200
        assert await client.rest() == b""


async def test_pipelined_requests_go_through_tls() -> None:
    async with running(Echo(), **TLS) as server, await tls_client(server) as client:
        await client.send(request("/a") + request("/b"))
        assert (await client.answer()).body == b"GET /a "
        assert (await client.answer()).body == b"GET /b "


async def test_refusals_go_through_tls() -> None:
    async with running(Echo(), **TLS) as server, await tls_client(server) as client:
        assert (await client.ask(b"nonsense\r\n\r\n")).status == 400
        assert await client.rest() == b""


@pytest.mark.parametrize("early", ["refused", "answered"])
async def test_an_early_answer_over_tls_is_not_lost_to_a_reset(early: str) -> None:
    """The client goes on sending, and reads only then; a busy machine may take long over that."""
    data = request("/", "POST", None, f"Content-Length: {SIZE}")
    if early == "refused":
        data = b"nonsense\r\n\r\n"
    app, patient = App(lambda asked: reply(b"no", 403)), PATIENCE_SECONDS
    async with running(app, linger_seconds=patient, **TLS) as server:
        async with await tls_client(server) as client:
            await client.send(data)
            await trio.testing.wait_all_tasks_blocked(0.02)
            for _ in range(SIZE // PIECE):
                await client.send(b"x" * PIECE)
            answer = await client.answer()
            assert answer.status == (400 if early == "refused" else 403)
            assert answer.header("connection") == "close"
            assert await client.rest() == b""
    assert server.reports == []


async def test_one_connection_too_many_is_told_so_over_tls() -> None:
    async with running(Echo(), connections_max=1, **TLS) as server:
        async with await tls_client(server) as first, await tls_client(server) as second:
            assert (await first.ask(request())).status == 200
            assert (await second.answer()).status == 503
            assert await second.rest() == b""


@pytest.mark.parametrize("size", [1000, 1_000_000])
async def test_a_stream_over_tls_stops_when_its_reader_is_gone(size: int) -> None:
    streams = Streams(size)
    async with running(streams, **TLS) as server:
        async with await tls_client(server) as client:
            await client.send(request())
            await client.until(b"\r\n\r\n")
        await streams.pieces.closed.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []


async def test_a_client_that_never_shakes_hands_is_closed() -> None:
    async with running(Echo(), header_seconds=0.05, **TLS) as server:
        async with await server.client() as client:
            assert await client.rest() == b""


async def test_plain_http_on_a_tls_port_is_closed_and_harms_nobody() -> None:
    async with running(Echo(), **TLS) as server:
        async with await server.client() as client:
            await client.send(request())
            assert b"200" not in await client.rest()
        async with await tls_client(server) as client:
            assert (await client.ask(request())).status == 200
    assert server.reports == []


async def test_idle_and_slow_connections_end_over_tls_too() -> None:
    options: dict[str, Any] = {"header_seconds": 0.1, "idle_seconds": 0.1}
    async with running(Echo(), **options, **TLS) as server:
        async with await tls_client(server) as client:
            assert (await client.ask(request())).status == 200
            assert await client.rest() == b""
        async with await tls_client(server) as client:
            assert (await client.ask(b"GET / HT")).status == 408


async def test_a_server_with_tls_drains() -> None:
    async with running(Echo(), **TLS) as server:
        async with await tls_client(server) as idle, await tls_client(server) as asking:
            assert (await idle.ask(request())).status == 200
            await asking.send(b"GET /last HTTP/1.1\r\n")
            before = server.counters.statistics().bytes_in
            assert before
            await server.until(lambda: server.counters.statistics().bytes_in >= before)
            await trio.testing.wait_all_tasks_blocked(0.01)
            server.stop.set()
            assert await idle.rest() == b""
            answer = await asking.ask(b"Host: a\r\n\r\n")
            assert (answer.body, answer.header("connection")) == (b"GET /last ", "close")


@pytest.mark.parametrize("certificate", [HERE / "absent.pem", Path(__file__)])
async def test_a_certificate_that_cannot_be_used_is_a_clear_error(certificate: Path) -> None:
    options = ServerOptions(certificate=certificate)
    with pytest.raises(CannotListen, match="certificate"):
        await serve(Echo(), options, stop=trio.Event(), report=print)
