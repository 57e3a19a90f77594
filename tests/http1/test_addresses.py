"""Connections that rest make room for clients of other addresses, those of the greediest first."""

from __future__ import annotations

import pytest
import trio

from tests.http1.serving import Client, Echo, Running, request, running
from tests.http1.test_failures_and_disconnects import Streams

MOST = 20


async def client_from(server: Running, address: str) -> Client:
    """A client whose connection comes from another address of this machine."""
    connection = trio.socket.socket()
    await connection.bind((address, 0))
    await connection.connect(server.addresses[0])
    return Client(trio.SocketStream(connection))


async def connected(server: Running, address: str, count: int) -> list[Client]:
    before = server.counters.statistics().connections_accepted
    clients = [await client_from(server, address) for _ in range(count)]
    await server.until(lambda: server.counters.statistics().connections_accepted == before + count)
    return clients


@pytest.mark.parametrize("sends", [b"", b"GET / HTTP/1.1\r\nHost: a"])
async def test_idle_connections_of_one_address_keep_no_other_out(sends: bytes) -> None:
    """Also those that have sent a part of a head."""
    async with running(Echo(), connections_max=MOST) as server:
        greedy = await connected(server, "127.0.0.1", MOST)
        for each in greedy:
            await each.send(sends)
        for number in range(2, MOST // 2 + 1):  # until all have as many
            async with await client_from(server, f"127.0.0.{number}") as other:
                assert (await other.ask(request())).status == 200
                assert server.counters.statistics().connections_open <= MOST + 1
        others = [await client_from(server, f"127.0.0.{number}") for number in range(2, 8)]
        for other in others:
            assert (await other.ask(request())).status == 200
        assert server.counters.statistics().connections_refused == 0
        for other in (*greedy, *others):
            await other.stream.aclose()


async def test_an_address_gets_no_more_room_than_the_greediest_has() -> None:
    async with running(Echo(), connections_max=MOST) as server:
        first = await connected(server, "127.0.0.1", MOST)
        second = await connected(server, "127.0.0.2", MOST)
        await server.until(lambda: server.counters.statistics().connections_open <= MOST)
        answered = []
        for client in second:
            answered.append((await client.ask(request())).status)
        assert answered.count(200) == MOST // 2, "from then on both have as many"
        assert answered.count(503) == MOST // 2
        for client in (*first, *second):
            await client.stream.aclose()


async def test_a_connection_that_is_served_is_not_ended_for_another() -> None:
    async with running(Streams(1_000_000), connections_max=3) as server:
        busy = await connected(server, "127.0.0.1", 3)
        for each in busy:
            await each.send(request())
            assert await each.stream.receive_some(10)
        async with await client_from(server, "127.0.0.2") as other:
            assert (await other.ask(request())).status == 503
        for each in busy:
            assert await each.stream.receive_some(10), "it goes on"
            await each.stream.aclose()
