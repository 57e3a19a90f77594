"""A small HTTP server for tests of what calls one: real sockets, answers in the API's shapes.

    with FakeServer() as server:
        server.answer("SELECT 1", rows(["one"], ["integer"], [[1]]))
        Client(server.url, KEY).query("SELECT 1")
        assert server.requests[0].body == {"sql": "SELECT 1", …}

Answers are by route, and for statements by their text. An answer whose body is a list of pieces is
sent piece by piece, each as one chunk; a function among the pieces is called when its turn comes.

A client may hang up at any moment: some tests are about that. Whatever else goes wrong in a handler
is raised when the server is left.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "svc_k_0123456789abcdef"

Piece = bytes | Callable[[], None]


@dataclass(frozen=True)
class Received:
    """One request, as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """What the server says; `body` is JSON, bytes, or pieces of a stream."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Answering = Answer | Callable[[Received], Answer]


class _Server(ThreadingHTTPServer):
    """Keeps what handlers raise, instead of printing it in the midst of whatever test runs then."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.failures: list[Exception] = []

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            self.failures.append(error)


class FakeServer:
    """Knows the key `KEY` and what it was told to answer; everything else is an error."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self._statements: dict[str, Answering] = {}
        self._routes: dict[tuple[str, str], Answering] = {}
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self._server.failures:
            raise ExceptionGroup("while the server answered", self._server.failures)

    def answer(self, sql: str, answering: Answering) -> None:
        self._statements[sql] = answering

    def route(self, method: str, path: str, answering: Answering) -> None:
        self._routes[method, path] = answering

    def statements(self) -> list[str]:
        """The texts of the queries that came in, in order."""
        return [each.body["sql"] for each in self.requests if each.path == "/v1/query"]

    def respond(self, received: Received) -> Answer:
        if received.headers.get("authorization") != f"Bearer {KEY}":
            return error("QS002", "not_authorized", "the key is not good", status=401)
        self.requests.append(received)
        answering: Answering | None = self._routes.get((received.method, received.path))
        if answering is None and received.path == "/v1/query":
            text = received.body.get("sql") or received.body["statement"]
            answering = self._statements.get(text, rows([], [], []))
        if answering is None:
            return error("QS006", "not_found", f"there is no {received.path}", status=404)
        return answering(received) if callable(answering) else answering

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _do(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                content = self.rfile.read(length)
                headers = {name.lower(): value for name, value in self.headers.items()}
                lines = self.headers.get("Content-Type") == "application/x-ndjson"
                body = content.decode() if lines else json.loads(content) if content else None
                _send(self, fake.respond(Received(self.command, self.path, headers, body)))

            do_GET = do_POST = do_DELETE = do_PATCH = _do

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def rows(
    columns: list[str], types: list[str], values: list[list[Any]], affected_rows: int = 0
) -> Answer:
    return Answer(result(columns, types, values, affected_rows))


def result(
    columns: list[str], types: list[str], values: list[list[Any]], affected_rows: int = 0
) -> dict[str, Any]:
    return {
        "success": True,
        "columns": columns,
        "rows": values,
        "affected_rows": affected_rows,
        "timings": {"total_us": 20, "exec_us": 10},
        "types": types,
        "version": 17,
        "retries": 0,
    }


def changed(affected_rows: int) -> Answer:
    return rows([], [], [], affected_rows)


def error(code: str, name: str, message: str, status: int = 200, **fields: Any) -> Answer:
    body = {
        "success": False,
        "columns": [],
        "rows": [],
        "affected_rows": 0,
        "timings": {"total_us": 20, "exec_us": 10},
        "error": {"code": code, "name": name, "message": message, **fields},
    }
    return Answer(body, status)


def event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def stream(*pieces: Piece) -> Answer:
    return Answer(list(pieces), headers={"Content-Type": "text/event-stream"})


def streamed(columns: list[str], types: list[str], values: list[list[Any]]) -> Answer:
    """A whole stream: its columns, each row on its own, and `done`."""
    events: list[Piece] = [event("columns", {"columns": columns, "types": types, "version": 17})]
    events += [event("row", dict(zip(columns, row, strict=True))) for row in values]
    events += [
        event(
            "done", {"success": True, "row_count": len(values), "affected_rows": 0, "version": 17}
        )
    ]
    return stream(*events)


def _send(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    try:
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        if isinstance(answer.body, list):
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for piece in answer.body:
                if callable(piece):
                    piece()
                else:
                    handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            handler.wfile.write(b"0\r\n\r\n")
            return
        content = answer.body if isinstance(answer.body, bytes) else b""
        if isinstance(answer.body, dict):
            content = json.dumps(answer.body).encode()
        if answer.status != 204:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
    except OSError:
        handler.close_connection = True
