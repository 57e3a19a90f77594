"""Section 15: rows go out in bulk as CSV, lines or an array, and can come in again."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import httpx
import pytest

from tests.web.contract.servers import Client, error_of

NDJSON, CSV, JSON = "application/x-ndjson", "text/csv", "application/json"
SCHEMA = (
    "create type mood as enum ('sad', 'happy')",
    """create table things (
        id int primary key, name text, price numeric(8, 2), raw bytea, extra jsonb, tags text[],
        at timestamptz, span interval, good boolean, d double precision, feels mood)""",
    """insert into things values
        (1, '', 1.50, '\\x00ff', '{"a": [1, null, "x"]}', '{a,NULL,"b,c"}',
         '2024-02-29T04:05:06.5Z', '1 year -2 days', true, '-0', 'sad'),
        (2, null, null, null, null, null, null, null, null, null, null),
        (3, e'a "b", c\\r\\nd', -0.01, '', '"text"', '{}', '2024-01-01T00:00:00Z', '0', false,
         'NaN', 'happy')""",
    "create view cheap as select id, price from things where price < 1",
    "create schema s",
    'create table s."odd, name" (a int, "b c" int)',
    'insert into s."odd, name" values (1, 2), (3, 4)',
)


@pytest.fixture
def shop(fresh: Client) -> Client:
    fresh.transaction(*SCHEMA)
    return fresh


def get(client: Client, accept: str = JSON, table: str = "things", **query: Any) -> httpx.Response:
    path = f"/v1/tables/{table}/rows"
    return client.call("GET", path, params=query, headers={"Accept": accept})


def test_every_format_goes_out_and_comes_in_the_same(shop: Client) -> None:
    before = shop.rows("select * from things order by id")
    for kind in (CSV, NDJSON, JSON):
        answer = get(shop, kind)
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == kind
        shop.query("delete from things")
        headers = {"Content-Type": answer.headers["content-type"]}
        path = "/v1/tables/things/rows"
        sent = shop.call("POST", path, content=answer.content, headers=headers).json()
        assert sent["success"] is True and sent["affected_rows"] == 3, sent
        assert shop.rows("select * from things order by id") == before, kind


def test_csv_is_what_spreadsheets_read(shop: Client) -> None:
    text = get(shop, CSV).text
    assert text.endswith("\r\n")
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == [
        "id",
        "name",
        "price",
        "raw",
        "extra",
        "tags",
        "at",
        "span",
        "good",
        "d",
        "feels",
    ]
    assert rows[0] == [
        "1", "", "1.50", "\\x00ff", '{"a": [1, null, "x"]}', '{a,NULL,"b,c"}',
        "2024-02-29 04:05:06.5+00", "1 year -2 days", "true", "-0", "sad",
    ]  # fmt: skip
    assert rows[1] == ["2", *[""] * 10]
    assert rows[2][1] == 'a "b", c\r\nd' and len(rows) == 3
    assert '1,"",1.50' in text and "\r\n2,,," in text, "the empty text is not NULL"


def test_arrays_and_lines_have_the_rows_of_an_answer(shop: Client) -> None:
    rows = shop.query_response("select * from things").json()["rows"]
    assert get(shop, JSON).json() == rows
    assert get(shop, "*/*").json() == rows
    assert list(map(json.loads, get(shop, NDJSON).text.splitlines())) == rows
    assert get(shop, JSON, where="false").json() == []
    assert get(shop, NDJSON, where="false").text == ""
    assert get(shop, CSV, where="false", columns="id,name").text == "id,name\r\n"


def test_where_order_columns_and_limit(shop: Client) -> None:
    found = get(shop, CSV, columns="name,id", where="id <> 2", order="id DESC").text
    assert found == 'name,id\r\n"a ""b"", c\r\nd",3\r\n"",1\r\n'
    first = get(shop, JSON, order="price nulls first, id asc", columns="id", limit=2).json()
    assert first == [{"id": 2}, {"id": 3}]
    bound = get(shop, JSON, where="id = $1 or name = $2", params='[2, ""]', columns="id")
    assert bound.json() == [{"id": 1}, {"id": 2}]
    named = get(shop, JSON, where="id in (select id from cheap) -- :x\n", columns="id")
    assert named.json() == [{"id": 3}]
    assert get(shop, JSON, "cheap").json() == [{"id": 3, "price": "-0.01"}]
    odd = get(shop, CSV, "s.odd%2C%20name", columns="b c", order="b c desc")
    assert odd.text == "b c\r\n4\r\n2\r\n"
    assert get(shop, CSV, "information_schema.schemata", columns="schema_name").status_code == 200


def test_the_past_can_go_out(shop: Client) -> None:
    version = shop.query("select 1")["version"]
    shop.query("delete from things where id > 1")
    assert len(get(shop, JSON).json()) == 1
    assert len(get(shop, JSON, as_of=version).json()) == 3


WRONG: list[tuple[dict[str, Any], int, str | None]] = [
    ({"where": "id ="}, 400, "42601"),
    ({"where": ""}, 400, "42601"),
    ({"where": "true) union select 1 from (select 1"}, 400, "42601"),
    ({"where": "true; drop table things"}, 400, "42601"),
    ({"where": "true order by 1"}, 400, "42601"),
    ({"where": "true /* "}, 400, "42601"),
    ({"where": "nothing = 1"}, 200, "42703"),
    ({"where": "name"}, 200, "42804"),
    ({"where": "id = $1"}, 400, None),
    ({"where": "id = 1", "params": "[1]"}, 400, None),
    ({"where": "id = 1", "params": '[1],"sql":"x"'}, 400, None),
    ({"where": "nextval('n') > 0"}, 405, None),
    ({"columns": "nothing"}, 200, "42703"),
    ({"columns": "id,"}, 400, None),
    ({"columns": 'id" from things --'}, 200, "42703"),
    ({"order": "id; drop table things"}, 200, "42703"),
    ({"order": "id,"}, 400, None),
    ({"order": "desc"}, 200, "42703"),
    ({"limit": "-1"}, 400, None),
    ({"limit": "x"}, 400, None),
    ({"timeout_ms": "0"}, 400, None),
    ({"as_of": "yesterday"}, 400, None),
    ({"database": "no-such"}, 404, None),
    ({"what": "1"}, 400, None),
]


def test_what_cannot_be_answered_is_an_ordinary_error(shop: Client) -> None:
    shop.query("create sequence n")
    for query, status, code in WRONG:
        for accept in (CSV, JSON):
            error_of(get(shop, accept, **query), status, code)
    assert shop.value("select count(*) from things") == 3


def test_positions_are_those_of_the_expression(shop: Client) -> None:
    found = error_of(get(shop, CSV, where="id = 1 and nothing = 1"), 200, "42703")
    assert found["position"] == 12
    assert error_of(get(shop, CSV, where="id = = 1"), 400)["position"] == 6
    assert error_of(get(shop, CSV, order="nothing", where="true"), 200)["position"] is None
    assert error_of(get(shop, CSV, order="nothing"), 200)["position"] is None
    assert error_of(get(shop, CSV, columns="nothing"), 200)["position"] is None


def test_who_may_have_the_rows(shop: Client, organization: Client, anonymous: Client) -> None:
    error_of(get(anonymous), 401)
    error_of(get(organization), 200, "42P01")
    name = shop.headers["X-Database"]
    error_of(get(organization, database=name), 404)
    error_of(get(shop.with_token(shop.new_key(scopes=["data:write"])["key"]), database=name), 403)
    limited = shop.new_key(statements={"one": "select 1"}, databases=[name])
    error_of(get(shop.with_token(limited["key"])), 403)
    for header in ("Idempotency-Key", "X-Transaction"):
        error_of(shop.call("GET", "/v1/tables/things/rows", headers={header: "x"}), 400)
    error_of(get(shop, CSV, "nothing"), 200, "42P01")
    error_of(get(shop, CSV, "no.thing"), 200)


def test_any_query_streams_as_csv(shop: Client) -> None:
    headers = {"Accept": CSV}
    sql = "select id, id + 0.5 as half, 'x,y' as id from things order by 1"
    expected = 'id,half,id_2\r\n1,1.5,"x,y"\r\n2,2.5,"x,y"\r\n3,3.5,"x,y"\r\n'
    answer = shop.call("POST", "/v1/query", json={"sql": sql}, headers=headers)
    assert answer.text == expected
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    plain = {"Accept": CSV, "Content-Type": "text/plain"}
    assert shop.call("POST", "/query", content=sql, headers=plain).text == expected
    assert shop.call("GET", "/v1/query", params={"sql": sql}, headers=headers).text == expected
    update = {"sql": "update things set good = true where id = 2 returning id, good"}
    assert (
        shop.call("POST", "/v1/query", json=update, headers=headers).text == "id,good\r\n2,true\r\n"
    )
    nothing = {"sql": "update things set good = true where id = 2"}
    assert shop.call("POST", "/v1/query", json=nothing, headers=headers).text == ""
    wrong = {"sql": "select 1 / (id - 1) from things"}
    error_of(shop.call("POST", "/v1/query", json=wrong, headers=headers), 200, "22012")


def test_an_error_after_the_first_rows_cuts_the_answer_off(shop: Client) -> None:
    shop.query("create table many (a int primary key)")
    shop.query("insert into many select generate_series(1, 20000)")
    for accept in (CSV, JSON):
        with pytest.raises(httpx.RemoteProtocolError):
            get(shop, accept, "many", where="1 / (20000 - a) >= 0").text  # noqa: B018
    last = get(shop, NDJSON, "many", where="1 / (20000 - a) >= 0").text.splitlines()[-1]
    assert json.loads(last)["error"]["code"] == "22012"
    assert get(shop, CSV, "many", where="a > 19998").text == "a\r\n19999\r\n20000\r\n"
