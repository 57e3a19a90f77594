"""Section 3: one statement, its fields, its answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.contract.servers import Client, error_of

TEXT = {"Content-Type": "text/plain"}


def send_text(client: Client, sql: str | bytes, **headers: str) -> Any:
    return client.call("POST", "/query", content=sql, headers={**TEXT, **headers})


def test_the_answer_has_the_fields_of_the_contract_and_no_others(fresh: Client) -> None:
    created = fresh.query("create table users (id int primary key, name text)")
    assert (created["columns"], created["rows"], created["affected_rows"]) == ([], [], 0)
    inserted = fresh.query("insert into users values (1, 'Ada'), (2, 'Grace')")
    assert inserted["affected_rows"] == 2
    assert inserted["version"] > created["version"]
    found = fresh.query("select id, name from users where id = 1")
    timings = found.pop("timings")
    assert found == {
        "success": True,
        "columns": ["id", "name"],
        "rows": [{"id": 1, "name": "Ada"}],
        "affected_rows": 0,
        "types": ["integer", "text"],
        "version": inserted["version"],
        "retries": 0,
    }
    assert timings.keys() == {"total_us", "exec_us"}
    assert 0 < timings["exec_us"] <= timings["total_us"]


def test_affected_rows_counts_rows_inserted_updated_and_deleted(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    assert fresh.query("insert into t select * from generate_series(1, 5)")["affected_rows"] == 5
    assert fresh.query("update t set a = a + 1 where a > 2")["affected_rows"] == 3
    returned = fresh.query("delete from t where a < 3 returning a")
    assert returned["affected_rows"] == 2
    assert sorted(row["a"] for row in returned["rows"]) == [1, 2]
    assert fresh.query("select * from t")["affected_rows"] == 0
    assert fresh.query("drop table t")["affected_rows"] == 0


@pytest.mark.parametrize("content_type", ["text/plain", "text/plain; charset=utf-8", "TEXT/PLAIN"])
def test_the_text_route_takes_the_raw_statement_and_answers_with_the_same_object(
    admin: Client, content_type: str
) -> None:
    answer = send_text(admin, "select 'é' as a;", **{"Content-Type": content_type})
    expected = admin.query("select 'é' as a")
    found = answer.json()
    assert answer.status_code == 200 and found.keys() == expected.keys()
    assert found["rows"] == expected["rows"] == [{"a": "é"}]


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/query", "application/json"),
        ("/query", "application/octet-stream"),
        ("/v1/query", "text/plain"),
        ("/v1/query", "application/xml"),
        ("/v1/transaction", "text/plain"),
        ("/v1/databases", "text/csv"),
        ("/v1/keys", "multipart/form-data; boundary=x"),
    ],
)
def test_a_body_of_another_media_type_is_415_which_says_which_to_send(
    admin: Client, path: str, content_type: str
) -> None:
    answer = admin.call("POST", path, content=b"{}", headers={"Content-Type": content_type})
    error = error_of(answer, 415, "QS010")
    assert "Content-Type: " in error["hint"]


def test_what_curl_sends_without_a_header_is_taken_as_json(admin: Client) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = admin.call("POST", "/v1/query", content=b'{"sql":"select 1"}', headers=form)
    assert answer.json()["success"] is True


@pytest.mark.parametrize(
    "sql", ["select 1;", "  select 1 ; ", "select 1 -- so\n;", "/* a */ select 1"]
)
def test_one_statement_may_end_with_a_semicolon(admin: Client, sql: str) -> None:
    assert admin.query_response(sql).json()["success"] is True
    assert send_text(admin, sql).json()["success"] is True


@pytest.mark.parametrize("sql", ["", " ", ";", "-- nothing", "select 1; select 2", "select 1;;x"])
def test_not_exactly_one_statement_is_400(admin: Client, sql: str) -> None:
    error_of(admin.query_response(sql), 400)
    error_of(send_text(admin, sql), 400)


def test_sql_that_does_not_parse_is_400_and_says_where(admin: Client) -> None:
    error = error_of(admin.query_response("selec 1"), 400, "42601")
    assert error["position"] == 1
    error = error_of(admin.query_response("select 1 frm x"), 400, "42601")
    assert error["position"] is not None
    error_of(send_text(admin, "select 'unfinished"), 400, "42601")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"select 1"',
        b"null",
        b"{}",
        b'{"sql": 1}',
        b'{"sql": null}',
        b'{"sql": "select 1", "format": "csv"}',
        b'{"sql": "select 1", "params": 1}',
        b'{"sql": "select 1", "max_rows": -1}',
        b'{"sql": "select 1", "max_rows": "1"}',
        b'{"sql": "select 1", "timeout_ms": 0}',
        b'{"sql": "select 1", "timeout_ms": 30001}',
        b'{"sql": "select 1", "max_retries": -1}',
        b'{"sql": "select 1", "max_affected": -1}',
        b'{"sql": "select 1", "dry_run": 1}',
        b'{"sql": "select 1", "database": 1}',
        b'{"sql": "select 1"} trailing',
        b'{"sql": "\xff"}',
        b"[" * 100_000,
    ],
)
def test_json_that_is_not_a_request_is_400(admin: Client, body: bytes) -> None:
    json = {"Content-Type": "application/json"}
    error_of(admin.call("POST", "/v1/query", content=body, headers=json), 400, "QS001")


@pytest.mark.parametrize("field", ["Sql", "parameters", "as-of", "dry-run", "statements", ""])
def test_unknown_fields_are_400_which_names_them(admin: Client, field: str) -> None:
    error = error_of(admin.query_response("select 1", **{field: 1}), 400, "QS001")
    assert f"`{field}`" in error["message"]
    body = {"statements": ["select 1"], "unheard_of": 1}
    error_of(admin.post("/v1/transaction", body), 400, "QS001")


def test_text_that_is_not_utf_8_is_400(admin: Client) -> None:
    error_of(send_text(admin, b"select '\xff'"), 400, "QS001")


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("select ? + ? as sum", [2, 3]),
        ("select $2 + $1 as sum", [2, 3]),
        ("select $1 + $1 + 1 as sum", [2]),
        ("select :a + :b as sum", {"a": 2, "b": 3}),
    ],
)
def test_params_of_three_kinds_are_bound(admin: Client, sql: str, params: Any) -> None:
    sql = sql.replace(" + ", "::int + ", 1).replace("+ :b", "+ :b::int")
    assert admin.query(sql, params)["rows"] == [{"sum": 5}]


def test_params_are_values_and_never_become_sql(fresh: Client) -> None:
    fresh.query("create table t (a text)")
    evil = "'); drop table t; --"
    fresh.query("insert into t values (?)", [evil])
    assert fresh.query("select a from t where a = :a", {"a": evil})["rows"] == [{"a": evil}]


def test_params_keep_every_digit(admin: Client) -> None:
    big = 9_007_199_254_740_993
    assert admin.value("select $1::bigint", [big]) == big
    answer = admin.call(
        "POST",
        "/v1/query",
        content=b'{"sql":"select $1::numeric","params":[0.12345678901234567890123]}',
        headers={"Content-Type": "application/json"},
    )
    assert list(answer.json()["rows"][0].values()) == ["0.12345678901234567890123"]


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("select ?", []),
        ("select ?", [1, 2]),
        ("select $2", [1]),
        ("select :a", {"b": 1}),
        ("select :a", {"a": 1, "b": 1}),
        ("select 1", [1]),
        ("select ?", None),
        ("select :a", [1]),
    ],
)
def test_a_wrong_number_of_params_is_400(admin: Client, sql: str, params: Any) -> None:
    error_of(admin.query_response(sql, params), 400)


def test_the_database_is_the_field_then_the_header_then_the_keys_own_then_main(
    admin: Client,
) -> None:
    names = [f"precedence-{admin.server.kind}-{each}" for each in ("field", "header", "own")]
    for name in names:
        admin.post("/v1/databases", {"name": name})
        admin.query(f"create table whoami as select '{name}' as name", database=name)
    field, header, own = names
    limited = admin.with_scopes("data:read", databases=names)
    narrow = admin.with_token(admin.new_session(database=own)["token"])
    sql = "select name from whoami"
    with_header = {"X-Database": header}
    both = limited.post("/v1/query", {"sql": sql, "database": field}, headers=with_header)
    assert both.json()["rows"] == [{"name": field}]
    one = limited.post("/v1/query", {"sql": sql}, headers=with_header)
    assert one.json()["rows"] == [{"name": header}]
    assert send_text(limited, sql, **with_header).json()["rows"] == [{"name": header}]
    assert narrow.query(sql)["rows"] == [{"name": own}]
    assert admin.get("/tables").json()["database"] == "main"
    for name in names:
        assert admin.delete(f"/v1/databases/{name}").status_code == 204


def test_an_unknown_database_is_404(admin: Client) -> None:
    error_of(admin.query_response("select 1", database="nowhere"), 404, "QS006")
    error_of(admin.post("/v1/query", {"sql": "select 1"}, headers={"X-Database": "no"}), 404)
    error_of(admin.query_response("/*+ STREAM */ select 1", database="nowhere"), 404, "QS006")
    transaction = {"statements": ["select 1"], "database": "nowhere"}
    error_of(admin.post("/v1/transaction", transaction), 404, "QS006")
    error_of(admin.get("/tables?database=nowhere"), 404, "QS006")


def test_a_database_may_be_named_by_its_id(fresh: Client) -> None:
    fresh.query("create table here (a int)")
    record = fresh.get(f"/v1/databases/{fresh.headers['X-Database']}").json()
    assert fresh.with_token(fresh.token).query("select * from here", database=record["id"])


def test_names_that_occur_twice_get_numbers_so_that_no_value_is_lost(admin: Client) -> None:
    found = admin.query("select 1 as a, 2 as a, 3 as b, 4 as a")
    assert found["columns"] == ["a", "a_2", "b", "a_3"]
    assert found["rows"] == [{"a": 1, "a_2": 2, "b": 3, "a_3": 4}]
    found = admin.query("select 1 as a, 2 as a_2, 3 as a")
    assert found["columns"] == ["a", "a_2", "a_3"]
    assert list(found["rows"][0].values()) == [1, 2, 3]


def test_rows_come_as_objects_or_as_arrays(admin: Client) -> None:
    sql = "select 1 as a, 'x' as b union all select 2, null order by 1"
    assert admin.query(sql)["rows"] == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert admin.query(sql, format="objects")["rows"] == admin.query(sql)["rows"]
    assert admin.query(sql, format="arrays")["rows"] == [[1, "x"], [2, None]]
    (result,) = admin.transaction(sql, format="arrays")["results"]
    assert result["rows"] == [[1, "x"], [2, None]]


def test_max_rows_cuts_the_answer_and_says_so(admin: Client) -> None:
    sql = "select * from generate_series(1, 10) as n"
    cut = admin.query(sql, max_rows=3)
    assert [each["n"] for each in cut["rows"]] == [1, 2, 3] and cut["truncated"] is True
    assert admin.query(sql, max_rows=0)["rows"] == []
    for whole in (admin.query(sql, max_rows=10), admin.query(sql)):
        assert len(whole["rows"]) == 10 and "truncated" not in whole
    (result,) = admin.transaction(sql, max_rows=2)["results"]
    assert len(result["rows"]) == 2 and result["truncated"] is True


def test_max_rows_cuts_the_answer_and_not_the_work(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    sql = "insert into t select * from generate_series(1, 10) returning a"
    assert fresh.query(sql, max_rows=1)["affected_rows"] == 10
    assert fresh.value("select count(*) from t") == 10


def test_more_rows_than_an_answer_holds_are_an_error_that_says_to_stream(admin: Client) -> None:
    sql = "select * from generate_series(1, 100001)"
    error = error_of(admin.query_response(sql), 200, "54000")
    assert "stream" in error["hint"]
    assert len(admin.query(sql, max_rows=100_000, format="arrays")["rows"]) == 100_000


@pytest.mark.parametrize(
    "sql",
    [
        "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r",
        "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b",
        "select n from generate_series(1, 1000000000) as n where n < 0",
    ],
)
def test_timeout_ms_ends_a_statement_that_takes_longer(admin: Client, sql: str) -> None:
    answer = admin.query_response(sql, timeout_ms=50)
    error_of(answer, 200, "57014")
    assert answer.elapsed.total_seconds() < 20, "long before the limit of 30 seconds"
    answer = admin.post("/v1/transaction", {"statements": ["select 1", sql], "timeout_ms": 50})
    error_of(answer, 200, "57014")
