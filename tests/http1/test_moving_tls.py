"""A connection over TLS stays where it was accepted; one end of a socket pair moves for it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from tests.http1.serving import PATIENCE_SECONDS, Client, request
from tests.http1.test_moving import BODY, KINDS, LARGE, LONG_SECONDS, left, sized
from tests.http1.test_tls import TLS, tls_client
from tests.http1.two_servers import WAYS, Two, chunked, expected, two_servers
from tests.sampling import NIGHTLY

MOVES = 5_000 if NIGHTLY else 200
TURNS = 6
BUFFERS = 12_000_000
"""More than all buffers between an owner and a client that does not read."""


async def client_of(two: Two, at: int = 0) -> Client:
    return await tls_client(two.servers[at])


async def end_input(client: Client) -> None:
    """Send the end of TCP's input, without one of TLS."""
    stream: Any = client.stream
    await stream.transport_stream.send_eof()


@pytest.mark.parametrize("way", WAYS)
async def test_a_kept_tls_connection_is_served_by_both_in_turn(way: str) -> None:
    async with two_servers(**TLS) as two, await client_of(two) as client:
        for turn in range(TURNS):
            path = f"/{turn % 2}/{way}"
            assert (await client.ask(sized(path, BODY))).body == expected(path, BODY)
        assert two.count("connections_moved_out") == [TURNS / 2, TURNS / 2 - 1]
        assert two.count("connections_open") == [1, 1]
        assert two.owners[0].schemes == two.owners[1].schemes == {"https"}
        assert two.owners[0].clients == two.owners[1].clients != {None}


async def test_pipelined_requests_over_tls_are_answered_in_order() -> None:
    paths = [f"/{at * at % 7 % 2}/{WAYS[at % len(WAYS)]}/{at}" for at in range(100)]
    data = b"".join(sized(path, BODY) for path in paths)
    async with two_servers(**TLS) as two, await client_of(two) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, data)
            for path in paths:
                assert (await client.answer()).body == expected(path, BODY)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["now", "read", "bulk", "stream"])
async def test_large_bodies_go_both_ways_through_the_pair(way: str, kind: str) -> None:
    async with two_servers(**TLS) as two, await client_of(two) as client:
        for owner in (1, 0, 1):
            path = f"/{owner}/{way}"
            data = sized(path, LARGE) if kind == "sized" else chunked(path, LARGE, 70_000)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send, data)
                assert (await client.answer()).body == expected(path, LARGE)


async def test_a_request_over_tls_that_is_cut_anywhere_moves_whole() -> None:
    data = sized("/1/read", BODY) + chunked("/0/now", BODY)
    async with two_servers(**TLS) as two, await client_of(two) as client:
        for cut in range(1, len(data), 1 if NIGHTLY else 5):
            await client.send(data[:cut])
            await trio.testing.wait_all_tasks_blocked()
            await client.send(data[cut:])
            assert (await client.answer()).body == expected("/1/read", BODY)
            assert (await client.answer()).body == expected("/0/now", BODY)


@pytest.mark.long
async def test_a_client_that_does_not_read_slows_the_owner() -> None:
    async with two_servers(body_bytes_max=2 * BUFFERS, **TLS) as two:
        async with await client_of(two) as client:
            body = b"x" * (2 * BUFFERS)
            await client.send(sized("/1/stream", body))
            await client.until(b"\r\n\r\n")
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert two.count("bytes_out")[1] < BUFFERS
            while await client.more() and len(client.buffer) <= len(body):
                pass


async def test_an_owner_that_closes_ends_the_tls_connection() -> None:
    async with two_servers(linger_seconds=2 * PATIENCE_SECONDS, **TLS) as two:
        async with await client_of(two) as client:
            answer = await client.ask(request("/1/now", "GET", None, "Connection: close"))
            assert answer.body == expected("/1/now", method="GET")
            assert await client.rest() == b""
        await two.until_empty()


async def test_a_client_that_ignores_the_end_is_closed_after_a_while() -> None:
    async with two_servers(linger_seconds=0.05, **TLS) as two:
        client = await client_of(two)
        await client.ask(request("/1/now", "GET", None, "Connection: close"))
        await two.until_empty()
        await client.stream.aclose()


@pytest.mark.parametrize("way", ["now", "later", "task", "read"])
async def test_a_tls_client_that_has_ended_its_input_gets_its_answers(way: str) -> None:
    async with two_servers(**TLS) as two, await client_of(two) as client:
        await client.send(sized(f"/1/{way}", BODY) + sized(f"/0/{way}", BODY))
        await end_input(client)
        for owner in (1, 0):
            assert (await client.answer()).body == expected(f"/{owner}/{way}", BODY)
        assert await client.rest() == b""
        await two.until_empty()


@pytest.mark.parametrize("way", WAYS)
async def test_a_tls_client_may_leave_at_any_moment(way: str) -> None:
    data = sized(f"/1/{way}", BODY) + chunked(f"/0/{way}", BODY)
    async with two_servers(**TLS) as two:
        for cut in range(1, len(data) + 1, 5 if NIGHTLY else 50):
            client = await client_of(two)
            await client.send(data[:cut])
            for _ in range(cut % 7):
                await trio.lowlevel.checkpoint()
            await client.stream.aclose()
        await two.until_empty()


@pytest.mark.parametrize(("way", "body"), [("stream", LARGE * 2), ("quiet", BODY)])
async def test_a_stream_stops_when_its_reader_over_tls_is_gone(way: str, body: bytes) -> None:
    async with two_servers(**TLS) as two:
        client = await client_of(two)
        await client.send(sized(f"/1/{way}", body))
        await client.until(b"\r\n\r\n")
        await client.stream.aclose()
        await two.until_empty()


async def test_a_move_over_tls_that_cannot_be_made_is_refused() -> None:
    async with two_servers(**TLS) as two, await client_of(two) as client:
        two.movers[0].are_away = True
        assert (await client.ask(sized("/1/now", BODY))).status == 503
        assert await client.rest() == b""


async def test_relays_drain_with_their_owners() -> None:
    async with two_servers(**TLS) as two:
        async with await client_of(two) as idle, await client_of(two) as asking:
            assert (await idle.ask(request("/1/now"))).status == 200
            assert (await asking.ask(request("/1/now"))).status == 200
            data = sized("/1/read", BODY)
            await asking.send(data[:-1])
            await trio.testing.wait_all_tasks_blocked(0.01)
            for server in two.servers:
                server.stop.set()
            assert await idle.rest() == b""
            answer = await asking.ask(data[-1:])
            assert answer.body == expected("/1/read", BODY)
            assert await asking.rest() == b""


@pytest.mark.long
async def test_many_moves_over_tls_leave_nothing_behind() -> None:
    async def move_often(count: int) -> None:
        for turn in range(count // 4):
            async with await client_of(two, turn % 2) as client:
                for owner in (0, 1, 0, 1, 0):
                    path = f"/{owner}/{WAYS[turn % len(WAYS)]}"
                    assert (await client.ask(sized(path, BODY))).body == expected(path, BODY)
        await two.until_empty()
        await trio.testing.wait_all_tasks_blocked()

    async with two_servers(patience_seconds=LONG_SECONDS, **TLS) as two:
        await move_often(20)
        before = left(two)
        await move_often(MOVES)
        assert left(two) == before
