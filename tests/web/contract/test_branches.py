"""Section 16: branches over HTTP, made by name or by a transaction."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.web.contract.connections import OpenFeed, OpenStream
from tests.web.contract.servers import Client, error_of


@pytest.fixture
def main(organization: Client) -> Client:
    organization.query("create table t (id integer primary key, n integer)")
    organization.query("insert into t select n, n from generate_series(1, 100) n")
    return organization


def on(client: Client, database: str) -> Client:
    return Client(client.server, client.token, database=database)


def count(client: Client) -> int:
    return int(client.query("select count(*) as n from t")["rows"][0]["n"])


@pytest.mark.long
def test_a_branch_is_made_shown_changed_and_outlives_its_parent(main: Client) -> None:
    answer = main.post("/v1/databases", {"name": "trial", "branch_of": "main"})
    assert answer.status_code == 201
    record = answer.json()
    assert record["branch_of"] == "main" and record["expires_at"] is None
    assert record["branch_version"] == record["version"] and record["rows"] == 100
    trial = on(main, "trial")
    trial.query("delete from t where id > 10")
    main.query("insert into t values (1000, 0)")
    assert (count(main), count(trial)) == (101, 10)
    assert main.delete("/v1/databases/main").status_code == 204
    error_of(main.query_response("select 1"), 404, "QS006")
    assert main.post("/v1/databases", {"name": "main"}).status_code == 201
    assert count(trial) == 10
    listed = main.get("/v1/databases").json()["databases"]
    assert sorted(each["name"] for each in listed) == ["main", "trial"]
    assert main.get("/v1/organization").json()["use"]["databases"] == 2
    assert main.delete("/v1/databases/trial").status_code == 204


@pytest.mark.long
def test_a_parent_that_is_deleted_ends_for_all_who_use_it(main: Client) -> None:
    """Its file stays for its branches. Nobody may read, follow or change it any more."""
    assert main.post("/v1/databases", {"name": "trial", "branch_of": "main"}).status_code == 201
    opened = main.post("/v1/transaction/open", {}).json()["transaction"]["id"]
    main.query("insert into t values (200, 0)", transaction=opened)
    since = main.query("select 1")["version"]
    with (
        OpenFeed(main, f"since={since}") as feed,
        OpenStream(main, "select count(*) from t", live=True) as live,
    ):
        assert [next(live.events()).kind for _ in range(3)] == ["columns", "row", "ready"]
        assert main.delete("/v1/databases/main").status_code == 204
        assert feed.error()["code"] == "57P04"
        (last,) = live.events()
        assert (last.kind, last.data["error"]["code"]) == ("error", "57P04")
    answer = main.query_response("select count(*) from t", transaction=opened)
    error_of(answer, 404, "QS030")
    error_of(main.post(f"/v1/transaction/{opened}/commit"), 404, "QS030")
    assert count(on(main, "trial")) == 100
    assert main.delete("/v1/databases/trial").status_code == 204


def test_a_branch_begins_as_its_parent_was(main: Client) -> None:
    versions = [main.query(f"delete from t where id = {each}")["version"] for each in (1, 2, 3)]
    time = main.get("/v1/databases/main/versions?limit=1").json()["versions"][0]["time"]
    main.query("drop table t")
    for number, (as_of, rows) in enumerate(zip([*versions, time], (99, 98, 97, 97), strict=True)):
        body = {"name": f"was{number}", "branch_of": "main", "as_of": as_of}
        answer = main.post("/v1/databases", body)
        assert answer.status_code == 201, answer.text
        assert answer.json()["branch_version"] == versions[min(number, 2)]
        was = on(main, f"was{number}")
        assert count(was) == rows
        was.query("insert into t values (1000, 0)")
        assert count(was) == rows + 1
    for wrong, status, code in (
        ({"branch_of": "main", "as_of": 10_000}, 400, "QS001"),
        ({"branch_of": "main", "as_of": "2020-01-01T00:00:00"}, 400, "QS001"),
        ({"branch_of": "main", "as_of": "2020-01-01T00:00:00Z"}, 410, "QS004"),
        ({"as_of": 1}, 400, "QS001"),
    ):
        error_of(main.post("/v1/databases", {"name": "x", **wrong}), status, code)
    names = {each["name"] for each in main.get("/v1/databases").json()["databases"]}
    assert names == {"main", "was0", "was1", "was2", "was3"}


def test_a_branch_of_version_0_begins_empty(main: Client) -> None:
    body = {"name": "empty", "branch_of": "main", "as_of": 0}
    record = main.post("/v1/databases", body).json()
    assert (record["branch_version"], record["version"], record["tables"]) == (0, 0, 0)
    assert main.get("/v1/databases/empty").json()["branch_version"] == 0


def test_what_is_refused(main: Client) -> None:
    for body, status, code in (
        ({"name": "x", "branch_of": "nothing"}, 404, "QS006"),
        ({"name": "main", "branch_of": "main"}, 409, "QS008"),
        ({"name": "x", "branch_of": 7}, 400, "QS001"),
    ):
        error_of(main.post("/v1/databases", body), status, code)
    key = main.post("/v1/keys", {"name": "k", "scopes": ["databases"]}).json()["key"]
    narrow = Client(main.server, key)
    error_of(narrow.post("/v1/databases", {"name": "x", "branch_of": "main"}), 403, "QS005")
    error_of(main.patch("/v1/databases/main", {}), 400, "QS001")
    error_of(main.patch("/v1/databases/main", {"keep": False}), 400, "QS001")
    for option in ({"dry_run": True}, {"as_of": 1}):
        body = {"statements": ["select 1"], "branch": True, **option}
        error_of(main.post("/v1/transaction", body), 400, "QS001")


def test_a_transaction_leaves_its_changes_on_a_branch(main: Client) -> None:
    statements = ["delete from t where id <= 60", "select count(*) as n from t"]
    answer = main.post("/v1/transaction", {"statements": statements, "branch": True}).json()
    assert answer["success"] and answer["affected_rows"] == 60
    assert answer["results"][1]["rows"] == [{"n": 40}]
    name = answer["database"]
    assert name.startswith("main-branch-")
    assert (count(main), count(on(main, name))) == (100, 40)
    record = main.get(f"/v1/databases/{name}").json()
    lives = datetime.fromisoformat(record["expires_at"]) - datetime.fromisoformat(
        record["created_at"]
    )
    assert lives.total_seconds() == 3600
    kept = main.patch(f"/v1/databases/{name}", {"keep": True, "name": "kept"}).json()
    assert kept["expires_at"] is None and kept["name"] == "kept"
    assert count(on(main, "kept")) == 40


def test_a_transaction_on_a_branch_keeps_to_if_version(main: Client) -> None:
    old = main.query("select 1")["version"]
    main.query("update t set n = 7 where id = 1")
    body = {"statements": ["delete from t"], "branch": True, "if_version": old}
    error = error_of(main.post("/v1/transaction", body), 200, "40001")
    assert error["conflict"]["table"] == "t"
    assert [each["name"] for each in main.get("/v1/databases").json()["databases"]] == ["main"]


def test_a_transaction_that_fails_leaves_no_branch(main: Client) -> None:
    statements = ["delete from t", "insert into t values (1, 1), (1, 1)"]
    answer = main.post("/v1/transaction", {"statements": statements, "branch": True})
    assert error_of(answer, 200, "23505")["statement"] == 1
    assert [each["name"] for each in main.get("/v1/databases").json()["databases"]] == ["main"]
    assert count(main) == 100
