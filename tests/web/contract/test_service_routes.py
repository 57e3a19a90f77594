"""Section 7: what the service tells of itself, and how it tests itself."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from qserver import __version__
from qserver.limits import BENCH_COST_REQUESTS, SELF_TEST_COST_REQUESTS
from qserver.web.description.catalogue import ROUTES
from tests.web.contract.connections import OpenStream
from tests.web.contract.servers import Client, error_of


def test_the_banner_lists_every_route(anonymous: Client) -> None:
    banner = anonymous.get("/").json()
    assert banner.keys() == {"service", "version", "api", "routes", "docs", "openapi"}
    assert (banner["service"], banner["version"], banner["api"]) == ("qserver", __version__, ["v1"])
    assert (banner["docs"], banner["openapi"]) == ("/docs", "/openapi.json")
    assert [(each["method"], each["path"]) for each in banner["routes"]] == [
        (route.method, route.path) for route in ROUTES
    ]
    assert all(each.keys() == {"method", "path", "purpose"} for each in banner["routes"])


def test_tables_are_described_with_columns_keys_indexes_and_rows(fresh: Client) -> None:
    fresh.query("create table parents (id int primary key, name text not null default 'x')")
    fresh.query("create table children (a int, b int references parents (id), primary key (a, b))")
    fresh.query("create unique index by_name on parents (name)")
    fresh.query("insert into parents values (1)")
    found = fresh.get("/tables").json()
    assert found.keys() == {"success", "database", "version", "tables"}
    assert found["database"] == fresh.headers["X-Database"]
    assert found["version"] == fresh.query("select 1")["version"]
    children, parents = found["tables"]
    expected = {"name", "columns", "primary_key", "indexes", "foreign_keys", "row_count"}
    assert children.keys() == parents.keys() == expected
    assert parents["columns"] == [
        {"name": "id", "type": "integer", "nullable": False, "default": None, "primary_key": True},
        {"name": "name", "type": "text", "nullable": False, "default": "'x'", "primary_key": False},
    ]
    assert (parents["primary_key"], parents["row_count"]) == (["id"], 1)
    assert {"name": "by_name", "columns": ["name"], "unique": True} in parents["indexes"]
    assert children["primary_key"] == ["a", "b"]
    (foreign,) = children["foreign_keys"]
    assert (foreign["columns"], foreign["references"]) == (["b"], "parents")
    assert foreign["referenced_columns"] == ["id"]


def test_tables_of_a_database_may_be_asked_for_by_name(fresh: Client) -> None:
    name = fresh.headers["X-Database"]
    found = fresh.with_token(fresh.token).get(f"/tables?database={name}").json()
    assert (found["database"], found["tables"]) == (name, [])
    error_of(fresh.get("/tables?db=x"), 400, "QS001")


def test_health_has_a_check_for_each_part_that_can_fail(anonymous: Client) -> None:
    answer = anonymous.get("/health")
    found = answer.json()
    assert answer.status_code == 200
    assert found.keys() == {"success", "status", "version", "uptime_s", "checks"}
    assert (found["success"], found["status"], found["version"]) == (True, "ok", __version__)
    assert found["uptime_s"] > 0
    assert set(found["checks"].values()) == {"ok"} and len(found["checks"]) >= 2


def test_ready_is_200_when_requests_are_taken(anonymous: Client) -> None:
    answer = anonymous.get("/ready")
    assert answer.status_code == 200 and answer.json()["success"] is True
    assert "retry-after" not in answer.headers


def test_metrics_are_in_the_text_format_of_prometheus(admin: Client) -> None:
    admin.value("select 1")
    answer = admin.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert any(line.startswith("# TYPE qserver_requests") for line in lines)
    assert admin.metric("qserver_requests_total", route="/v1/query", status="200") > 0


def counted_errors(admin: Client) -> Counter[str]:
    codes = set(re.findall(r'^qserver_errors_total{code="(\w+)"', admin.get("/metrics").text, re.M))
    return Counter({each: int(admin.metric("qserver_errors_total", code=each)) for each in codes})


@pytest.mark.long
def test_errors_are_counted_by_code_whatever_their_form(admin: Client, fresh: Client) -> None:
    before = counted_errors(admin)
    fresh.query("create table t (a int primary key)")
    for sql in ("select nonsense", "selec 1", "insert into t values (1), (1)"):
        assert fresh.post("/v1/query", {"sql": sql}).json()["success"] is False
    with OpenStream(
        fresh, "/*+ STREAM */ select 1 / (10 - i) from generate_series(1, 20) s(i)"
    ) as s:
        assert [each.kind for each in s.events()][-1] == "error"
    assert fresh.post("/v1/query", {}).status_code == 400
    assert fresh.get("/v1/databases/none").status_code == 404
    found = counted_errors(admin) - before
    assert found == Counter(["42703", "42601", "23505", "22012", "QS001", "QS006"])


def test_metrics_of_the_process_are_there(admin: Client) -> None:
    assert admin.metric("process_cpu_seconds_total") > 0


def test_metrics_show_an_organization_nothing_but_its_own_databases(
    admin: Client, organization: Client, fresh: Client
) -> None:
    fresh.query("create table t (a int)")
    organization.value("select 1")
    own = organization.get("/v1/databases/main").json()["id"]
    record = admin.get(f"/v1/databases/{fresh.headers['X-Database']}").json()
    limited = admin.with_scopes("admin", databases=[record["name"]])
    for client, database in ((organization, own), (limited, record["id"])):
        text = client.get("/metrics").text
        labels = set(re.findall(r'database="([^"]*)"', text))
        assert labels == {database}, labels
        for word in (
            "qserver_requests",
            "qserver_http_",
            "uptime",
            "control",
            "rate_limited",
            "errors",
            "process",
        ):
            assert word not in text, word


def test_what_tests_the_service_itself_costs_an_organization_its_rate(organization: Client) -> None:
    def left() -> int:
        header = organization.get("/v1/organization").headers["ratelimit"]
        return int(header.split("r=")[1].split(";")[0])

    before = left()
    for path, cost in (
        ("/capabilities/select", SELF_TEST_COST_REQUESTS),
        ("/storage/test", SELF_TEST_COST_REQUESTS),
        ("/bench?duration_ms=10&clients=1", BENCH_COST_REQUESTS),
    ):
        assert organization.get(path).status_code in (200, 404, 409)
        assert left() == before - cost - 1
        before -= cost + 1
    error = error_of(organization.get("/bench?duration_ms=10&clients=1"), 429)
    assert error["detail"] == f"This one counts as {BENCH_COST_REQUESTS}."


def test_bench_runs_for_real_and_reports_what_it_measured(admin: Client) -> None:
    answer = admin.get("/bench?duration_ms=100&clients=2&seed=7")
    assert answer.status_code == 200, answer.text
    text = answer.text
    assert answer.json()["success"] is True
    for word in ("operations", "per_second", "p50", "p95", "p99", "commits", "conflicts"):
        assert word in text, text
    assert "retries" in text
    assert answer.elapsed.total_seconds() < 60


@pytest.mark.parametrize(
    "query",
    ["duration_ms=0", "duration_ms=5001", "clients=0", "clients=x", "workload=unheard", "speed=9"],
)
def test_a_bench_that_makes_no_sense_is_400(admin: Client, query: str) -> None:
    error_of(admin.get(f"/bench?{query}"), 400, "QS001")


def test_only_one_bench_runs_at_a_time(admin: Client) -> None:
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(admin.get, "/bench?duration_ms=300&clients=1") for _ in range(4)]
        answers = [call.result() for call in calls]
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]
    for each in answers:
        if each.status_code == 409:
            error_of(each, 409)


def test_the_feature_matrix_lists_features_limits_statements_types_and_functions(
    anonymous: Client,
) -> None:
    found = anonymous.get("/capabilities").json()
    assert found.keys() >= {"success", "capabilities", "limits", "statements", "types", "functions"}
    for each in found["capabilities"]:
        assert each.keys() >= {"name", "category", "supported", "description", "probe"}
    names = [each["name"] for each in found["capabilities"]]
    assert len(names) == len(set(names)) > 20
    assert any(each["supported"] is False for each in found["capabilities"])
    assert found["limits"] and found["statements"] and found["types"] and found["functions"]


def supported(client: Client) -> list[str]:
    matrix: list[dict[str, Any]] = client.get("/capabilities").json()["capabilities"]
    return [each["name"] for each in matrix if each["supported"]]


def test_a_probe_runs_for_real_and_shows_its_steps(admin: Client) -> None:
    for name in supported(admin)[:3]:
        answer = admin.get(f"/capabilities/{name}")
        found = answer.json()
        assert answer.status_code == 200
        assert found.keys() >= {"success", "name", "status", "duration_us", "steps"}
        assert (found["success"], found["name"], found["status"]) == (True, name, "pass"), found
        assert found["duration_us"] > 0 and found["steps"]
        assert all(each.keys() >= {"sql", "ok", "detail"} for each in found["steps"])


def test_an_unknown_probe_is_404_with_the_known_names(admin: Client) -> None:
    error = error_of(admin.get("/capabilities/flying"), 404, "QS006")
    known = supported(admin)
    assert all(name in str(error) for name in known[:5])


def test_the_storage_is_tested_by_writing_reading_back_and_deleting(admin: Client) -> None:
    answer = admin.get("/storage/test")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["success"] is True
    text = answer.text
    for word in ("write", "sync", "read", "delete", "bytes"):
        assert word in text, text


def test_a_reset_shows_in_changes_and_versions(organization: Client) -> None:
    since = organization.query("create table t (id integer primary key)")["version"]
    answer = organization.post("/admin/reset", headers={"X-Request-Id": "wiped"})
    assert answer.status_code == 200, answer.text
    (told,) = organization.get(f"/v1/changes?since={since}").json()["changes"]
    assert (told["op"], told["table"], told["statement"]) == ("schema", "t", "-- reset")
    (version,) = organization.get("/v1/databases/main/versions?limit=1").json()["versions"]
    assert (version["tables"], version["request_id"]) == (["t"], "wiped")


def test_a_reset_wipes_the_tables_of_all_databases_and_leaves_keys_and_sessions(
    organization: Client,
) -> None:
    session = organization.with_token(organization.new_session()["token"])
    organization.post("/v1/databases", {"name": "second"})
    for name in ("main", "second"):
        organization.query("create table t (a int)", database=name)
        organization.query("insert into t values (1), (2)", database=name)
    organization.query("create table other (a int)")
    answer = organization.post("/admin/reset")
    assert answer.status_code == 200
    assert answer.json() == {
        "success": True,
        "databases": 2,
        "tables_dropped": 3,
        "rows_deleted": 4,
    }
    for name in ("main", "second"):
        assert session.get(f"/tables?database={name}").json()["tables"] == []
    again = organization.post("/admin/reset").json()
    assert (again["tables_dropped"], again["rows_deleted"]) == (0, 0)


def test_the_interface_is_described_for_programs_and_for_people(anonymous: Client) -> None:
    document = anonymous.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    described = {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
        if method in ("get", "post", "patch", "delete")
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    page = anonymous.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "<html" in page.text.lower()


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/capabilities", "/docs", "/client.js"])
def test_head_is_get_without_the_body(anonymous: Client, path: str) -> None:
    answer = anonymous.call("HEAD", path)
    assert answer.status_code == 200 and answer.content == b""
