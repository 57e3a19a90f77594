"""What belongs to one organization is not there for another: route by route."""

from __future__ import annotations

from typing import Any

from tests.web.contract.servers import Client, error_of


def test_nothing_of_another_organization_can_be_seen_or_changed(
    organization: Client, fresh: Client
) -> None:
    ours, stranger = fresh, organization
    ours.query("create table secret_things (a text)")
    ours.query("insert into secret_things values ('hidden')")
    name = ours.headers["X-Database"]
    record = ours.get(f"/v1/databases/{name}").json()
    key = ours.new_key()
    there: list[dict[str, Any]] = []
    for database in (name, record["id"]):
        for answer in (
            stranger.query_response("select * from secret_things", database=database),
            stranger.post("/v1/query", {"sql": "select 1"}, headers={"X-Database": database}),
            stranger.query_response("/*+ STREAM */ select 1", database=database),
            stranger.post("/v1/transaction", {"statements": ["select 1"], "database": database}),
            stranger.get(f"/tables?database={database}"),
            stranger.get("/tables", headers={"X-Database": database}),
            stranger.get(f"/v1/databases/{database}"),
            stranger.patch(f"/v1/databases/{database}", {"name": "mine"}),
            stranger.delete(f"/v1/databases/{database}"),
            stranger.post("/v1/session", {"database": database}),
            stranger.post("/v1/keys", {"name": "x", "databases": [database]}),
        ):
            there.append(error_of(answer, 404, "QS006"))
    for answer in (
        stranger.get(f"/v1/keys/{key['id']}"),
        stranger.patch(f"/v1/keys/{key['id']}", {"name": "mine"}),
        stranger.delete(f"/v1/keys/{key['id']}"),
        stranger.post(f"/v1/keys/{key['id']}/rotate"),
    ):
        there.append(error_of(answer, 404, "QS006"))
    assert "hidden" not in str(there) and len(there) == 26
    assert ours.with_token(key["key"]).value("select 1") == 1
    assert ours.value("select a from secret_things") == "hidden"


def test_lists_hold_only_what_is_ones_own(organization: Client, fresh: Client) -> None:
    databases = organization.get("/v1/databases").json()["databases"]
    assert [each["name"] for each in databases] == ["main"]
    assert len(organization.get("/v1/keys").json()["keys"]) == 1
    shown = organization.get("/v1/organization").json()
    assert shown["use"]["databases"] == 1 and shown["name"] != "default"


def test_databases_of_the_same_name_are_different_databases(
    organization: Client, admin: Client
) -> None:
    organization.query("create table only_theirs (a int)")
    error_of(admin.query_response("select * from only_theirs", database="main"), 200, "42P01")
    names = [each["name"] for each in admin.get("/tables").json()["tables"]]
    assert "only_theirs" not in names


def test_a_reset_leaves_other_organizations_alone(organization: Client, fresh: Client) -> None:
    fresh.query("create table stays (a int)")
    organization.query("create table goes (a int)")
    wiped = organization.post("/admin/reset").json()
    assert (wiped["databases"], wiped["tables_dropped"]) == (1, 1)
    assert [each["name"] for each in fresh.get("/tables").json()["tables"]] == ["stays"]


def test_a_system_table_shows_only_its_own_database(organization: Client, fresh: Client) -> None:
    fresh.query("create table invisible (a int)")
    sql = "select table_name from information_schema.tables where table_schema = 'public'"
    assert organization.rows(sql) == []


def test_metrics_name_no_database_of_another_organization(
    organization: Client, fresh: Client
) -> None:
    fresh.query("select 1")
    text = organization.get("/metrics").text
    record = fresh.get(f"/v1/databases/{fresh.headers['X-Database']}").json()
    assert record["id"] not in text and fresh.headers["X-Database"] not in text
