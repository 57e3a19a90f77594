"""Two organizations side by side, one of them hostile: the other gets what it needs."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from qserver.engine.turns import Turns
from tests.http1.serving import Client
from tests.web.served import ADMIN, Served, code_of, message, opened_transaction, query, serving

MIB = 1024 * 1024
FILL = "insert into t select i from generate_series($1::int, $1::int + 20000) s(i)"
LARGE = "select length(string_agg(repeat('x', 1000), '')) from generate_series(1, 8000)"
"""Holds 8 MB while it runs."""


async def organization(served: Served, name: str) -> str:
    """The key of a new organization, without a limit of its rate."""
    made = await served.admin("POST", "/v1/signup", {"organization": name})
    token: str = made["key"]
    return token


async def answer(client: Client, data: bytes) -> Any:
    return json.loads((await client.ask(data)).body)


async def code(client: Client, data: bytes) -> str | None:
    error = (await answer(client, data)).get("error")
    return None if error is None else error["code"]


def inside(transaction: str, token: str, sql: str, *params: Any) -> bytes:
    body = {"sql": sql, "params": params, "transaction": transaction}
    return message("POST", "/v1/query", body, token)


async def fill_transactions(client: Client, token: str) -> tuple[int, list[str]]:
    """Open transactions that write, until one is refused; how many there are, and the codes."""
    await client.ask(query("create table t (id int primary key)", token=token))
    codes = []
    for number in range(40):
        transaction = await opened_transaction(client, token=token)
        found = await code(client, inside(transaction, token, FILL, number * 100_000))
        if found is not None:
            codes.append(found)
            if len(codes) == 3:
                return number, codes
    raise AssertionError("nothing was refused")


@pytest.mark.long
@pytest.mark.parametrize("hostile_is_default", [True, False])
async def test_open_transactions_of_one_leave_memory_for_another(hostile_is_default: bool) -> None:
    async with serving(QSERVER_MEMORY_BYTES_MAX=str(64 * MIB)) as served:
        other = await organization(served, "other")
        hostile, good = (ADMIN, other) if hostile_is_default else (other, ADMIN)
        async with await served.client() as client:
            assert await code(client, query(LARGE, token=good)) is None
            count, codes = await fill_transactions(client, hostile)
            assert count >= 4 and set(codes) == {"53200"}
            assert served.service.memory.held <= 33 * MIB, "as much is left as it has"
            for _ in range(3):
                assert await code(client, query(LARGE, token=good)) is None
            assert await code(client, query(LARGE, token=hostile)) == "53200"
            await fill_transactions(client, good)


@pytest.mark.long
async def test_an_organization_that_is_alone_has_all_memory() -> None:
    async with serving(QSERVER_MEMORY_BYTES_MAX=str(64 * MIB)) as served:
        async with await served.client() as client:
            await fill_transactions(client, ADMIN)
            assert served.service.memory.held > 50 * MIB


async def test_a_body_without_a_key_has_a_share_of_its_own() -> None:
    async with serving() as served:
        data = message("POST", "/v1/signup", {"organization": "late"}, headers={"X": "y"})
        async with await served.client() as client:
            await client.send(data[:-5])
            await trio.sleep(0.01)
            await client.send(data[-5:])
            assert (await client.answer()).status == 201


HEAVY = "select count(*) from generate_series(1, 100000000) s(i) where i % 7 = 3"


def heavy(token: str) -> list[bytes]:
    """The same statement on each way to run one."""
    lines = {"Accept": "application/x-ndjson"}
    return [
        query(HEAVY, token=token),
        message("POST", "/v1/query", {"sql": HEAVY}, token, lines),
        message("POST", "/v1/transaction", {"statements": [HEAVY]}, token),
        message("GET", f"/v1/query?sql={quote(HEAVY)}", None, token),
    ]


@pytest.mark.long
async def test_many_heavy_statements_of_one_get_no_more_time_than_one_of_another(
    mock_clock: MockClock,
) -> None:
    """The clock stands still, so each step counts as much: beside 40 statements, one would get a
    fortieth of them."""
    async with serving() as served:
        tokens = [await organization(served, name) for name in ("hostile", "good")]
        hostile, good = [await _turns(served, token) for token in tokens]
        async with trio.open_nursery() as nursery:
            for data in heavy(tokens[0]) * 10:
                nursery.start_soon(_ask_and_forget, served, data)
            while len(hostile.waiting) < 39:
                await trio.lowlevel.checkpoint()
            before = hostile.steps, good.steps
            async with await served.client() as client:
                sql = "select count(*) from generate_series(1, 200000) s(i) where i % 7 = 3"
                end = await code(client, query(sql, token=tokens[1]))
            gone = hostile.steps - before[0], good.steps - before[1]
            waiting = len(hostile.waiting)
            mock_clock.rate = 1.0  # that they have left is noticed in time
            nursery.cancel_scope.cancel()
    assert end is None and waiting >= 39, "they went on meanwhile"
    assert gone[1] > 10 and gone[0] < 2 * gone[1]


@pytest.mark.long
async def test_requests_under_way_past_its_share_are_refused_and_others_go_on() -> None:
    """Streams that nobody reads, statements that take long, live queries, feeds."""
    async with serving(
        QSERVER_STATEMENT_TIMEOUT_MAX="10m", QSERVER_STATEMENT_TIMEOUT="10m"
    ) as served:
        tokens = [await organization(served, name) for name in ("hostile", "good")]
        limits = {"connections": 12}
        await served.admin("PATCH", "/v1/organizations/hostile", {"limits": limits})
        live = {"sql": "select 1", "live": True}
        ways = [
            query(HEAVY, token=tokens[0]),
            message("POST", "/v1/query", {"sql": HEAVY}, tokens[0], {"Accept": "text/csv"}),
            message("POST", "/v1/query", live, tokens[0]),
            message("GET", "/v1/changes?since=0", None, tokens[0], {"Accept": "text/event-stream"}),
        ]
        share = (await served.service.plane.authenticate(tokens[0])).share
        async with trio.open_nursery() as nursery:
            for data in ways * 3:
                nursery.start_soon(_ask_and_forget, served, data)
            while share.connections < 12:
                await trio.lowlevel.checkpoint()
            async with await served.client() as client:
                for data in (*ways, query("select 1", token=tokens[0])):
                    refused = await client.ask(data)
                    assert code_of(refused) == (503, "53300")
                    assert refused.header("retry-after") is not None
                assert await code(client, query("select 1", token=tokens[1])) is None
            nursery.cancel_scope.cancel()
        async with await served.client() as client:
            while await code(client, query("select 1", token=tokens[0])) is not None:
                assert share.connections > 0, "they are noticed as gone"


async def _ask_and_forget(served: Served, data: bytes) -> None:
    async with await served.client() as client:
        await client.send(data)
        await trio.sleep_forever()


async def _turns(served: Served, token: str) -> Turns:
    return (await served.service.plane.authenticate(token)).share.turns
