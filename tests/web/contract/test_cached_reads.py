"""Section 13: queries by URL, whose ETag never says of an old result that it holds."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.web.contract.conftest import ADMIN_KEY
from tests.web.contract.servers import Client, error_of, start

SETUP = (
    "create table t (id int primary key, x int)",
    "create table other (id int primary key)",
    "create view v as select id, x from t where x > 0",
    "create type mood as enum ('sad', 'happy')",
    "create table m (id int primary key, mood mood)",
    "insert into t values (1, 1), (2, 2)",
    "insert into m values (1, 'sad')",
)


@pytest.fixture
def filled(fresh: Client) -> Client:
    fresh.transaction(*SETUP)
    return fresh


def get(
    client: Client, sql: str | None = None, tag: str | None = None, **asked: Any
) -> httpx.Response:
    parameters = asked if sql is None else {"sql": sql, **asked}
    headers = {} if tag is None else {"If-None-Match": tag}
    return client.get(f"/v1/query?{urlencode(parameters)}", headers=headers)


def tag_of(client: Client, sql: str, **asked: Any) -> str:
    answer = get(client, sql, **asked)
    assert answer.status_code == 200 and answer.json()["success"] is True, answer.text
    assert answer.headers["cache-control"] == "private, no-cache"
    tag = answer.headers["etag"]
    again = get(client, sql, tag, **asked)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag
    assert again.headers["cache-control"] == "private, no-cache"
    return tag


def test_a_query_by_url_answers_as_one_that_is_posted(filled: Client) -> None:
    posted = filled.query("select x from t where id = $1", [2], format="arrays")
    found = get(filled, "select x from t where id = $1", params="[2]", format="arrays").json()
    assert found.keys() == posted.keys()
    for field in found.keys() - {"timings"}:
        assert found[field] == posted[field]
    named = get(filled, "select x from t where id = :id", params='{"id": 1}').json()
    assert named["rows"] == [{"x": 1}]
    cut = get(filled, "select id from t order by id", max_rows=1, timeout_ms=30_000).json()
    assert (cut["rows"], cut["truncated"]) == ([{"id": 1}], True)


def test_head_answers_like_get_without_a_body(filled: Client) -> None:
    path = "/v1/query?sql=select+x+from+t"
    answer = filled.call("HEAD", path)
    assert (answer.status_code, answer.content) == (200, b"")
    tag = answer.headers["etag"]
    assert tag == filled.get(path).headers["etag"]
    assert filled.call("HEAD", path, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize("known", ["{tag}", '"other", {tag}', "*", '{tag},"x"'])
def test_any_of_the_tags_may_match(filled: Client, known: str) -> None:
    tag = tag_of(filled, "select x from t")
    assert get(filled, "select x from t", known.format(tag=tag)).status_code == 304
    strong = tag.removeprefix("W/")
    assert get(filled, "select x from t", strong).status_code == 304
    assert get(filled, "select x from t", '"other"').status_code == 200


CHANGES = [
    "insert into t values (3, 3)",
    "update t set x = 5 where id = 1",
    "delete from t where id = 1",
    "truncate t",
    "alter table t add column y int",
    "alter table t rename column x to z",
    "create index on t (x)",
    "drop table t cascade; create table t (id int primary key, x int)",
    "drop table t cascade",
    "alter type mood rename value 'sad' to 'glum'",
    "merge into t using other on false when not matched then do nothing; update t set x = x",
]


@pytest.mark.parametrize("change", CHANGES)
def test_no_old_tag_holds_after_a_change(filled: Client, change: str) -> None:
    queries = [
        "select * from t",
        "select * from v",
        "select count(*) from t",
        "select id from other where exists (select 1 from t where x > other.id)",
        "select (select max(x) from t) as most",
    ]
    queries = queries if "mood" not in change else ["select mood from m"]
    tags = {sql: tag_of(filled, sql) for sql in queries}
    filled.transaction(*change.split("; "))
    for sql, tag in tags.items():
        answer = get(filled, sql, tag)
        assert answer.status_code == 200, f"{sql} is the same after {change}"
        if answer.json()["success"]:
            assert answer.headers["etag"] != tag


def test_a_tag_of_a_view_does_not_hold_when_the_view_is_another(filled: Client) -> None:
    filled.query("create view over as select max(x) from v")
    for change in (
        "create or replace view v as select id, x * 2 as x from t",
        "drop view v cascade; create view v as select id, x + 1 as x from t;"
        " create view over as select max(x) from v",
    ):
        tags = {sql: tag_of(filled, sql) for sql in ("select * from v", "select * from over")}
        filled.transaction(*change.split("; "))
        for sql, tag in tags.items():
            assert get(filled, sql, tag).status_code == 200, f"{sql} is the same after {change}"


@pytest.mark.parametrize(
    "change",
    [
        "insert into other values (1)",
        "update m set mood = 'happy'",
        "create table later (id int)",
        "alter table other add column y int",
        "drop table other",
        "create or replace view v as select id, x * 2 as x from t",
        "create sequence s",
        "create schema apart",
        "create schema apart; create table apart.t (id int primary key)",
        "alter type mood add value 'so so'",
    ],
)
def test_a_tag_holds_while_only_others_change(filled: Client, change: str) -> None:
    queries = ("select * from t", "select count(*) from t where x > 0", "select 1 as one")
    tags = {sql: tag_of(filled, sql) for sql in queries}
    filled.transaction(*change.split("; "))
    for sql, tag in tags.items():
        assert get(filled, sql, tag).status_code == 304, f"{sql} is another after {change}"
    assert get(filled, "select * from t, m", tags["select * from t"]).status_code == 200


def test_a_tag_is_for_one_statement_with_its_parameters_and_options(filled: Client) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("select x from t where id = $1", {"params": "[1]"}),
        ("select x from t where id = $1", {"params": "[2]"}),
        ("select x from t where id = $1", {"params": '["1"]'}),
        ("select x from t where id = :a", {"params": '{"a": 1}'}),
        ("select x from t where id = 1", {}),
        ("select x from t where id = 2", {}),
        ("select x from t where id = 1", {"format": "arrays"}),
        ("select x from t where id = 1", {"max_rows": 1}),
    ]
    tags = [tag_of(filled, sql, **options) for sql, options in asked]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    "sql",
    [
        "select now()",
        "select random() from t",
        "select current_date",
        "select x from t where now() > timestamptz '2020-01-01'",
        "select date 'today'",
        "select * from information_schema.tables",
        "select relname from pg_catalog.pg_class",
        "select gen_random_uuid()",
    ],
)
def test_what_depends_on_more_than_tables_has_no_tag(filled: Client, sql: str) -> None:
    answer = get(filled, sql, "*")
    assert answer.status_code == 200 and answer.json()["success"] is True, answer.text
    assert "etag" not in answer.headers


@pytest.mark.parametrize(
    "sql",
    [
        "insert into t values (9, 9)",
        "with gone as (delete from t returning id) select * from gone",
        "create table made (a int)",
        "drop table t",
        "select nextval('s')",
        "select setval('s', 7)",
    ],
)
def test_a_write_is_405(filled: Client, sql: str) -> None:
    filled.query("create sequence s")
    before = filled.query("select 1")["version"]
    answer = get(filled, sql)
    error_of(answer, 405, "QS007")
    assert answer.headers["allow"] == "POST" and "etag" not in answer.headers
    assert filled.query("select 1")["version"] == before


@pytest.mark.parametrize(
    "query",
    [
        "",
        "sql=",
        "sql=select+1&unknown=1",
        "sql=select+1&sql=select+2",
        "sql=select+1&params=1",
        "sql=select+1&params=[",
        "sql=select+1&max_rows=-1",
        "sql=select+1&max_rows=x",
        "sql=select+1&timeout_ms=0",
        "sql=select+1&format=table",
        "sql=select+1&dry_run=true",
        "sql=select+$1&params=[1,2]",
        "sql=select+%FF",
        "sql=select+1;select+2",
        "statement=mine",
    ],
)
def test_bad_parameters_are_400(admin: Client, query: str) -> None:
    error_of(admin.get(f"/v1/query?{query}"), 400)


def test_it_needs_the_scope_to_read_also_for_what_is_known(filled: Client) -> None:
    database = filled.headers["X-Database"]
    admin = Client(filled.server, filled.token)
    record = admin.new_key(scopes=["data:read", "data:write"])
    reader = Client(filled.server, record["key"], database=database)
    tag = tag_of(reader, "select * from t")
    assert tag == tag_of(filled, "select * from t"), "who may read may share a cache"
    writer = admin.with_scopes("data:write")
    error_of(get(writer, "select * from t", tag, database=database), 403)
    assert admin.patch(f"/v1/keys/{record['id']}", {"scopes": ["data:write"]}).status_code == 200
    error_of(get(reader, "select * from t", tag), 403)
    assert admin.delete(f"/v1/keys/{record['id']}").status_code == 204
    error_of(get(reader, "select * from t", tag), 401)
    error_of(get(Client(filled.server, None), "select 1", tag), 401)


def test_another_database_of_the_same_name_has_other_tags(admin: Client) -> None:
    tags = []
    for _ in range(2):
        assert admin.post("/v1/databases", {"name": "again"}).status_code == 201
        client = Client(admin.server, admin.token, database="again")
        client.transaction(*SETUP)
        tags.append(tag_of(client, "select * from t"))
        assert admin.delete("/v1/databases/again").status_code == 204
    assert tags[0] != tags[1]


def test_keys_and_transactions_are_refused(admin: Client) -> None:
    for name in ("Idempotency-Key", "X-Transaction"):
        answer = admin.get("/v1/query?sql=select+1", headers={name: "k"})
        error_of(answer, 400, "QS001")


def test_as_of_reads_what_was_and_its_tag_is_that_of_the_version(filled: Client) -> None:
    sql = "select x from t where id = 1"
    first = filled.query("update t set x = 10 where id = 1")["version"]
    was_newest = tag_of(filled, sql, as_of=first)
    second = filled.query("update t set x = 20 where id = 1")["version"]
    filled.query("alter table t rename to s")
    answer = get(filled, sql, as_of=first).json()
    assert (answer["rows"], answer["version"]) == ([{"x": 10}], first)
    assert tag_of(filled, sql, as_of=first) == was_newest, "made again, it is the same version"
    assert get(filled, sql, as_of=second).json()["rows"] == [{"x": 20}]
    for known in (was_newest, f'{was_newest}, "x"'):
        assert get(filled, sql, known, as_of=second).status_code == 200
    now = tag_of(filled, "select x from s where id = 1")
    assert get(filled, "select x from s where id = 1", now, as_of=second).status_code == 200
    error_of(get(filled, sql), 200, "42P01")


def test_a_tag_of_one_version_never_holds_for_another(filled: Client) -> None:
    """Also with versions in the memory that a reader of the feed has made."""
    sql = "select x from t where id = 1"
    versions = [
        filled.query("update t set x = $1 where id = 1", [number])["version"]
        for number in range(10, 16)
    ]
    filled.get(f"/v1/changes?since={versions[0]}&limit=2")
    tags: dict[int, str] = {}
    for number, version in enumerate(versions, 10):
        for known in tags.values():
            assert get(filled, sql, known, as_of=version).status_code == 200
        assert get(filled, sql, as_of=version).json()["rows"] == [{"x": number}]
        tags[version] = tag_of(filled, sql, as_of=version)
    assert len(set(tags.values())) == len(versions)


def test_a_time_finds_the_tag_of_its_version(filled: Client) -> None:
    sql = "select count(*) from t"
    name = filled.headers["X-Database"]
    version = filled.query("insert into t values (3, 3)")["version"]
    filled.query("insert into t values (4, 4)")
    listed = filled.get(f"/v1/databases/{name}/versions").json()["versions"]
    (time,) = [each["time"] for each in listed if each["version"] == version]
    tag = tag_of(filled, sql, as_of=version)
    assert get(filled, sql, tag, as_of=time).status_code == 304
    assert get(filled, sql, as_of=time).json()["rows"] == [{"count": 3}]
    zone = time.replace("Z", "+00:00")
    assert get(filled, sql, tag, as_of=zone).status_code == 304
    unescaped = filled.get(f"/v1/query?sql=select+1&as_of={zone}")
    assert "%2B" in error_of(unescaped, 400, "QS001")["hint"]


def test_as_of_has_the_errors_of_other_reads(filled: Client) -> None:
    for wrong in ("-1", "x", "99999999", "2030-01-01T00:00:00", "9999-01-01T00:00:00Z", ""):
        error_of(get(filled, "select x from t", as_of=wrong), 400, "QS001")
    assert "etag" not in get(filled, "select now()", as_of=1).headers
    error_of(get(filled, "insert into t values (9, 9)", as_of=1), 405)
    name = filled.headers["X-Database"]
    assert filled.patch(f"/v1/databases/{name}", {"history": 0}).status_code == 200
    filled.query("insert into t values (5, 5)")
    error_of(get(filled, "select x from t", as_of=1), 200, "QS004")
    rows = filled.get(
        "/v1/query?sql=select+id+from+t&as_of=1", headers={"Accept": "application/x-ndjson"}
    )
    error_of(rows, 200, "QS004")


def test_it_streams_too(filled: Client) -> None:
    answer = filled.get(
        "/v1/query?sql=select+id+from+t+order+by+id", headers={"Accept": "application/x-ndjson"}
    )
    assert answer.text == '{"id":1}\n{"id":2}\n'
    writes = "/v1/query?" + urlencode({"sql": "insert into t values (7, 7) returning id"})
    answer = filled.get(writes, headers={"Accept": "text/event-stream"})
    error_of(answer, 405)
    assert filled.value("select count(*) from t") == 2


@pytest.mark.long
def test_a_tag_outlives_the_process_and_a_restored_folder_has_others(tmp_path: Path) -> None:
    settings = {"QSERVER_API_KEY": ADMIN_KEY}
    first = start("own", tmp_path, settings)
    try:
        client = Client(first, ADMIN_KEY)
        client.transaction(*SETUP)
        tag = tag_of(client, "select * from t")
        assert first.stop() == 0
        shutil.copytree(first.data, tmp_path / "backup")
        second = start("own", tmp_path, settings)
        client = Client(second, ADMIN_KEY)
        assert get(client, "select * from t", tag).status_code == 304
        client.query("insert into t values (3, 3)")
        later = tag_of(client, "select * from t")
        second.kill()
        shutil.rmtree(second.data)
        shutil.copytree(tmp_path / "backup", second.data)
        third = start("own", tmp_path, settings)
        client = Client(third, ADMIN_KEY)
        assert get(client, "select * from t", tag).status_code == 304
        client.query("insert into t values (4, 4)")
        assert get(client, "select * from t", later).status_code == 200
        third.kill()
    finally:
        first.kill()
