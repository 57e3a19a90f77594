"""The service as real processes: `qserver serve`, as one process and as several, and hypercorn.

A process gets a folder of its own, nothing of the caller's environment, and a port that was free a
moment ago. What it writes goes to a file, so that tests can look for what must not be in it. A
server of ours is forked (`tests.forked`), unless it is to begin with a command.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.forked import Forked
from tests.patience import eventually
from tests.web.contract import described

Kind = Literal["own", "processes", "hypercorn"]
KINDS: Final[tuple[Kind, ...]] = ("own", "processes", "hypercorn")
PROCESSES: Final = 3
"""So many share the databases of the kind `processes`."""

STOP_SECONDS_MAX: Final = 120.0
DRAIN_SECONDS: Final = 60
"""What a machine that is busy with other work needs for what is under way."""

PAUSE_SECONDS: Final = 0.02
"""Between two looks at something that another process does."""


@dataclass(frozen=True)
class Server:
    """One process. `folder` holds its data folder and its output."""

    kind: Kind
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | Forked
    secrets: set[str] = field(default_factory=set)
    """What was given to callers once and may be written nowhere."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    @cached_property
    def http(self) -> httpx.Client:
        # Some servers close connections that have rested for five seconds, perhaps just now.
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=1.0)
        return httpx.Client(base_url=self.url, timeout=240.0, trust_env=False, limits=limits)

    def wait_until_ready(self) -> None:
        eventually(self._is_ready, "it is not ready")

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"it ended:\n{self.output}"
        try:
            return self.http.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    def memory_bytes(self) -> int:
        """What it and its workers hold of the machine's memory."""
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True
        )
        rows = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        return sum(size * 1024 for pid, parent, size in rows if self.process.pid in (pid, parent))

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        self.http.close()  # some servers wait for connections that rest
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        try:
            return self.process.wait(STOP_SECONDS_MAX)
        finally:
            self.kill()

    def kill(self) -> None:
        """Whatever it is doing: nothing outlives its tests."""
        self.http.close()
        workers = self.workers()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # its workers too
        except ProcessLookupError:
            pass  # all of them have ended, or it has not got its own group yet
        self.process.kill()
        self.process.wait()
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        if workers:  # each has the lock of the folder until its end
            eventually(lambda: not _alive(workers), f"of {workers} some live on")

    def workers(self) -> list[int]:
        """The processes that it has forked, the oldest first."""
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        )
        rows = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        return sorted(pid for pid, parent in rows if parent == self.process.pid)


def _alive(processes: list[int]) -> bool:
    """Return whether any has not ended; one that nobody has asked for its exit code has."""
    command = ["ps", "-o", "stat=", "-p", ",".join(map(str, processes))]
    states = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return any(not state.startswith("Z") for state in states)


def launch(
    kind: Kind,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    grace_seconds: int = DRAIN_SECONDS,
    *,
    by_command: bool = False,
) -> Server:
    """Start a process with its data in `folder`, and do not wait for it."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[3]),  # this tree, also where another is installed
        "HOME": str(folder),
        "QSERVER_DATA_DIR": str(folder / "data"),
        "QSERVER_DRAIN_TIMEOUT_S": str(grace_seconds),
        **(settings or {}),
    }
    if kind == "processes":
        environment["QSERVER_PROCESSES"] = str(PROCESSES)
    # A platform says where to listen with PORT, and its Procfile is all that is run.
    environment.setdefault("PORT", str(port))
    environment.setdefault("QSERVER_HOST", "127.0.0.1")
    process: subprocess.Popen[bytes] | Forked
    with (folder / "output").open("ab") as output:
        if kind != "hypercorn" and not by_command:
            process = Forked(["serve"], folder, environment, output.fileno())
        else:
            process = subprocess.Popen(
                _command(kind, port, grace_seconds),
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    return Server(kind, folder, port, process)


def start(
    kind: Kind,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    grace_seconds: int = DRAIN_SECONDS,
) -> Server:
    """Start a process and wait until it takes requests."""
    server = launch(kind, folder, settings, grace_seconds)
    try:
        server.wait_until_ready()
    except BaseException:
        server.kill()
        raise
    return server


def _command(kind: Kind, port: int, grace_seconds: int) -> list[str]:
    if kind != "hypercorn":
        return [sys.executable, "-m", "qserver", "serve"]
    options = ["--worker-class", "trio", "--bind", f"127.0.0.1:{port}"]
    options += ["--graceful-timeout", str(grace_seconds)]
    return [sys.executable, "-m", "hypercorn", *options, "qserver.web:create_app()"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Client:
    """Calls a server with one token, and perhaps always the same database and host."""

    def __init__(
        self,
        server: Server,
        token: str | None,
        *,
        database: str | None = None,
        host: str | None = None,
    ) -> None:
        self.server = server
        self.token = token
        self.headers: dict[str, str] = {}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"
        if database is not None:
            self.headers["X-Database"] = database
        if host is not None:
            self.headers["Host"] = host

    def with_token(self, token: str | None) -> Client:
        return Client(self.server, token)

    def call(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        merged = {**self.headers, **(headers or {})}
        answer = self.server.http.request(method, path, headers=merged, **options)
        described.check(method, path, answer)
        return answer

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["json"] = body
        return self.call("POST", path, **options)

    def patch(self, path: str, body: Any) -> httpx.Response:
        return self.call("PATCH", path, json=body)

    def delete(self, path: str) -> httpx.Response:
        return self.call("DELETE", path)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all processes and all labels but those given."""
        answer = self.get("/metrics")
        assert answer.status_code == 200, answer.text
        return sum(
            sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    # --- what is asked for most

    def query(self, sql: str, params: Any = None, **fields: Any) -> dict[str, Any]:
        """Run a statement that must succeed."""
        answer = self.query_response(sql, params, **fields)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert found["success"] is True, found
        return found

    def query_response(self, sql: str, params: Any = None, **fields: Any) -> httpx.Response:
        body = {"sql": sql, **fields}
        if params is not None:
            body["params"] = params
        return self.post("/v1/query", body)

    def rows(self, sql: str, params: Any = None) -> list[list[Any]]:
        found: list[list[Any]] = self.query(sql, params, format="arrays")["rows"]
        return found

    def value(self, sql: str, params: Any = None) -> Any:
        ((value,),) = self.rows(sql, params)
        return value

    def transaction(self, *statements: Any, **fields: Any) -> dict[str, Any]:
        answer = self.post("/v1/transaction", {"statements": list(statements), **fields})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert found["success"] is True, found
        return found

    def new_key(self, **fields: Any) -> dict[str, Any]:
        answer = self.post("/v1/keys", {"name": "test", **fields})
        assert answer.status_code == 201, answer.text
        record: dict[str, Any] = answer.json()
        self.server.secrets.add(record["key"])
        return record

    def new_session(self, **fields: Any) -> dict[str, Any]:
        answer = self.post("/v1/session", fields or None)
        assert answer.status_code == 201, answer.text
        session: dict[str, Any] = answer.json()["session"]
        self.server.secrets.add(session["token"])
        return session

    def with_scopes(self, *scopes: str, **fields: Any) -> Client:
        return self.with_token(self.new_key(scopes=list(scopes), **fields)["key"])


def error_of(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The error of an answer, which must have this status and the one shape of all failures."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    results = {"results"} if "results" in body else set()
    assert body.keys() == {
        "success", "columns", "rows", "affected_rows", "timings", "error"
    } | results  # fmt: skip
    assert body["success"] is False
    assert (body["columns"], body["rows"], body["affected_rows"]) == ([], [], 0)
    assert body.get("results", []) == []
    assert body["timings"].keys() == {"total_us", "exec_us"}
    error: dict[str, Any] = body["error"]
    assert error.keys() - {"conflict", "row"} == {
        "code", "name", "message", "detail", "hint", "position", "statement", "table", "column",
        "constraint", "retryable", "request_id",
    }  # fmt: skip
    assert error["request_id"] == answer.headers["x-request-id"]
    if code is not None:
        assert error["code"] == code, error
    return error
