"""Applications that fail, and clients that go away."""

from __future__ import annotations

import json

import pytest
import trio

from qserver import limits
from qserver.web.http1 import ClientGone, InvalidAnswer
from qserver.web.http1.asgi import Message, Receive, Scope, Send
from tests.web.http1.serving import Client, part, read_body, reply, request, running, start

# --- applications that fail ----------------------------------------------------------------------


class Sends:
    """Sends messages, then raises if it is told to."""

    def __init__(self, *messages: Message, error: Exception | None = None) -> None:
        self.messages = messages
        self.error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for message in self.messages:
            await send(message)
        if self.error is not None:
            raise self.error


WRONG_FROM_THE_START: dict[str, Sends] = {
    "raises": Sends(error=ValueError("secret detail")),
    "raises after the start": Sends(start(), error=ValueError("secret detail")),
    "raises a group": Sends(error=ExceptionGroup("several", [ValueError("secret detail")])),
    "returns": Sends(),
    "returns after the start": Sends(start()),
    "sends a body first": Sends(part(b"")),
    "starts twice": Sends(start(), start()),
    "sends something else": Sends({"type": "http.response.debug"}),
    "line break in a value": Sends(start(200, (b"a", b"b\r\nset-cookie: c")), part(b"", False)),
    "line break at the end": Sends(start(200, (b"a", b"b\r\n")), part(b"", False)),
    "LF in a value": Sends(start(200, (b"a", b"b\nc")), part(b"", False)),
    "CR in a value": Sends(start(200, (b"a", b"b\rc")), part(b"", False)),
    "NUL in a value": Sends(start(200, (b"a", b"b\0c")), part(b"", False)),
    "line break in a name": Sends(start(200, (b"a: b\r\nc", b"d")), part(b"", False)),
    "no name": Sends(start(200, (b"", b"d")), part(b"", False)),
    "header of text": Sends(start(200, ("a", "b")), part(b"", False)),  # type: ignore[arg-type]
    "two lengths": Sends(start(200, *[(b"content-length", b"0")] * 2), part(b"", False)),
    "length that is a word": Sends(start(200, (b"content-length", b"x")), part(b"", False)),
    "body longer than its length": Sends(start(200, (b"content-length", b"1")), part(b"ab", False)),
    "body shorter than its length": Sends(
        start(200, (b"content-length", b"3")), part(b"ab", False)
    ),
    "status of an interim answer": Sends(start(100), part(b"", False)),
    "status that is none": Sends(start(20), part(b"", False)),
}


@pytest.mark.parametrize("name", WRONG_FROM_THE_START)
async def test_a_failure_before_the_answer_is_a_500_that_tells_nothing(name: str) -> None:
    async with running(WRONG_FROM_THE_START[name]) as server, await server.client() as client:
        answer = await client.ask(request("/where?secret"))
        assert answer.status == 500
        told = json.loads(answer.body)
        request_id = answer.header("x-request-id")
        assert told["error"]["code"] == "XX000"
        assert told["error"]["request_id"] == request_id
        assert b"secret" not in answer.body
        assert await client.rest() == b""
    assert len(server.reports) == 1
    assert f"request {request_id} (GET /where) failed" in server.reports[0]


WRONG_LATER: dict[str, Sends] = {
    "raises": Sends(start(), part(b"one"), error=ValueError()),
    "returns": Sends(start(), part(b"one")),
    "sends too much": Sends(start(200, (b"content-length", b"5")), part(b"one"), part(b"two")),
    "sends too little": Sends(
        start(200, (b"content-length", b"9")), part(b"one"), part(b"two", False)
    ),
}


@pytest.mark.parametrize("name", WRONG_LATER)
async def test_a_failure_in_the_middle_of_the_answer_cuts_the_connection(name: str) -> None:
    async with running(WRONG_LATER[name]) as server, await server.client() as client:
        await client.send(request())
        received = await client.rest()
        assert b"HTTP/1.1 200" in received
        assert not received.endswith(b"0\r\n\r\n")
        assert received.count(b"HTTP/1.1") == 1
    assert len(server.reports) == 1


async def test_http_1_0_can_tell_a_cut_from_an_end() -> None:
    fails = Sends(start(), part(b"one"), error=ValueError())
    async with running(fails) as server, await server.client() as client:
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await client.rest()).endswith(b"<reset>")


async def test_a_failure_after_the_answer_is_only_reported() -> None:
    fails = Sends(start(), part(b"all", False), error=ValueError())
    async with running(fails) as server, await server.client() as client:
        for _ in range(2):
            assert (await client.ask(request())).body == b"all"
    assert len(server.reports) == 2


# --- clients that go away ------------------------------------------------------------------------


async def test_a_waiting_receive_hears_that_the_client_is_gone() -> None:
    heard = trio.Event()
    waiting = trio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        waiting.set()
        assert (await receive())["type"] == "http.disconnect"
        assert (await receive())["type"] == "http.disconnect"
        heard.set()

    async with running(waits) as server:
        async with await server.client() as client:
            await client.send(request("/", "POST", b"body"))
            await waiting.wait()
        await heard.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []
    assert " 499 0 " in server.log[0]


async def test_work_stops_when_the_client_is_gone() -> None:
    stopped = trio.Event()
    working = trio.Event()

    async def works(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
            working.set()
            while not nursery.cancel_scope.cancel_called:
                await trio.lowlevel.checkpoint()
        stopped.set()

    async with running(works) as server:
        async with await server.client() as client:
            await client.send(request())
            await working.wait()
        await stopped.wait()
    assert server.reports == []


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _stream_for_ever(send: Send, ended: trio.Event, size: int) -> None:
    await send(start())
    try:
        while True:
            await send(part(b"x" * size))
    except ClientGone:
        ended.set()
        raise


@pytest.mark.parametrize("size", [10, 1_000_000])
@pytest.mark.parametrize("listens", [False, True])
async def test_a_stream_stops_when_its_reader_is_gone(size: int, listens: bool) -> None:
    """With small parts the server looks; with large ones it is in the middle of a wait."""
    ended = trio.Event()

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            if listens:
                await read_body(receive)
                nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
            try:
                await _stream_for_ever(send, ended, size)
            finally:
                ended.set()

    async with running(streams) as server:
        async with await server.client() as client:
            await client.send(request())
            await client.until(b"\r\n\r\n")
        await ended.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []


async def test_a_slow_reader_slows_the_application_down() -> None:
    sent = 0

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await send(start())
        for _ in range(200):
            await send(part(b"x" * 100_000))
            sent += 1
        await send(part(b"", False))

    async with running(streams) as server, await server.client() as client:
        await client.send(request())
        before = -1
        while sent != before:  # until nothing moves any more
            before = sent
            await trio.testing.wait_all_tasks_blocked(0.02)
        assert 0 < sent < 200
        received = 0
        while sent < 200:
            assert await client.more()
            received += len(client.buffer)
            client.buffer = b""
        assert received > 10_000_000


async def test_receive_returns_when_the_answer_is_complete() -> None:
    heard: list[str] = []

    async def listens(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_note, receive, heard)
            await trio.testing.wait_all_tasks_blocked()
            await reply(send, b"answer")

    async with running(listens) as server, await server.client() as client:
        for _ in range(2):
            assert (await client.ask(request())).body == b"answer"
    assert heard == ["http.request", "http.disconnect"] * 2


async def _note(receive: Receive, heard: list[str]) -> None:
    for _ in range(2):
        heard.append((await receive())["type"])


async def test_a_receive_that_outlives_its_request_does_not_read_the_next_one() -> None:
    heard: list[str] = []
    async with trio.open_nursery() as nursery:

        async def leaves_it(scope: Scope, receive: Receive, send: Send) -> None:
            await read_body(receive)
            nursery.start_soon(_note, receive, heard)
            await trio.testing.wait_all_tasks_blocked()
            await reply(send, scope["path"].encode())

        async with running(leaves_it) as server, await server.client() as client:
            for target in ("/a", "/b", "/c"):
                assert (await client.ask(request(target))).body == target.encode()
    assert heard == ["http.disconnect"] * 6


async def test_what_arrives_while_the_application_listens_is_the_next_request() -> None:
    async def listens(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
            await go.wait()
            await reply(send, scope["path"].encode())

    go = trio.Event()
    async with running(listens) as server, await server.client() as client:
        await client.send(request("/a"))
        await client.send(request("/b") * 2000)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
        assert (await client.answer()).body == b"/a"
        for _ in range(2000):
            assert (await client.answer()).body == b"/b"


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_reported_to_the_application() -> (
    None
):
    heard: list[Message] = []
    both = trio.Event()

    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend([await receive(), await receive()])
        both.set()
        await send(start())
        with pytest.raises(OSError, match="gone"):
            await send(part(b"to nobody"))

    async with running(reads) as server:
        async with await server.client() as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        await both.wait()
    assert heard[0] == {"type": "http.request", "body": b"abc", "more_body": True}
    assert heard[1] == {"type": "http.disconnect"}
    assert server.reports == []


async def test_a_client_that_only_ends_its_output_gets_its_answer() -> None:
    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, await read_body(receive))

    async with running(answers) as server:
        stream = await trio.open_tcp_stream(*server.addresses[0])
        client = Client(stream)
        await client.send(request("/", "POST", b"last words"))
        await stream.send_eof()
        assert (await client.answer()).body == b"last words"
        assert await client.rest() == b""
        await stream.aclose()


async def test_a_send_that_is_cancelled_halfway_ends_the_answer() -> None:
    async def gives_up(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start())
        with trio.move_on_after(0.02):
            while True:
                await send(part(b"x" * 1_000_000))
        with pytest.raises(ClientGone):
            await send(part(b"", False))

    async with running(gives_up) as server, await server.client() as client:
        await client.send(request())
        await server.until(lambda: server.counters.statistics().connections_open == 0)
        received = await client.rest()
        assert not received.endswith(b"0\r\n\r\n")
    assert server.reports == []


async def test_the_first_part_after_the_reader_left_ends_a_stream() -> None:
    sent = trio.Event()
    left = trio.Event()
    ended = trio.Event()

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start())
        await send(part(b"first"))
        sent.set()
        await left.wait()
        with pytest.raises(ClientGone):
            await send(part(b"second"))
        ended.set()

    async with running(streams) as server:
        async with await server.client() as client:
            await client.send(request())
            await client.until(b"first\r\n")  # unread input would make the end a reset
            await sent.wait()
        left.set()
        await ended.wait()
    assert server.reports == []


async def test_what_arrives_while_the_application_listens_is_kept_only_up_to_a_bound() -> None:
    go = trio.Event()

    async def listens(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
            await go.wait()
            nursery.cancel_scope.cancel()
        await reply(send, b"")

    async with running(listens) as server, await server.client() as client:
        with trio.move_on_after(0.2):
            await client.send(request() + b"x" * 30_000_000)
        assert server.counters.statistics().bytes_in <= 3 * limits.RECEIVE_BYTES
        go.set()


async def test_a_receive_that_is_cancelled_loses_nothing_of_the_body() -> None:
    async def impatient(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            with trio.move_on_after(0.0005):
                message = await receive()
                body += message["body"]
                more = message["more_body"]
        await reply(send, body)

    content = bytes(range(256)) * 2000
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(content)
    async with running(impatient) as server, await server.client() as client:
        await client.send(head)
        for at in range(0, len(content), 10_000):
            await client.send(content[at : at + 10_000])
            await trio.lowlevel.checkpoint()
        assert (await client.answer()).body == content


async def test_two_tasks_cannot_send_at_once() -> None:
    refused = trio.Event()

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, part(b"x" * 20_000_000))
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(InvalidAnswer, match="at once"):
                await send(part(b"y"))
            refused.set()
            nursery.cancel_scope.cancel()

    async with running(streams) as server, await server.client() as client:
        await client.send(request())
        await refused.wait()
