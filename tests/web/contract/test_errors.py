"""Section 8: one error object everywhere, and the status that goes with it."""

from __future__ import annotations

import pytest

from qserver.web.description.catalogue import ROUTES
from tests.web.contract.connections import HalfARequest
from tests.web.contract.servers import Client, error_of

METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT")


@pytest.mark.parametrize(
    ("sql", "code", "name"),
    [
        ("select * from nowhere", "42P01", "undefined_table"),
        ("select nothing", "42703", "undefined_column"),
        ("select 1 / 0", "22012", "division_by_zero"),
        ("select 'x'::int", "22P02", "invalid_text_representation"),
        ("select no_such_function(1)", "42883", "undefined_function"),
        ("select 9223372036854775807 + 1", "22003", "numeric_value_out_of_range"),
        ("drop table nowhere", "42P01", "undefined_table"),
        ("select 1 + true", "42883", "undefined_function"),
    ],
)
def test_an_sql_level_error_is_200_with_the_sqlstate_of_postgresql(
    admin: Client, sql: str, code: str, name: str
) -> None:
    error = error_of(admin.query_response(sql), 200, code)
    assert error["name"] == name and error["message"]
    assert error["retryable"] is False


def test_a_broken_constraint_says_which_and_where(fresh: Client) -> None:
    fresh.query("create table users (id int primary key, age int check (age > 0), n text not null)")
    fresh.query("insert into users values (1, 1, 'a')")
    error = error_of(fresh.query_response("insert into users values (1, 1, 'a')"), 200, "23505")
    assert error["name"] == "unique_violation"
    assert error["message"] == 'duplicate key value violates unique constraint "users_pkey"'
    assert error["detail"] == "Key (id)=(1) already exists."
    assert (error["table"], error["constraint"]) == ("users", "users_pkey")
    error = error_of(fresh.query_response("insert into users values (2, 0, 'a')"), 200, "23514")
    assert error["constraint"] == "users_age_check"
    error = error_of(fresh.query_response("insert into users values (3, 1, null)"), 200, "23502")
    assert (error["table"], error["column"]) == ("users", "n")
    assert fresh.value("select count(*) from users") == 1


def test_position_is_the_character_in_the_statement_counted_from_1(admin: Client) -> None:
    assert error_of(admin.query_response("select 'é', nothing"), 200)["position"] == 13
    assert error_of(admin.query_response("select 'é' selec from"), 400)["position"] is not None


@pytest.mark.parametrize("path", ["/nowhere", "/v1", "/v1/query/", "/v1/keys/a/b", "/V1/QUERY"])
def test_an_unknown_route_is_404_for_every_method(admin: Client, path: str) -> None:
    for method in (*METHODS, "OPTIONS"):
        error_of(admin.call(method, path), 404, "QS006")


@pytest.mark.parametrize("path", sorted({route.path for route in ROUTES}))
def test_a_method_that_a_route_does_not_take_is_405_with_those_that_it_takes(
    admin: Client, path: str
) -> None:
    taken = {route.method for route in ROUTES if route.path == path}
    concrete = path.replace("{database}", "main").replace("{key_id}", "x").replace("{name}", "x")
    for method in set(METHODS) - taken:
        answer = admin.call(method, concrete)
        error_of(answer, 405, "QS007")
        allowed = {each.strip() for each in answer.headers["allow"].split(",")}
        assert taken <= allowed and method not in allowed


def test_options_tells_the_methods_of_a_route(anonymous: Client) -> None:
    answer = anonymous.call("OPTIONS", "/v1/databases")
    assert answer.status_code == 204
    allowed = {each.strip() for each in answer.headers["allow"].split(",")}
    assert allowed == {"GET", "HEAD", "POST", "OPTIONS"}


@pytest.mark.parametrize("path", ["/v1/query", "/query", "/v1/transaction", "/v1/databases"])
def test_a_body_that_is_too_large_is_413(admin: Client, path: str) -> None:
    body = b"x" * (8 * 1024 * 1024 + 1)
    headers = {
        "Content-Type": "text/plain" if path == "/query" else "application/json",
        "Connection": "close",  # not every server can go on behind a body that nobody read
    }
    answer = admin.call("POST", path, content=body, headers=headers)
    error_of(answer, 413, "QS009")


@pytest.mark.parametrize(
    ("path", "status"), [("/nowhere", 404), ("/v1/query", 401), ("/v1/keys", 401), ("/health", 405)]
)
def test_a_refused_request_whose_body_comes_late_does_not_spoil_its_connection(
    anonymous: Client, path: str, status: int
) -> None:
    with HalfARequest(anonymous, "POST", path, b'{"sql": "select 1"}') as request:
        assert anonymous.get("/health").status_code == 200, "by now the head has been seen"
        assert request.complete().startswith(f"HTTP/1.1 {status}".encode())
        assert request.go_on("/health").startswith(b"HTTP/1.1 200")


def test_a_statement_that_is_too_large_is_413(admin: Client) -> None:
    sql = "select '" + "x" * (4 * 1024 * 1024) + "'"
    error_of(admin.query_response(sql), 413, "QS009")
    error_of(admin.post("/v1/transaction", {"statements": [sql]}), 413, "QS009")


def test_a_body_of_the_largest_size_is_taken(admin: Client) -> None:
    text = "x" * (7 * 1024 * 1024)
    assert admin.value("select length(?)", [text]) == len(text)


def test_more_parameters_than_allowed_are_400(admin: Client) -> None:
    answer = admin.query_response("select 1", [1] * 32_767)
    assert "32766" in error_of(answer, 400, "QS001")["message"]


def test_every_answer_carries_a_request_id_of_its_own(admin: Client, anonymous: Client) -> None:
    answers = [
        admin.query_response("select 1"),
        admin.query_response("/*+ STREAM */ select 1"),
        admin.query_response("selec"),
        admin.get("/health"),
        admin.get("/nowhere"),
        admin.call("OPTIONS", "/v1/query"),
        anonymous.get("/v1/keys"),
    ]
    identities = [answer.headers["x-request-id"] for answer in answers]
    assert all(identities) and len(set(identities)) == len(identities)


@pytest.mark.parametrize("path", ["/health", "/v1/keys", "/nowhere"])
def test_a_request_id_that_the_caller_sends_comes_back(admin: Client, path: str) -> None:
    answer = admin.get(path, headers={"X-Request-Id": "my-trace-42"})
    assert answer.headers.get_list("x-request-id") == ["my-trace-42"]
    bad = admin.get(path, headers={"X-Request-Id": "x" * 200})
    assert len(bad.headers["x-request-id"]) < 100


def test_the_hot_routes_echo_the_request_id_too(admin: Client) -> None:
    sent = {"X-Request-Id": "my-trace-43"}
    answer = admin.post("/v1/query", {"sql": "selec"}, headers=sent)
    assert error_of(answer, 400)["request_id"] == "my-trace-43"


def test_text_that_cannot_be_stored_is_refused_and_no_bug(admin: Client) -> None:
    json = {"Content-Type": "application/json"}
    for text in (b"\\ud800", b"\\u0000"):
        body = b'{"sql": "select $1::text as v", "params": ["' + text + b'"]}'
        answer = admin.call("POST", "/v1/query", content=body, headers=json)
        assert answer.status_code in (200, 400), answer.text
        assert answer.json()["success"] is False
