"""Section 20: a version is a token. A read that names it sees that version or a later one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from qserver import client
from tests.web.contract.connections import OpenStream
from tests.web.contract.servers import Client, error_of

TEXT = {"Content-Type": "text/plain"}
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def shop(fresh: Client) -> Client:
    fresh.transaction("create table goods (id int primary key)", "insert into goods values (1)")
    return fresh


def name_of(client: Client) -> str:
    return client.headers.get("X-Database", "main")


def newest(client: Client) -> int:
    version: int = client.query("select 1")["version"]
    return version


Ask = Callable[[Client, int], httpx.Response]


def _by_header(method: str, path: str, content: str | None = None, **headers: str) -> Ask:
    def ask(client: Client, version: int) -> httpx.Response:
        place, given = path.replace("{db}", name_of(client)), {"X-Min-Version": str(version)}
        return client.call(method, place, headers={**given, **headers}, content=content)

    return ask


def _by_field(path: str, **body: Any) -> Ask:
    return lambda client, version: client.post(path, {**body, "min_version": version})


def _by_url(path: str) -> Ask:
    return lambda client, version: client.get(f"{path}min_version={version}")


COUNT = "select count(*) as n from goods"
READS: dict[str, Ask] = {
    "query": _by_field("/v1/query", sql=COUNT),
    "query, header": _by_header("POST", "/v1/query", '{"sql": "select 1"}'),
    "text": _by_header("POST", "/query", COUNT, **TEXT),
    "stream": _by_field("/v1/query", sql="/*+ STREAM */ select id from goods"),
    "url": _by_url(f"/v1/query?sql={quote(COUNT)}&"),
    "url, header": _by_header("GET", f"/v1/query?sql={quote(COUNT)}"),
    "transaction": _by_field("/v1/transaction", statements=[COUNT, COUNT]),
    "transaction, header": _by_header("POST", "/v1/transaction", '{"statements": ["select 1"]}'),
    "rows": _by_url("/v1/tables/goods/rows?"),
    "rows, header": _by_header("GET", "/v1/tables/goods/rows"),
    "tables": _by_header("GET", "/tables"),
    "changes": _by_header("GET", "/v1/changes?since=0"),
    "diff": _by_header("GET", "/v1/databases/{db}/diff?from=0"),
    "versions": _by_header("GET", "/v1/databases/{db}/versions"),
    "bulk": _by_header("POST", "/v1/tables/goods/rows?on_conflict=ignore", '{"id":7}', **LINES),
    "write": _by_field("/v1/query", sql="insert into goods select max(id) + 5 from goods"),
    "dry run": _by_field("/v1/query", sql="delete from goods", dry_run=True),
    "replica": _by_field("/v1/query", sql=COUNT, consistency="session", max_age_ms=0),
    "open": _by_field("/v1/transaction/open"),
    "open, header": _by_header("POST", "/v1/transaction/open"),
}


@pytest.mark.parametrize("ask", READS.values(), ids=READS)
def test_a_version_that_is_there_is_read(shop: Client, ask: Ask) -> None:
    for version in (0, newest(shop)):
        answer = ask(shop, version)
        assert answer.status_code in (200, 201), answer.text
        assert '"success":false' not in answer.text
        if answer.headers["content-type"] == "application/json":
            body = answer.json()
            found = body.get("version", version) if isinstance(body, dict) else version
            assert found >= version


@pytest.mark.parametrize("ask", READS.values(), ids=READS)
def test_a_version_that_comes_is_waited_for(shop: Client, ask: Ask) -> None:
    version = newest(shop)
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(ask, shop, version + 2)  # before the commits, or after one, or both
        shop.query("insert into goods values (2)")
        shop.query("insert into goods values (3)")
        answer = asked.result()
    assert answer.status_code in (200, 201), answer.text
    assert '"success":false' not in answer.text
    if ask in (READS["query"], READS["text"], READS["url"], READS["transaction"]):
        assert '"n":3' in answer.text
    if ask in (READS["stream"], READS["rows"], READS["changes"], READS["diff"]):
        assert '"id":3' in answer.text


@pytest.mark.long
def test_a_version_that_does_not_come_is_refused(organization: Client, admin: Client) -> None:
    organization.query("create table goods (id int primary key)")
    version = newest(organization)
    named = organization.get("/v1/organization").json()["name"]
    limits = {"limits": {"statement_timeout_ms": 100}}
    assert admin.patch(f"/v1/organizations/{named}", limits).status_code == 200
    for name, ask in READS.items():
        if not name.startswith("open"):
            answer = ask(organization, version + 1)
            error = error_of(answer, 503, "QS025")
            assert error["retryable"] is True and str(version + 1) in error["message"], name
            assert "min_version" in error["hint"] and answer.headers["retry-after"] == "1"
    admin.patch(f"/v1/organizations/{named}", {"limits": {"statement_timeout_ms": None}})
    assert newest(organization) == version and organization.value(COUNT) == 0


def test_a_live_query_begins_with_the_version_or_a_later_one(shop: Client) -> None:
    version = newest(shop)
    with OpenStream(shop, "select id from goods", live=True, min_version=version) as stream:
        events = stream.events()
        kinds = [next(events) for _ in range(3)]
        assert kinds[-1].kind == "ready" and kinds[-1].data["version"] >= version
    asked = {"sql": "select id from goods", "live": True, "min_version": version + 9}
    error_of(shop.post("/v1/query", {**asked, "timeout_ms": 1}), 503, "QS025")


@pytest.mark.parametrize("given", [-1, 1.5, "1", "x", True, [1], {}])
def test_what_is_no_version_is_refused(shop: Client, given: Any) -> None:
    for ask in (READS["query"], READS["transaction"], READS["open"]):
        error_of(ask(shop, given), 400, "QS001")


@pytest.mark.parametrize("given", ["-1", "1.5", "x", "", "1,2", "9" * 30, "0x1"])
def test_a_bad_header_is_refused_wherever_it_is_read(shop: Client, given: Any) -> None:
    for name, ask in READS.items():
        if "header" in name or name in ("text", "tables", "changes", "diff", "versions", "bulk"):
            message = error_of(ask(shop, given), 400, "QS001")["message"]
            assert "X-Min-Version" in message, name
    error_of(shop.get(f"/v1/query?sql=select+1&min_version={given}"), 400, "QS001")


def test_the_header_is_there_once(shop: Client) -> None:
    twice = [*shop.headers.items(), ("X-Min-Version", "0"), ("X-Min-Version", "1")]
    answer = shop.server.http.post("/v1/query", headers=twice, json={"sql": "select 1"})
    assert "x-min-version" in error_of(answer, 400, "QS001")["message"]


def test_of_header_and_field_the_larger_counts(shop: Client) -> None:
    version = newest(shop)
    for header, field in ((version, version + 1), (version + 1, version)):
        body = {"sql": "select 1", "min_version": field, "timeout_ms": 1}
        answer = shop.post("/v1/query", body, headers={"X-Min-Version": str(header)})
        error_of(answer, 503, "QS025")


def test_as_of_names_that_version_or_a_later_one(shop: Client) -> None:
    version = newest(shop)
    shop.query("insert into goods values (2)")
    (entry, *_) = shop.get(f"/v1/databases/{name_of(shop)}/versions?before={version + 1}").json()[
        "versions"
    ]
    for as_of in (version, str(version), entry["time"]):
        read = {"sql": COUNT, "as_of": as_of}
        assert shop.query(COUNT, as_of=as_of, min_version=version)["version"] == version
        error = error_of(shop.post("/v1/query", {**read, "min_version": version + 1}), 400, "QS001")
        assert "as_of" in error["message"] and "min_version" in error["message"]
        opening = {"as_of": as_of, "min_version": version + 1}
        error_of(shop.post("/v1/transaction/open", opening), 400, "QS001")


def test_an_open_transaction_has_one_version(shop: Client) -> None:
    opened = shop.post("/v1/transaction/open").json()["transaction"]
    version, inside = opened["version"], {"transaction": opened["id"]}
    later = shop.query("insert into goods values (2)")["version"]
    assert shop.query(COUNT, **inside, min_version=version)["rows"] == [{"n": 1}]
    for fields in ({"min_version": later}, {"consistency": "session"}):
        for body in ({"sql": COUNT}, {"sql": f"/*+ STREAM */ {COUNT}"}):
            error_of(shop.post("/v1/query", {**body, **inside, **fields}), 400, "QS001")
        statements = {"statements": [COUNT], **inside, **fields}
        error_of(shop.post("/v1/transaction", statements), 400, "QS001")
    assert shop.query(COUNT, **inside)["rows"] == [{"n": 1}], "it was left as it was"
    assert shop.post(f"/v1/transaction/{opened['id']}/commit").json()["success"] is True


def test_a_branch_of_a_transaction_begins_with_the_version(shop: Client) -> None:
    version = newest(shop)
    asked = {"statements": [COUNT, "insert into goods values (5)"], "branch": True}
    found = shop.post("/v1/transaction", {**asked, "min_version": version}).json()
    assert found["results"][0]["rows"] == [{"n": 1}] and found["version"] > version
    assert shop.delete(f"/v1/databases/{found['database']}").status_code == 204
    known = len(shop.get("/v1/databases").json()["databases"])
    late = {**asked, "min_version": version + 9, "timeout_ms": 50}
    error_of(shop.post("/v1/transaction", late), 503, "QS025")
    assert len(shop.get("/v1/databases").json()["databases"]) == known


@pytest.mark.parametrize(
    "fields",
    [
        {"consistency": "eventual"},
        {"consistency": None},
        {"consistency": 1},
        {"max_age_ms": 5},
        {"max_age_ms": 5, "consistency": "strong"},
        {"max_age_ms": -1, "consistency": "session"},
        {"max_age_ms": 1.5, "consistency": "session"},
    ],
)
def test_what_is_no_consistency_is_refused(shop: Client, fields: dict[str, Any]) -> None:
    error_of(shop.post("/v1/query", {"sql": "select 1", **fields}), 400, "QS001")
    error_of(shop.post("/v1/transaction", {"statements": ["select 1"], **fields}), 400, "QS001")
    named = "&".join(f"{name}={value}" for name, value in fields.items())
    error_of(shop.get(f"/v1/query?sql=select+1&{named}"), 400, "QS001")


def test_the_owner_is_as_fresh_as_anything(shop: Client) -> None:
    for fields in (
        {"consistency": "strong"},
        {"consistency": "session"},
        {"consistency": "any", "max_age_ms": 0},
    ):
        shop.query("insert into goods select max(id) + 1 from goods", **fields)
        expected = shop.value("select max(id) from goods")
        assert shop.query("select max(id) as m from goods", **fields)["rows"] == [{"m": expected}]
        named = "&".join(f"{name}={value}" for name, value in fields.items())
        found = shop.get(f"/v1/tables/goods/rows?columns=id&order=id+desc&limit=1&{named}")
        assert found.json() == [{"id": expected}]


def test_a_repeated_request_may_name_another_version(shop: Client) -> None:
    body, key = {"sql": "insert into goods values (2)"}, {"Idempotency-Key": "once"}
    first = shop.post("/v1/query", body, headers=key)
    again = {**key, "X-Min-Version": str(first.json()["version"])}
    second = shop.post("/v1/query", body, headers=again)
    assert second.headers["idempotency-replayed"] == "true" and second.text == first.text


def test_a_tag_holds_only_from_the_version_on(shop: Client) -> None:
    path = f"/v1/query?sql={quote(COUNT)}"
    tag = {"If-None-Match": shop.get(path).headers["etag"]}
    version = newest(shop)
    held = shop.get(path, headers={**tag, "X-Min-Version": str(version)})
    assert held.status_code == 304
    late = shop.get(f"{path}&timeout_ms=1", headers={**tag, "X-Min-Version": str(version + 1)})
    error_of(late, 503, "QS025")


def test_a_key_with_statements_may_name_a_version(shop: Client) -> None:
    made = shop.new_key(statements={"count": COUNT}, databases=[name_of(shop)])
    limited = shop.with_token(made["key"])
    asked = {"statement": "count", "min_version": newest(shop), "consistency": "session"}
    assert limited.post("/v1/query", asked).json()["rows"] == [{"n": 1}]
    late = {**asked, "min_version": newest(shop) + 1, "timeout_ms": 1}
    error_of(limited.post("/v1/query", late), 503, "QS025")


def test_a_database_made_anew_begins_with_new_versions(admin: Client, shop: Client) -> None:
    """Its name is the same: a token of the one before is refused, and never mistaken."""
    admin.post("/v1/databases", {"name": "anew"})
    anew = Client(admin.server, admin.token, database="anew")
    anew.query("create table t (id int)")
    token = anew.query("insert into t values (1)")["version"]
    assert admin.delete("/v1/databases/anew").status_code == 204
    assert admin.post("/v1/databases", {"name": "anew"}).json()["version"] == 0
    error_of(anew.query_response("select 1", min_version=token, timeout_ms=1), 503, "QS025")
    assert anew.query("select 1")["version"] == 0
    assert admin.delete("/v1/databases/anew").status_code == 204


def test_our_client_goes_on_with_a_database_made_anew(admin: Client) -> None:
    """It has seen later versions of the one before, under the same name."""
    with client.Client(admin.server.url, admin.token, "again", consistency="session") as ours:
        admin.post("/v1/databases", {"name": "again"})
        ours.query("create table t (id int)")
        seen = ours.query("insert into t values (1)").version
        assert ours.query("select id from t").rows == [(1,)] and ours.seen.newest("again") == seen
        assert admin.delete("/v1/databases/again").status_code == 204
        admin.post("/v1/databases", {"name": "again"})
        assert ours.query("select 1").version == 0
        with ours.stream("select 1") as rows:
            assert list(rows) == [(1,)]
        assert ours.query("create table t (id int)").version == ours.seen.newest("again") == 1
        assert admin.delete("/v1/databases/again").status_code == 204


def test_versions_go_on_after_a_restore_and_a_reset(organization: Client) -> None:
    organization.query("create table t (id int)")
    token = organization.query("insert into t values (1)")["version"]
    restored = organization.post("/v1/databases/main/restore", {"as_of": token - 1}).json()
    assert restored["version"] > token
    assert organization.query("select 1", min_version=restored["version"])["version"] > token
    assert organization.post("/admin/reset").status_code == 200
    assert organization.query("select 1", min_version=restored["version"] + 1)["success"]
