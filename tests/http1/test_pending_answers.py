"""Answers that an endpoint gives later: each comes whole and in its turn, and nobody is held up.

request ─► PENDING ─► ... others are served, clients leave, the server stops ...
                            respond(Response)   ─► sent from there
                            respond(coroutine)  ─► awaited by the connection's task, once
"""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from tests.http1.serving import Client, Running, request
from tests.http1.test_tls import TLS, tls_client
from tests.http1.ways import (
    LATE_STATUS,
    SOON,
    Ways,
    alone,
    expected,
    fast,
    hesitant,
    large,
    send_in_pieces,
    served,
)
from tests.sampling import sampled
from tests.steady_clock import SteadyClock

IN_BOTH_WAYS = pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
SHORT = 4 * SOON
"""For deadlines that are to pass."""
RESET = b"\1\0\0\0\0\0\0\0"
"""For SO_LINGER: to close is to reset."""

A = b"later aaaaa"
B = b"later bbbbb"
LARGE = b"later large"
QUICK = b"quick abcde"
SLOW = b"slow abcdef"


@asynccontextmanager
async def prepared(
    secure: bool = False, **options: Any
) -> AsyncIterator[tuple[Running, Ways, Client]]:
    async with served(**(TLS if secure else {}), **options) as (server, ways):
        async with await connect(server, secure) as client:
            yield server, ways, client


async def connect(server: Running, secure: bool) -> Client:
    return await tls_client(server) if secure else await server.client()


async def begin(ways: Ways, client: Client, body: bytes) -> None:
    """Send a request, and return when it waits for its answer."""
    count = len(ways.begun) + 1
    await client.send(fast(body))
    await ways.until_begun(count)


async def end_side(client: Client) -> None:
    """Say that nothing more will be sent."""
    assert isinstance(client.stream, trio.SocketStream)
    await client.stream.send_eof()


def send_now(client: Client, data: bytes) -> None:
    """Send while nobody else runs."""
    assert isinstance(client.stream, trio.SocketStream)
    client.stream.socket._sock.sendall(data)  # type: ignore[attr-defined]


# --- answers --------------------------------------------------------------------------------------


@IN_BOTH_WAYS
async def test_an_answer_that_comes_later_is_sent_whole_with_its_status(secure: bool) -> None:
    async with prepared(secure) as (server, ways, client):
        for status in (200, 409, 503):
            await begin(ways, client, A)
            await trio.testing.wait_all_tasks_blocked()
            ways.settle(status=status)
            answer = await client.answer()
            assert (answer.status, answer.body) == (status, b"late later aaaaa")
            assert answer.header("x-way") == "fast"
            assert answer.header("date") is not None and answer.header("connection") is None
            assert (await client.ask(fast(QUICK))).body == expected(QUICK)
        assert (ways.waited, client.buffer) == ([], b"")
    assert server.reports == []


@IN_BOTH_WAYS
async def test_many_connections_wait_at_once_and_get_their_own_answers_in_any_order(
    secure: bool,
) -> None:
    random = Random(7)
    async with prepared(secure) as (server, ways, quick):
        clients = [await connect(server, secure) for _ in range(20)]
        for number, client in enumerate(clients):
            await begin(ways, client, b"later %05d" % number)
            assert (await quick.ask(fast(QUICK))).body == expected(QUICK), "nobody is held up"
        while ways.begun:
            at = random.randrange(len(ways.begun))
            body = ways.begun[at][0]
            ways.settle(at)
            answer = await clients[int(body[-5:])].answer()
            assert (answer.status, answer.body) == (LATE_STATUS, expected(body))
        for client in clients:
            assert client.buffer == b""
            await client.stream.aclose()
    assert server.reports == []


@IN_BOTH_WAYS
async def test_a_coroutine_that_comes_later_is_awaited_once(secure: bool) -> None:
    async with prepared(secure) as (server, ways, client):
        for _ in range(3):
            await begin(ways, client, A)
            ways.go_on()
            answer = await client.answer()
            assert (answer.status, answer.body) == (200, b"POST /fast " + A)
            await begin(ways, client, B)
            ways.settle()
            assert (await client.answer()).body == expected(B)
        assert ways.asked == [A, B] * 3, "nothing is asked twice"
        assert ways.waited == [A] * 3
    assert server.counters.statistics().requests == len(server.log) == 6
    assert server.reports == []


@pytest.mark.half
@IN_BOTH_WAYS
async def test_a_late_answer_that_no_socket_takes_at_once_is_sent_to_its_end(secure: bool) -> None:
    async with prepared(secure) as (server, ways, client):
        for _ in range(2):
            await begin(ways, client, LARGE)
            ways.settle()
            await trio.testing.wait_all_tasks_blocked()
            assert (await client.answer()).body == large(LARGE)
            assert (await client.ask(fast(QUICK))).body == expected(QUICK)
    assert server.reports == []


async def test_a_reader_that_takes_nothing_of_a_late_answer_is_cut_off() -> None:
    async with prepared(send_seconds=SOON) as (server, ways, client):
        await begin(ways, client, LARGE)
        ways.settle()
        await server.until(lambda: server.counters.connections_open == 0)
    assert server.reports == []


@IN_BOTH_WAYS
async def test_an_answer_may_come_before_anybody_waits_for_it(secure: bool) -> None:
    """A task gives it that is started with the promise: it runs before the connection's, or after,
    as chance will have it."""
    async with prepared(secure) as (server, ways, client):
        ways.eager = True
        for _ in range(20):
            await client.send(fast(A) + fast(B) + fast(QUICK) + fast(A))
            for body in (A, B, QUICK, A):
                assert (await client.answer()).body == expected(body)
    assert server.reports == []


async def test_an_answer_may_come_while_other_arrivals_of_the_same_moment_are_called() -> None:
    """One request waits, and the ways of another, which arrived with it, answers for both."""
    settled_at_once = 0
    async with prepared() as (server, ways, first), await server.client() as second:
        for _ in range(20):
            assert (await second.ask(fast(QUICK))).body == expected(QUICK)
            await trio.testing.wait_all_tasks_blocked()
            send_now(first, fast(A) + fast(QUICK))
            send_now(second, fast(b"tells aaaaa"))
            assert (await second.answer()).body == b"fast tells aaaaa"
            settled_at_once += not ways.begun
            ways.settle_all()
            assert (await first.answer()).body == expected(A)
            assert (await first.answer()).body == expected(QUICK)
    assert settled_at_once > 0
    assert server.reports == []


async def test_every_late_answer_is_logged_and_counted_once_with_its_status() -> None:
    async with prepared() as (server, ways, client):
        sent = 0
        for status in (200, 409):
            await begin(ways, client, A)
            assert len(server.log) == server.counters.statistics().requests - 1
            ways.settle(status=status)
            while not client.buffer.endswith(expected(A)):
                await client.more()
            sent += len(client.buffer)
            assert server.counters.bytes_out == sent
            client.buffer = b""
        assert [line.split()[1:5] for line in server.log] == [
            ["POST", "/fast", "200", str(len(expected(A)))],
            ["POST", "/fast", "409", str(len(expected(A)))],
        ]
        assert [line.split()[-1] for line in server.log] == ["late-id"] * 2
    assert server.counters.statistics().requests == 2


# --- what comes behind ----------------------------------------------------------------------------

BEHIND = [QUICK, SLOW, B, QUICK, LARGE, SLOW, A]


async def _settle_when_begun(ways: Ways, count: int) -> None:
    for _ in range(count):
        await ways.until_begun()
        assert len(ways.begun) == 1, "one connection waits for one answer"
        await trio.testing.wait_all_tasks_blocked()
        ways.settle()


@IN_BOTH_WAYS
@pytest.mark.parametrize("goes_on", [False, True], ids=["answered", "goes on"])
@pytest.mark.parametrize("together", [True, False], ids=["same segment", "while it waits"])
async def test_what_is_sent_behind_a_request_that_waits_is_answered_after_it_in_order(
    together: bool, goes_on: bool, secure: bool
) -> None:
    behind = b"".join(map(fast, BEHIND)) + request("/other") + fast(QUICK)
    async with prepared(secure) as (server, ways, client), trio.open_nursery() as nursery:
        await client.send(fast(A) + behind if together else fast(A))
        await ways.until_begun()
        if not together:
            await trio.testing.wait_all_tasks_blocked()
            await client.send(behind)
        await trio.testing.wait_all_tasks_blocked()
        assert (ways.asked, len(server.log)) == ([A], 0), "it waits for its turn"
        if goes_on:
            ways.go_on()
        else:
            ways.settle()
        nursery.start_soon(_settle_when_begun, ways, 3)
        assert (await client.answer()).body == expected(A, waited=goes_on)
        for body in BEHIND:
            assert (await client.answer()).body == expected(body)
        assert (await client.answer()).body == b"GET /other "
        assert (await client.answer()).body == expected(QUICK)
    assert server.reports == []


@IN_BOTH_WAYS
async def test_a_request_may_come_in_pieces_cut_by_the_wait_for_another(secure: bool) -> None:
    async with prepared(secure) as (server, ways, client):
        data = fast(QUICK)
        for cut in range(1, len(data), 7):
            await client.send(fast(A) + data[:cut])
            await ways.until_begun()
            ways.settle()
            assert (await client.answer()).body == expected(A)
            answer = await client.ask(data[cut:])
            assert answer.body == expected(QUICK)
            await begin(ways, client, A)
            await client.send(data[:cut])
            await trio.testing.wait_all_tasks_blocked()
            ways.settle()
            assert (await client.answer()).body == expected(A)
            answer = await client.ask(data[cut:])
            assert answer.body == expected(QUICK)
    assert server.reports == []


# --- clients that leave ---------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [True, False], ids=["and is seen to", "unseen"])
@pytest.mark.parametrize("outcome", [Ways.settle, Ways.go_on], ids=["answered", "goes on"])
@pytest.mark.parametrize("body", [A, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("resets", [True, False], ids=["reset", "end"])
async def test_a_client_that_leaves_while_its_answer_is_awaited_does_no_harm(
    resets: bool, body: bytes, outcome: Callable[[Ways, int], None], seen: bool
) -> None:
    async with prepared() as (server, ways, client):
        await begin(ways, client, B)
        with socket.create_connection(server.addresses[0]) as gone:
            if resets:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            gone.sendall(fast(body) + fast(QUICK))
            await ways.until_begun(2)
        if seen:
            await trio.testing.wait_all_tasks_blocked()
            assert server.counters.connections_open == 2, "its work is under way"
        outcome(ways, 1)
        await server.until(lambda: server.counters.connections_open == 1)
        ways.settle()
        assert (await client.answer()).body == expected(B)
        assert (await client.ask(fast(QUICK))).body == expected(QUICK)
    assert server.reports == []


async def test_a_client_that_leaves_a_secure_connection_meanwhile_does_no_harm_either() -> None:
    async with prepared(secure=True) as (server, ways, client):
        for outcome in (Ways.settle, Ways.go_on):
            async with await tls_client(server) as gone:
                await begin(ways, gone, A)
            await trio.testing.wait_all_tasks_blocked()
            outcome(ways)
            await server.until(lambda: server.counters.connections_open == 1)
            assert (await client.ask(fast(QUICK))).body == expected(QUICK)
    assert server.reports == []


@pytest.mark.parametrize("body", [A, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("together", [True, False], ids=["with the request", "while it waits"])
@pytest.mark.parametrize("behind", [(), (QUICK, B, SLOW)], ids=["one", "several"])
async def test_a_client_that_ends_its_side_still_gets_its_answers_and_then_the_end(
    behind: tuple[bytes, ...], together: bool, body: bytes
) -> None:
    async with prepared() as (server, ways, client), trio.open_nursery() as nursery:
        await trio.testing.wait_all_tasks_blocked()
        if together:
            send_now(client, fast(body) + b"".join(map(fast, behind)))
        else:
            await begin(ways, client, body)
            await trio.testing.wait_all_tasks_blocked()
            send_now(client, b"".join(map(fast, behind)))
        await end_side(client)
        nursery.start_soon(_settle_when_begun, ways, 1 + behind.count(B))
        for each in (body, *behind):
            assert (await client.answer()).body == expected(each)
        assert await client.rest() == b""
    assert server.reports == []


async def test_a_request_that_goes_on_after_its_client_ended_its_side_is_answered() -> None:
    async with prepared() as (server, ways, client):
        await begin(ways, client, A)
        await end_side(client)
        await trio.testing.wait_all_tasks_blocked()
        ways.go_on()
        assert (await client.answer()).body == expected(A, waited=True)
        assert await client.rest() == b""
    assert server.reports == []


# --- failures -------------------------------------------------------------------------------------


@IN_BOTH_WAYS
@pytest.mark.parametrize("behind", [b"", fast(QUICK)], ids=["one", "more behind it"])
async def test_a_log_that_fails_harms_neither_the_connection_nor_who_tells_the_answer(
    behind: bytes, secure: bool
) -> None:
    broken: list[bool] = []

    def write(line: str) -> None:
        if broken:
            raise ValueError("the disk is full")

    async with prepared(secure, access_log=write) as (server, ways, client):
        async with await connect(server, secure) as other:
            await begin(ways, client, A)
            await client.send(behind)
            await trio.testing.wait_all_tasks_blocked()
            broken.append(True)
            ways.settle()
            broken.clear()
            assert (await client.answer()).body == expected(A)
            if not behind:
                await client.send(fast(QUICK))
            assert (await client.answer()).body == expected(QUICK)
            assert (await other.ask(fast(QUICK))).body == expected(QUICK)
        assert len(server.reports) == 1 and "the disk is full" in server.reports[0]
        assert server.counters.statistics().log_lines_lost == 1


@IN_BOTH_WAYS
async def test_an_answer_that_is_none_is_a_500_and_ends_its_connection(secure: bool) -> None:
    async with prepared(secure) as (server, ways, client), await connect(server, secure) as other:
        await begin(ways, client, A)
        ways.settle(status=1)
        assert (await client.answer()).status == 500
        assert await client.rest() == b""
        assert (await other.ask(fast(QUICK))).body == expected(QUICK)
    assert len(server.reports) == 1 and "InvalidAnswer" in server.reports[0]


# --- patience and stopping ------------------------------------------------------------------------


@IN_BOTH_WAYS
async def test_no_deadline_ends_a_wait_for_an_answer_and_all_count_again_after_it(
    secure: bool, steady_clock: SteadyClock
) -> None:
    options = {"header_seconds": SHORT, "idle_seconds": SHORT}
    async with prepared(secure, **options) as (server, ways, client):
        await begin(ways, client, A)
        async with await connect(server, secure) as resting, await connect(server, secure) as slow:
            await slow.send(fast(A)[:20])
            assert await resting.rest() == b""
            assert (await slow.answer()).status == 408
        await server.until(lambda: server.counters.connections_open == 1)
        ways.settle()
        assert (await client.answer()).body == expected(A)
        assert (await client.ask(fast(QUICK))).body == expected(QUICK)
        assert await client.rest() == b"", "it rests for too long"
    assert server.reports == []


@IN_BOTH_WAYS
async def test_a_head_that_does_not_end_in_time_behind_a_late_answer_is_answered_with_408(
    secure: bool, steady_clock: SteadyClock
) -> None:
    async with prepared(secure, header_seconds=SHORT) as (server, ways, client):
        await begin(ways, client, A)
        await client.send(fast(A)[:20])
        async with await connect(server, secure) as slow:
            await slow.send(fast(A)[:20])
            assert (await slow.answer()).status == 408
        ways.settle()
        assert (await client.answer()).body == expected(A)
        assert (await client.answer()).status == 408
        assert await client.rest() == b""
    assert server.reports == []


@IN_BOTH_WAYS
@pytest.mark.parametrize("behind", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("body", [A, LARGE], ids=["small", "large"])
async def test_a_request_that_waits_when_the_server_stops_is_answered_before_the_end(
    body: bytes, behind: bool, secure: bool
) -> None:
    async with prepared(secure) as (server, ways, client):
        await begin(ways, client, body)
        if behind:
            await client.send(fast(A))
        await trio.testing.wait_all_tasks_blocked()
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        assert not server.ended.is_set()
        ways.settle()
        answer = await client.answer()
        assert answer.body == expected(body)
        if behind:
            assert answer.header("connection") is None
            await ways.until_begun()
            ways.settle()
            answer = await client.answer()
            assert answer.body == expected(A)
        assert answer.header("connection") == "close"
        assert await client.rest() == b""
        await client.stream.aclose()
        await server.ended.wait()
    assert server.reports == []


@IN_BOTH_WAYS
async def test_a_request_that_goes_on_while_the_server_stops_is_told_of_the_end(
    secure: bool,
) -> None:
    async with prepared(secure) as (server, ways, client):
        await begin(ways, client, A)
        server.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        ways.go_on()
        answer = await client.answer()
        assert answer.body == expected(A, waited=True)
        assert answer.header("connection") == "close"
        assert await client.rest() == b""
        await client.stream.aclose()
        await server.ended.wait()
        assert ways.waited == [A]
    assert server.reports == []


@IN_BOTH_WAYS
@pytest.mark.parametrize("outcome", [Ways.settle, Ways.go_on], ids=["answered", "goes on"])
async def test_an_answer_that_comes_when_its_connection_was_cut_off_is_told_to_nobody(
    outcome: Callable[[Ways], None], secure: bool
) -> None:
    async with prepared(secure, drain_seconds=SOON) as (server, ways, client):
        await begin(ways, client, A)
        server.stop.set()
        await server.ended.wait()
        pair = socket.socketpair()  # one of them may get the number of the old socket
        with pair[0], pair[1]:
            outcome(ways)
            for each in pair:
                each.setblocking(False)
                with pytest.raises(BlockingIOError):
                    each.recv(1)
        assert b"late" not in await client.rest()
        assert (ways.waited, server.log) == ([], [])
    assert server.reports == ["1 connections cut off while draining"]


async def test_an_interruption_between_two_parts_of_a_late_answer_loses_nothing() -> None:
    ways = Ways()
    async with alone(hesitant, ways) as (context, connection, far, client):
        await begin(ways, client, A)
        ways.settle()
        far.send(fast(QUICK))
        connection.end_if_late(time.monotonic() + 1e9)
        assert (await client.answer()).body == expected(A)
        assert (await client.answer()).body == expected(QUICK)
        await begin(ways, client, B)
        ways.settle()
        context.draining = True
        connection.end_if_idle()
        assert (await client.answer()).body == expected(B)
        assert await client.rest() == b""


async def test_no_interruption_is_heard_while_an_answer_is_awaited() -> None:
    ways = Ways()
    async with alone(hesitant, ways) as (_, connection, far, client):
        await begin(ways, client, A)
        far.shutdown(socket.SHUT_WR)  # the end of its side is seen in the same moment
        connection.end_if_late(time.monotonic() + 1e9)
        connection.end_if_idle()
        await trio.testing.wait_all_tasks_blocked()
        ways.settle()
        assert (await client.answer()).body == expected(A)
        assert await client.rest() == b""


# --- many at once ---------------------------------------------------------------------------------


@IN_BOTH_WAYS
@pytest.mark.parametrize("seed", sampled(range(4), 2))
async def test_many_connections_with_all_kinds_of_requests_get_their_own_answers(
    seed: int, secure: bool
) -> None:
    async with prepared(secure) as (server, ways, _):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as settling:
                settling.start_soon(_settle_at_random, ways, Random(seed))
                async with trio.open_nursery() as talking:
                    for number in range(20 if secure else 60):
                        random = Random(seed * 1000 + number)
                        talking.start_soon(_talk, server, secure, random, number)
                await server.until(lambda: server.counters.connections_open == 1)
                assert ways.begun == []
                scope.cancel()
        assert sum(body.startswith(b"later") for body in ways.asked) > 20
        once = [body for body in ways.asked if body.startswith((b"later", b"quick"))]
        assert len(set(once)) == len(once), "nothing is asked twice"
        assert len(set(ways.waited)) == len(ways.waited), "nor done twice"
    assert server.counters.statistics().requests == len(server.log)
    assert server.reports == []


async def _settle_at_random(ways: Ways, random: Random) -> None:
    while True:
        for _ in range(random.randrange(8)):
            await trio.lowlevel.checkpoint()
        for _ in range(random.randrange(1, 5)):
            if ways.begun:
                at = random.randrange(len(ways.begun))
                if _goes_on(ways.begun[at][0]):
                    ways.go_on(at)
                else:
                    ways.settle(at)
        await trio.lowlevel.checkpoint()


def _goes_on(body: bytes) -> bool:
    return body.endswith((b"1", b"2"))


async def _talk(server: Running, secure: bool, random: Random, number: int) -> None:
    """Ask on several connections; leave some of them in the middle."""
    for _ in range(3):
        async with await connect(server, secure) as client:
            kinds = random.choices(["later", "quick", "slow!"], [4, 2, 1], k=random.randrange(1, 9))
            bodies = [f"{kind} {number:03} {random.randrange(10**9):09}".encode() for kind in kinds]
            read = len(bodies) if random.random() < 0.8 else random.randrange(len(bodies))
            async with trio.open_nursery() as nursery:
                data = b"".join(map(fast, bodies))
                nursery.start_soon(send_in_pieces, client, random, data)
                for body in bodies[:read]:
                    _check(body, (await client.answer()).body)


def _check(body: bytes, answer: bytes) -> None:
    assert answer == expected(body, waited=body.startswith(b"later") and _goes_on(body))
