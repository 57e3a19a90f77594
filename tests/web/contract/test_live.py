"""Section 12: live queries, on both servers."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from tests.web.contract.connections import OpenStream
from tests.web.contract.live_results import LiveResult, multiset
from tests.web.contract.servers import PAUSE_SECONDS, Client, error_of

TEXT = {"Content-Type": "text/plain"}


def filled(client: Client) -> None:
    client.query("create table todos (id int primary key, owner int, title text)")
    client.query("insert into todos values (1, 7, 'one'), (2, 7, 'two'), (3, 8, 'three')")


def check(live: LiveResult, client: Client, sql: str) -> None:
    assert +live.result == multiset(client.query(sql)["rows"])


def test_the_events_are_written_as_the_contract_says(fresh: Client) -> None:
    filled(fresh)
    version = fresh.query("select 1")["version"]
    sql = "/*+ LIVE */ select id, title from todos where owner = 7 order by id"
    with OpenStream(fresh, sql) as stream:
        assert "content-type: text/event-stream" in stream.head.lower()
        assert "cache-control: no-store" in stream.head.lower()
        events = stream.events()
        assert next(events).data == {
            "columns": ["id", "title"],
            "types": ["integer", "text"],
            "version": version,
        }
        rows = [next(events), next(events)]
        assert [row.data for row in rows] == [{"id": 1, "title": "one"}, {"id": 2, "title": "two"}]
        assert [row.id for row in rows] == [f"{version}:1", f"{version}:2"]
        ready = next(events)
        assert (ready.kind, ready.id) == ("ready", None)
        assert ready.data == {"version": version, "row_count": 2}
        fresh.query("update todos set title = 'other' where id = 3")
        changed = fresh.query("update todos set title = 'changed' where id = 2")["version"]
        assert [(event.kind, event.data) for event in (next(events), next(events))] == [
            ("delete", {"id": 2, "title": "two"}),
            ("insert", {"id": 2, "title": "changed"}),
        ]
        last = next(events)
        assert (last.kind, last.id, last.data) == ("version", None, {"version": changed})


@pytest.mark.parametrize(
    "sql",
    [
        "select * from todos where owner = 7",
        "select owner, count(*) as n from todos group by owner",
        "select title from todos order by id desc limit 2",
    ],
)
def test_the_result_is_that_of_the_query_at_each_version(fresh: Client, sql: str) -> None:
    filled(fresh)
    with LiveResult(fresh, sql) as live:
        check(live, fresh, sql)
        for change in (
            "insert into todos values (4, 7, 'four'), (5, 7, 'five')",
            "update todos set owner = 7, title = 'moved' where id = 3",
            "delete from todos where id >= 2",
        ):
            before = fresh.query(sql)["rows"]
            version = fresh.query(change)["version"]
            if multiset(fresh.query(sql)["rows"]) != multiset(before):
                live.until(version)
            check(live, fresh, sql)
        assert live.versions


def test_it_works_as_plain_text_and_with_parameters(fresh: Client) -> None:
    filled(fresh)
    with LiveResult(fresh, "select id from todos where owner = $1", params=[8]) as live:
        assert live.result == multiset([{"id": 3}])
        live.until(fresh.query("update todos set owner = 8 where id = 1")["version"])
        assert live.result == multiset([{"id": 1}, {"id": 3}])
    with fresh.server.http.stream(
        "POST",
        "/query",
        content="/*+ live */ select id from todos where owner = 7",
        headers={**fresh.headers, **TEXT},
    ) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: columns"


@pytest.mark.long
def test_changes_in_between_are_merged(fresh: Client) -> None:
    filled(fresh)
    with LiveResult(fresh, "select title from todos where id = 1", every_ms=1500) as live:
        first = fresh.query("update todos set title = 't0' where id = 1")["version"]
        live.until(first)
        last = first
        for number in range(1, 10):
            last = fresh.query(f"update todos set title = 't{number}' where id = 1")["version"]
        live.until(last)
        assert +live.result == multiset([{"title": "t9"}])
        assert len(live.versions) < 10


def test_rows_of_a_live_query_may_be_arrays(fresh: Client) -> None:
    fresh.query("create table notes (id integer primary key, text text)")
    fresh.query("insert into notes values (1, 'one')")
    with LiveResult(fresh, "select id, text from notes", format="arrays") as live:
        assert live.result == multiset([[1, "one"]])
        version = fresh.query("update notes set text = 'two'")["version"]
        live.until(version)
        assert live.result == multiset([[1, "two"]])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sql": "select 1", "every_ms": 100}, "every_ms is for a live query"),
        ({"sql": "select 1", "live": True, "every_ms": 99}, "every_ms"),
        ({"sql": "select 1", "live": True, "every_ms": 60001}, "every_ms"),
        ({"sql": "select 1", "live": True, "dry_run": True}, "dry run"),
        ({"sql": "select 1", "live": True, "max_rows": 1}, "max_rows"),
        ({"sql": "delete from todos", "live": True}, "only a query can be live"),
        ({"sql": "/*+ LIVE */ insert into todos values (9)"}, "only a query can be live"),
        ({"sql": "create table x (a int)", "live": True}, "only a query can be live"),
        ({"sql": "select", "live": 3}, "live"),
        ({"sql": "selec 1", "live": True}, "syntax error"),
    ],
)
def test_what_makes_no_sense_is_400(fresh: Client, fields: dict[str, Any], message: str) -> None:
    filled(fresh)
    answer = fresh.post("/v1/query", fields)
    assert message in error_of(answer, 400)["message"]
    assert fresh.query("select count(*) as n from todos")["rows"] == [{"n": 3}]


def test_other_mistakes_are_ordinary_answers(fresh: Client) -> None:
    filled(fresh)
    for sql, code in (
        ("select * from nowhere", "42P01"),
        ("select now()", "0A000"),
        ("select id from todos where random() > 0", "0A000"),
        ("select * from pg_catalog.pg_class", "0A000"),
    ):
        answer = fresh.post("/v1/query", {"sql": sql, "live": True})
        assert error_of(answer, 200)["code"] == code
    lines = fresh.post(
        "/v1/query", {"sql": "select 1", "live": True}, headers={"Accept": "application/x-ndjson"}
    )
    assert lines.status_code == 400
    once = {"Idempotency-Key": "once"}
    assert error_of(fresh.post("/v1/query", {"sql": "select 1", "live": True}, headers=once), 400)
    inside = fresh.post("/v1/transaction", {"statements": ["/*+ LIVE */ select 1"]})
    assert error_of(inside, 400)["statement"] == 0


def test_live_false_is_an_ordinary_query(fresh: Client) -> None:
    assert fresh.post("/v1/query", {"sql": "select 1 as a", "live": False}).json()["rows"] == [
        {"a": 1}
    ]


def test_a_dropped_or_changed_table_ends_it(fresh: Client) -> None:
    filled(fresh)
    for change, code in (
        ("alter table todos add column done boolean", "0A000"),
        ("drop table todos", "42P01"),
    ):
        with LiveResult(fresh, "select id from todos") as live:
            fresh.query(change)
            assert live.error()["code"] == code


def test_a_runtime_error_ends_it(fresh: Client) -> None:
    filled(fresh)
    with LiveResult(fresh, "select 1 / (id - 9) as x from todos") as live:
        fresh.query("insert into todos values (9, 1, 'nine')")
        assert live.error()["code"] == "22012"


def test_a_revoked_key_ends_it(admin: Client) -> None:
    key = admin.post("/v1/keys", {"name": "short", "scopes": ["data:read"]}).json()
    admin.server.secrets.add(key["key"])
    with LiveResult(admin.with_token(key["key"]), "select 1 as a") as live:
        assert admin.delete(f"/v1/keys/{key['id']}").status_code == 204
        assert live.error()["code"] == "QS002"


def test_a_deleted_database_ends_it(admin: Client) -> None:
    assert admin.post("/v1/databases", {"name": "short-lived"}).status_code == 201
    client = Client(admin.server, admin.token, database="short-lived")
    with LiveResult(client, "select 1 as a") as live:
        assert admin.delete("/v1/databases/short-lived").status_code == 204
        error = live.error()
        assert error["code"] == "57P04" and not error["retryable"]
        assert "deleted" in error["message"] and "again" not in error["hint"]


def test_a_reader_without_the_scope_is_refused(admin: Client) -> None:
    key = admin.post("/v1/keys", {"name": "writer", "scopes": ["data:write"]}).json()
    admin.server.secrets.add(key["key"])
    answer = admin.with_token(key["key"]).post("/v1/query", {"sql": "select 1", "live": True})
    assert answer.status_code == 403


def open_queries(client: Client) -> int:
    return int(client.metric("qserver_live_queries"))


def test_readers_that_are_gone_are_forgotten(fresh: Client, admin: Client) -> None:
    filled(fresh)
    before = open_queries(admin)
    streams = [LiveResult(fresh, "select id from todos where id = 1") for _ in range(5)]
    assert open_queries(admin) == before + 5
    for stream in streams:
        stream.stream.socket.close()
    while open_queries(admin) > before:
        time.sleep(PAUSE_SECONDS)


def test_a_slow_reader_gets_merged_versions_and_costs_no_memory(fresh: Client) -> None:
    filled(fresh)
    sql = "select id, repeat(title, 100) as x from todos"
    with LiveResult(fresh, sql) as live:
        last = 0
        for letter in range(1000, 1060):  # no two are equal: each merge ends in a change
            last = fresh.query("update todos set title = repeat(chr($1), 200)", params=[letter])[
                "version"
            ]
        live.until(last)
        check(live, fresh, sql)
        assert len(live.versions) < 60


def test_head_of_a_live_query_ends_at_once(admin: Client) -> None:
    """The next request on the same connection is answered."""
    key = f"Authorization: Bearer {admin.token}"
    live = f"HEAD /v1/query?sql=/*%2B+LIVE+*/+select+1 HTTP/1.1\r\nHost: x\r\n{key}\r\n\r\n"
    after = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    received = b""
    with socket.create_connection(("127.0.0.1", admin.server.port), timeout=240) as connection:
        connection.sendall((live + after).encode())
        while part := connection.recv(65536):
            received += part
    assert received.count(b"HTTP/1.1 200") == 2 and b'"status":"ok"' in received
