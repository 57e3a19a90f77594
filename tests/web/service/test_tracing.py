"""Traces: spans of requests, statements, commits and the log, as the real SDK exports them."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import trio

from qserver.config import load
from qserver.errors import InvalidSetting
from qserver.web.service.create import new_traces
from tests.cli.real_server import KEY, real_server
from tests.web.served import message, query, serving

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from qserver.web.service.tracing import Traces

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GIVEN = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
SECRET = "hush-hush"


class Exported:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.traces = Traces(provider)

    def taken(self) -> list[ReadableSpan]:
        found = [*self.exporter.get_finished_spans()]
        self.exporter.clear()
        return found


def by_name(spans: list[ReadableSpan]) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


async def test_a_write_has_spans_of_request_statement_commit_and_log() -> None:
    exported = Exported()
    async with serving(traces=exported.traces) as opened:
        table = "CREATE TABLE t (a int PRIMARY KEY, b text)"
        await opened.admin("POST", "/v1/query", {"sql": table})
        async with await opened.client() as client:
            for number in range(12):  # cold, and by every fast path
                exported.taken()
                sql = f"INSERT INTO t VALUES ({number}, '{SECRET}')"
                answer = await client.ask(query(sql, **GIVEN))
                assert answer.status == 200
                await trio.testing.wait_all_tasks_blocked()
                spans = by_name(exported.taken())
                assert spans.keys() == {"POST /v1/query", "statement", "commit", "log append"}
                root = spans["POST /v1/query"]
                assert root.parent is not None and f"{root.parent.span_id:016x}" == PARENT
                for span in spans.values():
                    assert f"{span.context.trace_id:032x}" == TRACE
                    if span is not root:
                        assert span.parent is not None
                        assert span.parent.span_id == root.context.span_id
                text = spans["statement"].attributes["db.query.text"]  # type: ignore[index]
                assert text == "INSERT INTO t VALUES ($1, $2)"
                told = answer.header("traceparent")
                assert told == f"00-{TRACE}-{root.context.span_id:016x}-01"
                assert SECRET not in str([span.to_json() for span in spans.values()])


async def test_reads_streams_routes_and_errors_are_traced() -> None:
    exported = Exported()
    async with serving(traces=exported.traces) as opened:
        async with await opened.client() as client:

            async def spans_of(sent: bytes, method: str = "POST") -> list[str]:
                exported.taken()
                await client.ask(sent, method)
                await trio.testing.wait_all_tasks_blocked()
                return sorted(span.name for span in exported.taken())

            for _ in range(12):
                assert await spans_of(query("SELECT 1")) == ["POST /v1/query", "statement"]
            stream = query("/*+ STREAM */ SELECT 1")
            assert await spans_of(stream) == ["POST /v1/query", "statement"]
            assert await spans_of(message("GET", "/v1/databases"), "GET") == ["GET /v1/databases"]
            by_url = message("GET", "/v1/query?sql=SELECT%201")
            assert await spans_of(by_url, "GET") == ["GET /v1/query", "statement"]
            assert await spans_of(query("SELECT 1 / 0")) == ["POST /v1/query"]
            assert await spans_of(query("SELECT 1", token="svc_k_none")) == ["POST /v1/query"]
            exported.taken()
            await client.ask(query("SELECT 1"))
            (root,) = [span for span in exported.taken() if span.name != "statement"]
            assert root.parent is None
            assert root.attributes["http.response.status_code"] == 200  # type: ignore[index]


async def test_without_the_setting_nothing_is_traced_and_no_header_is_sent() -> None:
    async with serving() as opened:
        assert opened.service.traces is None
        async with await opened.client() as client:
            answer = await client.ask(query("SELECT 1", **GIVEN))
        assert all(name.lower() != "traceparent" for name, _ in answer.headers)


def test_missing_packages_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "qserver.web.service.tracing", None)
    settings = load({"QSERVER_TRACES": "http://localhost:4318/v1/traces"})
    with pytest.raises(InvalidSetting, match="packages that are not installed"):
        new_traces(settings, 0)
    assert new_traces(load({}), 0) is None


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """A receiver of OTLP over HTTP, and the spans that it has got."""
    spans: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", spans
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.long
def test_a_real_server_sends_its_spans_before_it_ends(tmp_path: Path) -> None:
    with collector() as (url, spans):
        with real_server(tmp_path / "data", {"QSERVER_TRACES": url}) as address:
            body = json.dumps({"sql": "CREATE TABLE t (a int)"}).encode()
            headers = {"Authorization": f"Bearer {KEY}", **GIVEN}
            with urlopen(Request(f"{address}/v1/query", body, headers)) as answer:
                assert answer.headers["traceparent"].startswith(f"00-{TRACE}-")
        mine = {span.name for span in spans if span.trace_id.hex() == TRACE}
        assert mine == {"POST /v1/query", "statement", "commit", "log append"}
