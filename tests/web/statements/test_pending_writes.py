"""What writes is sent where it arrives and answered when it is durable; and never applied twice.

At the end of every test no database may be in use any more.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import trio

from qserver.control.logs import MemoryLogs, SizedLog
from qserver.control.plane import CONTROL
from qserver.durability.port import Log
from qserver.http1 import ServerOptions
from qserver.http1.head import END_OF_HEAD as END
from qserver.http1.head import parse_head
from qserver.web.app import Application
from tests.engine.fakes import HeldLog
from tests.http1.serving import Answer, Client
from tests.sampling import sampled
from tests.web.served import (
    ADMIN,
    USES_UNTIL_KNOWN,
    Served,
    Way,
    at_once,
    code_of,
    comparable,
    message,
    query,
    serving,
)

TABLES = (
    "create table parents (id int primary key, name text unique)",
    "create table t (id serial primary key, a text default 'none', n int not null default 7"
    " check (n >= 0), parent int references parents, x numeric, d date, j jsonb, l int[])",
    "create table counters (id int primary key, hits int not null)",
    "insert into parents select i, 'parent ' || i from generate_series(0, 9) s(i)",
    "insert into counters values (0, 0), (1, 0)",
)
INCREMENT = "update counters set hits = hits + 1 where id = $1 returning hits"
INSERT = "insert into t (a, n, x, d, j, l) values ($1, $2, 1.50, '2024-01-01', '{\"i\": 1}', '{1}')"


class HeldSizedLog(HeldLog, SizedLog):
    """A log that can be held and made to fail, and knows its size."""

    def hold(self) -> None:
        super().hold()
        self._before = len(self.groups)

    async def appending(self) -> None:
        """Return when an append has begun that is held."""
        while len(self.groups) == self._before:
            await trio.lowlevel.checkpoint()


class HeldLogs(MemoryLogs):
    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Log]:
        self._logs.setdefault(name, HeldSizedLog())
        async with super().open(name) as log:
            yield log

    def log_of(self, served: Served, database: str) -> HeldSizedLog:
        """By the name that people call the database."""
        (found,) = [
            self._logs[each.id]
            for each in served.service.databases.statistics()
            if each.name == database
        ]
        assert isinstance(found, HeldSizedLog)
        return found


def transaction(*statements: Any, token: str = ADMIN, **fields: Any) -> bytes:
    listed = [
        each if isinstance(each, str) else {"sql": each[0], "params": each[1]}
        for each in statements
    ]
    return message("POST", "/v1/transaction", {"statements": listed, **fields}, token)


@asynccontextmanager
async def writing(logs: HeldLogs | None = None) -> AsyncIterator[tuple[Served, Client]]:
    """A service with tables, and one connection to it; at the end nobody uses a database."""
    async with serving(logs) as served, await served.client() as client:
        await prepared(client)
        yield served, client
        assert set(users_of(served).values()) <= {0}, users_of(served)


async def prepared(client: Client, **headers: str) -> None:
    for sql in TABLES:
        answer = await client.ask(query(sql, **headers))
        assert answer.status == 200 and json.loads(answer.body)["success"], answer.body


def users_of(served: Served) -> dict[str, int]:
    """How many use each database; that of the control plane is always in use."""
    databases = served.service.databases.statistics()
    return {each.name: each.users for each in databases if each.id != CONTROL}


def body_of(answer: Answer) -> Any:
    return json.loads(answer.body)


async def hits(client: Client, counter: int = 0) -> int:
    answer = await client.ask(query("select hits from counters where id = $1", [counter]))
    return body_of(answer)["rows"][0]["hits"]  # type: ignore[no-any-return]


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["objects", "arrays"])
async def test_a_write_needs_no_task_once_its_plan_is_known(form: str) -> None:
    async with writing() as (served, client):
        body = {"sql": INCREMENT, "params": [0], "format": form}
        data = message("POST", "/v1/query", body)
        answer = body_of(await at_once(served, client, data))
        expected = USES_UNTIL_KNOWN + 1
        row = {"hits": expected} if form == "objects" else [expected]
        assert (answer["rows"], answer["affected_rows"], answer["retries"]) == ([row], 1, 0)
        assert 0 <= answer["timings"]["exec_us"] <= answer["timings"]["total_us"]
        assert await hits(client) == expected


@pytest.mark.parametrize("form", ["objects", "arrays"])
async def test_a_transaction_needs_no_task_once_its_plans_are_known(form: str) -> None:
    async with writing() as (served, client):
        data = transaction((INCREMENT, [0]), (INCREMENT, [1]), (INCREMENT, [0]), format=form)
        answer = body_of(await at_once(served, client, data))
        found = [each["rows"][0] for each in answer["results"]]
        ends = [served.ways[-1], answer["affected_rows"], answer["retries"]]
        assert ends == [Way.PENDING, 3, 0]
        values = [each["hits"] if form == "objects" else each[0] for each in found]
        assert values == [2 * USES_UNTIL_KNOWN + 1, USES_UNTIL_KNOWN + 1, 2 * USES_UNTIL_KNOWN + 2]
        assert sum(answer["timings"][each] for each in ("exec_us", "commit_us")) > 0


SINGLE: list[tuple[str, list[Any]]] = [
    (INSERT, [["a", 1], [None, 2], ["é", "3"], ["x", -1], ["x", None], ["x"], [1, 2, 3]]),
    (INSERT + " returning *", [["a", 1], ["b", 2**40], ["b", "no"]]),
    ("insert into t default values returning id, a, n, parent, x", [None, []]),
    ("insert into t (parent) values ($1) returning id", [[3], [40], ["x"]]),
    ("insert into t (n) values (10 / $1)", [[5], [0]]),
    (
        "insert into counters values (:id, 1) on conflict (id) do update"
        " set hits = counters.hits + 1 returning hits",
        [{"id": 0}, {"id": 7}, {"other": 1}, [1]],
    ),
    ("insert into counters values ($1, 0)", [[0], [8], [9]]),
    (INCREMENT, [[0], [1], [99]]),
    ("update t set n = n + 1, a = upper(a) where id <= $1 returning id, a", [[2], [3], [0]]),
    ("update parents set name = $1 where id = 1", [["new"], ["parent 2"]]),
    ("delete from counters where id = $1", [[7], [8], [9], [100]]),
    ("delete from parents where id = $1 returning name", [[9], [3]]),
    ("select hits from counters where id = $1", [[0]]),
    ("update nothing set n = 1 where id = $1", [[1]]),
    ("updat t", [None]),
    ("", [None]),
]


def some_bodies(random: Random) -> list[tuple[str, Any]]:
    """What is asked, with the path that it is asked on; each many times, so that plans are kept."""
    bodies: list[tuple[str, Any]] = []
    for _ in range(450):
        sql, givens = random.choice(SINGLE[:12] if random.random() < 0.9 else SINGLE)
        fields: dict[str, Any] = {"format": "arrays"} if random.random() < 0.3 else {}
        if random.random() < 0.05:
            fields["max_retries"] = random.choice([0, 2, -1])
        if random.random() < 0.05:
            fields["max_rows"] = 1
        if random.random() < 0.6:
            bodies.append(("/v1/query", {"sql": sql, "params": random.choice(givens), **fields}))
            continue
        statements = []
        for _ in range(random.randrange(1, 4)):
            sql, givens = random.choice(SINGLE[:12] if random.random() < 0.95 else SINGLE)
            # Most take what is right for all of them, so that whole transactions succeed too.
            params = givens[0] if random.random() < 0.85 else random.choice(givens)
            statements.append({"sql": sql, "params": params})
        bodies.append(("/v1/transaction", {"statements": statements, **fields}))
    return bodies


def as_new(body: Any, number: int) -> Any:
    """The same request with statements that nobody has seen, so that they have to be planned."""
    if "sql" in body:
        return {**body, "sql": f"{body['sql']} /* {number} */"}
    listed = [as_new(each, number) for each in body["statements"]]
    return {**body, "statements": listed}


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(2), 1))
async def test_whatever_is_written_is_answered_as_if_it_were_new(seed: int) -> None:
    async with writing() as (served, client), writing() as (_, other):
        pending: dict[tuple[str, bool], int] = {}
        for number, (path, body) in enumerate(some_bodies(Random(seed))):
            found = comparable(await client.ask(message("POST", path, body)))
            new = message("POST", path, as_new(body, number))
            assert found == comparable(await other.ask(new)), body
            if served.ways[-1] is Way.PENDING:
                kind = path, found[2]["success"]
                pending[kind] = pending.get(kind, 0) + 1
        assert pending["/v1/query", True] > 50
        assert pending["/v1/transaction", True] > 20
        for table in ("parents", "t", "counters"):
            all_rows = query(f"select * from {table} order by 1")
            assert comparable(await client.ask(all_rows)) == comparable(await other.ask(all_rows))


async def test_an_error_is_said_in_full_and_nothing_is_left_of_it() -> None:
    async with writing() as (served, client):
        insert = "insert into t (n, parent) values ($1, $2)"
        good = transaction((INCREMENT, [0]), (insert, [1, 1]))
        for _ in range(USES_UNTIL_KNOWN):
            await client.ask(good)
        codes = set()
        for params in ([None, 1], [-1, 1], [1, 77], ["x", 1], [1], [2**40, 1], {"n": 1}):
            for _ in range(2):
                found = await client.ask(transaction((INCREMENT, [0]), (insert, params)))
                assert body_of(found)["error"]["statement"] == 1
                assert body_of(found)["results"] == []
                codes.add(body_of(found)["error"]["code"])
        assert {"23502", "23514", "23503"} < codes
        assert await hits(client) == USES_UNTIL_KNOWN
        served.ways.clear()
        for _ in range(3):
            assert body_of(await client.ask(good))["success"]
        assert Way.PENDING in served.ways, "an error does not keep the next ones from it"


async def test_every_write_is_counted_and_logged_once() -> None:
    async with writing() as (served, client):
        for at in range(40):
            await client.ask(transaction((INCREMENT, [at % 2]), (INCREMENT, [0])))
            await client.ask(transaction((INSERT, ["a", -1])))
        assert served.ways.count(Way.PENDING) > 20
        text = (await client.ask(message("GET", "/metrics"), "GET")).body.decode()
        prefix = 'qserver_requests_total{route="/v1/transaction",status="200"} '
        (counted,) = [
            line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix)
        ]
        assert float(counted) == 80
        logged = [line.split()[-1] for line in served.log if "/v1/transaction" in line]
        assert len(logged) == len(set(logged)) == 80


# --- many at once ---------------------------------------------------------------------------------


async def test_many_connections_that_count_on_one_row_lose_nothing_and_are_told_once() -> None:
    connections, each_sends = 12, 15
    told: list[int] = []

    async def count(served: Served, kind: int) -> None:
        async with await served.client() as client:
            data = query(INCREMENT, [0]) if kind else transaction((INCREMENT, [0]))
            await client.send(data * each_sends)  # one after the other, as fast as they go
            for _ in range(each_sends):
                body = body_of(await client.answer())
                assert body["success"], body
                told.append((body if kind else body["results"][0])["rows"][0]["hits"])

    async with writing() as (served, client):
        await at_once(served, client, query(INCREMENT, [0]))
        before = await hits(client)
        count_before = len(served.ways)
        async with trio.open_nursery() as nursery:
            for number in range(connections):
                nursery.start_soon(count, served, number % 2)
        pending = served.ways[count_before:].count(Way.PENDING)
        after = await hits(client)
        assert after == before + connections * each_sends
        assert sorted(told) == list(range(before + 1, after + 1))
        assert pending > connections * each_sends / 2


async def test_of_those_who_want_one_key_one_gets_it() -> None:
    async with writing() as (served, client):
        sql = "insert into counters values ($1, 0)"
        for _ in range(USES_UNTIL_KNOWN):
            await client.ask(query(sql, [0]))
        answers = []

        async def claim(number: int) -> None:
            async with await served.client() as own:
                for at in range(10, 30):
                    answers.append(body_of(await own.ask(query(sql, [at]))))

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(claim, number)
        refused = [each["error"] for each in answers if not each["success"]]
        assert len(answers) - len(refused) == 20, "each key has one who got it"
        assert {each["code"] for each in refused} == {"23505"}


# --- when nobody knows ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/query", "/v1/transaction"])
@pytest.mark.parametrize("applied", [False, True])
async def test_a_commit_of_which_nobody_knows_is_not_sent_again(path: str, applied: bool) -> None:
    logs = HeldLogs()
    async with writing(logs) as (served, client):
        data = query(INCREMENT, [0]) if path == "/v1/query" else transaction((INCREMENT, [0]))
        await at_once(served, client, data)
        before = await hits(client)
        log = logs.log_of(served, "main")
        log.fails_before_append, log.fails_after_append = not applied, applied
        answer = await client.ask(data)
        log.fails_before_append = log.fails_after_append = False
        body = body_of(answer)
        error = body["error"]
        assert (answer.status, body["success"], served.ways[-1]) == (200, False, Way.PENDING)
        assert (error["code"], error["name"], error["retryable"]) == (
            "08007",
            "transaction_resolution_unknown",
            False,
        )
        assert error["request_id"] == answer.header("x-request-id")
        assert error["hint"] and error["detail"]
        assert body.get("results") == (None if path == "/v1/query" else [])
        assert await hits(client) == before + applied
        again = await client.ask(data)
        assert body_of(again)["success"], "the connection goes on"


# --- while the log takes its time -----------------------------------------------------------------


async def test_nobody_is_answered_before_the_log_has_it_and_others_are_served_meanwhile() -> None:
    logs = HeldLogs()
    async with writing(logs) as (served, client), await served.client() as other:
        await at_once(served, client, query(INCREMENT, [0]))
        log = logs.log_of(served, "main")
        before = await hits(other)
        log.hold()
        await client.send(query(INCREMENT, [0]))
        await log.appending()
        assert await hits(other) == before, "what is not durable is seen by nobody"
        assert users_of(served) == {"main": 1}
        log.release()
        assert body_of(await client.answer())["rows"] == [{"hits": before + 1}]


async def test_a_client_that_leaves_does_not_keep_the_database_and_its_write_is_done() -> None:
    logs = HeldLogs()
    async with writing(logs) as (served, client):
        await at_once(served, client, query(INCREMENT, [0]))
        log = logs.log_of(served, "main")
        before = await hits(client)
        log.hold()
        async with await served.client() as leaving:
            await leaving.send(query(INCREMENT, [0]))
            await log.appending()
        assert served.ways[-1] is Way.PENDING
        log.release()
        while users_of(served)["main"]:
            await trio.lowlevel.checkpoint()
        assert await hits(client) == before + 1


async def test_a_request_that_is_closed_before_it_was_begun_lets_its_database_go() -> None:
    async with writing() as (served, client):
        await hits(client)
        head, _, body = query("select count(*) from generate_series(1, 10000000)").partition(END)
        request = parse_head(head + END, ServerOptions()).request
        endpoint = Application(served.service, served.service.running, "x-").endpoint(request)
        answer = endpoint.handle(body, None, lambda answer: True, {})
        assert isinstance(answer, Coroutine) and users_of(served) == {"main": 1}
        answer.close()
        assert users_of(served) == {"main": 0}


async def test_a_database_that_is_deleted_while_one_writes_waits_for_it() -> None:
    logs = HeldLogs()
    async with writing(logs) as (served, client), await served.client() as admin:
        await served.admin("POST", "/v1/databases", {"name": "second"})
        await prepared(client, X_Database="second")
        data = query(INCREMENT, [0], X_Database="second")
        await at_once(served, client, data)
        log = logs.log_of(served, "second")
        log.hold()
        await client.send(data)
        await log.appending()
        await admin.send(message("DELETE", "/v1/databases/second"))
        while "second" in users_of(served):
            await trio.lowlevel.checkpoint()
        log.release()
        answer = await client.answer()
        assert body_of(answer)["rows"] == [{"hits": USES_UNTIL_KNOWN + 2}]
        assert (await admin.answer("DELETE")).status < 300
        assert code_of(await client.ask(data))[0] == 404


async def test_a_database_that_is_gone_is_gone_for_writes_too() -> None:
    async with writing() as (served, client):
        await served.admin("POST", "/v1/databases", {"name": "second"})
        await prepared(client, X_Database="second")
        data = query(INCREMENT, [0], X_Database="second")
        await at_once(served, client, data)
        await served.admin("DELETE", "/v1/databases/second")
        assert code_of(await client.ask(data))[0] == 404
        await served.admin("POST", "/v1/databases", {"name": "second"})
        assert code_of(await client.ask(data))[1] == "42P01"


# --- who may not ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scopes", [["data:read"], ["data:write"]])
async def test_a_key_does_what_its_scopes_allow(scopes: list[str]) -> None:
    async with writing() as (served, client):
        token = (await served.admin("POST", "/v1/keys", {"name": "k", "scopes": scopes}))["key"]
        write = (INCREMENT, [0])
        mixed = [write, ("select hits from counters where id = $1", [0])]
        for data in (query(*write), transaction(write), transaction(*mixed)):
            await at_once(served, client, data)
        before = await hits(client)
        writer = scopes == ["data:write"]
        allowed = 200 if writer else 403
        for _ in range(2):
            assert (await client.ask(query(*write, token=token))).status == allowed
            assert (await client.ask(transaction(write, token=token))).status == allowed
            assert (await client.ask(transaction(*mixed, token=token))).status == 403
        assert await hits(client) == before + (4 if writer else 0)
