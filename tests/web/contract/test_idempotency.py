"""Sections 4 and 13: a request with an Idempotency-Key is applied once, however often it comes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from qserver.limits import ANSWER_STORED_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX
from qserver.web.description import catalogue
from tests.web.contract.conftest import ADMIN_KEY
from tests.web.contract.servers import KINDS, Client, Server, error_of, start

INSERT = {"sql": "insert into t (x) values ($1) returning id, x", "params": ["one"]}


@pytest.fixture
def table(fresh: Client) -> Client:
    fresh.query("create table t (id serial primary key, x text)")
    return fresh


def send(client: Client, body: Any, key: str = "k", path: str = "/v1/query") -> httpx.Response:
    headers = {"Idempotency-Key": key}
    if isinstance(body, str):
        return client.post(path, headers={**headers, "Content-Type": "text/plain"}, content=body)
    return client.post(path, body, headers=headers)


def rows_in(client: Client) -> int:
    count: int = client.value("select count(*) from t")
    return count


ROUTES: dict[str, Any] = {
    "/v1/query": INSERT,
    "/query": "insert into t (x) values ('one') returning id, x",
    "/v1/transaction": {"statements": [INSERT, "select count(*) from t"]},
}


@pytest.mark.parametrize("path", ROUTES)
def test_the_same_request_again_gets_the_same_answer_and_changes_nothing(
    table: Client, path: str
) -> None:
    first = send(table, ROUTES[path], path=path)
    assert first.json()["success"] is True and "idempotency-replayed" not in first.headers
    for _ in range(2):
        again = send(table, ROUTES[path], path=path)
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["idempotency-replayed"] == "true"
    assert rows_in(table) == 1
    assert first.json()["version"] == table.query("select 1")["version"]
    assert send(table, ROUTES[path], "other", path).json()["version"] > first.json()["version"]
    assert rows_in(table) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "create table made (a int)",
        "create table if not exists t (a int)",
        "update t set x = 'two' where id = 7",
        "delete from t",
        "with gone as (delete from t returning id) select count(*) from gone",
    ],
)
def test_definitions_and_changes_of_no_row_are_stored_too(table: Client, sql: str) -> None:
    first = send(table, {"sql": sql})
    assert first.json()["success"] is True, first.text
    again = send(table, {"sql": sql})
    assert again.content == first.content and "idempotency-replayed" in again.headers


@pytest.mark.parametrize(
    "sql", ["explain delete from t", "explain insert into t (x) values ('a')", "explain select 1"]
)
def test_explain_changes_nothing_and_takes_no_key(table: Client, sql: str) -> None:
    before = table.query("select 1")["version"]
    error_of(send(table, {"sql": sql}), 400, "QS001")
    error_of(send(table, {"statements": [sql]}, path="/v1/transaction"), 400, "QS001")
    assert table.query("select 1")["version"] == before
    analyzed = send(table, {"sql": "explain analyze insert into t (x) values ('a')"})
    again = send(table, {"sql": "explain analyze insert into t (x) values ('a')"})
    assert again.content == analyzed.content and "idempotency-replayed" in again.headers
    assert rows_in(table) == 1


def test_the_answer_is_found_even_when_the_statement_would_not_run_any_more(
    table: Client,
) -> None:
    first = send(table, INSERT)
    table.query("drop table t")
    assert send(table, INSERT).content == first.content


def test_another_body_or_route_is_refused(table: Client) -> None:
    send(table, INSERT)
    for body, path in (
        ({**INSERT, "params": ["two"]}, "/v1/query"),
        ({**INSERT, "format": "arrays"}, "/v1/query"),
        ({"statements": [INSERT]}, "/v1/transaction"),
        ("insert into t (x) values ('one')", "/query"),
    ):
        error = error_of(send(table, body, path=path), 422, "QS032")
        assert error["retryable"] is False
    assert rows_in(table) == 1


def test_a_failed_request_stores_nothing_and_may_be_tried_again(table: Client) -> None:
    body = {"sql": "insert into later values (1)"}
    error_of(send(table, body), 200, "42P01")
    error_of(send(table, {"sql": "selec"}), 400)
    table.query("create table later (a int primary key)")
    first = send(table, body)
    assert first.json()["success"] is True and "idempotency-replayed" not in first.headers
    assert send(table, body).content == first.content
    error_of(send(table, body, "new"), 200, "23505")


@pytest.mark.parametrize(
    "body",
    [
        {"sql": "select 1"},
        {"sql": "/*+ STREAM */ insert into t (x) values ('one') returning id"},
        {"sql": "/*+ STREAM */ select 1"},
        {"sql": "explain select 1"},
        {"sql": "insert into t (x) values ('one')", "dry_run": True},
        {"sql": "show server_version"},
        {"statements": ["select 1", "select count(*) from t"]},
        {"statements": ["show server_version", "select * from t limit 1"]},
    ],
)
def test_reads_and_streams_take_no_key(table: Client, body: Any) -> None:
    path = "/v1/transaction" if "statements" in body else "/v1/query"
    for _ in range(2):
        error_of(send(table, body, path=path), 400, "QS001")
    assert rows_in(table) == 0


def test_a_stream_by_accept_takes_no_key(table: Client) -> None:
    headers = {"Idempotency-Key": "k", "Accept": "text/event-stream"}
    error_of(table.post("/v1/query", INSERT, headers=headers), 400, "QS001")
    assert rows_in(table) == 0


def test_a_key_has_1_to_255_characters(table: Client) -> None:
    error_of(send(table, INSERT, ""), 400, "QS001")
    error_of(send(table, INSERT, "k" * (IDEMPOTENCY_KEY_BYTES_MAX + 1)), 400, "QS001")
    assert rows_in(table) == 0
    assert send(table, INSERT, "k" * IDEMPOTENCY_KEY_BYTES_MAX).json()["success"] is True


def test_a_key_belongs_to_a_database_and_to_who_sent_it(admin: Client, table: Client) -> None:
    database = table.headers["X-Database"]
    session = admin.new_session(database=database)["token"]
    others = [
        Client(admin.server, admin.new_key()["key"], database=database),
        Client(admin.server, session, database=database),
    ]
    answers = [send(client, INSERT) for client in (table, *others)]
    assert [each.json()["rows"][0]["id"] for each in answers] == [1, 2, 3]
    assert rows_in(table) == 3
    for client, answer in zip((table, *others), answers, strict=True):
        assert send(client, INSERT).content == answer.content
    assert admin.post("/v1/databases", {"name": "beside"}).status_code == 201
    beside = Client(admin.server, admin.token, database="beside")
    beside.query("create table t (id serial primary key, x text)")
    assert "idempotency-replayed" not in send(beside, INSERT).headers
    assert rows_in(beside) == 1
    assert admin.delete("/v1/databases/beside").status_code == 204


def test_an_answer_that_is_too_long_is_refused_and_nothing_is_applied(table: Client) -> None:
    long = "insert into t (x) select repeat('x', 1000) from generate_series(1, $1) returning x"
    many = ANSWER_STORED_BYTES_MAX // 1000 + 1
    error = error_of(send(table, {"sql": long, "params": [many]}), 200, "54000")
    assert "Idempotency-Key" in error["message"]
    assert rows_in(table) == 0
    assert send(table, {"sql": long, "params": [10]}).json()["affected_rows"] == 10
    escaped = "insert into t (x) values (repeat(chr(1), $1)) returning x"
    error_of(send(table, {"sql": escaped, "params": [many * 500]}, "e"), 200, "54000")
    assert rows_in(table) == 10


def test_many_at_once_apply_it_once(table: Client) -> None:
    body = {"sql": "insert into t (x) select 'x' from generate_series(1, 3000) returning 1"}

    def one(_: int) -> httpx.Response:
        return send(table, {**body, "max_rows": 1})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(24)))
    done = [each for each in answers if each.status_code == 200]
    assert len({each.content for each in done}) == 1
    assert sum("idempotency-replayed" not in each.headers for each in done) == 1
    for each in answers:
        if each.status_code != 200:
            assert error_of(each, 409, "QS033")["retryable"] is True
            assert each.headers["retry-after"] == "1"
    assert rows_in(table) == 3000


def test_stored_answers_are_nowhere_to_be_seen(table: Client) -> None:
    before = table.get("/tables").json()
    send(table, {"sql": "update t set x = 'none'"})
    after = table.get("/tables").json()
    assert after["tables"] == before["tables"] and after["version"] == before["version"] + 1
    names = table.rows("select table_name from information_schema.tables where table_schema <> ''")
    assert not [name for (name,) in names if "answer" in name]


@pytest.fixture(params=KINDS)
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    server = start(request.param, tmp_path, {"QSERVER_API_KEY": ADMIN_KEY})
    yield server
    server.kill()


def test_answers_outlive_a_killed_server(mortal: Server) -> None:
    admin = Client(mortal, ADMIN_KEY)
    admin.query("create table t (id serial primary key, x text)")
    bodies = {f"key {number}": {**INSERT, "params": [f"{number}"]} for number in range(20)}
    first = {key: send(admin, body, key).content for key, body in bodies.items()}
    mortal.kill()
    again = start(mortal.kind, mortal.folder, {"QSERVER_API_KEY": ADMIN_KEY})
    try:
        admin = Client(again, ADMIN_KEY)
        for key, body in bodies.items():
            answer = send(admin, body, key)
            assert answer.content == first[key] and "idempotency-replayed" in answer.headers
        assert rows_in(admin) == len(bodies)
        error_of(send(admin, INSERT, "key 3"), 422, "QS032")
    finally:
        again.kill()


OTHERS = [
    (route.method, route.path)
    for route in catalogue.ROUTES
    if route.method not in ("GET", "HEAD") and not route.takes_idempotency_key
]


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_a_route_that_would_ignore_the_key_refuses_it(
    fresh: Client, method: str, path: str
) -> None:
    """Else a client would send the request again, in the belief that nothing is done twice."""
    before = fresh.get("/v1/keys?limit=1000").json()["keys"]
    for name in ("{id}", "{database}", "{key_id}", "{name}"):
        path = path.replace(name, "nothing")
    answer = fresh.call(method, path, headers={"Idempotency-Key": "k"}, json={"name": "x"})
    error = error_of(answer, 400, "QS001")
    assert "Idempotency-Key" in error["message"] and error["hint"]
    assert fresh.get("/v1/keys?limit=1000").json()["keys"] == before


def test_reads_of_records_take_no_notice_of_a_key(fresh: Client) -> None:
    for path in ("/v1/keys", "/v1/databases", "/tables", "/health"):
        assert fresh.get(path, headers={"Idempotency-Key": "k"}).status_code == 200
