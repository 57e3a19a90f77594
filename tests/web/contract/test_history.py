"""Section 16: older versions are read, listed, compared and restored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.contract.servers import Client, error_of


@pytest.fixture
def shop(fresh: Client) -> Client:
    fresh.transaction(
        "create table goods (id int primary key, name text)",
        "insert into goods values (1, 'tea'), (2, 'salt')",
    )
    return fresh


def route(client: Client, rest: str) -> str:
    return f"/v1/databases/{name_of(client)}/{rest}"


def name_of(client: Client) -> str:
    return client.headers.get("X-Database", "main")


def test_as_of_reads_a_version_or_a_time_and_writes_nothing(shop: Client) -> None:
    old = shop.query("select 1")["version"]
    shop.query("update goods set name = 'tee' where id = 1")
    shop.query("drop table goods")
    found = shop.query("select name from goods order by id", as_of=old)
    assert found["rows"] == [{"name": "tea"}, {"name": "salt"}] and found["version"] == old
    two = shop.transaction("select 1 as one", "select count(*) as n from goods", as_of=old)
    assert two["version"] == old and two["results"][1]["rows"] == [{"n": 2}]
    (entry, *_) = shop.get(route(shop, f"versions?before={old + 1}")).json()["versions"]
    assert shop.query("select 1", as_of=entry["time"])["version"] == old
    for statement in ("delete from goods", "create table x (a int)"):
        answer = shop.post("/v1/query", {"sql": statement, "as_of": old})
        error_of(answer, 200, "25006")
    stream = shop.post("/v1/query", {"sql": "/*+ STREAM */ select id from goods", "as_of": old})
    assert f'"version":{old}' in stream.text and stream.text.count("event: row") == 2


@pytest.mark.parametrize(
    "given", [10**9, "2999-01-01T00:00:00Z", "2026-01-01T00:00:00", "yesterday", -1, 1.5, ""]
)
def test_a_version_that_is_none_is_refused(shop: Client, given: Any) -> None:
    error_of(shop.post("/v1/query", {"sql": "select 1", "as_of": given}), 400, "QS001")


def test_statements_that_only_tell_work_on_what_was(shop: Client) -> None:
    old = shop.query("select 1")["version"]
    shop.query("drop table goods")
    asked = "explain (analyze, costs off, timing off) select name from goods where id = 1"
    plan = shop.query(asked, as_of=old)
    assert plan["version"] == old
    assert plan["rows"][0] == {"QUERY PLAN": "Project (actual rows=1 loops=1)"}
    assert shop.query("show server_version", as_of=old)["rows"]
    several = shop.transaction("explain select * from goods", "table goods", as_of=old)
    assert len(several["results"][1]["rows"]) == 2
    stream = shop.post("/v1/query", {"sql": "/*+ STREAM */ explain table goods", "as_of": old})
    assert "event: done" in stream.text
    explained = {"sql": "explain analyze delete from goods", "as_of": old}
    error_of(shop.post("/v1/query", explained), 200, "25006")
    for statement in ("delete from goods", "create table x (a int)", "truncate goods"):
        body = {"statements": ["explain table goods", statement], "as_of": old}
        error = error_of(shop.post("/v1/transaction", body), 200, "25006")
        assert error["statement"] == 1 and "as_of" in error["hint"]
    error_of(shop.post("/v1/query", {"sql": "begin", "as_of": old}), 200, "25001")


def test_what_was_can_only_be_read(shop: Client) -> None:
    old = shop.query("select 1")["version"]
    error_of(shop.post("/v1/transaction/open", {"as_of": old, "read_only": False}), 400, "QS001")
    for asked in ({"as_of": old}, {"as_of": old, "read_only": True}):
        opened = shop.post("/v1/transaction/open", asked).json()["transaction"]
        assert opened["read_only"] is True
    for body in (
        {"sql": "select 1", "dry_run": True},
        {"sql": "delete from goods", "dry_run": True},
    ):
        error_of(shop.post("/v1/query", {**body, "as_of": old}), 400, "QS001")
    statements = ["select 1", "savepoint a", "select 2"]
    answer = shop.post("/v1/transaction", {"statements": statements, "as_of": old})
    error = error_of(answer, 200, "25006")
    assert error["statement"] == 1 and "SAVEPOINT" in error["message"]


@pytest.mark.parametrize(
    ("rest", "name"),
    [("versions?before=-1", "before"), ("diff?from=x", "from"), ("diff?from=0&to=1.5", "to")],
)
def test_a_bad_parameter_is_named(shop: Client, rest: str, name: str) -> None:
    message = error_of(shop.get(route(shop, rest)), 400, "QS001")["message"]
    assert message.startswith(f"{name} is "), message


def test_a_version_that_is_not_kept_is_gone(shop: Client) -> None:
    assert shop.patch(route(shop, "")[:-1], {"history": 0}).json()["history"] == 0
    old = shop.query("select 1")["version"]
    shop.query("delete from goods")
    error_of(shop.post("/v1/query", {"sql": "select 1", "as_of": old}), 200, "QS004")
    error_of(shop.get(route(shop, f"diff?from={old}")), 410, "QS004")
    error_of(shop.post(route(shop, "restore"), {"as_of": old}), 410, "QS004")
    error_of(shop.post("/v1/transaction/open", {"as_of": old}), 410, "QS004")
    assert len(shop.get(route(shop, "versions")).json()["versions"]) == 1
    for wrong in ("40d", "-1", "soon", 10**9):
        error_of(shop.patch(route(shop, "")[:-1], {"history": wrong}), 400, "QS001")
    assert shop.patch(route(shop, "")[:-1], {"history": "7d"}).json()["history"] == 604_800
    assert shop.get(route(shop, "")[:-1]).json()["history"] == 604_800


def test_versions_are_listed_newest_first_and_in_pages(shop: Client) -> None:
    answer = shop.post("/v1/query", {"sql": "insert into goods values (3, 'oil')"})
    newest = answer.json()["version"]
    shop.query("create view v as select 1 as one")
    found = shop.get(route(shop, "versions?limit=2")).json()
    view, inserted = found["versions"]
    assert (view["version"], view["tables"], view["rows_changed"]) == (newest + 1, ["v"], 0)
    assert (inserted["version"], inserted["tables"]) == (newest, ["goods"])
    assert inserted["rows_changed"] == 1
    assert inserted["request_id"] == answer.headers["x-request-id"]
    assert found["next_cursor"] == str(newest)
    rest = shop.get(route(shop, f"versions?before={found['next_cursor']}")).json()
    assert [each["version"] for each in rest["versions"]] == list(range(newest - 1, 0, -1))
    assert rest["next_cursor"] is None
    error_of(shop.get(route(shop, "versions?limit=0")), 400, "QS001")
    error_of(shop.get(route(shop, "versions?since=3")), 400, "QS001")


OTHER = "CREATE TABLE other (a integer NOT NULL, CONSTRAINT other_pkey PRIMARY KEY (a))"


def test_a_difference_is_net_and_has_a_way_back(shop: Client) -> None:
    old = shop.query("select 1")["version"]
    shop.query("update goods set name = 'tee' where id = 1")
    shop.query("delete from goods where id = 2")
    shop.query("insert into goods values (2, 'salt'), (3, 'oil')")
    shop.query("create table other (a int primary key)")
    found = shop.get(route(shop, f"diff?from={old}")).json()
    assert (found["from"], found["to"]) == (old, shop.query("select 1")["version"])
    assert found["changes"] == [
        {"table": "goods", "op": "update", "key": {"id": 1},
         "before": {"id": 1, "name": "tea"}, "after": {"id": 1, "name": "tee"}},
        {"table": "goods", "op": "insert", "key": {"id": 3},
         "before": None, "after": {"id": 3, "name": "oil"}},
        {"table": "other", "op": "schema", "key": None, "before": None, "after": None,
         "definition": {"before": None, "after": [OTHER]}},
    ]  # fmt: skip
    undone = shop.get(route(shop, f"diff?from={found['to']}&to={old}&tables=other")).json()
    assert undone["changes"][0]["definition"] == {"before": [OTHER], "after": None}
    back = shop.get(route(shop, f"diff?from={found['to']}&to={old}&tables=goods")).json()
    assert [each["op"] for each in back["changes"]] == ["update", "delete"]
    pages: list[Any] = []
    cursor = ""
    while cursor is not None:
        page = shop.get(route(shop, f"diff?from={old}&limit=1{cursor}")).json()
        pages += page["changes"]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert pages == found["changes"]
    error_of(shop.get(route(shop, "diff")), 400, "QS001")
    error_of(shop.get(route(shop, f"diff?from={old}&tables=nothing")), 200, "42P01")
    error_of(shop.get(route(shop, f"diff?from={old}&cursor=!!")), 400, "QS001")


def test_a_restore_is_one_new_version_and_can_be_undone(shop: Client) -> None:
    old = shop.query("select 1")["version"]
    shop.query("drop table goods")
    shop.query("create table other (a int)")
    changed = shop.query("select 1")["version"]
    done = shop.post(route(shop, "restore"), {"as_of": old}).json()
    assert done == {"success": True, "version": changed + 1, "restored": old}
    assert shop.rows("select name from goods order by id") == [["tea"], ["salt"]]
    error_of(shop.post("/v1/query", {"sql": "select * from other"}), 200, "42P01")
    shop.post(route(shop, "restore"), {"as_of": changed})
    error_of(shop.post("/v1/query", {"sql": "select * from goods"}), 200, "42P01")
    assert shop.rows("select * from other") == []


def test_a_transaction_can_be_opened_on_what_was(shop: Client) -> None:
    old = shop.query("select 1")["version"]
    shop.query("delete from goods")
    opened = shop.post("/v1/transaction/open", {"as_of": old, "database": name_of(shop)})
    handle = opened.json()["transaction"]
    assert (handle["version"], handle["read_only"]) == (old, True)
    found = shop.query("select count(*) as n from goods", transaction=handle["id"])
    assert found["rows"] == [{"n": 2}]
    body = {"sql": "delete from goods", "transaction": handle["id"]}
    error_of(shop.post("/v1/query", body), 200, "25006")


def test_a_version_of_an_open_transaction_names_the_request_that_committed_it(shop: Client) -> None:
    opened = shop.post("/v1/transaction/open", {"database": name_of(shop)}).json()["transaction"]
    shop.query("insert into goods values (3, 'oil')", transaction=opened["id"])
    committed = shop.post(f"/v1/transaction/{opened['id']}/commit")
    (newest, *_) = shop.get(route(shop, "versions?limit=1")).json()["versions"]
    assert newest["version"] == committed.json()["version"]
    assert newest["request_id"] == committed.headers["X-Request-Id"]
