"""Queries whose key, database and plan are known are answered where they arrive; what was taken
away is gone at once.

What writes is the matter of `test_pending_writes`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qserver.control.plane import CONTROL
from tests.http1.serving import Answer, Client
from tests.sampling import examples
from tests.web.served import (
    POINT,
    ROWS,
    Served,
    Way,
    at_once,
    code_of,
    comparable,
    filled,
    message,
    query,
    serving,
)

# --- the same answers -----------------------------------------------------------------------------


async def test_an_answer_at_once_has_what_every_answer_has() -> None:
    async with serving() as served, await served.client() as client:
        await filled(client)
        answer = await at_once(served, client, query(POINT, [3]))
        assert json.loads(answer.body)["rows"] == [{"a": "row 3", "n": 3}]
        request_id = answer.header("x-request-id")
        assert request_id is not None and request_id.startswith("test-")
        assert answer.header("content-type") == "application/json"
        assert answer.header("ratelimit") == '"unlimited"'
        other = await at_once(served, client, query(POINT, [3]))
        assert other.header("x-request-id") != request_id
        timings = json.loads(answer.body)["timings"]
        assert 0 <= timings["exec_us"] <= timings["total_us"]


SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, ROWS + 2),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["1", "row 7", "2024-02-01", [], [1, None], {"i": 3}]),
)
STATEMENTS = st.one_of(
    st.sampled_from(
        [
            POINT,
            "select * from t where id = $1",
            "select * from t where id between $1 and $2",
            "select a, a, 1 / n from t where id = $1",
            "select x, d, j, l from t where id = :id",
            "select id from t where a = $1",
            "select $1::int + 1 as sum",
            "select $1 as text, $2::jsonb as document",
            "select count(*), sum(x), max(d) from t where id < $1",
            "select * from t where id > $1",
            "update t set n = n where id = -1",
            "delete from t where id = $1 and false",
            "select nothing from t",
            "selekt",
            "",
            "select 'it''s', E'\\n', 1.50, true, null, interval '1 day'",
            "select table_name from information_schema.tables",
            "select 9e99999 * 9e99999",
            "select i from generate_series(1, 1024) s(i)",
            "select nextval('none')",
        ]
    ),
    st.integers(-1, 50).map(lambda at: f"select a, x from t where id = {at}"),
    st.integers(-1, 50).map(lambda at: f"select 10 / (n - {at}) as q from t where id = {at}"),
)
BODIES = st.fixed_dictionaries(
    {"sql": STATEMENTS},
    optional={
        "params": st.one_of(
            st.lists(SIMPLE, max_size=3),
            st.lists(st.integers(-1, 60), min_size=1, max_size=2),
            st.dictionaries(st.sampled_from(["id", "other"]), SIMPLE, max_size=2),
            st.just(5),
        ),
        "format": st.sampled_from(["objects", "arrays", "arrays", "columns"]),
        "database": st.sampled_from(["main", "second", "none", "", None, 3]),
        "max_rows": st.sampled_from([0, 1, 5, -1, None]),
        "timeout_ms": st.sampled_from([1000, 30_000, 0]),
        "max_retries": st.sampled_from([0, 3]),
        "unknown": st.just(1),
    },
)
PLAIN_BODIES = st.fixed_dictionaries(
    {"sql": STATEMENTS, "params": st.lists(st.integers(-1, 60), min_size=1, max_size=2)},
    optional={"format": st.sampled_from(["objects", "arrays"])},
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "X-Database": st.sampled_from(["main", "second", "none"]),
        "Content-Type": st.sampled_from(
            ["application/json", "application/json; charset=utf-8", "text/plain", "text/json"]
        ),
        "Accept": st.sampled_from(["*/*", "application/json"]),
        "Origin": st.sampled_from(["https://page.example", "https://other.example"]),
        "Host": st.sampled_from(["data.example", "alias.example", "control.example", "1.2.3.4"]),
        "Idempotency-Key": st.just("one"),
    },
)
NO_HEADERS: st.SearchStrategy[dict[str, str]] = st.just({})
URLS = {
    "QSERVER_DATA_URL": "http://data.example",
    "QSERVER_ALIAS_URL": "http://alias.example",
    "QSERVER_CONTROL_URL": "http://control.example",
    "QSERVER_CORS_ORIGINS": "https://page.example,https://app.example",
}


@pytest.mark.long
async def test_the_same_request_gets_the_same_answer_at_once_and_in_a_task() -> None:
    async with serving(**URLS) as served, await served.client() as client:
        await filled(client)
        await served.admin("POST", "/v1/databases", {"name": "second"})

        async def ask(data: bytes) -> Answer:
            return await client.ask(data)

        async def ask_later(data: bytes) -> Answer:
            """Send the last byte when the request has begun: a task waits for it."""
            await client.send(data[:-1])
            await trio.sleep(0.001)
            return await client.ask(data[-1:])

        @given(
            st.one_of(PLAIN_BODIES, PLAIN_BODIES, BODIES, st.binary(max_size=20)),
            st.one_of(NO_HEADERS, NO_HEADERS, HEADERS),
        )
        @settings(
            max_examples=examples(200),
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        def same(body: Any, headers: dict[str, str]) -> None:
            data = message("POST", "/v1/query", body, headers=headers)
            trio.from_thread.run(ask, data)  # with a key: applied now, and repeated from now on
            expected = comparable(trio.from_thread.run(ask, data))
            for each in (ask, ask_later, ask):
                assert comparable(trio.from_thread.run(each, data)) == expected

        await trio.to_thread.run_sync(same)
        assert served.ways.count(Way.AT_ONCE) > examples(200) // 10
        assert served.ways.count(Way.TASK) > examples(200) // 20


async def test_a_database_without_a_name_is_not_the_one_of_the_header() -> None:
    async with serving() as served, await served.client() as client:
        await filled(client)
        headers = {"X-Database": "main"}
        named: dict[str, Any] = {"sql": POINT, "params": [3], "database": "main"}
        await at_once(served, client, message("POST", "/v1/query", named, headers=headers))
        named["database"] = ""
        for _ in range(3):
            answer = await client.ask(message("POST", "/v1/query", named, headers=headers))
            assert answer.status == 404


async def test_every_request_is_counted_and_logged_once() -> None:
    async with serving() as served, await served.client() as client:
        await filled(client)
        for at in range(40):
            for sql in (POINT, "select 1 / (n - n) from t where id = $1", "delete from t where $1"):
                await client.ask(query(sql, [at]))
        assert served.ways.count(Way.AT_ONCE) > 20
        text = (await client.ask(message("GET", "/metrics"), "GET")).body.decode()
        counted = {
            line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if line.startswith('qserver_requests_total{route="/v1/query"')
        }
        assert counted == {'qserver_requests_total{route="/v1/query",status="200"}': 2 + 3 * 40}
        logged = [line.split() for line in served.log if "/v1/query" in line]
        assert len(logged) == 2 + 3 * 40
        ids = [line[-1] for line in logged if line[-1] != "setup"]
        assert len(set(ids)) == len(ids)


# --- what was taken away is gone at once ----------------------------------------------------------


@asynccontextmanager
async def with_key(**fields: Any) -> AsyncIterator[tuple[Served, Client, dict[str, Any], bytes]]:
    """A connection that was answered at once with a key of its own, just now."""
    async with serving(**URLS) as served, await served.client() as client:
        await filled(client)
        key = await served.admin("POST", "/v1/keys", {"name": "test", **fields})
        data = query(POINT, [3], token=key["key"])
        assert (await at_once(served, client, data)).status == 200
        yield served, client, key, data


async def test_a_key_that_was_revoked_is_refused_on_the_next_request() -> None:
    async with with_key() as (served, client, key, data):
        await served.admin("DELETE", f"/v1/keys/{key['id']}")
        assert (await client.ask(data)).status == 401


async def test_a_key_that_has_expired_is_refused_on_the_next_request() -> None:
    async with with_key(expires_in=60) as (served, client, _, data):
        served.clock[0] += 59
        assert (await client.ask(data)).status == 200
        served.clock[0] += 2
        assert (await client.ask(data)).status == 401


async def test_a_session_that_was_ended_is_refused_on_the_next_request() -> None:
    async with serving() as served, await served.client() as client:
        await filled(client)
        token = (await served.admin("POST", "/v1/session"))["session"]["token"]
        data = query(POINT, [3], token=token)
        assert (await at_once(served, client, data)).status == 200
        async with await served.client() as other:
            ended = await other.ask(message("DELETE", "/v1/session", token=token), "DELETE")
            assert ended.status == 204
        assert (await client.ask(data)).status == 401


async def test_a_scope_that_was_taken_away_is_missed_on_the_next_request() -> None:
    async with with_key(scopes=["data:read", "data:write"]) as (served, client, key, data):
        await served.admin("PATCH", f"/v1/keys/{key['id']}", {"scopes": ["data:write"]})
        answer = await client.ask(data)
        assert answer.status == 403


async def test_a_key_that_may_only_read_cannot_write_by_any_way() -> None:
    async with with_key(scopes=["data:read"]) as (_, client, key, _):
        sql = "delete from t where id = $1"
        await client.ask(query(sql, [1]))  # its plan is kept now
        for _ in range(3):
            assert (await client.ask(query(sql, [2], token=key["key"]))).status == 403
        kept = await client.ask(query(POINT, [2], token=key["key"]))
        assert json.loads(kept.body)["rows"] != []


async def test_a_database_that_was_taken_from_a_key_is_refused_on_the_next_request() -> None:
    async with with_key() as (served, client, key, data):
        await served.admin("POST", "/v1/databases", {"name": "second"})
        await served.admin("PATCH", f"/v1/keys/{key['id']}", {"databases": ["second"]})
        second = await client.ask(data)
        assert code_of(second)[1] == "42P01", "there is no such table in what is its own now"
        named = query(POINT, [3], token=key["key"], X_Database="main")
        for _ in range(3):
            assert (await client.ask(named)).status == 403


async def test_a_database_that_was_renamed_is_found_by_its_new_name_only() -> None:
    async with serving() as served, await served.client() as client:
        await served.admin("POST", "/v1/databases", {"name": "second"})
        by_name = query("select 1 as one where $1 = 1", [1], X_Database="second")
        assert (await at_once(served, client, by_name)).status == 200
        await served.admin("PATCH", "/v1/databases/second", {"name": "third"})
        assert (await client.ask(by_name)).status == 404
        renamed = by_name.replace(b"second", b"third")
        assert (await at_once(served, client, renamed)).status == 200


async def test_a_database_that_was_deleted_is_gone_and_a_new_one_of_its_name_is_empty() -> None:
    async with serving() as served, await served.client() as client:
        await served.admin("POST", "/v1/databases", {"name": "second"})
        for sql in ("create table t (id int primary key)", "insert into t values (1)"):
            assert (await client.ask(query(sql, X_Database="second"))).status == 200
        data = query("select id from t where id = $1", [1], X_Database="second")
        assert (await at_once(served, client, data)).status == 200
        await served.admin("DELETE", "/v1/databases/second")
        assert code_of(await client.ask(data))[0] == 404
        await served.admin("POST", "/v1/databases", {"name": "second"})
        assert code_of(await client.ask(data))[1] == "42P01"


async def test_an_organization_with_a_limit_is_answered_at_once_and_counted() -> None:
    async with serving() as served, await served.client() as client:
        key = (await served.admin("POST", "/v1/signup", {"organization": "limited"}))["key"]
        left, ways = [], []
        answer = await client.ask(query("select $1::int", [1], token=key))
        while answer.status == 200:
            assert answer.header("ratelimit-policy") == '"free";q=200;w=60'
            limit = answer.header("ratelimit")
            assert limit is not None
            left.append(int(limit.split(";")[1].removeprefix("r=")))
            ways.append(served.ways[-1])
            answer = await client.ask(query("select $1::int", [1], token=key))
        assert left == list(range(199, -1, -1))
        assert ways.count(Way.AT_ONCE) > 150
        wait = answer.header("retry-after")  # less than a minute where 200 requests took a while
        assert (answer.status, answer.header("ratelimit")) == (429, f'"free";r=0;t={wait}')
        assert wait is not None and 0 < int(wait) <= 60
        assert served.ways[-1] is Way.AT_ONCE


async def test_a_limit_that_is_new_counts_from_the_next_request_on() -> None:
    async with with_key() as (served, client, _, data):
        with await served.service.databases.use(CONTROL) as control:
            await control.sql.execute("update organizations set tier = 'free'")
        answer = await client.ask(data)
        limit = answer.header("ratelimit")
        assert limit is not None and limit.startswith('"free";r=')


# --- heads that are not the same ------------------------------------------------------------------


async def test_each_origin_gets_its_own_headers() -> None:
    async with serving(**URLS) as served, await served.client() as client:
        await filled(client)
        for _ in range(2):
            for origin in ("https://page.example", "https://app.example", "https://evil.example"):
                answer = await at_once(served, client, query(POINT, [3], Origin=origin))
                allowed = answer.header("access-control-allow-origin")
                assert allowed == (None if "evil" in origin else origin)
                assert answer.header("vary") == "Origin, Accept-Encoding"


async def test_each_host_serves_what_it_is_for_on_one_connection() -> None:
    async with serving(**URLS) as served, await served.client() as client:
        await filled(client)
        await at_once(served, client, query(POINT, [3]))
        for _ in range(3):
            alias = await client.ask(query(POINT, [3], Host="alias.example"))
            assert (alias.status, alias.header("via")) == (200, "1.1 qserver-alias")
            assert (await client.ask(query(POINT, [3], Host="control.example"))).status == 404
            direct = await at_once(served, client, query(POINT, [3], Host="data.example"))
            assert (direct.status, direct.header("via")) == (200, None)


async def test_a_request_id_of_the_caller_is_repeated_at_once() -> None:
    async with serving() as served, await served.client() as client:
        await filled(client)
        answer = await at_once(served, client, query(POINT, [3], X_Request_Id="mine"))
        assert answer.header("x-request-id") == "mine"


# --- many at once ---------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
async def test_many_connections_that_do_all_kinds_of_things_get_their_own_answers(
    seed: int,
) -> None:
    async with serving() as served:
        async with await served.client() as client:
            await filled(client)
        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(_talk, served, Random(seed * 1000 + number), number)
        assert served.ways.count(Way.AT_ONCE) > 100
        assert served.ways.count(Way.PENDING) > 20


async def _talk(served: Served, random: Random, number: int) -> None:
    async with await served.client() as client:
        for _ in range(random.randrange(2, 6)):
            asked = [_some_request(random, number) for _ in range(random.randrange(1, 8))]
            async with trio.open_nursery() as nursery:
                data = b"".join(each[0] for each in asked)
                nursery.start_soon(_send_in_pieces, client, random, data)
                for _, check in asked:
                    answer = await client.answer()
                    check(answer)


def _some_request(random: Random, number: int) -> tuple[bytes, Callable[[Answer], None]]:
    at = random.randrange(1, ROWS + 1)
    kind = random.choice(["point", "point", "point", "literal", "write", "error", "many", "health"])
    if kind == "health":
        return message("GET", "/health"), lambda answer: _expect(answer.status, 200)
    if kind == "error":
        data = query("select 1 / (n - n) from t where id = $1", [at])
        return data, lambda answer: _expect(code_of(answer)[1], "22012")
    if kind == "many":
        data = query("select id from t where id > $1", [at])
        return data, lambda answer: _expect(len(json.loads(answer.body)["rows"]), ROWS - at)
    if kind == "write":
        mark = f"{number} {random.random()}"
        data = query("update t set d = d where id = $1 returning id, $2 as mark", [at, mark])
        return data, lambda answer: _expect(_rows(answer), [{"id": at, "mark": mark}])
    if kind == "literal":
        data = query(f"select id, a from t where id = {at}")
    else:
        data = query("select id, a from t where id = $1", [at])
    return data, lambda answer: _expect(_rows(answer), [{"id": at, "a": f"row {at}"}])


def _rows(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["rows"]


def _expect(found: object, wanted: object) -> None:
    assert found == wanted


async def _send_in_pieces(client: Client, random: Random, data: bytes) -> None:
    while data:
        size = random.choice([30, 200, len(data), len(data)])
        await client.send(data[:size])
        data = data[size:]
        await trio.lowlevel.checkpoint()
