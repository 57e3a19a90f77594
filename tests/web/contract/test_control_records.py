"""Section 6: databases, keys, the organization; and signup, which makes all three."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.web.contract.servers import Client, error_of

DATABASE = {
    "id", "name", "organization", "state", "version", "tables", "rows", "size_bytes", "created_at",
    "history",
    "replicas",
}  # fmt: skip
KEY = {
    "id", "name", "prefix", "state", "scopes", "databases", "created_at", "expires_at", "revoked_at"
}  # fmt: skip


# --- databases


def test_a_database_is_made_shown_renamed_and_deleted(admin: Client) -> None:
    answer = admin.post("/v1/databases", {"name": "shop"})
    assert answer.status_code == 201
    record = answer.json()
    assert record.keys() == DATABASE | {"success"}
    assert record["id"].startswith("db_") and record["organization"] == "default"
    assert (record["name"], record["state"]) == ("shop", "ready")
    assert (record["tables"], record["rows"]) == (0, 0)
    client = Client(admin.server, admin.token, database="shop")
    client.query("create table t (a int)")
    client.query("insert into t values (1), (2)")
    for name in ("shop", record["id"]):
        shown = admin.get(f"/v1/databases/{name}").json()
        assert (shown["id"], shown["tables"], shown["rows"]) == (record["id"], 1, 2)
        assert shown["version"] > record["version"] and shown["size_bytes"] > 0
        assert shown["created_at"] == record["created_at"]
    renamed = admin.patch("/v1/databases/shop", {"name": "store"})
    assert renamed.status_code == 200 and renamed.json()["name"] == "store"
    assert renamed.json()["id"] == record["id"] and renamed.json()["rows"] == 2
    error_of(client.query_response("select 1"), 404, "QS006")
    answer = admin.delete("/v1/databases/store")
    assert (answer.status_code, answer.content) == (204, b"")
    error_of(admin.get(f"/v1/databases/{record['id']}"), 404, "QS006")
    error_of(admin.delete("/v1/databases/store"), 404, "QS006")


def test_a_deleted_database_takes_its_data_with_it(admin: Client) -> None:
    client = Client(admin.server, admin.token, database="again")
    for _ in range(2):
        assert admin.post("/v1/databases", {"name": "again"}).status_code == 201
        client.query("create table t (a int)")
        assert admin.delete("/v1/databases/again").status_code == 204


def test_databases_are_listed_in_pages(organization: Client) -> None:
    names = ["main", "one", "two", "three"]
    for name in names[1:]:
        assert organization.post("/v1/databases", {"name": name}).status_code == 201
    whole = organization.get("/v1/databases").json()
    assert whole.keys() == {"success", "databases", "next_cursor"}
    assert [each["name"] for each in whole["databases"]] == names
    assert all(each.keys() == DATABASE for each in whole["databases"])
    assert whole["next_cursor"] is None
    seen: list[str] = []
    cursor = None
    for _ in range(2):
        query = "?limit=2" + (f"&cursor={cursor}" if cursor else "")
        page = organization.get(f"/v1/databases{query}").json()
        seen += [each["name"] for each in page["databases"]]
        cursor = page["next_cursor"]
    assert seen == names and cursor is None


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1001", "cursor=nonsense", "page=2"])
def test_a_page_that_makes_no_sense_is_400(admin: Client, query: str) -> None:
    for path in ("/v1/databases", "/v1/keys"):
        error_of(admin.get(f"{path}?{query}"), 400, "QS001")


def test_a_name_that_is_taken_is_409(admin: Client, fresh: Client) -> None:
    error_of(admin.post("/v1/databases", {"name": "main"}), 409, "QS008")
    name = fresh.headers["X-Database"]
    error_of(admin.patch(f"/v1/databases/{name}", {"name": "main"}), 409, "QS008")


@pytest.mark.parametrize("name", ["", "Upper", "1st", "with space", "a/b", "é", "x" * 64, None, 7])
def test_a_bad_name_is_400(admin: Client, fresh: Client, name: Any) -> None:
    error_of(admin.post("/v1/databases", {"name": name}), 400, "QS001")
    there = fresh.headers["X-Database"]
    error_of(admin.patch(f"/v1/databases/{there}", {"name": name}), 400, "QS001")


def test_bodies_of_control_routes_have_no_unknown_fields(admin: Client) -> None:
    for path in ("/v1/databases", "/v1/keys"):
        error_of(admin.post(path, {"name": "x", "color": "red"}), 400, "QS001")
        error_of(admin.post(path, {}), 400, "QS001")
        error_of(admin.post(path), 400, "QS001")


# --- keys


def test_the_secret_of_a_key_is_shown_once_when_it_is_made(admin: Client) -> None:
    record = admin.new_key(name="reporting", scopes=["data:read"], expires_in=3600)
    assert record.keys() == KEY | {"success", "key"}
    assert record["key"].startswith("svc_k_") and record["id"].startswith("key_")
    assert (record["name"], record["state"]) == ("reporting", "active")
    assert (record["scopes"], record["databases"]) == (["data:read"], None)
    made, ends = (datetime.fromisoformat(record[each]) for each in ("created_at", "expires_at"))
    assert round((ends - made).total_seconds()) == 3600
    shown = admin.get(f"/v1/keys/{record['id']}")
    assert shown.json().keys() == KEY | {"success"}
    listed = admin.get("/v1/keys?limit=1000")
    [found] = [each for each in listed.json()["keys"] if each["id"] == record["id"]]
    assert found.keys() == KEY
    for answer in (shown, listed):
        assert record["key"] not in answer.text
    assert record["key"].startswith(record["prefix"]) and len(record["prefix"]) < 16


def test_a_key_is_renamed_narrowed_and_revoked(admin: Client) -> None:
    record = admin.new_key(scopes=["data:read", "data:write"])
    path = f"/v1/keys/{record['id']}"
    assert admin.patch(path, {"name": "other"}).json()["name"] == "other"
    changed = admin.patch(path, {"scopes": ["data:read"], "databases": ["main"]}).json()
    assert (changed["scopes"], changed["databases"]) == (["data:read"], ["main"])
    error_of(admin.patch(path, {"scopes": ["data:read", "keys"]}), 400, "QS001")
    assert admin.delete(path).status_code == 204
    assert admin.get(path).json()["state"] == "revoked"
    error_of(admin.with_token(record["key"]).get("/tables"), 401, "QS002")


def test_a_rotated_key_has_a_new_secret_and_the_old_one_dies_after_the_grace(
    admin: Client,
) -> None:
    record = admin.new_key()
    answer = admin.post(f"/v1/keys/{record['id']}/rotate")
    assert answer.status_code == 201
    renewed = answer.json()
    admin.server.secrets.add(renewed["key"])
    assert renewed["key"] not in ("", record["key"]) and renewed["scopes"] == record["scopes"]
    assert admin.with_token(renewed["key"]).value("select 1") == 1
    error_of(admin.with_token(record["key"]).query_response("select 1"), 401, "QS002")
    again = admin.post(f"/v1/keys/{renewed['id']}/rotate", {"grace_seconds": 3600}).json()
    admin.server.secrets.add(again["key"])
    for secret in (again["key"], renewed["key"]):
        assert admin.with_token(secret).value("select 1") == 1


def test_a_key_can_give_no_scope_and_no_database_that_it_lacks(admin: Client) -> None:
    limited = admin.with_scopes("keys", "data:read", databases=["main"])
    error_of(limited.post("/v1/keys", {"name": "x", "scopes": ["data:write"]}), 403, "QS005")
    error_of(limited.post("/v1/keys", {"name": "x", "scopes": ["admin"]}), 403, "QS005")
    made = limited.new_key()
    assert sorted(made["scopes"]) == ["data:read", "keys"] and made["databases"] == ["main"]
    error_of(limited.post("/v1/keys", {"name": "x", "databases": []}), 400)


@pytest.mark.parametrize(
    "fields",
    [{"scopes": ["fly"]}, {"scopes": []}, {"expires_in": 0}, {"expires_in": -1}, {"name": ""}],
)
def test_a_key_that_makes_no_sense_is_400(admin: Client, fields: dict[str, Any]) -> None:
    error_of(admin.post("/v1/keys", {"name": "x", **fields}), 400, "QS001")


def test_an_unknown_key_is_404(admin: Client) -> None:
    for answer in (
        admin.get("/v1/keys/key_unknown"),
        admin.patch("/v1/keys/key_unknown", {"name": "x"}),
        admin.delete("/v1/keys/key_unknown"),
        admin.post("/v1/keys/key_unknown/rotate"),
    ):
        error_of(answer, 404, "QS006")


# --- organizations


def test_the_organization_shows_tier_limits_and_use(admin: Client, organization: Client) -> None:
    found = organization.get("/v1/organization").json()
    assert found["tier"] == "free" and found["limits"]["requests_per_minute"] == 200
    assert found["use"]["databases"] == 1 and found["use"]["keys"] == 1
    assert found["use"]["requests_this_minute"] >= 1
    own = admin.get("/v1/organization").json()
    assert (own["name"], own["tier"]) == ("default", "unlimited")
    assert own["limits"]["requests_per_minute"] is None


def test_signup_makes_an_organization_its_database_and_its_first_key(anonymous: Client) -> None:
    answer = anonymous.post("/v1/signup", {"organization": "acme"})
    assert answer.status_code == 201
    made = answer.json()
    anonymous.server.secrets.add(made["key"])
    assert made.keys() == {"success", "organization", "database", "key", "key_id", "urls"}
    assert (made["organization"]["name"], made["organization"]["tier"]) == ("acme", "free")
    assert (made["database"]["name"], made["database"]["state"]) == ("main", "ready")
    assert made["urls"].keys() == {"data", "control"}
    client = anonymous.with_token(made["key"])
    assert client.value("select 1") == 1
    assert client.get(f"/v1/keys/{made['key_id']}").json()["scopes"][-1] == "admin"
    error_of(anonymous.post("/v1/signup", {"organization": "acme"}), 409, "QS008")
    error_of(anonymous.post("/v1/signup", {"organization": "default"}), 409, "QS008")


@pytest.mark.parametrize("body", [None, {}, {"organization": "A B"}, {"organization": 1}, {"x": 1}])
def test_a_signup_that_makes_no_sense_is_400(anonymous: Client, body: Any) -> None:
    error_of(anonymous.post("/v1/signup", body), 400, "QS001")
