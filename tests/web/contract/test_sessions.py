"""Section 6: sessions of 24 hours."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.web.contract.servers import Client, error_of

DAY = timedelta(hours=24)
RECORD = {
    "id", "token_type", "expires_in", "expires_at", "created_at", "key_id", "scopes", "database"
}  # fmt: skip


def time_of(text: str) -> datetime:
    assert text.endswith("Z"), text
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("body", [b"", b"{}", b"null-body"])
def test_a_session_is_made_with_an_empty_body_and_lives_for_24_hours(
    admin: Client, body: bytes
) -> None:
    if body == b"null-body":  # curl -X POST sends no Content-Type and no body
        answer = admin.call("POST", "/v1/session")
    else:
        json = {"Content-Type": "application/json"}
        answer = admin.call("POST", "/v1/session", content=body, headers=json)
    assert answer.status_code == 201, answer.text
    assert answer.json().keys() == {"success", "session"} and answer.json()["success"] is True
    session = answer.json()["session"]
    admin.server.secrets.add(session["token"])
    assert session.keys() == RECORD | {"token"}
    assert session["token"].startswith("svc_s_") and session["token_type"] == "Bearer"
    assert session["expires_in"] == 86_400
    assert time_of(session["expires_at"]) - time_of(session["created_at"]) == DAY
    assert session["database"] == "main" and "admin" in session["scopes"]
    assert session["key_id"].startswith("key_")
    assert admin.with_token(session["token"]).value("select 1") == 1


def test_a_refresh_moves_the_end_by_24_hours_and_shows_no_token(admin: Client) -> None:
    session = admin.new_session()
    client = admin.with_token(session["token"])
    before = time_of(session["expires_at"])
    for times in range(1, 4):
        answer = client.post("/v1/session/refresh")
        assert answer.status_code == 200
        record = answer.json()["session"]
        assert record.keys() == RECORD
        assert record["id"] == session["id"] and record["created_at"] == session["created_at"]
        assert time_of(record["expires_at"]) == before + times * DAY
    assert client.value("select 1") == 1


def test_a_session_lives_for_30_days_at_most(admin: Client) -> None:
    session = admin.new_session()
    client = admin.with_token(session["token"])
    ends = [client.post("/v1/session/refresh").json()["session"]["expires_at"] for _ in range(32)]
    assert time_of(ends[-1]) - time_of(session["created_at"]) == timedelta(days=30)
    assert ends == sorted(ends)


def test_a_session_that_was_ended_is_401_from_then_on(admin: Client) -> None:
    client = admin.with_token(admin.new_session()["token"])
    assert client.value("select 1") == 1
    answer = client.delete("/v1/session")
    assert (answer.status_code, answer.content) == (204, b"")
    error_of(client.query_response("select 1"), 401, "QS002")
    error_of(client.delete("/v1/session"), 401, "QS002")
    error_of(client.post("/v1/session/refresh"), 401, "QS002")


def test_sessions_are_made_by_keys_and_refreshed_and_ended_by_sessions(admin: Client) -> None:
    session = admin.with_token(admin.new_session()["token"])
    error_of(session.post("/v1/session"), 403, "QS005")
    error_of(admin.post("/v1/session/refresh"), 403, "QS005")
    error_of(admin.delete("/v1/session"), 403, "QS005")


def test_a_session_can_be_narrowed_to_a_database_and_to_scopes(
    admin: Client, fresh: Client
) -> None:
    fresh.query("create table here (a int)")
    name = fresh.headers["X-Database"]
    made = admin.new_session(database=name, scopes=["data:read"])
    assert (made["database"], made["scopes"]) == (name, ["data:read"])
    client = admin.with_token(made["token"])
    assert client.query("select * from here")["rows"] == []
    error_of(client.query_response("insert into here values (1)"), 403, "QS005")
    error_of(client.query_response("select 1", database="main"), 403, "QS005")
    error_of(client.get("/v1/keys"), 403, "QS005")


def test_a_session_cannot_have_more_than_its_key(admin: Client, fresh: Client) -> None:
    reader = admin.with_scopes("data:read", databases=["main"])
    error_of(reader.post("/v1/session", {"scopes": ["data:write"]}), 403, "QS005")
    name = fresh.headers["X-Database"]
    error_of(reader.post("/v1/session", {"database": name}), 403, "QS005")
    error_of(admin.post("/v1/session", {"database": "nowhere"}), 404, "QS006")
    error_of(admin.post("/v1/session", {"scopes": ["fly"]}), 400, "QS001")
    error_of(admin.post("/v1/session", {"scopes": []}), 400, "QS001")
    error_of(admin.post("/v1/session", {"expires_in": 1}), 400, "QS001")
