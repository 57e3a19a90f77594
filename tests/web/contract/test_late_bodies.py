"""A key that ends while the body of its request arrives: the request is refused.

The server answers `100 Continue` when it has admitted the caller and waits for the body.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.contract.connections import LateRequest
from tests.web.contract.servers import Client

WRITE = "insert into t values (1)"
REQUESTS: list[tuple[str, Any]] = [
    ("/v1/query", {"sql": WRITE}),
    ("/v1/transaction", {"statements": [WRITE]}),
    ("/v1/transaction/open", {"idle_ms": 60_000}),
    ("/v1/keys", {"name": "mine", "scopes": ["data:read"]}),
    ("/v1/databases", {"name": "mine-alone"}),
]


@pytest.fixture
def table(fresh: Client) -> Client:
    fresh.query("create table t (a int)")
    return fresh


def with_key(client: Client, record: dict[str, Any]) -> Client:
    other = client.with_token(record["key"])
    other.headers.update({"X-Database": client.headers["X-Database"]})
    return other


@pytest.mark.parametrize(("path", "body"), REQUESTS)
def test_a_key_that_is_revoked_while_the_body_arrives_does_nothing(
    table: Client, path: str, body: Any
) -> None:
    key = table.new_key(scopes=["admin"])
    with LateRequest(with_key(table, key), path) as late:
        assert table.delete(f"/v1/keys/{key['id']}").status_code == 204
        status, answer = late.complete(json.dumps(body).encode())
    assert (status, answer["error"]["code"]) == (401, "QS002")
    assert table.value("select count(*) from t") == 0


def test_a_session_that_ends_while_the_body_arrives_does_nothing(table: Client) -> None:
    session = table.with_token(table.new_session(database=table.headers["X-Database"])["token"])
    with LateRequest(session, "/v1/query") as late:
        assert session.delete("/v1/session").status_code == 204
        status, _ = late.complete(json.dumps({"sql": WRITE}).encode())
    assert status == 401
    assert table.value("select count(*) from t") == 0


def test_a_key_that_is_narrowed_while_the_body_arrives_does_no_more_than_it_may(
    table: Client,
) -> None:
    key = table.new_key(scopes=["data:read", "data:write"])
    with LateRequest(with_key(table, key), "/v1/query") as late:
        assert table.patch(f"/v1/keys/{key['id']}", {"scopes": ["data:read"]}).status_code == 200
        status, answer = late.complete(json.dumps({"sql": WRITE}).encode())
    assert status == 403, answer
    assert table.value("select count(*) from t") == 0


def test_a_statement_that_is_taken_from_a_key_while_the_body_arrives_is_refused(
    table: Client,
) -> None:
    key = table.new_key(statements={"add": WRITE}, databases=[table.headers["X-Database"]])
    with LateRequest(with_key(table, key), "/v1/query") as late:
        changed = {"statements": {"count": "select count(*) from t"}}
        assert table.patch(f"/v1/keys/{key['id']}", changed).status_code == 200
        status, answer = late.complete(json.dumps({"statement": "add"}).encode())
    assert status == 403, answer
    assert table.value("select count(*) from t") == 0


def test_a_key_that_stays_as_it_is_runs_a_late_body(table: Client) -> None:
    key = table.new_key(scopes=["data:read", "data:write"])
    with LateRequest(with_key(table, key), "/v1/query") as late:
        table.new_key()  # another change of the control plane
        status, answer = late.complete(json.dumps({"sql": WRITE}).encode())
    assert (status, answer["affected_rows"]) == (200, 1)
