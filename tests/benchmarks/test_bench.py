"""`qserver bench` on the fake server: it counts, reports, and cleans up after itself."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from qserver.benchmarks import workloads
from qserver.benchmarks.report import Measured, report
from qserver.benchmarks.target import Target
from qserver.benchmarks.wire import Address, Connection
from qserver.benchmarks.workloads import ACCOUNTS, BULK_ROWS, Workload, workload_of
from qserver.cli import main
from qserver.cli.command_line import WORKLOADS
from qserver.workloads.operations import Tables
from tests.client.fake_server import (
    KEY,
    Answer,
    FakeServer,
    Received,
    changed,
    error,
    result,
    streamed,
)


def answering(received: Received) -> Answer:
    """What a server says to the statements of the bench."""
    sql: str = received.body["sql"]
    if received.headers["accept"] == "text/event-stream":
        return streamed(["id"], ["integer"], [[1], [2]])
    return (
        changed(1) if sql.startswith(("CREATE", "INSERT", "DROP")) else Answer(result([], [], []))
    )


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture(autouse=True)
def stage(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSERVER_URL", server.url)
    monkeypatch.setenv("QSERVER_API_KEY", KEY)
    monkeypatch.setattr(workloads, "LIVE_QUERIES", 0)  # the fake server ends every stream
    monkeypatch.setattr(workloads, "READERS_OF_CHANGES", 0)
    server.route("POST", "/v1/query", answering)
    server.route("POST", "/v1/transaction", Answer({"success": True, "results": []}))
    server.route("POST", "/v1/databases", _made)
    respond = server.respond

    def more(received: Received) -> Answer:
        if received.path == "/v1/transaction/open":
            return Answer({"success": True, "transaction": {"id": "txn_0_1"}}, 201)
        if received.path.startswith(("/v1/tables/", "/v1/transaction/")):
            return changed(0)
        return respond(received)

    server.respond = more  # type: ignore[method-assign]


def _made(received: Received) -> Answer:
    return Answer({"success": True, "name": received.body["name"]}, 201)


def workload(name: str) -> Workload:
    target = Target(Address.of("http://h:1/100%25"), "svc_k_a", "bench_1")
    return workload_of(name, target, Tables("bench_1", ACCOUNTS))


def run(*arguments: str) -> int:
    return main(["bench", "--seconds", "0.1", "--clients", "2", *arguments])


@pytest.mark.long
def test_every_workload_is_measured_and_the_database_removed(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    deleted: list[str] = []
    respond = server.respond

    def watched(received: Received) -> Answer:
        if received.method == "DELETE":
            deleted.append(received.path)
            return Answer(status=204)
        return respond(received)

    server.respond = watched  # type: ignore[method-assign]
    assert run("--json") == 0
    records = json.loads(capsys.readouterr().out)
    assert [each["workload"] for each in records] == list(WORKLOADS)
    for each in records:
        assert each["requests"] > 0
        assert each["errors"] == {}
        assert 0 < each["p50_ms"] <= each["p95_ms"] <= each["p99_ms"] <= each["max_ms"]
    (made,) = (each.body["name"] for each in server.requests if each.path == "/v1/databases")
    assert made.startswith("bench_")
    assert deleted == [f"/v1/databases/{made}"]
    bodies = [each.body for each in server.requests if isinstance(each.body, dict)]
    assert {body["database"] for body in bodies if "sql" in body} == {made}


def test_without_the_scope_for_databases_tables_are_made_and_dropped(server: FakeServer) -> None:
    refused = error("QS005", "insufficient_scope", "no", status=403)
    server.route("POST", "/v1/databases", refused)
    assert run("--workload", "point") == 0
    texts = server.statements()
    made = [text.split()[2] for text in texts if text.startswith("CREATE TABLE")]
    dropped = [text.split()[4] for text in texts if text.startswith("DROP TABLE IF EXISTS")]
    assert made == dropped
    assert len(made) == 2


@pytest.mark.half
def test_the_cpu_time_of_the_server_is_divided_among_the_requests(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = itertools.count(7)

    def page(_: Received) -> Answer:
        return Answer(f"# HELP x\nprocess_cpu_seconds_total {next(shown)}.5\nx 1\n".encode())

    server.route("GET", "/metrics", page)
    assert run("--workload", "point", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["server_cpu_us"] == pytest.approx(1e6 / record["requests"], abs=0.1)
    shown = itertools.count(100, -1)  # a server that was restarted
    assert run("--workload", "point", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["server_cpu_us"] is None


def test_with_a_rate_requests_are_sent_when_they_are_due(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.perf_counter()
    assert run("--workload", "point", "--rate", "40", "--seconds", "0.5", "--json") == 0
    passed = time.perf_counter() - began
    (record,) = json.loads(capsys.readouterr().out)
    asked = sum(text.startswith("SELECT") for text in server.statements())
    assert 1 <= record["requests"] <= asked <= 40 * passed + 1


def test_nobody_waits_for_what_is_due_after_the_end(server: FakeServer) -> None:
    run("--workload", "point", "--rate", "1", "--clients", "100")
    assert len(server.requests) < 100, "the last would be due after 100 s"


def test_a_request_that_is_late_counts_from_when_it_was_due(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(received: Received) -> Answer:
        if received.body["sql"].startswith("SELECT"):
            time.sleep(0.05)
        return answering(received)

    server.route("POST", "/v1/query", slow)
    assert run("--workload", "point", "--rate", "1000", "--seconds", "0.5", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["max_ms"] > 200, "two clients answer 40 of the 1000 that are due each second"


@pytest.mark.parametrize("rate", ["0", "-1", "many", "1e3", "100001"])
def test_a_rate_that_makes_no_sense_is_refused(
    rate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(f"--rate={rate}")
    assert "is not a number of requests a second from 1 to 100000" in capsys.readouterr().err


def test_a_key_that_may_not_see_the_metrics_measures_the_rest(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.route("GET", "/metrics", error("QS005", "insufficient_scope", "no", status=403))
    assert run("--workload", "point") == 0
    heading, _, line, *_ = capsys.readouterr().out.splitlines()
    cells = dict(zip(heading.split("|"), line.split("|"), strict=True))
    assert cells[" server µs "].strip() == "" and cells[" p50 ms "].strip()


def test_errors_are_counted_by_code_and_no_success_is_a_failure(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.route("DELETE", "/v1/databases", Answer(status=204))

    def limited(received: Received) -> Answer:
        if received.body["sql"].startswith("SELECT"):
            return error("QS012", "rate_limited", "too many", status=429)
        return answering(received)

    server.route("POST", "/v1/query", limited)
    refused = error("QS005", "insufficient_scope", "no", status=403)
    server.route("POST", "/v1/databases", refused)
    assert run("--workload", "point") == 1
    assert "× HTTP 429 QS012" in capsys.readouterr().out


@pytest.mark.parametrize("name", WORKLOADS)
def test_requests_are_whole_http(name: str) -> None:
    requests = workload(name).requests(random.Random(1), Connection(Address.of("http://h:1")))
    seen: list[Any] = []
    for _ in range(3):
        head, _, body = next(requests).partition(b"\r\n\r\n")
        first, *headers = head.decode().split("\r\n")
        assert first.startswith("POST /100%25/v1/")
        assert f"Content-Length: {len(body)}" in headers
        assert "Authorization: Bearer svc_k_a" in headers
        if name == "bulk":
            assert first.endswith("/bench_1_entries/rows?database=bench_1 HTTP/1.1")
            seen += [json.loads(line)["id"] for line in body.splitlines()]
            assert abs(len(body) / BULK_ROWS - 100) < 3
            continue
        seen.append(json.loads(body))
        assert seen[-1]["database"] == "bench_1"
    if name == "bulk":
        assert sorted(seen) == list(range(-3 * BULK_ROWS, 0))
    if name in ("insert", "once"):
        assert [each["params"] for each in seen] == [[1], [2], [3]]


def test_an_open_transaction_is_opened_used_twice_and_committed() -> None:
    connection = Connection(Address.of("http://h:1"))
    opening = workload("open")
    requests = opening.requests(random.Random(1), connection)
    assert next(requests).startswith(b"POST /100%25/v1/transaction/open HTTP/1.1\r\n")
    connection.head = b'{"success":true,"transaction":{"id":"txn_0a_1b","database":"bench_1"'
    read, write, commit, again = (next(requests) for _ in range(4))
    for request, verb in ((read, b"SELECT"), (write, b"UPDATE")):
        assert b"\r\nX-Transaction: txn_0a_1b\r\n" in request and verb in request
    assert commit.startswith(b"POST /100%25/v1/transaction/txn_0a_1b/commit HTTP/1.1\r\n")
    assert commit.endswith(b"Content-Length: 0\r\n\r\n") and b"/open " in again
    connection.head = b'{"success":false}'
    assert b"/open " in next(requests), "one that was not opened is not used"
    histograms = [Measured(workload("pair")), Measured(opening)]
    for each in histograms:
        each.seconds = 1.0
        for _ in range(1000):
            each.add(0.001)
    assert "open: 0.25 of the rate of pair\n" in report(histograms)
    histograms[0].set_cpu(3.0, 3.2)
    histograms[1].set_cpu(3.2, 3.3)
    assert "open: 0.25 of the rate of pair, 2.00 times its CPU time\n" in report(histograms)


def test_an_insert_with_a_key_names_each_once() -> None:
    once = workload("once")
    requests = once.requests(random.Random(1), Connection(Address.of("http://h:1")))
    names = [
        re.findall(rb"\r\nIdempotency-Key: ([^\r]+)\r\nContent-Length: ", next(requests))
        for _ in range(3)
    ]
    assert names == [[b"bench_1 1"], [b"bench_1 2"], [b"bench_1 3"]]


@pytest.mark.half
def test_streams_are_followed_beside_the_requests_and_compared_with_none(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "LIVE_QUERIES", 3)
    monkeypatch.setattr(workloads, "READERS_OF_CHANGES", 2)
    arguments = [f"--workload={name}" for name in ("update", "live", "feed")]
    assert run(*arguments) == 0
    live = [each for each in server.requests if each.path == "/v1/query" and each.body.get("live")]
    assert sorted(each.body["params"] for each in live) == [[0], [1], [2]]
    feeds = [each for each in server.requests if each.path.startswith("/v1/changes?since=")]
    assert len(feeds) == 2
    out = capsys.readouterr().out
    assert re.search(r"^live: \d+\.\d\d of the rate of update$", out, re.MULTILINE)
    assert re.search(r"^feed: \d+\.\d\d of the rate of update$", out, re.MULTILINE)


def test_the_report_is_a_table_with_errors_below() -> None:
    histogram = Measured(replace(workload("bulk"), rows=10))
    histogram.seconds = 2.0
    for _ in range(3000):
        histogram.add(0.001)
    histogram.errors["HTTP 503"] += 2
    lines = report([histogram]).splitlines()
    assert lines[0].split(" | ")[:3] == [" workload", "requests/s", "rows/s"]
    assert lines[2].startswith(" bulk     |      1,500 | 15,000 |   1.00 |")
    assert lines[3] == "bulk: 2 × HTTP 503"
