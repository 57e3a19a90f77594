"""Section 5: rows as they come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice

import httpx
import pytest

from qserver.limits import KEEP_ALIVE_SECONDS
from tests.patience import eventually
from tests.web.contract.connections import Event, OpenStream, parse_events
from tests.web.contract.servers import Client, error_of

HINT = "/*+ STREAM */ "
ENDLESS = HINT + "select n from generate_series(1, 1000000000000) as n"
LONG = HINT + "select n, repeat('x', 500) as x from generate_series(1, 1000000) as n"
EVENTS = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}


def test_a_stream_is_written_exactly_as_the_contract_shows(fresh: Client) -> None:
    fresh.query("create table users (id int, name text)")
    fresh.query("insert into users values (1, 'Ada'), (2, E'a\\nb')")
    version = fresh.query("select 1")["version"]
    answer = fresh.query_response(HINT + "select id, name from users order by id")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "x-request-id" in answer.headers and "content-length" not in answer.headers
    pattern = (
        "event: columns\n"
        f'data: {{"columns":["id","name"],"types":["integer","text"],"version":{version}}}\n\n'
        f'event: row\nid: {version}:1\ndata: {{"id":1,"name":"Ada"}}\n\n'
        f'event: row\nid: {version}:2\ndata: {{"id":2,"name":"a\\nb"}}\n\n'
        'event: done\ndata: {"success":true,"row_count":2,"affected_rows":0,'
        f'"version":{version},"timings":{{"total_us":T,"exec_us":T}}}}\n\n'
    )
    assert re.sub(r'_us":\d+', '_us":T', answer.text) == pattern
    timings = parse_events(answer.text)[-1].data["timings"]
    assert 0 <= timings["exec_us"] <= timings["total_us"] > 0


@pytest.mark.parametrize(
    "hint", ["/*+ STREAM */", "  \n/*+stream*/", "/*+\tStReAm  */", "/*+ STREAM */ -- so\n"]
)
def test_space_and_case_of_the_hint_do_not_matter_on_either_route(admin: Client, hint: str) -> None:
    sql = f"{hint} select 1 as a;"
    text = {"Content-Type": "text/plain"}
    for answer in (
        admin.query_response(sql),
        admin.call("POST", "/query", content=sql, headers=text),
    ):
        assert answer.headers["content-type"] == "text/event-stream"
        kinds = [event.kind for event in parse_events(answer.text)]
        assert kinds == ["columns", "row", "done"]


def test_a_hint_that_is_not_at_the_start_is_a_comment(admin: Client) -> None:
    for sql in (
        "select /*+ STREAM */ 1",
        "-- x\n/*+ STREAM */ select 1",
        "/* + STREAM */ select 1",
    ):
        assert admin.query_response(sql).headers["content-type"] == "application/json"


def test_accept_means_the_same_as_the_hint(admin: Client) -> None:
    text = {"Content-Type": "text/plain"}
    for answer in (
        admin.post("/v1/query", {"sql": "select 1 as a"}, headers=EVENTS),
        admin.call("POST", "/query", content="select 1 as a", headers={**text, **EVENTS}),
    ):
        assert answer.headers["content-type"] == "text/event-stream"
        assert parse_events(answer.text)[1].data == {"a": 1}


def test_ndjson_is_one_row_a_line(admin: Client) -> None:
    body = {"sql": "select n, null as x from generate_series(1, 3) as n"}
    answer = admin.post("/v1/query", body, headers=LINES)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.text == '{"n":1,"x":null}\n{"n":2,"x":null}\n{"n":3,"x":null}\n'
    nothing = admin.post("/v1/query", {"sql": "select 1 where false"}, headers=LINES)
    assert (nothing.status_code, nothing.text) == (200, "")


def test_ndjson_ends_with_an_error_line_where_the_statement_fails(admin: Client) -> None:
    body = {"sql": "select 1 / (9000 - n) as v from generate_series(1, 10000) as n"}
    *rows, last = admin.post("/v1/query", body, headers=LINES).text.splitlines()
    assert rows and set(rows) == {'{"v":0}'}
    assert json.loads(last)["success"] is False
    assert json.loads(last)["error"]["code"] == "22012"


@pytest.mark.parametrize(
    ("most", "rows", "truncated"),
    [(0, 0, True), (1, 1, True), (4999, 4999, True), (5000, 5000, None), (9999, 5000, None)],
)
def test_of_a_stream_max_rows_are_sent(
    admin: Client, most: int, rows: int, truncated: bool | None
) -> None:
    body = {"sql": "select n from generate_series(1, 5000) as n", "max_rows": most}
    _, *found, done = parse_events(admin.post("/v1/query", body, headers=EVENTS).text)
    assert [each.data["n"] for each in found] == list(range(1, rows + 1))
    assert (done.data["row_count"], done.data.get("truncated")) == (rows, truncated)
    assert len(admin.post("/v1/query", body, headers=LINES).text.splitlines()) == rows


def test_max_rows_cut_what_is_shown_and_not_what_is_changed(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    sql = HINT + "insert into t select generate_series(1, 3000) returning a"
    answer = fresh.post("/v1/query", {"sql": sql, "max_rows": 2})
    *_, done = parse_events(answer.text)
    assert (done.data["row_count"], done.data["affected_rows"]) == (2, 3000)
    assert fresh.value("select count(*) from t") == 3000


def test_rows_of_a_stream_may_be_arrays(admin: Client) -> None:
    body = {"sql": "select 1 as a, null as b, date '2024-02-29' as c", "format": "arrays"}
    columns, row, _ = parse_events(admin.post("/v1/query", body, headers=EVENTS).text)
    assert (columns.data["columns"], row.data) == (["a", "b", "c"], [1, None, "2024-02-29"])
    assert admin.post("/v1/query", body, headers=LINES).text == '[1,null,"2024-02-29"]\n'


def test_params_and_duplicate_names_work_in_streams_too(admin: Client) -> None:
    answer = admin.query_response(HINT + "select ?::int as a, 2 as a", [1])
    columns, row, _ = parse_events(answer.text)
    assert columns.data["columns"] == ["a", "a_2"]
    assert row.data == {"a": 1, "a_2": 2}


def test_what_a_statement_changed_is_in_the_done_event(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    answer = fresh.query_response(HINT + "insert into t values (1), (2) returning a")
    *_, done = parse_events(answer.text)
    assert (done.data["row_count"], done.data["affected_rows"]) == (2, 2)
    assert fresh.value("select count(*) from t") == 2


@pytest.mark.parametrize(
    ("sql", "status", "code"),
    [
        ("selec", 400, "42601"),
        ("select 1; select 2", 400, None),
        ("select * from nowhere", 200, "42P01"),
        ("select ?", 400, None),
        ("begin", None, "25001"),
    ],
)
def test_before_the_first_byte_errors_are_ordinary_answers(
    admin: Client, sql: str, status: int | None, code: str | None
) -> None:
    for headers, text in ((LINES, sql), (EVENTS, sql), ({}, HINT + sql)):
        answer = admin.post("/v1/query", {"sql": text}, headers=headers)
        error_of(answer, status or answer.status_code, code)


def test_a_failure_after_the_first_byte_is_an_error_event_and_then_the_end(
    admin: Client,
) -> None:
    sql = HINT + "select 1 / (9000 - n) as v from generate_series(1, 10000) as n"
    answer = admin.query_response(sql)
    assert answer.status_code == 200
    events = parse_events(answer.text)
    rows = [int(event.id.split(":")[1]) for event in events if event.id]
    assert rows == list(range(1, len(rows) + 1)) and 0 < len(rows) < 9000
    assert [event.kind for event in events] == ["columns", *["row"] * len(rows), "error"]
    error = events[-1].data["error"]
    assert events[-1].data["success"] is False
    assert (error["code"], error["name"]) == ("22012", "division_by_zero")
    assert error["request_id"] == answer.headers["x-request-id"]


def test_the_first_row_leaves_before_the_last_exists_and_timeouts_are_held_to(
    admin: Client,
) -> None:
    events: list[Event] = []
    with OpenStream(admin, ENDLESS, timeout_ms=100) as stream:
        for event in stream.events():
            events.append(event)
            assert len(events) < 10_000_000, "it goes on"
    columns, *rows, last = events
    assert (columns.kind, rows[0].data) == ("columns", {"n": 1})
    assert last.kind == "error" and last.data["error"]["code"] == "57014"
    numbers = [event.data["n"] for event in rows]
    assert numbers == list(range(1, len(numbers) + 1)), "no row was lost, none came twice"


def requests_answered(client: Client) -> float:
    return client.metric("qserver_requests_total", route="/v1/query", status="200")


def test_a_reader_that_is_gone_ends_its_query_at_once(admin: Client) -> None:
    before = requests_answered(admin)
    with OpenStream(admin, LONG) as stream:
        assert [event.kind for event in islice(stream.events(), 3)] == ["columns", "row", "row"]
        assert requests_answered(admin) == before, "it is still under way"
    eventually(lambda: requests_answered(admin) > before, "it goes on")


def test_a_stream_ends_when_its_key_is_revoked_or_narrowed_or_its_session_ends(
    admin: Client,
) -> None:
    def key() -> tuple[str, Client]:
        record = admin.new_key(scopes=["data:read", "data:write"])
        return record["id"], admin.with_token(record["key"])

    def expect_end(client: Client, end: Callable[[], httpx.Response], code: str) -> None:
        with OpenStream(client, ENDLESS) as stream:
            events = stream.events()
            assert [event.kind for event in islice(events, 2)] == ["columns", "row"]
            assert end().status_code in (200, 204)
            *_, last = events
        assert last.kind == "error" and last.data["error"]["code"] == code

    key_id, client = key()
    expect_end(client, lambda: admin.delete(f"/v1/keys/{key_id}"), "QS002")
    narrowed_id, client = key()
    fields = {"scopes": ["data:write"]}
    expect_end(client, lambda: admin.patch(f"/v1/keys/{narrowed_id}", fields), "QS005")
    session = admin.with_token(key()[1].new_session()["token"])
    expect_end(session, lambda: session.delete("/v1/session"), "QS002")


def test_the_stream_of_committed_changes_goes_on_when_its_key_is_revoked(fresh: Client) -> None:
    """An error would say that nothing was applied."""
    fresh.query("create table t (a int primary key, x text)")
    record = fresh.new_key(scopes=["data:read", "data:write"])
    rows = "select n, repeat('x', 200) from generate_series(1, 20000) as n"
    insert = f"insert into t {rows} returning *"
    client = Client(fresh.server, record["key"], database=fresh.headers["X-Database"])
    with OpenStream(client, HINT + insert) as stream:
        events = stream.events()
        assert [event.kind for event in islice(events, 2)] == ["columns", "row"]
        assert fresh.delete(f"/v1/keys/{record['id']}").status_code == 204
        assert [event.kind for event in events] == ["row"] * 19_999 + ["done"]


def test_a_stream_goes_on_when_other_keys_change(admin: Client) -> None:
    with OpenStream(admin, LONG) as stream:
        events = stream.events()
        assert next(events).kind == "columns"
        assert admin.delete(f"/v1/keys/{admin.new_key()['id']}").status_code == 204
        assert [event.kind for event in islice(events, 5000)] == ["row"] * 5000


def test_a_slow_reader_slows_only_its_own_query(admin: Client) -> None:
    with OpenStream(admin, LONG), OpenStream(admin, LONG):
        for _ in range(20):
            assert admin.value("select 1") == 1


def test_the_whole_stream_reads_one_version(fresh: Client) -> None:
    fresh.query("create table t (a int primary key, b int, x text)")
    fresh.query("insert into t select n, 0, repeat('x', 200) from generate_series(1, 20000) as n")
    with OpenStream(fresh, HINT + "select a, b, x from t") as stream:
        events = stream.events()
        version = next(events).data["version"]
        next(events)
        fresh.query("update t set b = 1 where a > 10000")
        fresh.query("delete from t where a <= 10000")
        *rows, done = events
    assert len(rows) == 19_999 and {event.data["b"] for event in rows} == {0}
    assert done.data["row_count"] == 20_000 and done.data["version"] == version
    assert {event.id.split(":")[0] for event in rows if event.id} == {str(version)}
    assert fresh.value("select count(*) from t where b = 1") == 10_000


def test_memory_does_not_grow_with_the_result(admin: Client) -> None:
    sql = HINT + "select n, repeat('x', 1000) as x from generate_series(1, {}) as n"
    admin.query_response(sql.format(1000))
    before = admin.server.memory_bytes()
    size, last = 0, b""
    body = {"sql": sql.format(30_000)}
    with admin.server.http.stream("POST", "/v1/query", json=body, headers=admin.headers) as answer:
        for part in answer.iter_raw():
            size += len(part)
            last = (last + part)[-200:]
    assert size > 30_000_000 and b'"row_count":30000' in last
    assert admin.server.memory_bytes() - before < 15_000_000


@pytest.mark.long
def test_a_stream_may_be_longer_than_a_json_answer(admin: Client) -> None:
    answer = admin.query_response(HINT + "select n from generate_series(1, 100001) as n")
    *_, done = parse_events(answer.text)
    assert done.data["row_count"] == 100_001


def test_silence_is_broken_every_15_seconds() -> None:
    assert KEEP_ALIVE_SECONDS == 15
