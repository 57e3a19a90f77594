"""Requests that are answered where they arrive, and others among them: in order, and none hangs.

Answers that come later have a file of their own.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
import trio
import trio.testing

from qserver import limits
from qserver.http1 import Response
from qserver.http1.connection import Connection
from qserver.http1.context import ServerContext
from qserver.http1.heads import HEAD_KEPT_BYTES_MAX
from qserver.http1.reactor import NoBatch, Reactor
from qserver.http1.transport import PlainTransport
from tests.http1.serving import PATIENCE_SECONDS, Client, Running, request, running
from tests.http1.test_tls import TLS, tls_client
from tests.http1.ways import (
    SOON,
    Hesitant,
    Ways,
    alone,
    expected,
    fast,
    hesitant,
    send_in_pieces,
    served,
)
from tests.steady_clock import SteadyClock

# --- heads ----------------------------------------------------------------------------------------


async def test_the_endpoint_of_a_head_is_found_once_for_all_connections() -> None:
    async with served() as (server, ways):
        for body in (b"one", b"two"):
            async with await server.client() as client:
                answer = await client.ask(fast(body))
                assert (answer.status, answer.body) == (200, b"fast " + body)
                assert answer.header("x-way") == "fast"
                assert answer.header("date") is not None and answer.header("connection") is None
        assert ways.asked == [b"one", b"two"]
        assert [each.request.path for each in ways.endpoints] == ["/fast"]


@pytest.mark.parametrize(
    "data",
    [
        b"POST /fast HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nab",
        b"POST /fast HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        request("/fast", "POST", b"ab", "X-Long: " + "x" * HEAD_KEPT_BYTES_MAX),
    ],
    ids=["HTTP/1.0", "chunks", "long"],
)
async def test_heads_of_other_kinds_are_answered_at_once_too(data: bytes) -> None:
    async with served() as (server, ways), await server.client() as client:
        for _ in range(3):
            assert (await client.ask(data)).body == b"fast ab"
        assert ways.asked == [b"ab"] * 3


async def test_a_long_head_is_not_kept() -> None:
    async with served() as (server, ways), await server.client() as client:
        for _ in range(3):
            await client.ask(fast(b"ab", "X-Long: " + "x" * HEAD_KEPT_BYTES_MAX))
        assert len(ways.endpoints) == 3


async def test_a_request_that_ends_the_connection_is_told_so() -> None:
    async with served() as (server, _):
        for _ in range(3):
            async with await server.client() as client:
                answer = await client.ask(fast(b"ab", "Connection: close"))
                assert (answer.body, answer.header("connection")) == (b"fast ab", "close")
                assert await client.rest() == b""


async def test_the_answer_to_head_has_no_body() -> None:
    async with served() as (server, _), await server.client() as client:
        for _ in range(3):
            answer = await client.ask(request("/fast", "HEAD"), "HEAD")
            assert answer.header("content-length") == str(len(expected(b"")))
        assert (await client.ask(request("/other"))).body == b"GET /other "


async def test_a_client_that_waits_to_be_told_to_go_on_is_told() -> None:
    async with served() as (server, _), await server.client() as client:
        for _ in range(3):
            head, body = fast(b"abc", "Expect: 100-continue").split(b"\r\n\r\n")
            assert (await client.ask(head + b"\r\n\r\n")).status == 100
            assert (await client.ask(body)).body == b"fast abc"


async def test_heads_that_differ_in_one_letter_are_not_taken_for_each_other() -> None:
    async with served() as (server, _), await server.client() as client:
        for target in ("/fasT", "/fast/", "/fas"):
            for _ in range(2):
                answer = await client.ask(request(target, "POST", b"abcde"))
                assert answer.body == f"POST {target} abcde".encode()
        assert (await client.ask(fast(b"abcde"))).body == b"fast abcde"


async def test_more_heads_than_are_kept_are_served_all_the_same() -> None:
    async with served() as (server, ways), await server.client() as client:
        for at in range(limits.HEADS_KEPT_MAX + 10):
            await client.send(fast(b"a", f"X-Number: {at}"))
            assert (await client.answer()).body == b"fast a"
        count = len(ways.endpoints)
        again = fast(b"a", f"X-Number: {limits.HEADS_KEPT_MAX + 9}")
        assert (await client.ask(again)).body == b"fast a"
        assert count == len(ways.endpoints) == limits.HEADS_KEPT_MAX + 10
        assert (await client.ask(fast(b"a", "X-Number: 0"))).body == b"fast a"
        assert len(ways.endpoints) == count + 1, "it was forgotten"


async def test_all_kinds_are_answered_over_tls() -> None:
    async with served(**TLS) as (server, ways):
        async with await tls_client(server) as client:
            await client.send(b"".join(fast(b) for b in (b"1234567", b"large x", b"slow ab")))
            for body in (b"1234567", b"large x", b"slow ab"):
                assert (await client.answer()).body == expected(body)
        assert ways.endpoints[0].request.scheme == "https"
    assert server.reports == []


# --- arrivals -------------------------------------------------------------------------------------


async def test_pipelined_requests_of_all_kinds_are_answered_in_order() -> None:
    bodies = [b"one 1", b"slow2", b"three", b"large", b"six 6", b"slow7", b"eight"]
    async with served() as (server, _), await server.client() as client:
        await client.send(b"".join(map(fast, bodies)) + request("/last"))
        for body in bodies:
            assert (await client.answer()).body == expected(body)
        assert (await client.answer()).body == b"GET /last "


@pytest.mark.parametrize("body", [b"hello", b"slow!"])
async def test_a_request_may_come_in_pieces_cut_anywhere(body: bytes) -> None:
    async with served() as (server, _), await server.client() as client:
        data = fast(body)
        for cut in range(1, len(data)):
            arrived = server.counters.bytes_in + cut
            await client.send(data[:cut])
            await server.until(lambda wanted=arrived: server.counters.bytes_in == wanted)  # type: ignore[misc]
            answer = await client.ask(data[cut:])
            assert answer.body == expected(body)


async def test_a_request_with_the_beginning_of_the_next_behind_it_is_answered_at_once() -> None:
    async with served() as (server, _), await server.client() as client:
        data = fast(b"hello")
        await client.send(data + data[:20])
        assert (await client.answer()).body == b"fast hello"
        await client.send(data[20:] + data[:-2])
        assert (await client.answer()).body == b"fast hello"
        await client.send(data[-2:])
        assert (await client.answer()).body == b"fast hello"


async def test_a_blank_line_before_a_request_is_forgiven() -> None:
    async with served() as (server, _), await server.client() as client:
        for _ in range(3):
            assert (await client.ask(b"\r\n" + fast(b"hello"))).body == b"fast hello"
            assert (await client.ask(fast(b"hello"))).body == b"fast hello"


@pytest.mark.parametrize("body", [b"hello", b"slow!", b"large"])
async def test_an_end_that_comes_together_with_the_request_ends_the_connection(
    body: bytes,
) -> None:
    async with served() as (server, _), await server.client():
        await trio.testing.wait_all_tasks_blocked()
        with socket.create_connection(server.addresses[0]) as half:
            half.sendall(fast(body))  # nobody runs before the next line
            half.shutdown(socket.SHUT_WR)
            half.setblocking(False)
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(half))
            reader = Client(stream)
            assert (await reader.answer()).body == expected(body)
            assert await reader.rest() == b""


@pytest.mark.parametrize("body", [b"hello", b"slow!"])
async def test_an_end_that_comes_on_a_connection_at_rest_ends_it(body: bytes) -> None:
    async with served() as (server, _), await server.client() as client:
        assert isinstance(client.stream, trio.SocketStream)
        assert (await client.ask(fast(body))).body == expected(body)
        await trio.testing.wait_all_tasks_blocked()
        client.stream.socket._sock.sendall(fast(body))  # type: ignore[attr-defined]
        await client.stream.send_eof()
        assert (await client.answer()).body == expected(body)
        assert await client.rest() == b""


async def test_an_end_and_a_request_that_come_while_the_application_works_are_seen() -> None:
    gate, entered = trio.Event(), trio.Event()

    class Waits(Ways):
        async def _echo(self, body: bytes) -> Response:
            entered.set()
            await gate.wait()
            return await super()._echo(body)

    async with running(Waits()) as server, await server.client() as client:
        await client.send(fast(b"slow!"))
        await entered.wait()
        await client.send(fast(b"hello") * 3)
        assert isinstance(client.stream, trio.SocketStream)
        await client.stream.send_eof()
        await trio.testing.wait_all_tasks_blocked()
        gate.set()
        bodies = [(await client.answer()).body for _ in range(4)]
        assert bodies == [b"POST /fast slow!"] + [b"fast hello"] * 3
        assert await client.rest() == b""


async def test_a_client_that_is_gone_costs_only_its_own_connection() -> None:
    async with served() as (server, _), await server.client() as client:
        for body in (b"large", b"learned"):
            with socket.create_connection(server.addresses[0]) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                gone.sendall(fast(body) * 5)
        await server.until(lambda: server.counters.connections_open == 1)
        assert (await client.ask(fast(b"learned"))).body == b"fast learned"
    assert server.reports == []


async def test_numbers_of_descriptors_that_are_used_again_are_new_connections() -> None:
    async with served() as (server, ways), await server.client():
        for _ in range(50):
            async with await server.client() as client:
                await client.send(fast(b"hello") + fast(b"hello")[:30])
                assert (await client.answer()).body == b"fast hello"
            await server.until(lambda: server.counters.connections_open == 1)
        assert len(ways.asked) == 50
    assert server.reports == []


# --- answers --------------------------------------------------------------------------------------


async def test_a_slow_reader_gets_each_answer_whole_and_once() -> None:
    bodies = [b"large %d" % number for number in range(5)]
    async with served() as (server, _), await server.client() as client:
        await client.send(b"".join(map(fast, bodies)))
        for body in bodies:
            await trio.testing.wait_all_tasks_blocked()
            assert (await client.answer()).body == expected(body)
        await client.send(fast(b"hello !"))
        assert (await client.answer()).body == b"fast hello !"
        assert client.buffer == b""


async def test_a_reader_that_takes_nothing_is_cut_off() -> None:
    async with served(send_seconds=SOON) as (server, _), await server.client() as client:
        await client.send(fast(b"large"))
        await server.until(lambda: server.counters.connections_open == 0)
    assert server.reports == []


async def test_every_request_is_logged_and_counted_once() -> None:
    bodies = [b"hello", b"slow!", b"large"] * 2
    async with served() as (server, _), await server.client() as client:
        for answers, body in enumerate(bodies, 1):
            await client.send(fast(body))
            await client.answer()
            await server.until(lambda wanted=answers: len(server.log) == wanted)  # type: ignore[misc]
        assert server.counters.statistics().requests == len(bodies)
        fields = [line.split() for line in server.log]
        assert [each[1:4] for each in fields] == [["POST", "/fast", "200"]] * len(bodies)
        assert [int(each[4]) for each in fields] == [len(expected(body)) for body in bodies]
        assert fields[0][-1] == "id"
        sent = server.counters.statistics().bytes_in
        assert sent == len(fast(b"hello")) * len(bodies)


async def test_bytes_are_counted_as_the_client_gets_them() -> None:
    async with served() as (server, _), await server.client() as client:
        before = server.counters.bytes_out
        await client.send(fast(b"hello"))
        while len(client.buffer) == 0 or not client.buffer.endswith(b"fast hello"):
            await client.more()
        assert server.counters.bytes_out - before == len(client.buffer)


async def test_a_log_that_fails_is_reported_once_and_ends_no_connection() -> None:
    broken: list[bool] = []

    def write(line: str) -> None:
        if broken:
            raise ValueError("the disk is full")

    async with served(access_log=write) as (server, _):
        async with await server.client() as client, await server.client() as other:
            broken.append(True)
            for each in (client, client, other):
                assert (await each.ask(fast(b"hello"))).body == b"fast hello"
            broken.clear()
            for each in (client, other):
                assert (await each.ask(fast(b"hello"))).body == b"fast hello"
        assert len(server.reports) == 1 and "the disk is full" in server.reports[0]
        assert server.counters.statistics().log_lines_lost == 3


# --- patience and stopping ------------------------------------------------------------------------


async def test_a_connection_that_rests_after_an_answer_is_closed_in_time(
    steady_clock: SteadyClock,
) -> None:
    async with served(idle_seconds=SOON) as (server, _), await server.client() as client:
        assert (await client.ask(fast(b"hello"))).body == b"fast hello"
        assert await client.rest() == b""


async def test_a_head_that_does_not_end_in_time_after_an_answer_is_answered_with_408(
    steady_clock: SteadyClock,
) -> None:
    async with served(header_seconds=SOON) as (server, _), await server.client() as client:
        await client.send(fast(b"hello") + b"POST /fa")
        assert (await client.answer()).body == b"fast hello"
        assert (await client.answer()).status == 408
        assert await client.rest() == b""


async def test_a_connection_that_is_used_does_not_grow_old(steady_clock: SteadyClock) -> None:
    idle_seconds = 3 * SOON
    async with served(idle_seconds=idle_seconds) as (server, _), await server.client() as client:
        deadline = trio.current_time() + 1.5 * idle_seconds
        while trio.current_time() < deadline:
            assert (await client.ask(fast(b"hello"))).body == b"fast hello"
            await trio.sleep(SOON / 5)


async def test_connections_that_rest_after_an_answer_are_closed_when_the_server_stops() -> None:
    async with served() as (server, _):
        async with await server.client() as client, await server.client() as other:
            assert (await client.ask(fast(b"hello"))).body == b"fast hello"
            await trio.testing.wait_all_tasks_blocked()
            server.stop.set()
            assert await client.rest() == b"" == await other.rest()
            await server.ended.wait()
    assert server.reports == []


async def test_a_request_that_the_kernel_has_taken_when_the_server_stops_is_told_of_the_end() -> (
    None
):
    async with served() as (server, _), await server.client():
        with socket.create_connection(server.addresses[0]) as late:
            await server.until(lambda: server.counters.connections_open == 2)
            await trio.testing.wait_all_tasks_blocked()
            late.sendall(fast(b"hello"))
            server.stop.set()
            await server.ended.wait()
            data = late.recv(1000)
            assert data.count(b"HTTP/1.1 200") == 1 and data.count(b"hello") == 1


async def test_what_is_answered_at_once_while_the_server_drains_is_told_of_the_end() -> None:
    async with served() as (server, _), await server.client() as client:
        data = fast(b"hello")
        await client.send(data + data[:20])
        assert (await client.answer()).body == b"fast hello"
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        await client.send(data[20:])
        answer = await client.answer()
        assert (answer.body, answer.header("connection")) == (b"fast hello", "close")
        assert await client.rest() == b""


# --- many at once ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
async def test_many_connections_with_all_kinds_of_requests_get_their_own_answers(
    seed: int,
) -> None:
    async with served() as (server, ways):
        async with trio.open_nursery() as nursery:
            for number in range(80):
                nursery.start_soon(_talk, server, Random(seed * 1000 + number), number)
        assert len(ways.asked) > 80
    assert server.reports == []
    assert server.counters.statistics().requests == len(server.log)


async def _talk(server: Running, random: Random, number: int) -> None:
    async with await server.client() as client:
        for _ in range(random.randrange(1, 6)):
            kinds = random.choices(["fast", "slow"], [3, 1], k=random.randrange(1, 8))
            bodies = [f"{kind} {number:03} {random.randrange(10**9):09}".encode() for kind in kinds]
            data = b"".join(map(fast, bodies))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_in_pieces, client, random, data)
                for body in bodies:
                    assert (await client.answer()).body == expected(body)


# --- one connection, step by step -----------------------------------------------------------------


async def test_what_lies_behind_a_request_that_fills_a_whole_receive_is_not_forgotten() -> None:
    length = limits.RECEIVE_BYTES - len(fast(b""))
    length -= len(str(length)) - 1
    data = fast(b"x" * length)
    assert len(data) == limits.RECEIVE_BYTES
    async with alone(PlainTransport) as (_, _, far, client):
        assert (await client.ask(fast(b"hello"))).body == b"fast hello"
        await trio.testing.wait_all_tasks_blocked()
        assert far.send(data + fast(b"hello")) == len(data + fast(b"hello"))
        assert (await client.answer()).body == expected(b"x" * length)
        assert (await client.answer()).body == b"fast hello"
        await trio.testing.wait_all_tasks_blocked()
        assert far.send(data) == len(data)
        far.shutdown(socket.SHUT_WR)
        assert (await client.answer()).body == expected(b"x" * length)
        assert await client.rest() == b""


async def test_an_answer_that_is_under_way_when_the_server_stops_is_sent_to_its_end() -> None:
    """The stop comes between what was sent at once and the rest: most likely in one of many."""
    for _ in range(20):
        async with alone(hesitant) as (context, connection, _, client), trio.open_nursery() as now:

            async def stop(context: ServerContext, connection: Connection) -> None:
                context.draining = True
                connection.end_if_idle()

            transport = connection.transport
            assert isinstance(transport, Hesitant)
            transport.then = partial(now.start_soon, stop, context, connection)
            await client.send(fast(b"hello"))
            assert (await client.answer()).body == b"fast hello"
            assert await client.rest() == b""


async def test_a_connection_that_is_too_late_in_that_moment_loses_nothing_either() -> None:
    for _ in range(20):
        async with alone(hesitant) as (_, connection, far, client), trio.open_nursery() as now:
            transport = connection.transport
            assert isinstance(transport, Hesitant)

            async def late(connection: Connection, far: socket.socket) -> None:
                far.send(fast(b"after"))  # and another request comes
                connection.end_if_late(float("inf"))

            def once(transport: Hesitant, start: Callable[[], None]) -> None:
                transport.then = lambda: None
                start()

            start = partial(now.start_soon, late, connection, far)
            transport.then = partial(once, transport, start)
            await client.send(fast(b"hello"))
            assert (await client.answer()).body == b"fast hello"
            assert (await client.answer()).body == b"fast after"


async def test_an_error_while_a_connection_is_called_is_raised_where_it_waits() -> None:
    reactor = Reactor(NoBatch())
    (near, far), (quiet, other) = socket.socketpair(), socket.socketpair()
    calls: list[str] = []

    def fails() -> bool:
        raise ZeroDivisionError

    def works() -> bool:
        calls.append("called")
        return quiet.recv(10) == b"enough"

    with trio.fail_after(PATIENCE_SECONDS), near, far, quiet, other:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reactor.run)
            far.send(b"a")
            with pytest.raises(ZeroDivisionError):
                await reactor.wait(near.fileno(), fails)
            other.send(b"more")
            nursery.start_soon(reactor.wait, quiet.fileno(), works)
            await trio.testing.wait_all_tasks_blocked()
            other.send(b"enough")
            await trio.testing.wait_all_tasks_blocked()
            assert calls == ["called", "called"]
            assert repr(reactor) == "0 of 2 connections wait for a request"
            nursery.cancel_scope.cancel()


async def test_who_comes_to_wait_when_all_has_ended_is_cancelled_like_everybody() -> None:
    reactor = Reactor(NoBatch())
    near, far = socket.socketpair()
    with near, far:
        with trio.CancelScope() as scope:
            scope.cancel()
            await reactor.run()
        with trio.CancelScope() as scope:
            scope.cancel()
            await reactor.wait(near.fileno(), lambda: True)
        assert scope.cancelled_caught
