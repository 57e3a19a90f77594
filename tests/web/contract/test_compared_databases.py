"""Two databases of one family are compared over HTTP: changes in pages, and how many there are."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.web.contract.servers import Client, error_of


@pytest.fixture
def main(organization: Client) -> Client:
    """A database, whose branch `trial` differs in all ways."""
    organization.transaction(
        "create table parts (box text, slot integer, what text, primary key (box, slot))",
        "insert into parts values ('a', 1, 'nut'), ('a', 2, null), ('b', 1, 'bolt')",
        "create table gone (id integer primary key)",
        "insert into gone values (1), (2)",
        "create table changed (id integer primary key, n integer)",
        "insert into changed values (1, 1)",
        "create table same (id integer primary key)",
        "insert into same values (1)",
        "create table log (line text)",
        "insert into log values ('first')",
    )
    made = organization.post("/v1/databases", {"name": "trial", "branch_of": "main"})
    assert made.status_code == 201, made.text
    organization.query("insert into parts values ('c', 9, 'only in main')")
    on_trial(organization).transaction(
        "update parts set what = 'washer' where slot = 2",
        "update parts set what = null where box = 'b'",
        "drop table gone",
        "alter table changed add column more text",
        "create table made (id integer primary key, at date)",
        "insert into made values (1, '2026-01-31'), (2, null)",
        "insert into log values ('second')",
    )
    return organization


def on_trial(client: Client) -> Client:
    return Client(client.server, client.token, database="trial")


def compared(client: Client, rest: str = "", name: str = "trial", other: str = "main") -> Any:
    answer = client.get(f"/v1/databases/{name}/diff?from_database={other}{rest}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def part(box: str, slot: int, before: str | None, after: str | None, op: str = "update") -> Any:
    key = {"box": box, "slot": slot}
    return {
        "table": "parts",
        "op": op,
        "key": key,
        "before": None if op == "insert" else {**key, "what": before},
        "after": None if op == "delete" else {**key, "what": after},
    }


PARTS = [
    part("a", 2, None, "washer"),
    part("b", 1, "bolt", None),
    part("c", 9, "only in main", None, "delete"),
]


def test_a_branch_is_compared_with_its_parent(main: Client) -> None:
    found = compared(main)
    assert found["from"] == main.query("select 1")["version"]
    assert found["to"] == on_trial(main).query("select 1")["version"]
    told = [(each["table"], each["op"]) for each in found["changes"]]
    assert told == [
        ("changed", "schema"), ("gone", "schema"), ("log", "insert"), ("made", "schema"),
        ("made", "insert"), ("made", "insert"), *(("parts", each["op"]) for each in PARTS),
    ]  # fmt: skip
    changed, gone, log, made, *rest = found["changes"]
    assert "more text" in changed["definition"]["after"][0]
    assert "more text" not in changed["definition"]["before"][0]
    assert gone["definition"]["after"] is None and made["definition"]["before"] is None
    assert (log["key"], log["after"]) == (None, {"line": "second"})
    assert rest[0]["after"] == {"id": 1, "at": "2026-01-31"}
    assert rest[1]["after"] == {"id": 2, "at": None}
    assert rest[2:] == PARTS
    back = compared(main, "&tables=parts", "main", "trial")["changes"]
    assert [(each["before"], each["after"]) for each in back] == [
        (each["after"], each["before"]) for each in PARTS
    ]


def test_the_changes_are_counted_by_table(main: Client) -> None:
    whole = {
        "log": (0, 1, 0, 0), "changed": (1, 0, 0, 0), "gone": (1, 0, 0, 0),
        "made": (1, 2, 0, 0), "parts": (0, 0, 2, 1),
    }  # fmt: skip
    found = compared(main, "&count=true")
    assert found["changes"] == [] and found["next_cursor"] is None
    assert found["counts"] == [
        {"table": name, **dict(zip(("schema", "insert", "update", "delete"), each, strict=True))}
        for name, each in sorted(whole.items())
    ]
    assert compared(main, "&count=true&tables=same")["counts"] == []
    assert "counts" not in compared(main, "&count=false")
    old = main.query("select 1")["version"]
    main.query("update parts set what = 'x'")
    versions = main.get(f"/v1/databases/main/diff?from={old}&count=true").json()
    assert versions["counts"] == [
        {"table": "parts", "schema": 0, "insert": 0, "update": 4, "delete": 0}
    ]


def test_what_was_counted_can_be_listed_by_its_name(main: Client) -> None:
    on_trial(main).transaction(
        "create schema apart",
        'create table apart."a.b" (id integer primary key)',
        'insert into apart."a.b" values (1)',
        'create table "A b" (id integer primary key)',
    )
    counts = compared(main, "&count=true")["counts"]
    assert {"apart", 'apart."a.b"', "A b"} <= {each["table"] for each in counts}
    for each in counts:
        name = quote(each["table"])
        listed = compared(main, f"&tables={name}")["changes"]
        assert {change["table"] for change in listed} == {each["table"]}
        numbers = each["schema"], each["insert"], each["update"], each["delete"]
        assert sum(numbers) == len(listed), each


def test_pages_follow_each_other_at_the_same_two_versions(main: Client) -> None:
    whole = compared(main)
    pages, rest = [], "&limit=2"
    while True:
        page = compared(main, rest)
        pages += page["changes"]
        main.query("insert into same select max(id) + 1 from same")
        on_trial(main).query("delete from parts where what is null")
        if page["next_cursor"] is None:
            break
        between = f"&from={page['from']}&to={page['to']}"
        rest = f"&limit=2&cursor={page['next_cursor']}{between}"
    assert pages == whole["changes"]


def test_versions_of_both_may_be_older(main: Client) -> None:
    record = main.get("/v1/databases/trial").json()
    began = record["branch_version"]
    assert compared(main, f"&from={began}&to={began}")["changes"] == []
    since = compared(main, f"&from={began}&tables=parts")["changes"]
    assert since == PARTS[:2]
    main.patch("/v1/databases/main", {"history": 0})
    gone = main.get(f"/v1/databases/trial/diff?from_database=main&from={began - 1}")
    error_of(gone, 410, "QS004")
    future = main.get("/v1/databases/trial/diff?from_database=main&from=100000")
    error_of(future, 400, "QS001")


def test_rows_are_alike_in_types_of_the_same_name_only(main: Client) -> None:
    """Each side has made its own type and table, with the same ids."""
    for client, labels in ((main, "'low', 'high'"), (on_trial(main), "'high', 'low'")):
        client.transaction(
            f"create type grade as enum ({labels})",
            "create table graded (grade grade primary key, n integer)",
            "insert into graded values ('low', 1), ('high', 2)",
            "create table own (a text, b serial, primary key (b, a))",
            "insert into own (a) values ('x'), ('y')",
        )
    on_trial(main).query("update own set a = 'z' where b = 2")
    found = compared(main, "&tables=grade,graded,own")["changes"]
    assert [(each["table"], each["op"], each["key"]) for each in found] == [
        ("grade", "schema", None), ("graded", "schema", None),
        ("own", "delete", {"b": 2, "a": "y"}), ("own", "insert", {"b": 2, "a": "z"}),
    ]  # fmt: skip


def test_nobody_sees_what_is_not_theirs(main: Client, admin: Client) -> None:
    assert main.post("/v1/databases", {"name": "stranger"}).status_code == 201

    def refused(client: Client, name: str, other: str, status: int, code: str) -> None:
        error_of(client.get(f"/v1/databases/{name}/diff?from_database={other}"), status, code)

    refused(main, "trial", "stranger", 400, "QS001")
    refused(main, "trial", "nothing", 404, "QS006")
    refused(main, "nothing", "main", 404, "QS006")
    trial = main.get("/v1/databases/trial").json()["id"]
    refused(admin, trial, "main", 404, "QS006")
    refused(admin, "main", trial, 404, "QS006")
    refused(main.with_scopes("data:write"), "trial", "main", 403, "QS005")
    for allowed in ("main", "trial"):
        narrow = main.with_scopes("data:read", databases=[allowed])
        refused(narrow, "trial", "main", 403, "QS005")
    both = main.with_scopes("data:read", databases=["main", "trial"])
    assert compared(both, "&tables=parts")["changes"] == PARTS
    assert main.delete("/v1/databases/main").status_code == 204
    refused(main, "trial", "main", 404, "QS006")


@pytest.mark.parametrize("rest", ["count=yes", "count=", "limit=0", "cursor=!!", "from=x"])
def test_a_bad_parameter_is_refused(main: Client, rest: str) -> None:
    path = f"/v1/databases/trial/diff?from_database=main&{rest}"
    error_of(main.get(path), 400, "QS001")
