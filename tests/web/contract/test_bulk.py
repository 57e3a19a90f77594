"""Section 15: rows in bulk come as lines, CSV or an array, as one transaction."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.patience import eventually
from tests.web.contract.servers import Client, error_of

NDJSON, CSV, JSON = "application/x-ndjson", "text/csv", "application/json"
SCHEMA = (
    "create table parents (id int primary key)",
    "insert into parents values (1), (2)",
    """create table things (
        id int primary key, name text default 'nobody', price numeric(6, 2) check (price >= 0),
        parent int references parents, tags text[], extra jsonb, at timestamptz, good boolean,
        twice int generated always as (id * 2) stored)""",
    "create table plain (x int, y text)",
    "create table counted (id int generated always as identity primary key, y text)",
)


@pytest.fixture
def shop(fresh: Client) -> Client:
    fresh.transaction(*SCHEMA)
    return fresh


def send(
    client: Client, body: Any, kind: str = NDJSON, table: str = "things", query: str = ""
) -> httpx.Response:
    path = f"/v1/tables/{table}/rows{query}"
    return client.call("POST", path, content=body, headers={"Content-Type": kind})


def load(client: Client, *given: Any) -> dict[str, Any]:
    answer = send(client, *given)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["success"] is True, found
    assert found.keys() == {"success", "affected_rows", "version", "timings"}
    return found


def lines(*rows: Any) -> str:
    return "".join([json.dumps(row) + "\n" for row in rows])


def test_lines_arrays_and_csv_insert_the_same_rows(shop: Client) -> None:
    rows = [
        {"id": 1, "name": 'a, "b"\nc', "price": 1.5, "tags": ["x", None, '"'],
         "extra": {"a": [1]}, "at": "2024-01-02T03:04:05Z", "good": True},
        {"id": 2, "name": "", "price": None, "tags": [], "extra": 7, "at": None, "good": False},
    ]  # fmt: skip
    csv = (
        "id,name,price,tags,extra,at,good\r\n"
        '1,"a, ""b""\nc",1.5,"{x,NULL,""\\""""}","{""a"":[1]}",2024-01-02T03:04:05Z,true\r\n'
        '2,"",,{},7,,false'
    )
    found = []
    for body, kind in ((lines(*rows), NDJSON), (json.dumps(rows), JSON), (csv, CSV)):
        version = shop.query("select 1")["version"]
        answer = load(shop, body, kind)
        assert answer["affected_rows"] == 2 and answer["version"] == version + 1
        found.append(shop.rows("select * from things order by id"))
        shop.query("delete from things")
    assert found[0] == found[1] == found[2]
    assert found[0][0] == [
        1, 'a, "b"\nc', "1.50", None, ["x", None, '"'], {"a": [1]}, "2024-01-02T03:04:05Z", True, 2,
    ]  # fmt: skip
    assert found[0][1] == [2, "", None, None, [], 7, None, False, 4]


def test_rows_that_leave_columns_out_get_defaults(shop: Client) -> None:
    load(shop, lines({"id": 1}, {"id": 2, "name": None}, {"price": 3, "id": 3}))
    found = shop.rows("select id, name, price from things order by id")
    assert found == [[1, "nobody", None], [2, None, None], [3, "nobody", "3.00"]]
    assert load(shop, lines({}, {}, {"y": "c"}), NDJSON, "counted")["affected_rows"] == 3
    assert shop.rows("select * from counted order by id") == [[1, None], [2, None], [3, "c"]]
    assert load(shop, "[]", JSON)["affected_rows"] == 0
    assert load(shop, "", NDJSON)["affected_rows"] == 0


def test_a_schema_comes_before_the_name(shop: Client) -> None:
    shop.transaction("create schema s", "create table s.t (a int)")
    load(shop, lines({"a": 1}), NDJSON, "s.t")
    assert shop.value("select a from s.t") == 1


def test_a_dot_may_be_part_of_a_name(shop: Client) -> None:
    shop.query('create table "s.t" (a int)')
    load(shop, lines({"a": 1}), NDJSON, "s.t")
    shop.transaction("create schema s", "create table s.t (a int)")
    load(shop, lines({"a": 2}), NDJSON, "s.t")
    load(shop, lines({"a": 3}), NDJSON, "%22s.t%22")
    assert shop.rows("select a from s.t") == [[2]]
    assert shop.rows('select a from "s.t" order by a') == [[1], [3]]
    named = [each["name"] for each in shop.get("/tables").json()["tables"]]
    assert {'"s.t"', "s.t"} <= set(named)


BAD = [
    (lines({"id": 5}, {"id": 6, "price": -1}, {"id": "x"}), NDJSON, "23514", 2),
    (lines({"id": 5}, {"id": 6}, {"id": 5}), NDJSON, "23505", 3),
    (lines({"id": 5, "parent": None}, {"id": 6, "parent": 3}), NDJSON, "23503", 2),
    (lines({"id": 5, "good": None}, {"id": 6, "good": 7}), NDJSON, "22P02", 2),
    (lines({"id": 5}, {"name": "x"}), NDJSON, "23502", 2),
    (lines({"id": 5}, {"id": 6, "nothing": 1}), NDJSON, "42703", 2),
    (lines({"id": 5}, {"id": 6, "twice": 1}), NDJSON, "428C9", 2),
    ("id,price\n5,1\n6,x\n", CSV, "22P02", 2),
    (json.dumps([{"id": 5}, {"id": 3_000_000_000}]), JSON, "22003", 2),
]


@pytest.mark.parametrize(("body", "kind", "code", "row"), BAD)
def test_the_first_bad_row_ends_it(shop: Client, body: str, kind: str, code: str, row: int) -> None:
    error = error_of(send(shop, body, kind), 200, code)
    assert (error["row"], error["statement"], error["position"]) == (row, None, None)
    assert shop.value("select count(*) from things") == 0


MALFORMED = [
    ('{"id": 1}\n\n{"id": 2\n', NDJSON, 2),
    ('{"id": 1}\n[2]\n', NDJSON, 2),
    ("id,name\n1,a\n\n2\n", CSV, 2),
    ('id,name\n1,"a"b\n', CSV, 1),
    ('[{"id": 1}, 2]', JSON, 2),
    ('{"id": 1}', JSON, None),
    ('[{"id": 1}', JSON, None),
    ('[{"id": 1}],"array":[]', JSON, None),
    ('id,name\n1,a\n2,5" pipe\n3,"x\ny"\n', CSV, 2),
    ('id,name\n1,a\n2,"x\n', CSV, 2),
    ('id,"name\n1,a\n', CSV, None),
    ("", CSV, None),
    ("id,id\n1,1\n", CSV, None),
    (b"id,name\n1,\xff\n", CSV, 1),
]


@pytest.mark.parametrize(("body", "kind", "row"), MALFORMED)
def test_malformed_bodies_are_refused(
    shop: Client, body: str | bytes, kind: str, row: int | None
) -> None:
    error = error_of(send(shop, body, kind), 400)
    assert error.get("row") == row
    assert shop.value("select count(*) from things") == 0


def test_an_earlier_bad_row_wins_over_a_later_malformed_one(shop: Client) -> None:
    error = error_of(send(shop, lines({"id": 1}, {"id": 1}) + "{"), 200, "23505")
    assert error["row"] == 2


def test_conflicts_are_errors_ignored_or_updates(shop: Client) -> None:
    shop.query("insert into things (id, name, price) values (1, 'old', 1)")
    rows = lines({"id": 1, "name": "new"}, {"id": 2, "name": "x"}, {"id": 2, "name": "y"})
    assert error_of(send(shop, rows), 200, "23505")["row"] == 1
    ignored = load(shop, rows, NDJSON, "things", "?on_conflict=ignore")
    assert ignored["affected_rows"] == 1
    kept = "select id, name, price from things order by id"
    assert shop.rows(kept) == [[1, "old", "1.00"], [2, "x", None]]
    updated = load(shop, rows, NDJSON, "things", "?on_conflict=update")
    assert updated["affected_rows"] == 3
    assert shop.rows(kept) == [[1, "new", "1.00"], [2, "y", None]]
    assert load(shop, "id\n1\n", CSV, "things", "?on_conflict=update")["affected_rows"] == 1
    error_of(send(shop, lines({"x": 1}), NDJSON, "plain", "?on_conflict=update"), 200, "42P10")


def test_columns_take_only_these(shop: Client) -> None:
    query = "?columns=name,id"
    load(shop, lines({"id": 1, "name": "a", "price": 5, "other": 0}), NDJSON, "things", query)
    load(shop, "price,id,name\n5,2,b\n", CSV, "things", query)
    assert shop.rows("select id, name, price from things order by id") == [
        [1, "a", None],
        [2, "b", None],
    ]
    error_of(send(shop, "id\n1\n", CSV, "things", query), 400)
    error_of(send(shop, lines({"id": 9}), NDJSON, "things", "?columns=id,what"), 200, "42703")


def test_what_is_no_request_in_bulk(shop: Client, admin: Client) -> None:
    one = lines({"id": 1})
    assert error_of(send(shop, one, NDJSON, "nothing"), 200, "42P01").get("row") is None
    error_of(send(shop, one, NDJSON, "things", "?on_conflict=maybe"), 400)
    error_of(send(shop, one, NDJSON, "things", "?what=1"), 400)
    error_of(send(shop, one, NDJSON, "things", "?columns=id&columns=id"), 400)
    error_of(send(shop, one, NDJSON, "things", "?columns=id,,name"), 400)
    error_of(send(shop, one, "application/pdf"), 415)
    headers = {"Content-Type": NDJSON, "X-Transaction": "x"}
    error_of(shop.call("POST", "/v1/tables/things/rows", content=one, headers=headers), 400)
    assert shop.value("select count(*) from things") == 0
    error_of(send(admin, one, NDJSON, "things", "?database=no-such"), 404)
    name = shop.headers["X-Database"]
    load(admin, one, NDJSON, "things", f"?database={name}")
    assert shop.value("select count(*) from things") == 1


def test_only_keys_that_may_write_send_rows(shop: Client) -> None:
    reader = shop.with_token(shop.new_key(scopes=["data:read"])["key"])
    error_of(send(reader, lines({"id": 1})), 403)
    limited = shop.new_key(statements={"one": "select 1"})
    error_of(send(shop.with_token(limited["key"]), lines({"id": 9}), NDJSON, "parents"), 403)


@pytest.mark.long
def test_long_bodies_arrive_in_pieces(shop: Client) -> None:
    count = 30_000

    def rows() -> Iterator[bytes]:
        for start in range(0, count, 700):
            part = range(start, min(start + 700, count))
            yield "".join([f'{{"x": {at}, "y": "zeile {at} ü"}}\n' for at in part]).encode()

    assert load(shop, rows(), NDJSON, "plain")["affected_rows"] == count
    text = "x,y\n" + "".join([f'{at},"zeile {at}\nü"\n' for at in range(count)])
    assert load(shop, text.encode(), CSV, "plain")["affected_rows"] == count
    assert shop.rows("select count(*), sum(x), count(distinct y) from plain") == [
        [2 * count, count * (count - 1), 2 * count]
    ]
    text += "x\n"
    error = error_of(send(shop, text.encode(), CSV, "plain"), 400)
    assert error["row"] == count + 1
    assert shop.value("select count(*) from plain") == 2 * count


def test_a_row_over_the_limit_is_refused(shop: Client) -> None:
    body = b'{"x": 1}\n{"y": "' + b"x" * (9 * 1024 * 1024) + b'"}\n'
    try:
        assert error_of(send(shop, body, NDJSON, "plain"), 400)["row"] == 2
    except httpx.WriteError:
        pass  # the answer came before the end of the body
    assert shop.value("select count(*) from plain") == 0


def test_a_body_that_says_it_is_too_large_is_refused_unread(shop: Client) -> None:
    with Wire(shop) as wire:
        wire.send(wire.head("plain", f"Content-Length: {1024**3 + 1}"))
        assert wire.answer().startswith(b"HTTP/1.1 413")
    with Wire(shop) as wire:
        wire.send(wire.head("plain", f"Content-Length: {1024**3}") + b'{"x": ')
        time.sleep(0.05)
    assert shop.value("select count(*) from plain") == 0


@pytest.mark.long
def test_a_large_body_needs_no_memory_for_itself(shop: Client) -> None:
    """Of 64 MiB the rows add little, and so does the body to what the process holds."""
    shop.query("create table few (id int primary key)")
    line = '{"id": %d, "rest": "' + "x" * 1000 + '"}\n'
    part = "".join([line % (at % 100) for at in range(1000)]).encode()
    query = "?columns=id&on_conflict=ignore"
    load(shop, part, NDJSON, "few", query)
    before, sizes = shop.server.memory_bytes(), []

    def parts() -> Iterator[bytes]:
        for at in range(64):
            if not at % 8:
                sizes.append(shop.server.memory_bytes())
            yield part

    assert load(shop, parts(), NDJSON, "few", query)["affected_rows"] == 0
    assert max(sizes) - before < len(part) * 64 / 4
    assert shop.value("select count(*) from few") == 100


@pytest.mark.parametrize("kind", [NDJSON, CSV, JSON])
def test_a_sender_that_leaves_in_the_middle_leaves_nothing(shop: Client, kind: str) -> None:
    rows = [{"x": at, "y": "ü"} for at in range(2000)]
    body = {NDJSON: lines(*rows), JSON: json.dumps(rows, ensure_ascii=False)}.get(kind)
    body = body or "x,y\n" + "".join([f"{row['x']},ü\n" for row in rows])
    with Wire(shop) as wire:
        wire.send(wire.head("plain", "Transfer-Encoding: chunked", kind))
        whole = body.encode()
        for start in range(0, len(whole) - 1, 9973):  # cuts characters, too
            wire.chunk(whole[start : start + 9973])
    assert shop.value("select count(*) from plain") == 0
    with Wire(shop) as wire:
        wire.send(wire.head("plain", "Transfer-Encoding: chunked", kind))
        for start in range(0, len(whole), 9973):
            wire.chunk(whole[start : start + 9973])
        wire.chunk(b"")
        assert b'"affected_rows":2000' in wire.answer()
    assert shop.rows("select count(*), count(distinct x), min(y) from plain") == [[2000, 2000, "ü"]]


def once(client: Client, key: str, body: Any, query: str = "", **headers: str) -> httpx.Response:
    named = {"Content-Type": NDJSON, "Idempotency-Key": key, **headers}
    return client.call("POST", f"/v1/tables/plain/rows{query}", content=body, headers=named)


def test_rows_with_an_idempotency_key_are_inserted_once(shop: Client) -> None:
    many = lines(*[{"x": at, "y": "ü" * 50} for at in range(3000)]).encode()
    pieces = [many[at : at + 40_000] for at in range(0, len(many), 40_000)]
    first = once(shop, "a", many)
    assert first.json()["affected_rows"] == 3000, first.text
    assert "idempotency-replayed" not in first.headers
    for again in (once(shop, "a", many), once(shop, "a", iter(pieces))):
        assert again.content == first.content
        assert again.headers["idempotency-replayed"] == "true"
    assert shop.value("select count(*) from plain") == 3000
    error_of(once(shop, "a", many + b"\n"), 422, "QS032")
    error_of(once(shop, "a", many, "?on_conflict=ignore"), 422)
    sql = {"sql": "insert into plain values (1)"}
    error_of(shop.call("POST", "/v1/query", json=sql, headers={"Idempotency-Key": "a"}), 422)
    error_of(once(shop, "", lines({"x": 1})), 400)
    error_of(once(shop, "x" * 256, lines({"x": 1})), 400)
    assert once(shop, "b", lines({"x": 1})).json()["affected_rows"] == 1
    assert shop.value("select count(*) from plain") == 3001


def test_a_request_in_bulk_that_failed_may_be_sent_again_with_its_key(shop: Client) -> None:
    error_of(once(shop, "k", lines({"x": 1}, {"x": "no"})), 200, "22P02")
    assert once(shop, "k", lines({"x": 1})).json()["affected_rows"] == 1
    empty = once(shop, "e", b"")
    assert empty.json()["affected_rows"] == 0
    assert once(shop, "e", b"").content == empty.content
    other = shop.new_key()["key"]
    foreign = once(shop, "k", lines({"x": 2}), Authorization=f"Bearer {other}")
    assert foreign.json()["affected_rows"] == 1, "it is the key of another sender"
    assert shop.value("select count(*) from plain") == 2


def test_the_same_request_in_bulk_is_refused_while_it_runs(shop: Client) -> None:
    with Wire(shop) as wire:
        key = "Idempotency-Key: same\r\nTransfer-Encoding: chunked"
        wire.send(wire.head("plain", key))
        wire.chunk(lines({"x": 1}).encode())
        eventually(
            lambda: once(shop, "same", "not a row").status_code != 400, "the first does not begin"
        )
        answer = once(shop, "same", "not a row")
        assert answer.status_code == 409, answer.text
        assert answer.json()["error"]["code"] == "QS033" and "retry-after" in answer.headers
        wire.chunk(b"")
        assert b'"affected_rows":1' in wire.answer()
    assert once(shop, "same", lines({"x": 1})).headers["idempotency-replayed"] == "true"
    assert shop.value("select count(*) from plain") == 1


def test_versions_name_the_request_that_brought_the_rows(shop: Client) -> None:
    answer = once(shop, "v", lines({"x": 1}), **{"X-Request-Id": "bulk-7"})
    database = shop.headers["X-Database"]
    newest = shop.get(f"/v1/databases/{database}/versions").json()["versions"][0]
    assert newest["version"] == answer.json()["version"]
    assert (newest["request_id"], newest["rows_changed"]) == ("bulk-7", 1)


def test_values_for_identities_are_taken_when_they_override(shop: Client) -> None:
    for body, kind in ((lines({"id": 7, "y": "a"}), NDJSON), ("id,y\n8,b\n", CSV)):
        error_of(send(shop, body, kind, "counted"), 200, "428C9")
        assert load(shop, body, kind, "counted", "?overriding=system")["affected_rows"] == 1
    load(shop, lines({"y": "c"}), NDJSON, "counted", "?overriding=system")
    assert shop.rows("select id from counted order by id") == [[1], [7], [8]]
    error_of(send(shop, body, kind, "counted", "?overriding=user"), 400)


class Wire:
    """A connection that sends what it is told to."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._socket = socket.create_connection(("127.0.0.1", client.server.port), 240)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def head(self, table: str, length: str, kind: str = NDJSON) -> bytes:
        named = {**self._client.headers, "Content-Type": kind, "Connection": "close"}
        headers = "".join([f"{name}: {value}\r\n" for name, value in named.items()])
        first = f"POST /v1/tables/{table}/rows HTTP/1.1\r\nHost: x\r\n"
        return f"{first}{headers}{length}\r\n\r\n".encode()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def answer(self) -> bytes:
        found = b""
        while piece := self._socket.recv(65536):
            found += piece
        return found
