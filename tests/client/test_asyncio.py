"""The awaiting client on asyncio: the calls that wait in their own ways, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from qserver.client import AsyncClient, ConnectionFailed, TrioClient
from qserver.errors import UniqueViolation
from tests.cli.real_server import KEY, real_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with real_server() as address:
        yield address


def on_asyncio(url: str, work: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with AsyncClient(url, KEY) as client:
            return await work(client)

    return asyncio.run(main())


def test_queries_transactions_and_rows_in_bulk(url: str) -> None:
    async def work(client: AsyncClient) -> None:
        await client.query("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        rows = ({"id": n, "name": f"n{n}"} for n in range(3000))
        assert (await client.insert_rows("t", rows)).affected_rows == 3000
        async with client.begin() as transaction:
            await transaction.query("UPDATE t SET name = 'changed' WHERE id = $1", [1])
        with pytest.raises(UniqueViolation):
            async with client.begin() as transaction:
                await transaction.query("DELETE FROM t WHERE id = 2")
                await transaction.query("INSERT INTO t VALUES (1, 'again')")
        found = await client.query("SELECT name FROM t WHERE id IN (1, 2) ORDER BY id")
        assert found.rows == [("changed",), ("n2",)]
        assert len(await client.arrow("SELECT id FROM t")) == 3000

    on_asyncio(url, work)


def test_streams_are_read_to_the_end_and_left_early(url: str) -> None:
    async def work(client: AsyncClient) -> None:
        async with client.stream("SELECT i FROM generate_series(1, 20000) g(i)") as rows:
            assert sum([row[0] async for row in rows]) == 200_010_000
        async with client.stream("SELECT i FROM generate_series(1, 10000000) g(i)") as rows:
            async for row in rows:
                assert row == (1,)
                break
        assert (await client.query("SELECT 1")).rows == [(1,)]

    on_asyncio(url, work)


def test_live_queries_and_changes_arrive(url: str) -> None:
    async def work(client: AsyncClient) -> None:
        await client.query("CREATE TABLE watched (id INTEGER PRIMARY KEY)")
        async with client.live("SELECT id FROM watched") as query:
            done = await client.query("INSERT INTO watched VALUES (7)")
            async for change in query:
                assert change.inserted == [(7,)] and query.rows == [(7,)]
                break
        assert done.version is not None
        async with client.changes(done.version - 1, ["watched"]) as feed:
            async for version in feed:
                assert version.changes[0]["after"] == {"id": 7}
                break

    on_asyncio(url, work)


def test_calls_at_once_and_one_that_is_cancelled(url: str) -> None:
    async def work(client: AsyncClient) -> None:
        many = await asyncio.gather(*[client.query("SELECT $1::int", [n]) for n in range(20)])
        assert [result.rows[0][0] for result in many] == list(range(20))
        slow = asyncio.create_task(
            client.query("SELECT count(*) FROM generate_series(1, 1000000000)")
        )
        await client.query("SELECT 1")
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await client.query("SELECT 2")).rows == [(2,)]

    on_asyncio(url, work)


def test_a_server_that_is_not_there_is_told(url: str) -> None:
    async def work(client: AsyncClient) -> None:
        with pytest.raises(ConnectionFailed):
            await client.query("SELECT 1")

    on_asyncio("http://127.0.0.1:9", work)


def test_the_earlier_name_is_the_same_client() -> None:
    assert TrioClient is AsyncClient
