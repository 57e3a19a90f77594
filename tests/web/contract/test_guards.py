"""Section 4: `dry_run` shows what a request would do, `max_affected` bounds what it does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.web.contract.servers import Client, error_of

SCHEMA = (
    "create table parents (id int primary key, name text)",
    "create table children (id int primary key, parent int references parents on delete cascade,"
    " price numeric(6, 2))",
    "insert into parents values (1, 'Ada'), (2, 'Grace')",
    "insert into children values (10, 1, 1.50), (11, 1, 2), (12, 2, null)",
)


@pytest.fixture
def family(fresh: Client) -> Client:
    fresh.transaction(*SCHEMA)
    return fresh


def rows_of(client: Client) -> list[Any]:
    return [
        client.rows("select * from parents order by id"),
        client.rows("select * from children order by id"),
    ]


def test_a_dry_run_answers_with_results_and_changes_and_leaves_nothing(family: Client) -> None:
    before, version = rows_of(family), family.query("select 1")["version"]
    found = family.query("delete from parents where id = 1 returning name", dry_run=True)
    assert found["rows"] == [{"name": "Ada"}] and found["affected_rows"] == 1
    assert found["version"] == version
    gone = {"op": "delete", "after": None}
    assert found["diff"] == [
        {"table": "children", "key": {"id": 10}, **gone,
         "before": {"id": 10, "parent": 1, "price": "1.50"}},
        {"table": "children", "key": {"id": 11}, **gone,
         "before": {"id": 11, "parent": 1, "price": "2.00"}},
        {"table": "parents", "key": {"id": 1}, **gone, "before": {"id": 1, "name": "Ada"}},
    ]  # fmt: skip
    assert rows_of(family) == before and family.query("select 1")["version"] == version


def test_the_changes_of_a_transaction_are_net(family: Client) -> None:
    before = rows_of(family)
    found = family.transaction(
        "insert into parents values (3, 'Edsger')",
        "update parents set name = 'Edsger W.' where id = 3",
        "update parents set name = 'x' where id = 1",
        "update parents set name = 'Ada' where id = 1",
        "update children set id = 20 where id = 12",
        dry_run=True,
    )
    assert found["affected_rows"] == 5 and len(found["results"]) == 5
    child = {"parent": 2, "price": None}
    assert found["diff"] == [
        {"table": "children", "op": "delete", "key": {"id": 12},
         "before": {"id": 12, **child}, "after": None},
        {"table": "children", "op": "insert", "key": {"id": 20},
         "before": None, "after": {"id": 20, **child}},
        {"table": "parents", "op": "insert", "key": {"id": 3},
         "before": None, "after": {"id": 3, "name": "Edsger W."}},
    ]  # fmt: skip
    assert rows_of(family) == before


def test_a_dry_run_of_definitions_leaves_no_table(fresh: Client) -> None:
    found = fresh.transaction(
        "create table t (a int)", "insert into t values (1)", "select * from t", dry_run=True
    )
    assert found["results"][2]["rows"] == [{"a": 1}]
    assert found["diff"] == [
        {
            "table": "t", "op": "schema", "key": None, "before": None, "after": None,
            "definition": {"before": None, "after": ["CREATE TABLE t (a integer)"]},
        },
        {"table": "t", "op": "insert", "key": None, "before": None, "after": {"a": 1}},
    ]  # fmt: skip
    assert fresh.get("/tables").json()["tables"] == []


def test_a_dry_run_tells_what_each_definition_would_be(fresh: Client) -> None:
    fresh.transaction(
        "create type mood as enum ('sad')",
        "create table p (id int primary key, m mood)",
        "create table c (id int primary key, p int references p)",
        "create view v as select id from p",
        "create sequence s",
        "comment on table c is 'children'",
    )

    def told(*statements: str) -> dict[str, Any]:
        diff = fresh.transaction(*statements, dry_run=True)["diff"]
        return {each["table"]: each["definition"] for each in diff if each["op"] == "schema"}

    gone = told("drop table p cascade")
    child = [
        "CREATE TABLE c (id integer NOT NULL, p integer, CONSTRAINT c_pkey PRIMARY KEY (id))",
        "ALTER TABLE c ADD CONSTRAINT c_p_fkey FOREIGN KEY (p) REFERENCES p (id)"
        " ON UPDATE NO ACTION ON DELETE NO ACTION",
        "COMMENT ON TABLE c IS 'children'",
    ]
    assert gone["c"] == {"before": child, "after": [child[0], child[2]]}
    parent = "CREATE TABLE p (id integer NOT NULL, m mood, CONSTRAINT p_pkey PRIMARY KEY (id))"
    assert gone["p"] == {"before": [parent], "after": None}
    assert gone["v"]["after"] is None and gone["v"]["before"][0].startswith("CREATE VIEW v (id) AS")
    indexed = told("create index on p (m)", "insert into p values (1, 'sad')")
    assert indexed == {
        "p": {"before": [parent], "after": [parent, "CREATE INDEX p_m_idx ON p (m)"]}
    }
    assert told("alter type mood add value 'glad'")["mood"] == {
        "before": ["CREATE TYPE mood AS ENUM ('sad')"],
        "after": ["CREATE TYPE mood AS ENUM ('sad', 'glad')"],
    }
    assert told("create schema apart")["apart"]["after"] == ["CREATE SCHEMA apart"]
    assert told("drop sequence s")["s"]["before"][0].startswith("CREATE SEQUENCE s AS bigint")


def test_a_dry_run_in_an_open_transaction_compares_with_the_step_before(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    opened = fresh.post("/v1/transaction/open").json()["transaction"]["id"]
    fresh.query("alter table t add column b int", transaction=opened)
    step = {"transaction": opened, "dry_run": True}
    (change,) = fresh.query("alter table t add column c int", **step)["diff"]
    assert change["definition"] == {
        "before": ["CREATE TABLE t (a integer, b integer)"],
        "after": ["CREATE TABLE t (a integer, b integer, c integer)"],
    }


def test_a_dry_run_of_a_read_changes_nothing(family: Client) -> None:
    assert family.query("select 1 as one", dry_run=True)["diff"] == []


def test_a_dry_run_gives_numbers_of_sequences_back(fresh: Client) -> None:
    fresh.query("create table t (id serial primary key)")
    insert = "insert into t default values returning id"
    assert fresh.query(insert, dry_run=True)["rows"] == [{"id": 1}]
    assert fresh.query(insert)["rows"] == [{"id": 1}]
    assert fresh.query(insert, dry_run=True)["rows"] == [{"id": 2}]
    setval = fresh.query_response("select setval('t_id_seq', 50)", dry_run=True)
    error_of(setval, 200, "0A000")
    assert fresh.query(insert)["rows"] == [{"id": 2}]


def test_a_dry_run_fails_as_the_real_thing_would(family: Client) -> None:
    taken = family.query_response("insert into parents values (1, 'x')", dry_run=True)
    error_of(taken, 200, "23505")
    made = family.post("/v1/keys", {"name": "reader", "scopes": ["data:read"]}).json()
    family.server.secrets.add(made["key"])
    reader = Client(family.server, made["key"], database=family.headers["X-Database"])
    error_of(reader.query_response("delete from children", dry_run=True), 403, "QS005")


@pytest.mark.long
def test_a_long_diff_is_refused_or_cut(family: Client) -> None:
    family.query("create table many (a int primary key, b text)")
    many = "insert into many select n, 'x' from generate_series(1, 100001) n"
    error_of(family.query_response(many, dry_run=True), 200, "54000")
    found = family.query(many, dry_run=True, max_rows=3000)
    assert found["affected_rows"] == 100001 and found["diff_truncated"] is True
    assert [each["key"]["a"] for each in found["diff"]] == list(range(1, 3001))
    assert "diff_truncated" not in family.query("delete from many", dry_run=True)
    assert family.rows("select count(*) as n from many") == [[0]]


def test_a_dry_run_cannot_be_streamed(family: Client) -> None:
    error_of(family.query_response("/*+ STREAM */ select 1", dry_run=True), 400, "QS001")


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("delete from parents where id = 1", 3),  # with the cascade
        ("update children set price = 0", 3),
        ("insert into parents select n, 'x' from generate_series(100, 199) n", 100),
        ("explain analyze delete from children", 3),
        ("update children set id = id + 100", 3),
        ("select 1", 0),
    ],
)
def test_no_more_rows_are_affected_than_allowed(family: Client, sql: str, count: int) -> None:
    before = rows_of(family)
    if count:
        answer = family.query_response(sql, max_affected=count - 1)
        assert "max_affected" in error_of(answer, 200, "QS003")["hint"]
        assert rows_of(family) == before
    family.query(sql, max_affected=count)


def test_the_statements_of_a_transaction_count_together(family: Client) -> None:
    body = {"statements": ["delete from children where id = 10", "delete from parents"]}
    answer = family.post("/v1/transaction", {**body, "max_affected": 4})
    assert error_of(answer, 200, "QS003")["statement"] == 1
    assert family.post("/v1/transaction", {**body, "max_affected": 5}).json()["success"]


def test_a_statement_that_affects_too_many_rows_is_stopped_on_its_way(family: Client) -> None:
    family.query("create table many (a int primary key)")
    many = "insert into many select n from generate_series(1, 3000000) n"
    error_of(family.query_response(many, max_affected=1000), 200, "QS003")
    assert family.rows("select count(*) as n from many") == [[0]]


def test_a_streamed_write_is_bounded_too(family: Client) -> None:
    answer = family.query_response("/*+ STREAM */ delete from children", max_affected=2)
    error_of(answer, 200, "QS003")
    assert family.rows("select count(*) from children") == [[3]]


# --- if_version ---


def test_a_request_runs_only_if_its_tables_have_not_changed(family: Client) -> None:
    seen = family.query("select * from children")["version"]
    family.query("update parents set name = 'x' where id = 1")
    family.query("create table other (a int)")
    rename = "update children set price = 9 where id = 10"
    change = {"sql": rename, "if_version": seen}
    assert family.post("/v1/query", change, headers={"X-Request-Id": "it-was-me"}).json()["success"]
    now = family.query("select 1")["version"]
    family.query("update parents set name = 'y' where id = 1")
    answer = family.query_response(rename, if_version=seen)
    error = error_of(answer, 200, "40001")
    assert error["retryable"] is False
    conflict = error["conflict"]
    assert conflict["table"] == "children"
    assert (conflict["read_version"], conflict["changed_version"]) == (seen, now)
    assert conflict["changed_by"] == {"request_id": "it-was-me"}
    reads = error_of(family.query_response("select * from children", if_version=seen), 200, "40001")
    assert reads["conflict"] == conflict and conflict["statement"] == 0
    several = {"statements": ["insert into other values (1)", "select 1", rename]}
    second = family.post("/v1/transaction", {**several, "if_version": seen})
    assert error_of(second, 200, "40001")["conflict"]["statement"] == 2
    family.query(rename, if_version=now)


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("select * from parents where id = 2", "parents"),
        ("/*+ STREAM */ select * from parents where id = 2", "parents"),
        ("select * from children where id = 99", None),
        ("insert into parents values (9, 'new')", "parents"),
        ("insert into children values (9, 2, 1)", "parents"),  # by its foreign key
        ("delete from children where id = 99", None),
        ("select * from old", "parents"),
        ("alter table parents add column a int", "parents"),
        ("select 1", None),
    ],
)
def test_all_tables_that_it_touches_count(family: Client, sql: str, table: str | None) -> None:
    family.query("create view old as select * from parents")
    seen = family.query("select 1")["version"]
    family.query("update parents set name = 'x' where id = 1")
    for fields in ({}, {"dry_run": True}) if "STREAM" not in sql else ({},):
        answer = family.query_response(sql, if_version=seen, **fields)
        if table is None:
            assert '"success":true' in answer.text
        else:
            assert error_of(answer, 200, "40001")["conflict"]["table"] == table


def test_of_many_who_saw_one_version_one_goes_on(family: Client) -> None:
    seen = family.query("select 1")["version"]
    add = "insert into parents select max(id) + 1, 'x' from parents"
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: family.query_response(add, if_version=seen).json(), range(8))
        )
    assert [each["success"] for each in answers].count(True) == 1
    assert {each["error"]["code"] for each in answers if not each["success"]} == {"40001"}
    blind = [f"insert into children values ({n}, null, 1)" for n in range(100, 108)]
    seen = family.query("select 1")["version"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda sql: family.query_response(sql, if_version=seen).json(), blind)
        )
    assert [each["success"] for each in answers].count(True) == 1


def test_a_version_that_does_not_exist_yet_is_400(family: Client) -> None:
    newest = family.query("select 1")["version"]
    for sql in ("select 1", "delete from children"):
        error_of(family.query_response(sql, if_version=newest + 1), 400, "QS001")
        error_of(family.query_response(sql, if_version=-1), 400, "QS001")
    opened = family.post("/v1/transaction/open").json()["transaction"]["id"]
    answer = family.query_response("select 1", if_version=newest, transaction=opened)
    error_of(answer, 400, "QS001")
