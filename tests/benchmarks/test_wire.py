"""The lean connection: keep-alive, answers in any pieces, and errors with a name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from qserver.benchmarks.wire import Address, Connection
from qserver.client import ConnectionFailed, ConnectionLost

REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"

Serve = Callable[[trio.SocketStream], Awaitable[None]]


async def listening(nursery: trio.Nursery, serve: Serve) -> Connection:
    """A connection to a server that treats each of its connections like this."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, serve, [listener])
    port = listener.socket.getsockname()[1]
    return Connection(Address.of(f"http://127.0.0.1:{port}"))


def test_an_address_is_read_from_a_url() -> None:
    assert Address.of("http://127.0.0.1:8000") == Address(
        "127.0.0.1", 8000, False, "", "127.0.0.1:8000"
    )
    assert Address.of("https://example.com/db/") == Address(
        "example.com", 443, True, "/db", "example.com"
    )


async def test_answers_come_one_after_the_other_on_one_connection() -> None:
    connections = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal connections
        connections += 1
        for number in range(3):
            await stream.receive_some(4096)
            body = b"x" * (5000 * number) + b"end"
            answer = b"HTTP/1.1 20%d OK\r\nContent-Length: %d\r\n\r\n" % (number, len(body)) + body
            for start in range(0, len(answer), 777):
                await stream.send_all(answer[start : start + 777])

    async with trio.open_nursery() as nursery:
        connection = await listening(nursery, serve)
        for number in range(3):
            await connection.ask(REQUEST)
            assert connection.status == 200 + number
            assert connection.head.startswith(b"x" if number else b"end")
            assert connection.tail.endswith(b"end")
        connection.close()
        nursery.cancel_scope.cancel()
    assert connections == 1


async def test_chunks_end_an_answer_and_a_close_opens_anew() -> None:
    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some(4096)
            await stream.send_all(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            )

    async with trio.open_nursery() as nursery:
        connection = await listening(nursery, serve)
        for _ in range(2):
            await connection.ask(REQUEST)
            assert (connection.head, connection.tail) == (b"abcde", b"abcde")
        connection.close()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"hello\r\n\r\n"])
async def test_a_server_that_breaks_off_or_babbles_is_connection_lost(answer: bytes) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some(4096)
            await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        connection = await listening(nursery, serve)
        with pytest.raises(ConnectionLost):
            await connection.ask(REQUEST)
        nursery.cancel_scope.cancel()


async def test_no_server_is_connection_failed() -> None:
    with pytest.raises(ConnectionFailed, match="cannot reach"):
        await Connection(Address.of("http://127.0.0.1:1")).ask(REQUEST)


async def test_a_request_that_is_cancelled_leaves_no_answer_for_the_next() -> None:
    asked = trio.Event()
    count = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal count
        async with stream:
            await stream.receive_some(4096)
            count += 1
            if count == 1:
                asked.set()
                await trio.sleep_forever()
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")

    async with trio.open_nursery() as nursery:
        connection = await listening(nursery, serve)
        async with trio.open_nursery() as asking:
            asking.start_soon(connection.ask, REQUEST)
            await asked.wait()
            asking.cancel_scope.cancel()
        await connection.ask(REQUEST)
        assert connection.head == b"second"
        connection.close()
        nursery.cancel_scope.cancel()
