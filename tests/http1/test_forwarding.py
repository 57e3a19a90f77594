"""Requests between others that belong to another process are forwarded; the connection stays."""

from __future__ import annotations

from random import Random

import pytest
import trio.testing

from qserver.errors import DatabaseMoved
from tests.http1.serving import request
from tests.http1.two_servers import WAYS, Two, expected, two_servers


def forwarding(two: Two, visits: int = 4) -> None:
    for mover in two.movers:
        mover.visits_in_row = visits


def moves(two: Two) -> int:
    return sum(server.counters.connections_moved_out for server in two.servers)


def post(path: str, body: bytes = b"") -> bytes:
    return request(path, "POST", body)


async def test_the_first_request_takes_its_connection_along() -> None:
    async with two_servers() as two:
        forwarding(two)
        async with await two.client(0) as client:
            await client.send(post("/1/now"))
            assert (await client.answer()).body == expected("/1/now")
        assert moves(two) == 1 and two.movers[0].forwarded == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_request_between_others_is_forwarded(way: str) -> None:
    async with two_servers() as two:
        forwarding(two)
        async with await two.client(0) as client:
            for at in range(6):
                path = f"/{at % 2}/{way}/{at}"
                await client.send(post(path, b"body"))
                answer = await client.answer()
                assert answer.status == 200 and answer.body == expected(path, b"body")
        assert moves(two) == 0 and len(two.movers[0].forwarded) == 3
        assert [server.counters.requests for server in two.servers] == [3, 3]
        assert two.owners[1].clients == two.owners[0].clients, "the client's own address"
        await two.until(lambda: len(two.servers[0].log) == 6)
        assert two.servers[1].log == []


@pytest.mark.parametrize(
    ("visits", "owners", "moved"),
    [
        pytest.param(2, "01111", 1, id="several in a row take their connection along"),
        pytest.param(1, "01010", 0, id="a request here begins the row anew"),
    ],
)
async def test_a_connection_moves_when_several_in_a_row_are_for_one_other_process(
    visits: int, owners: str, moved: int
) -> None:
    async with two_servers() as two:
        forwarding(two, visits)
        async with await two.client(0) as client:
            for owner in owners:
                path = f"/{owner}/now"
                await client.send(post(path))
                assert (await client.answer()).body == expected(path)
        assert moves(two) == moved and len(two.movers[0].forwarded) == 2


async def test_answers_of_many_requests_at_once_come_in_order() -> None:
    chance = Random(7)
    async with two_servers() as two:
        forwarding(two, visits=2)
        paths = [f"/{chance.randrange(2)}/{chance.choice(WAYS)}/{at}" for at in range(200)]
        async with await two.client(0) as client:
            await client.send(
                b"".join(post(path, b"x" * (at % 50)) for at, path in enumerate(paths))
            )
            for at, path in enumerate(paths):
                assert (await client.answer()).body == expected(path, b"x" * (at % 50))
        assert two.movers[0].forwarded or two.movers[1].forwarded
        assert moves(two) > 0
        assert sorted(two.owners[0].paths + two.owners[1].paths) == sorted(paths)


async def test_a_large_request_takes_its_connection_along() -> None:
    async with two_servers() as two:
        forwarding(two)
        async with await two.client(0) as client:
            body = b"x" * 200_000
            for path in ("/0/read", "/1/read", "/0/now"):
                await client.send(post(path, body))
                assert (await client.answer()).body == expected(path, body)
        assert moves(two) >= 1


async def test_a_head_has_no_body_and_the_last_request_ends_the_connection() -> None:
    async with two_servers() as two:
        forwarding(two)
        async with await two.client(0) as client:
            await client.send(post("/0/now"))
            await client.answer()
            await client.send(request("/1/now", "HEAD"))
            assert (await client.answer("HEAD")).body == b""
            await client.send(request("/1/now", "POST", b"", "Connection: close"))
            assert (await client.answer()).body == expected("/1/now")
            assert await client.rest() == b""
        assert len(two.movers[0].forwarded) == 2


async def test_a_client_that_leaves_ends_its_forwarded_request() -> None:
    async with two_servers() as two:
        forwarding(two)
        client = await two.client(0)
        await client.send(post("/0/now"))
        await client.answer()
        await client.send(post("/1/quiet"))
        await client.until(b"/1/quiet")
        await client.stream.aclose()
        await two.until_empty()


async def test_a_server_that_drains_waits_for_answers_that_others_send() -> None:
    async with two_servers() as two:
        forwarding(two)
        async with await two.client(0) as client:
            await client.send(post("/0/now"))
            await client.answer()
            await client.send(post("/1/quiet"))
            await client.until(b"/1/quiet")
            two.servers[1].stop.set()
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not two.servers[1].ended.is_set()
        await two.servers[1].ended.wait()


async def test_a_forwarded_request_that_belongs_elsewhere_again_is_refused() -> None:
    async with two_servers() as two, await two.client(1) as client:
        await client.send(post("/1/now"))
        await client.answer()
        host = two.movers[1].host
        assert host is not None
        with pytest.raises(DatabaseMoved):
            await host.answer(post("/0/now"), None)
