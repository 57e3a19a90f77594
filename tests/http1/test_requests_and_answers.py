"""Ordinary requests and their answers, byte by byte: connections kept, bodies framed."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator

import pytest
import trio

from qserver.http1 import Response
from qserver.http1.connection import Connection
from tests.http1.serving import (
    App,
    Asked,
    Client,
    Echo,
    in_parts,
    reply,
    request,
    running,
)

# --- requests ------------------------------------------------------------------------------------


async def test_a_connection_serves_one_request_after_another() -> None:
    echo = Echo()
    async with running(echo) as server, await server.client() as client:
        for number in range(5):
            answer = await client.ask(request(f"/{number}", "POST", b"x" * number))
            assert answer.status == 200
            assert answer.body == f"POST /{number} ".encode() + b"x" * number
            assert answer.header("connection") is None
        assert server.counters.statistics().connections_accepted == 1


async def test_the_application_is_told_what_the_request_says() -> None:
    echo = Echo()
    async with running(echo) as server, await server.client() as client:
        await client.ask(request("/a%20b/%C3%A4?q=%20&r", "GET", None, "X-Thing:  two words \t"))
        asked = echo.asked[0]
        assert asked.request.method == "GET"
        assert asked.request.scheme == "http"
        assert asked.request.path == "/a b/ä"
        assert asked.request.query == b"q=%20&r"
        assert asked.request.headers == ((b"host", b"example.org"), (b"x-thing", b"two words"))
        assert asked.client is not None and asked.client[0] == "127.0.0.1"


async def test_an_absolute_target_names_path_and_host() -> None:
    echo = Echo()
    async with running(echo) as server, await server.client() as client:
        await client.ask(b"GET http://data.example:81/a?b HTTP/1.1\r\nHost: other\r\n\r\n")
        await client.ask(b"GET http://data.example?b HTTP/1.1\r\nHost: other\r\n\r\n")
        assert [asked.request.path for asked in echo.asked] == ["/a", "/"]
        assert [asked.request.query for asked in echo.asked] == [b"b", b"b"]
        assert echo.asked[0].request.headers == ((b"host", b"data.example:81"),)


async def test_options_may_ask_about_the_whole_server() -> None:
    echo = Echo()
    async with running(echo) as server, await server.client() as client:
        answer = await client.ask(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.body == b"OPTIONS * "


@pytest.mark.parametrize("host", ["a", "a.b-c_d", "127.0.0.1:80", "[::1]:8000", "[::1]"])
async def test_hosts_of_all_kinds_are_taken(host: str) -> None:
    async with running(Echo()) as server, await server.client() as client:
        answer = await client.ask(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert answer.status == 200


async def test_a_request_may_come_in_any_pieces() -> None:
    echo = Echo()
    data = request("/a", "POST", b"hello", "X-Thing: a") + request("/b")
    async with running(echo) as server, await server.client() as client:
        for byte in data:
            await client.send(bytes([byte]))
        assert (await client.answer()).body == b"POST /a hello"
        assert (await client.answer()).body == b"GET /b "


async def test_one_empty_line_before_a_request_is_forgiven() -> None:
    async with running(Echo()) as server, await server.client() as client:
        for _ in range(2):
            assert (await client.ask(b"\r\n" + request())).status == 200


CHUNKED = b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"


async def test_a_chunked_body_is_put_together_and_its_trailers_are_dropped() -> None:
    echo = Echo()
    chunks = b"5\r\nhello\r\n1;a=b\r\n \r\n00A ; note\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n"
    async with running(echo) as server, await server.client() as client:
        assert (await client.ask(CHUNKED + chunks + request())).body == b"POST /c hello 0123456789"
        assert (await client.answer()).body == b"GET / "
        await client.send(CHUNKED)
        for byte in chunks:
            await client.send(bytes([byte]))
        assert (await client.answer()).body == b"POST /c hello 0123456789"
        assert (await client.ask(request())).status == 200


async def test_a_large_body_reaches_the_application_whole() -> None:
    echo = Echo()
    content = bytes(range(256)) * 12_000
    async with running(echo) as server, await server.client() as client:
        answer = await client.ask(request("/", "POST", content))
        assert answer.body == b"POST / " + content
        assert not isinstance(echo.asked[0].body, bytes), "it had not arrived with its head"
        assert server.counters.statistics().bytes_in > len(content)


async def test_pipelined_requests_are_answered_in_order() -> None:
    echo = Echo()
    async with running(echo) as server, await server.client() as client:
        targets = [f"/{number}" for number in range(300)]
        await client.send(b"".join(request(target, "POST", b"body") for target in targets))
        for target in targets:
            assert (await client.answer()).body == f"POST {target} body".encode()


async def test_pipelined_requests_give_way_to_others() -> None:
    """The second client asks when the first's requests are all there, and need not wait for all."""
    served: list[str] = []
    second_asks = trio.Event()

    def notes(asked: Asked) -> Response:
        served.append(asked.request.path)
        second_asks.set()
        return reply(b"")

    async with (
        running(App(notes)) as server,
        await server.client() as first,
        await server.client() as second,
    ):
        await second.ask(request("/before"))
        many = 500
        await first.send(request("/first") * many)
        await second_asks.wait()
        await second.ask(request("/second"))
        assert served.index("/second") < many
        for _ in range(many):
            await first.answer()


async def test_garbage_after_a_body_is_refused_as_the_next_request() -> None:
    echo = Echo()
    async with running(echo) as server, await server.client() as client:
        assert (await client.ask(request("/", "POST", b"hello") + b"garbage\r\n\r\n")).status == 200
        assert (await client.answer()).status == 400
        assert await client.rest() == b""
        assert len(echo.asked) == 1


async def test_an_offer_to_upgrade_is_not_taken() -> None:
    echo = Echo()
    upgrade = request("/ws", "GET", None, "Connection: Upgrade", "Upgrade: websocket")
    async with running(echo) as server, await server.client() as client:
        for _ in range(2):
            assert (await client.ask(upgrade)).body == b"GET /ws "
        body = request("/", "POST", b"hi", "Connection: upgrade, http2-settings", "Upgrade: h2c")
        assert (await client.ask(body)).body == b"POST / hi"


# --- Expect: 100-continue ------------------------------------------------------------------------

EXPECTING = b"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n"


async def test_the_client_is_told_to_continue_when_the_application_wants_the_body() -> None:
    async with running(Echo()) as server, await server.client() as client:
        assert (await client.ask(EXPECTING)).status == 100
        assert (await client.ask(b"hello")).body == b"POST /e hello"
        assert (await client.ask(request())).status == 200


async def test_who_sends_the_body_at_once_is_not_told_to_continue() -> None:
    async with running(Echo()) as server, await server.client() as client:
        assert (await client.ask(EXPECTING + b"hello")).body == b"POST /e hello"
        await client.send(EXPECTING + b"he")
        await client.send(b"llo")
        assert (await client.answer()).body == b"POST /e hello"


async def test_an_answer_without_a_look_at_the_expected_body_ends_the_connection() -> None:
    async with (
        running(App(lambda asked: reply(b"no", 403))) as server,
        await server.client() as client,
    ):
        answer = await client.ask(EXPECTING)
        assert (answer.status, answer.header("connection")) == (403, "close")
        assert await client.rest() == b""


async def test_a_body_that_was_not_read_is_dropped_and_the_connection_goes_on() -> None:
    ignores = App(lambda asked: reply(asked.request.path.encode()))
    head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
    async with running(ignores) as server, await server.client() as client:
        assert (await client.ask(head + b"he")).body == b"/a"
        await client.send(b"llo" + request("/b"))
        assert (await client.answer()).body == b"/b"


async def test_a_large_body_that_was_not_read_ends_the_connection_after_the_answer() -> None:
    async with (
        running(App(lambda asked: reply(b"enough"))) as server,
        await server.client() as client,
    ):
        await client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_in_vain, client, b"x" * 5_000_000)
            answer = await client.answer()
            assert (answer.body, answer.header("connection")) == (b"enough", "close")
            nursery.cancel_scope.cancel()


async def _send_in_vain(client: Client, data: bytes) -> None:
    try:
        await client.send(data)
    except trio.BrokenResourceError:
        pass  # the server has stopped listening, as it may


# --- answers -------------------------------------------------------------------------------------


async def test_an_answer_in_one_part_has_a_length_and_a_date() -> None:
    async with running(Echo()) as server, await server.client() as client:
        answer = await client.ask(request())
        assert answer.header("content-length") == str(len(answer.body))
        assert answer.header("transfer-encoding") is None
        assert answer.header("server") is None
        date = answer.header("date")
        assert date is not None
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", date)


async def pieces() -> AsyncGenerator[bytes, None]:
    for piece in (b"one", b"", b"two", b"x" * 100_000):
        yield piece


streams = App(lambda asked: in_parts(pieces()))
STREAMED = b"onetwo" + b"x" * 100_000


async def test_an_answer_in_parts_is_chunked_and_keeps_the_connection() -> None:
    async with running(streams) as server, await server.client() as client:
        for _ in range(2):
            answer = await client.ask(request())
            assert answer.header("transfer-encoding") == "chunked"
            assert answer.body == STREAMED


@pytest.mark.parametrize("protocol", ["1.1", "1.0"])
async def test_the_server_holds_one_part_once(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It copies no long part, and lets go of one before it asks for the next."""
    others: list[int] = []
    sizes: list[int] = []
    write = Connection.write

    async def noted(connection: Connection, data: bytes) -> None:
        sizes.append(len(data))
        await write(connection, data)

    async def parts() -> AsyncGenerator[bytes, None]:
        for _ in range(3):
            part = bytes(200_000)
            alone = sys.getrefcount(part)
            yield part
            others.append(sys.getrefcount(part) - alone)

    monkeypatch.setattr(Connection, "write", noted)
    app = App(lambda asked: in_parts(parts()))
    async with running(app) as server, await server.client() as client:
        answer = await client.ask(b"GET / HTTP/%b\r\nHost: x\r\n\r\n" % protocol.encode())
    assert len(answer.body) == 600_000 and others == [0, 0, 0]
    assert [size for size in sizes if size >= 200_000] == [200_000] * 3


async def test_an_answer_in_parts_to_http_1_0_ends_with_the_connection() -> None:
    async with running(streams) as server, await server.client() as client:
        answer = await client.ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert answer.header("transfer-encoding") is None
        assert answer.header("connection") == "close"
        assert answer.body == STREAMED


async def test_an_answer_without_any_part_is_empty() -> None:
    async def nothing() -> AsyncGenerator[bytes, None]:
        for piece in b"":
            yield bytes([piece])

    async with running(App(lambda asked: in_parts(nothing()))) as server:
        async with await server.client() as client:
            for _ in range(2):
                answer = await client.ask(request())
                assert (answer.body, answer.header("transfer-encoding")) == (b"", "chunked")


async def test_head_gets_the_headers_of_get_and_no_body() -> None:
    async with running(Echo()) as server, await server.client() as client:
        answer = await client.ask(request("/a", "HEAD"), "HEAD")
        assert answer.header("content-length") == str(len(b"HEAD /a "))
        assert (await client.ask(request("/b"))).body == b"GET /b "
    async with running(streams) as server, await server.client() as client:
        assert (await client.ask(request("/a", "HEAD"), "HEAD")).status == 200
        assert (await client.ask(request())).body == STREAMED


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_that_have_no_body_get_none(status: int) -> None:
    def bodiless(asked: Asked) -> Response:
        return reply(b"surplus" if asked.request.path == "/surplus" else b"", status)

    async with running(App(bodiless)) as server, await server.client() as client:
        for target in ("/", "/surplus"):
            answer = await client.ask(request(target))
            assert answer.status == status
            assert status == 304 or answer.header("content-length") is None
            assert answer.header("transfer-encoding") is None
        assert client.buffer == b""


async def test_a_client_that_wants_to_close_is_closed() -> None:
    async with running(Echo()) as server, await server.client() as client:
        answer = await client.ask(request("/", "GET", None, "Connection: foo, Close"))
        assert answer.header("connection") == "close"
        assert await client.rest() == b""


async def test_http_1_0_is_closed_unless_it_asks_not_to_be() -> None:
    async with running(Echo()) as server:
        async with await server.client() as client:
            answer = await client.ask(b"GET / HTTP/1.0\r\n\r\n")
            assert (answer.status, answer.header("connection")) == (200, "close")
            assert await client.rest() == b""
        async with await server.client() as client:
            for _ in range(2):
                answer = await client.ask(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
                assert answer.header("connection") == "keep-alive"


async def test_a_large_answer_arrives_whole() -> None:
    body = bytes(range(256)) * 40_000

    async with running(App(lambda asked: reply(body))) as server, await server.client() as client:
        assert (await client.ask(request())).body == body
        assert server.counters.statistics().bytes_out > len(body)


# --- accounts ------------------------------------------------------------------------------------


async def test_the_access_log_has_a_line_for_each_request_without_the_query_string() -> None:
    async with (
        running(App(lambda asked: reply(b"12345", 201, request_id="tag-1"))) as server,
        await server.client() as client,
    ):
        await client.ask(request("/a%0Ab?key=secret", "POST", b""))
        answer = await client.ask(b"nonsense\r\n\r\n")
    assert len(server.log) == 2
    assert re.fullmatch(r"127\.0\.0\.1 POST /a%0Ab 201 5 \d+\.\d{3} tag-1", server.log[0])
    request_id = answer.header("x-request-id")
    assert re.fullmatch(
        rf"127\.0\.0\.1 - - 400 {len(answer.body)} \d+\.\d{{3}} {request_id}", server.log[1]
    )


async def test_the_server_counts_what_it_does() -> None:
    async with running(Echo()) as server:
        async with await server.client() as client:
            data = request()
            await client.ask(data)
            counted = server.counters.statistics()
            assert counted.connections_open == counted.connections_accepted == 1
            assert counted.requests == 1
            assert counted.bytes_in == len(data)
            assert counted.bytes_out > 0
            assert counted.requests_refused == counted.connections_refused == 0
        await server.until(lambda: server.counters.statistics().connections_open == 0)
