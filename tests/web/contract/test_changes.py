"""Section 12: the changes of a database, on both servers."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.contract.connections import Event, OpenFeed
from tests.web.contract.servers import PAUSE_SECONDS, Client, error_of


def changes(client: Client, query: str) -> dict[str, Any]:
    answer = client.get(f"/v1/changes?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found.keys() == {"success", "changes", "next", "newest"} and found["success"] is True
    return found


def filled(client: Client) -> int:
    client.query("create table a (id int primary key, v numeric)")
    version: int = client.query("create table b (x text)")["version"]
    return version


def test_an_answer_is_written_as_the_contract_says(fresh: Client) -> None:
    since = filled(fresh)
    version = fresh.query("insert into a values (1, 1.50)")["version"]
    last = fresh.query("update a set v = 2 where id = 1")["version"]
    found = changes(fresh, f"since={since}")
    first, second = found["changes"]
    moment = first.pop("time")
    assert first == {
        "version": version,
        "table": "a",
        "op": "insert",
        "key": {"id": 1},
        "before": None,
        "after": {"id": 1, "v": "1.50"},
    }
    assert moment.endswith("Z")
    assert (second["op"], second["before"]["v"], second["after"]["v"]) == ("update", "1.50", "2")
    assert (found["next"], found["newest"]) == (last, last)
    assert changes(fresh, f"since={last}")["changes"] == []


def test_keys_that_change_and_tables_without_one(fresh: Client) -> None:
    filled(fresh)
    since = fresh.query("insert into a values (1, 1)")["version"]
    fresh.transaction(
        "update a set id = 2",
        "insert into b values ('x')",
        "insert into a values (9, 9)",
        "delete from a where id = 9",
    )
    found = changes(fresh, f"since={since}")["changes"]
    assert [(each["table"], each["op"], each["key"]) for each in found] == [
        ("a", "delete", {"id": 1}),
        ("a", "insert", {"id": 2}),
        ("b", "insert", None),
    ]


def test_definitions_show_their_statements(fresh: Client) -> None:
    statements = [
        "create table c (id serial primary key, v int)",
        "insert into c (v) values (1)",
        "alter table c add column w int",
        "truncate c",
        "drop table c",
    ]
    for statement in statements:
        fresh.query(statement)
    found = changes(fresh, "since=0")["changes"]
    assert [
        each["statement"] for each in found if each["table"] == "c" and "statement" in each
    ] == [statement for statement in statements if not statement.startswith("insert")]
    for each in found:
        assert ("statement" in each) == (each["op"] == "schema"), each
    since = fresh.query("create schema other")["version"]
    both = ["create table other.d (id int primary key)", "alter table other.d add column v int"]
    fresh.transaction(*both, "insert into other.d values (1, 2)")
    told = changes(fresh, f"since={since}&tables=other.d")["changes"]
    assert [(each["op"], each.get("statement")) for each in told] == [
        ("schema", both[0]),
        ("schema", both[1]),
        ("insert", None),
    ]


def test_what_the_engine_stores_for_itself_is_not_shown(fresh: Client) -> None:
    fresh.query("create sequence s")
    since = filled(fresh)
    fresh.query("select nextval('s')")
    body = {"sql": "insert into a values (1, nextval('s'))"}
    assert fresh.post("/v1/query", body, headers={"Idempotency-Key": "k"}).status_code == 200
    found = changes(fresh, f"since={since}")
    assert [each["table"] for each in found["changes"]] == ["a"]
    assert found["next"] == found["newest"]


def test_a_filter_and_a_limit_leave_whole_versions(fresh: Client) -> None:
    since = filled(fresh)
    first = fresh.query("insert into a select n, n from generate_series(1, 5) n")["version"]
    fresh.query("insert into b values ('x'), ('y')")
    last = fresh.query("insert into a values (6, 6)")["version"]
    whole = changes(fresh, f"since={since}&limit=1")
    assert len(whole["changes"]) == 5
    assert (whole["next"], whole["newest"]) == (first, last)
    assert len(changes(fresh, f"since={since}&limit=7")["changes"]) == 7
    assert len(changes(fresh, f"since={since}&limit=6")["changes"]) == 5
    only = changes(fresh, f"since={since}&tables=b")
    assert [each["table"] for each in only["changes"]] == ["b", "b"]
    assert only["next"] == last
    assert len(changes(fresh, f"since={since}&tables=b,public.a")["changes"]) == 8
    with OpenFeed(fresh, f"since={since}&tables=b") as feed:
        assert [event.kind for event in feed.until(since + 1)] == ["change", "change", "version"]


ODD_NAMES = ["a,b", "b", "a", "a.b", '"quoted", name', "'s", "odd, schema.t", "Größe"]


def test_names_in_answers_name_the_same_tables_in_requests(fresh: Client) -> None:
    """Whatever is in them: a comma, a dot, quotes."""
    tables = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in ODD_NAMES]
    tables.append('"a,b"."c,d"')
    name = fresh.headers["X-Database"]
    fresh.query('create schema "a,b"')
    made = [fresh.query(f"create table {table} (n integer primary key)") for table in tables]
    since = made[-1]["version"]
    written = [fresh.query(f"insert into {table} values (1)") for table in tables]
    last = written[-1]["version"]
    shown = [each["table"] for each in changes(fresh, f"since={since}")["changes"]]
    assert len(shown) == len({*shown}) == len(tables)
    assert shown[0] == '"a,b"' and shown[-1] == '"a,b"."c,d"'
    for one, other in zip(shown, [*shown[1:], shown[0]], strict=True):
        named = quote(f"{one}, {other}")
        found = changes(fresh, f"since={since}&tables={named}")["changes"]
        assert {each["table"] for each in found} == {one, other}
        place = f"/v1/databases/{name}/diff?from={since}&to={last}&tables={named}"
        different = fresh.get(place).json()["changes"]
        assert {each["table"] for each in different} == {one, other}
        assert fresh.get(f"/v1/tables/{quote(one, safe='')}/rows").json() == [{"n": 1}]
    assert changes(fresh, f"since={since}&tables=%22b%22,public.%22a%22")["changes"] != []


def test_waiting_ends_with_the_first_change_that_passes(fresh: Client) -> None:
    since = filled(fresh)
    found: list[dict[str, Any]] = []

    def wait() -> None:
        found.append(changes(fresh, f"since={since}&wait_ms=60000&tables=b"))

    waiting = threading.Thread(target=wait)
    waiting.start()
    fresh.query("insert into a values (1, 1)")
    time.sleep(0.2)
    assert not found
    last = fresh.query("insert into b values ('x')")["version"]
    waiting.join()
    assert [each["after"] for each in found[0]["changes"]] == [{"x": "x"}]
    assert found[0]["next"] == last
    nothing = changes(fresh, f"since={last}&wait_ms=50")
    assert (nothing["changes"], nothing["next"]) == ([], last)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "since is missing"),
        ("tables=a", "since is missing"),
        ("since=", "since"),
        ("since=-1", "since"),
        ("since=1.5", "since"),
        ("since=99999999999999999999999", "since"),
        ("since=1000000", "no version 1000000 yet"),
        ("since=0&since=1", "more than once"),
        ("since=0&limit=0", "limit"),
        ("since=0&limit=10001", "limit"),
        ("since=0&wait_ms=60001", "wait_ms"),
        ("since=0&wait_ms=x", "wait_ms"),
        ("since=0&table=a", "unknown parameter 'table'"),
        ("since=%ff", "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_400(fresh: Client, query: str, message: str) -> None:
    for accept in ("application/json", "text/event-stream"):
        answer = fresh.get(f"/v1/changes?{query}", headers={"Accept": accept})
        assert message in error_of(answer, 400)["message"]


def test_unknown_tables_and_bad_ids_are_refused(fresh: Client) -> None:
    filled(fresh)
    for tables in ("a,nowhere", "nowhere", "", "a,"):
        for accept in ("application/json", "text/event-stream"):
            answer = fresh.get(f"/v1/changes?since=0&tables={tables}", headers={"Accept": accept})
            assert error_of(answer, 200, "42P01")
    for value in ("x", "-1", "", "1000000"):
        headers = {"Accept": "text/event-stream", "Last-Event-ID": value}
        assert error_of(fresh.get("/v1/changes?since=0", headers=headers), 400)
    assert error_of(fresh.get("/v1/changes?since=0&database=nowhere"), 404)
    assert error_of(fresh.post("/v1/changes?since=0", {}), 405)


def flat(events: list[Event]) -> list[tuple[str, str | None, Any]]:
    return [
        (event.kind, event.id, event.data["after"] if event.kind == "change" else event.data)
        for event in events
    ]


def test_events_are_written_as_the_contract_says(fresh: Client) -> None:
    since = filled(fresh)
    first = fresh.query("insert into a values (1, 1), (2, 2)")["version"]
    with OpenFeed(fresh, f"since={since}") as feed:
        assert "content-type: text/event-stream" in feed.head.lower()
        assert "cache-control: no-store" in feed.head.lower()
        assert flat(feed.until(first)) == [
            ("change", None, {"id": 1, "v": "1"}),
            ("change", None, {"id": 2, "v": "2"}),
            ("version", str(first), {"version": first}),
        ]
        last = fresh.query("insert into b values ('x')")["version"]
        (change, version) = feed.until(last)
        assert change.data.pop("time").endswith("Z")
        assert change.data == {
            "version": last,
            "table": "b",
            "op": "insert",
            "key": None,
            "before": None,
            "after": {"x": "x"},
        }
        assert (version.kind, version.id) == ("version", str(last))
    with OpenFeed(fresh, "since=0", last_event_id=first) as feed:
        assert flat(feed.until(last)) == [
            ("change", None, {"x": "x"}),
            ("version", str(last), {"version": last}),
        ]
    with OpenFeed(fresh, "", last_event_id=first) as feed:
        assert len(feed.until(last)) == 2


def test_what_is_older_than_history_is_gone(fresh: Client) -> None:
    since = filled(fresh)
    name = fresh.headers["X-Database"]
    assert fresh.patch(f"/v1/databases/{name}", {"history": 0}).status_code == 200
    last = fresh.query("insert into a values (1, 1)")["version"]
    for accept in ("application/json", "text/event-stream"):
        answer = fresh.get(f"/v1/changes?since={since}", headers={"Accept": accept})
        assert error_of(answer, 410, "QS004")
    with OpenFeed(fresh, f"since={last}") as feed:  # from now on it needs no history
        last = fresh.query("insert into a values (2, 2)")["version"]
        assert [event.kind for event in feed.until(last)] == ["change", "version"]


def test_only_those_who_may_read_do(admin: Client, fresh: Client, organization: Client) -> None:
    filled(fresh)
    name = fresh.headers["X-Database"]
    for key in (
        admin.new_key(scopes=["data:write", "schema"]),
        admin.new_key(statements={"all": "select 1"}),
    ):
        limited = Client(admin.server, key["key"], database=name)
        for accept in ("application/json", "text/event-stream"):
            answer = limited.get("/v1/changes?since=0", headers={"Accept": accept})
            assert error_of(answer, 403)
    other = Client(admin.server, organization.token, database=name)
    assert error_of(other.get("/v1/changes?since=0"), 404)
    assert error_of(Client(admin.server, None).get("/v1/changes?since=0"), 401)


def test_a_revoked_key_ends_it(admin: Client, fresh: Client) -> None:
    since = filled(fresh)
    key = admin.new_key(scopes=["data:read"])
    reader = Client(admin.server, key["key"], database=fresh.headers["X-Database"])
    with OpenFeed(reader, f"since={since}") as feed:
        assert admin.delete(f"/v1/keys/{key['id']}").status_code == 204
        assert feed.error()["code"] == "QS002"


def test_a_deleted_database_ends_it(admin: Client) -> None:
    assert admin.post("/v1/databases", {"name": "short-fed"}).status_code == 201
    with OpenFeed(Client(admin.server, admin.token, database="short-fed"), "since=0") as feed:
        assert admin.delete("/v1/databases/short-fed").status_code == 204
        error = feed.error()
        assert error["code"] == "57P04" and not error["retryable"]
        assert "deleted" in error["message"] and "again" not in error["hint"]


def readers(client: Client) -> int:
    return int(client.metric("qserver_feed_readers"))


def test_readers_that_are_gone_are_forgotten(admin: Client, fresh: Client) -> None:
    since = filled(fresh)
    before = readers(admin)
    feeds = [OpenFeed(fresh, f"since={since}") for _ in range(3)]
    assert readers(admin) == before + 3
    for feed in feeds:
        feed.socket.close()
    while readers(admin) > before:
        time.sleep(PAUSE_SECONDS)


def test_a_slow_reader_gets_everything_and_slows_nobody(fresh: Client) -> None:
    since = filled(fresh)
    with OpenFeed(fresh, f"since={since}&tables=b") as feed:
        last = 0
        for number in range(30):  # more than the sockets hold
            sql = "insert into b select repeat(chr($1), 60000) from generate_series(1, 3)"
            last = fresh.query(sql, [97 + number % 26])["version"]
        feed.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # now it is quick
        events = feed.until(last)
    versions = [event.data["version"] for event in events if event.kind == "version"]
    assert versions == list(range(last - 29, last + 1))
    assert len(events) == 4 * len(versions)
