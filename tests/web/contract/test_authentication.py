"""Section 2: keys, scopes, expiry and revocation, route by route."""

from __future__ import annotations

import httpx
import pytest

from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Route
from tests.patience import eventually
from tests.web.contract.servers import Client, error_of

ANONYMOUS = {
    ("GET", "/"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/capabilities"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/llms.txt"),
    ("GET", "/client.js"),
    ("GET", "/client.d.ts"),
    ("GET", "/react.js"),
    ("GET", "/console"),
    ("GET", "/console/{build}/{file}"),
    ("GET", "/console/{build}/{folder}/{file}"),
    ("POST", "/v1/signup"),
}
NEEDS_KEY = [route for route in ROUTES if (route.method, route.path) not in ANONYMOUS]
NEEDS_NO_KEY = [route for route in ROUTES if (route.method, route.path) in ANONYMOUS]
BAD_HEADERS = (
    "Bearer svc_k_notAKeyOfThisServer0000000",
    "Bearer svc_s_notASessionOfThisServer000",
    "Bearer nonsense",
    "Bearer",
    "Bearer svc_k_\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9",
    "Basic c3ZjOms=",
    "nonsense",
)
BODIES = {"/v1/databases": {"name": "x"}, "/v1/databases/{database}": {"name": "x"}}
BODIES |= {"/v1/keys": {"name": "x"}, "/v1/keys/{key_id}": {"name": "x"}}
SCOPES_THAT_DO = {
    "/tables": "data:read",
    "/v1/databases": "databases",
    "/v1/databases/{database}": "databases",
    "/v1/keys": "keys",
    "/v1/keys/{key_id}": "keys",
    "/v1/keys/{key_id}/rotate": "keys",
    "/metrics": "admin",
    "/admin/reset": "admin",
}


def path_of(route: Route) -> str:
    path = route.path.replace("{database}", "main").replace("{key_id}", "key_x")
    return path.replace("{organization}", "acme")


def send(client: Client, route: Route, header: str | None = None) -> httpx.Response:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    return client.call(
        route.method,
        path_of(route),
        json=BODIES.get(route.path) if route.request is not None else None,
        headers=headers,  # type: ignore[arg-type]
    )


@pytest.mark.long
@pytest.mark.parametrize("route", NEEDS_KEY, ids=lambda route: route.name)
def test_without_a_good_key_every_route_is_401_but_those_that_need_none(
    anonymous: Client, route: Route
) -> None:
    for header in (None, *BAD_HEADERS):
        answer = send(anonymous, route, header)
        error = error_of(answer, 401, "QS002")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert error["hint"], error
        assert "ratelimit" not in answer.headers


@pytest.mark.parametrize("route", NEEDS_NO_KEY, ids=lambda route: route.name)
def test_a_header_sent_to_an_anonymous_route_is_no_error_even_a_bad_one(
    anonymous: Client, route: Route
) -> None:
    expected = send(anonymous, route).status_code
    assert expected in (200, 307, 400, 404), "files that are named after a build are not there"
    for header in BAD_HEADERS:
        assert send(anonymous, route, header).status_code == expected


def test_the_word_bearer_may_be_written_in_any_case(admin: Client) -> None:
    for word in ("bearer", "BEARER", "Bearer "):
        answer = admin.get("/tables", headers={"Authorization": f"{word} {admin.token}"})
        assert answer.status_code == 200, answer.text


def test_a_session_token_is_presented_like_its_key_and_good_where_that_is_good(
    admin: Client,
) -> None:
    session = admin.with_token(admin.new_session()["token"])
    assert session.value("select 1") == 1
    assert session.get("/v1/keys").status_code == 200
    assert session.get("/metrics").status_code == 200


@pytest.mark.parametrize(
    "route", [each for each in ROUTES if each.path in SCOPES_THAT_DO], ids=lambda each: each.name
)
def test_too_little_scope_is_403_which_says_what_is_missing(admin: Client, route: Route) -> None:
    needed = SCOPES_THAT_DO[route.path]
    others = {"data:read", "data:write", "schema", "databases", "keys"} - {needed}
    error = error_of(send(admin.with_scopes(*sorted(others)), route), 403, "QS005")
    assert needed in error["message"]


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [("data:read", {"select"}), ("data:write", {"insert"}), ("schema", {"create"})],
)
def test_scopes_decide_what_statements_a_key_may_run(
    fresh: Client, scope: str, allowed: set[str]
) -> None:
    fresh.query("create table t (a int)")
    name = fresh.headers["X-Database"]
    client = Client(fresh.server, fresh.with_scopes(scope).token, database=name)
    statements = {
        "select": "select * from t",
        "insert": "insert into t values (1)",
        "create": f"create table {scope.replace(':', '_')} (a int)",
    }
    for kind, sql in statements.items():
        answers = [
            client.query_response(sql),
            client.post("/v1/transaction", {"statements": [sql]}),
        ]
        if kind in allowed and kind != "create":
            assert [each.json()["success"] for each in answers] == [True, True]
        elif kind in allowed:
            assert answers[0].json()["success"] is True
        else:
            assert [error_of(each, 403)["code"] for each in answers] == ["QS005", "QS005"]
            streamed = client.query_response(f"/*+ STREAM */ {sql}")
            error_of(streamed, 403, "QS005")


def test_a_key_limited_to_some_databases_may_use_no_other(admin: Client, fresh: Client) -> None:
    name = fresh.headers["X-Database"]
    limited = admin.with_scopes("data:read", "databases", databases=[name])
    fresh.query("create table only_here (a int)")
    assert limited.get("/tables").json()["database"] == name, "the key's own is what is meant"
    assert limited.query("select * from only_here")["rows"] == []
    error_of(limited.query_response("select 1", database="main"), 403, "QS005")
    error_of(limited.get("/tables?database=main"), 403, "QS005")
    error_of(limited.get("/v1/databases/main"), 403, "QS005")
    assert [each["name"] for each in limited.get("/v1/databases").json()["databases"]] == [name]


def test_a_revoked_key_fails_on_the_next_request_and_so_do_its_sessions(admin: Client) -> None:
    record = admin.new_key()
    key = admin.with_token(record["key"])
    session = admin.with_token(key.new_session()["token"])
    for client in (key, session):
        assert client.value("select 1") == 1, "what is good is remembered"
    assert admin.delete(f"/v1/keys/{record['id']}").status_code == 204
    for client in (key, session):
        assert "revoked" in error_of(client.query_response("select 1"), 401)["message"]
        error_of(client.get("/v1/keys"), 401, "QS002")
        error_of(client.get("/tables"), 401, "QS002")


@pytest.mark.long
def test_an_expired_key_fails_at_once_and_so_do_its_sessions(admin: Client) -> None:
    record = admin.new_key(expires_in=3)
    key = admin.with_token(record["key"])
    made = key.new_session()
    assert made["expires_at"] == record["expires_at"], "a session never outlives its key"
    assert made["expires_in"] <= 3
    session = admin.with_token(made["token"])
    eventually(lambda: key.query_response("select 1").status_code != 200, "it never expired")
    for client in (key, session):
        assert "expired" in error_of(client.query_response("select 1"), 401)["message"]
    shown = admin.get(f"/v1/keys/{record['id']}").json()
    assert shown["state"] == "expired"


def test_a_key_that_was_narrowed_may_do_less_on_the_next_request(admin: Client) -> None:
    record = admin.new_key(scopes=["data:read", "keys"])
    key = admin.with_token(record["key"])
    assert key.get("/v1/keys").status_code == 200
    assert admin.patch(f"/v1/keys/{record['id']}", {"scopes": ["data:read"]}).status_code == 200
    error_of(key.get("/v1/keys"), 403, "QS005")


def test_admin_implies_every_scope(admin: Client) -> None:
    client = admin.with_scopes("admin")
    assert client.value("select 1") == 1
    for path in ("/metrics", "/v1/keys", "/v1/databases", "/tables"):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/query", "/query", "/v1/transaction", "/v1/keys", "/health"])
def test_two_authorization_headers_are_400_even_if_both_are_good(admin: Client, path: str) -> None:
    good = f"Bearer {admin.token}"
    for second in (good, "Bearer svc_k_notAKeyOfThisServer0000000"):
        headers = [("Authorization", good), ("Authorization", second)]
        answer = admin.server.http.request("POST", path, headers=headers, json={"sql": "select 1"})
        error = error_of(answer, 400, "QS001")
        assert "authorization" in error["message"]
