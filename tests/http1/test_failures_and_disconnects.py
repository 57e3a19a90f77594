"""Applications that fail, and clients that go away."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable

import pytest
import trio

from qserver import limits
from qserver.http1 import Answer, ClientGone, Headers, Response
from qserver.http1.transport import PlainTransport
from tests.http1.serving import App, Asked, Client, Pieces, in_parts, reply, request, running

# --- applications that fail ----------------------------------------------------------------------


async def raises(asked: Asked) -> Response:
    raise ValueError("secret detail")


async def raises_group(asked: Asked) -> Response:
    raise ExceptionGroup("several", [ValueError("secret detail")])


def raises_at_once(asked: Asked) -> Response:
    raise ValueError("secret detail")


async def raises_before_the_first_part(asked: Asked) -> Response:
    return in_parts(fails())


async def fails(*before: bytes) -> AsyncGenerator[bytes, None]:
    for piece in before:
        yield piece
    raise ValueError("secret detail")


def with_header(name: bytes, value: bytes) -> Callable[[Asked], Answer]:
    return lambda asked: reply(b"", headers=[(name, value)])


WRONG_FROM_THE_START: dict[str, Callable[[Asked], Answer]] = {
    "raises": raises,
    "raises at once": raises_at_once,
    "raises a group": raises_group,
    "raises before the first part": raises_before_the_first_part,
    "gives nothing": lambda asked: None,  # type: ignore[dict-item,return-value]
    "line break in a value": with_header(b"a", b"b\r\nset-cookie: c"),
    "line break at the end": with_header(b"a", b"b\r\n"),
    "LF in a value": with_header(b"a", b"b\nc"),
    "CR in a value": with_header(b"a", b"b\rc"),
    "NUL in a value": with_header(b"a", b"b\0c"),
    "line break in a name": with_header(b"a: b\r\nc", b"d"),
    "no name": with_header(b"", b"d"),
    "header of text": with_header("a", "b"),  # type: ignore[arg-type]
    "a length of its own": with_header(b"Content-Length", b"1"),
    "framing of its own": with_header(b"transfer-encoding", b"chunked"),
    "line break in the request id": lambda asked: reply(b"", request_id="a\r\nb: c"),
    "status of an interim answer": lambda asked: reply(b"", 100),
    "status that is none": lambda asked: reply(b"", 20),
}


@pytest.mark.parametrize("name", WRONG_FROM_THE_START)
async def test_a_failure_before_the_answer_is_a_500_that_tells_nothing(name: str) -> None:
    application = App(WRONG_FROM_THE_START[name])
    async with running(application) as server, await server.client() as client:
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


async def test_an_application_that_finds_no_endpoint_is_a_500_too() -> None:
    class Lost(App):
        def endpoint(self, request: object) -> None:  # type: ignore[override]
            raise ValueError("secret detail")

    lost = Lost(raises)
    async with running(lost) as server, await server.client() as client:  # type: ignore[arg-type]
        assert (await client.ask(request())).status == 500
        assert await client.rest() == b""
    assert len(server.reports) == 1 and "secret detail" in server.reports[0]


async def test_a_failure_in_the_middle_of_the_answer_cuts_the_connection() -> None:
    pieces = Pieces(fails(b"one"))
    fails_later = App(lambda asked: Response(200, Headers([]), pieces, "id"))
    async with running(fails_later) as server, await server.client() as client:
        await client.send(request())
        received = await client.rest()
        assert b"HTTP/1.1 200" in received
        assert b"one" in received and not received.endswith(b"0\r\n\r\n")
        assert received.count(b"HTTP/1.1") == 1
        assert pieces.closed.is_set()
    assert len(server.reports) == 1


async def test_http_1_0_can_tell_a_cut_from_an_end() -> None:
    application = App(lambda asked: in_parts(fails(b"one")))
    async with running(application) as server, await server.client() as client:
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await client.rest()).endswith(b"<reset>")


# --- clients that go away ------------------------------------------------------------------------


class Streams(App):
    """Sends parts of one size for ever."""

    def __init__(self, size: int) -> None:
        super().__init__(lambda asked: Response(200, Headers([]), self.pieces, "id"))
        self.size = size
        self.asked = 0
        self.pieces = Pieces(self.parts())

    async def parts(self) -> AsyncGenerator[bytes, None]:
        while True:
            self.asked += 1
            yield b"x" * self.size


@pytest.mark.parametrize("size", [10, 1_000_000])
async def test_a_stream_stops_when_its_reader_is_gone(size: int) -> None:
    """With large parts the server is in the middle of a send."""
    streams = Streams(size)
    async with running(streams) as server:
        async with await server.client() as client:
            await client.send(request())
            await client.until(b"\r\n\r\n")
        await streams.pieces.closed.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []
    assert " 200 " in server.log[0]


async def test_work_between_two_parts_stops_when_the_reader_is_gone() -> None:
    working = trio.Event()

    async def works() -> AsyncGenerator[bytes, None]:
        yield b"first"
        working.set()
        await trio.sleep_forever()

    pieces = Pieces(works())
    application = App(lambda asked: Response(200, Headers([]), pieces, "id"))
    async with running(application) as server:
        async with await server.client() as client:
            await client.send(request())
            await client.until(b"first\r\n")
            await working.wait()
        await pieces.closed.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []


async def test_a_stream_is_closed_also_if_nobody_wants_its_first_part() -> None:
    streams = Streams(10)
    async with running(streams) as server, await server.client() as client:
        assert (await client.ask(request("/", "HEAD"), "HEAD")).status == 200
        await streams.pieces.closed.wait()
        assert streams.asked == 0


async def test_a_slow_reader_slows_the_application_down() -> None:
    sent = 0

    async def parts() -> AsyncGenerator[bytes, None]:
        nonlocal sent
        for _ in range(200):
            yield b"x" * 100_000
            sent += 1

    async with running(App(lambda asked: in_parts(parts()))) as server:
        async with await server.client() as client:
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


async def test_what_arrives_while_an_answer_is_sent_in_parts_is_the_next_request() -> None:
    go = trio.Event()

    async def parts(path: bytes) -> AsyncGenerator[bytes, None]:
        yield path
        await go.wait()
        yield b"!"

    application = App(lambda asked: in_parts(parts(asked.request.path.encode())))
    async with running(application) as server, await server.client() as client:
        await client.send(request("/a"))
        await client.send(request("/b") * 500)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
        assert (await client.answer()).body == b"/a!"
        for _ in range(500):
            assert (await client.answer()).body == b"/b!"


async def test_what_arrives_while_an_answer_is_sent_in_parts_is_kept_only_up_to_a_bound() -> None:
    go = trio.Event()

    async def parts() -> AsyncGenerator[bytes, None]:
        yield b"first"
        await go.wait()

    async with running(App(lambda asked: in_parts(parts()))) as server:
        async with await server.client() as client:
            with trio.move_on_after(0.2):
                await client.send(request() + b"x" * 30_000_000)
            assert server.counters.statistics().bytes_in <= 3 * limits.RECEIVE_BYTES
            go.set()


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_reported_to_the_application() -> (
    None
):
    heard = trio.Event()

    async def reads(asked: Asked) -> Response:
        with pytest.raises(ClientGone):
            await asked.read()
        heard.set()
        raise ClientGone

    async with running(App(reads)) as server:
        async with await server.client() as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        await heard.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []
    assert " 499 0 " in server.log[0]


async def test_an_answer_for_a_client_that_has_left_harms_nobody() -> None:
    entered, gate = trio.Event(), trio.Event()

    async def works(asked: Asked) -> Response:
        entered.set()
        await gate.wait()
        return reply(b"to nobody")

    async with running(App(works)) as server:
        async with await server.client() as client:
            await client.send(request())
            await entered.wait()
        gate.set()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []


async def test_work_for_a_client_that_has_left_ends_without_its_answer() -> None:
    begun, ended = trio.Event(), trio.Event()

    async def works(asked: Asked) -> Response:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with running(App(works), header_seconds=0.2) as server:
        async with await server.client() as client:
            await client.send(request())
            await begun.wait()
        await ended.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []
    assert " 499 0 " in server.log[0]


async def test_work_goes_on_for_a_client_that_only_ends_its_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[bool] = []
    gate = trio.Event()

    def has_left(transport: PlainTransport) -> bool:
        looks.append(original(transport))
        return looks[-1]

    async def works(asked: Asked) -> Response:
        await gate.wait()
        return reply(b"here it is")

    original = PlainTransport.has_left
    monkeypatch.setattr(PlainTransport, "has_left", has_left)
    async with running(App(works), header_seconds=0.2) as server:
        stream = await trio.open_tcp_stream(*server.addresses[0])
        client = Client(stream)
        await client.send(request())
        await stream.send_eof()
        assert (await client.answer()).status == 100, "a question that needs no answer"
        await server.until(lambda: len(looks) >= 3)
        gate.set()
        assert (await client.answer()).body == b"here it is"
        await stream.aclose()
    assert not any(looks)


async def test_a_client_that_only_ends_its_output_gets_its_answer() -> None:
    async def answers(asked: Asked) -> Response:
        return reply(await asked.read())

    async with running(App(answers)) as server:
        stream = await trio.open_tcp_stream(*server.addresses[0])
        client = Client(stream)
        await client.send(request("/", "POST", b"last words"))
        await stream.send_eof()
        assert (await client.answer()).body == b"last words"
        assert await client.rest() == b""
        await stream.aclose()


@pytest.mark.parametrize("ends", ["before", "between"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_client_that_only_ends_its_output_gets_an_answer_in_parts_whole(
    version: str, ends: str
) -> None:
    ended = trio.Event()

    async def parts() -> AsyncGenerator[bytes, None]:
        if ends == "before":
            await ended.wait()
        yield b"first"
        await ended.wait()
        for _ in range(5):
            yield b"x" * 1_000_000
        await trio.sleep(0.1)  # longer than the server needs to see the end
        yield b"last"

    async with running(App(lambda asked: in_parts(parts()))) as server:
        stream = await trio.open_tcp_stream(*server.addresses[0])
        async with Client(stream) as client:
            await client.send(f"GET / HTTP/{version}\r\nHost: a\r\n\r\n".encode())
            while ends == "between" and b"first" not in client.buffer:
                assert await client.more()
            await stream.send_eof()
            await trio.testing.wait_all_tasks_blocked(0.05)
            ended.set()
            assert (await client.answer()).body == b"first" + b"x" * 5_000_000 + b"last"
            assert await client.more() is False
    assert server.reports == []


async def test_a_client_that_ends_its_output_and_then_leaves_ends_the_stream() -> None:
    streams = Streams(10)
    async with running(streams) as server:
        stream = await trio.open_tcp_stream(*server.addresses[0])
        async with Client(stream) as client:
            await client.send(request())
            await stream.send_eof()
            await client.until(b"\r\n\r\n")
        await streams.pieces.closed.wait()
        await server.until(lambda: server.counters.statistics().connections_open == 0)
    assert server.reports == []


async def test_a_read_that_is_cancelled_loses_nothing_of_what_is_behind_the_body() -> None:
    """The answer comes before the body has: the rest of it is passed over."""

    async def impatient(asked: Asked) -> Response:
        with trio.move_on_after(0.02):
            await asked.read()
        return reply(asked.request.path.encode())

    head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
    async with running(App(impatient)) as server, await server.client() as client:
        assert (await client.ask(head + b"he")).body == b"/a"
        assert (await client.ask(b"llo" + request("/b"))).body == b"/b"
