"""The real application behind our own server, in this process, with notes on how it answers.

A request is answered without a task as soon as its key, its database and its plan are known.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

import trio

from qserver.config import load
from qserver.control.logs import MemoryLogs
from qserver.engine.world import OrdinaryWorld
from qserver.http1 import (
    PENDING,
    Counters,
    IncomingBody,
    Request,
    Respond,
    Response,
    ServerOptions,
    Values,
    serve,
)
from qserver.http1 import Answer as Answered
from qserver.http1 import Client as Caller
from qserver.web.app import Application
from qserver.web.calls import Endpoint
from qserver.web.service.service import Service
from tests.http1.serving import Answer, Client
from tests.sql.databases import NOON

ADMIN = "svc_k_0123456789abcdef"
PATIENCE_SECONDS = 240.0
POINT = "select a, n from t where id = $1"
ROWS = 3000
STARTED: list[MemoryLogs] = []
USES_UNTIL_KNOWN = 9
"""So often a statement runs before its way counts: its plan is made, and found to suit."""


class Way(Enum):
    """How a request was answered."""

    AT_ONCE = "at once"
    PENDING = "pending"
    TASK = "in a task"


class Watched:
    """An endpoint, with notes on how it answers."""

    def __init__(self, endpoint: Endpoint, ways: list[Way]) -> None:
        self.endpoint = endpoint
        self.ways = ways

        self.takes_values = endpoint.takes_values

    def handle(
        self, body: bytes | IncomingBody, client: Caller, respond: Respond, values: Values
    ) -> Answered:
        answer = self.endpoint.handle(body, client, respond, values)
        if answer is PENDING:
            self.ways.append(Way.PENDING)
        else:
            self.ways.append(Way.AT_ONCE if isinstance(answer, Response) else Way.TASK)
        return answer


class WatchedApplication(Application):
    ways: list[Way]

    def endpoint(self, request: Request) -> Endpoint:
        endpoint: Any = Watched(super().endpoint(request), self.ways)
        return endpoint  # type: ignore[no-any-return]


@dataclass
class Served:
    address: tuple[str, int]
    service: Service
    counters: Counters
    clock: list[float]
    ways: list[Way] = field(default_factory=list)
    """How each request was answered."""
    reports: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    async def client(self) -> Client:
        return Client(await trio.open_tcp_stream(*self.address))

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """What the control plane is told, on a connection of its own."""
        async with await self.client() as client:
            answer = await client.ask(message(method, path, body), method)
        assert answer.status < 300, answer
        return json.loads(answer.body) if answer.body else None


@asynccontextmanager
async def serving(
    logs: MemoryLogs | None = None, /, traces: Any = None, **variables: str
) -> AsyncIterator[Served]:
    """The whole service, with a clock that can be put forward. Its logs may fail if they are
    given."""
    chosen = load(
        {
            "QSERVER_DATA_DIR": ":memory:",
            "QSERVER_API_KEY": ADMIN,
            "QSERVER_SHARDS": "1",
            "QSERVER_OPEN_SIGNUP": "1",
            **variables,
        }
    )

    def report(text: str, error: Exception) -> None:
        if logs is None:
            raise AssertionError(text) from error

    if logs is None:
        used, chance = await started_logs(), Random(2)  # it draws no id that is there
    else:
        used, chance = logs, Random(1)
    clock = [NOON]
    world = OrdinaryWorld(lambda: clock[0], Random(0), report)
    counters = Counters()
    service = Service(chosen, world, used, chance.randbytes, counters, traces=traces)
    app = WatchedApplication(service, service.running, "test-")
    served = Served(("", 0), service, counters, clock)
    app.ways = served.ways

    async def run(task_status: trio.TaskStatus[list[tuple[str, int]]]) -> None:
        await serve(
            app,
            ServerOptions(access_log=served.log.append),
            stop=stop,
            report=served.reports.append,
            counters=counters,
            task_status=task_status,
        )

    stop = trio.Event()
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            served.address = (await nursery.start(run))[0]
            yield served
            stop.set()
    assert served.reports == []


async def started_logs() -> MemoryLogs:
    """Logs as a first start leaves them: copied, because to make them takes as long as a test."""
    if not STARTED:
        logs = MemoryLogs()
        async with serving(logs):
            pass
        STARTED.append(logs)
    return deepcopy(STARTED[0])


def message(
    method: str,
    path: str,
    body: Any = None,
    token: str = ADMIN,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {token}",
        **(headers or {}),
        "Content-Length": str(len(data)),
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + data


async def opened_transaction(client: Client, **options: Any) -> str:
    """Open a transaction, and return its id."""
    answer = await client.ask(message("POST", "/v1/transaction/open", {}, **options))
    assert answer.status == 201, answer.body
    return str(json.loads(answer.body)["transaction"]["id"])


def query(sql: str, params: Any = None, *, token: str = ADMIN, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return message("POST", "/v1/query", {"sql": sql, "params": params}, token, named)


async def filled(client: Client) -> None:
    for sql in (
        "create table t (id int primary key, a text, n int, x numeric, d date, j jsonb, l int[])",
        f"insert into t select i, 'row ' || i, i % 7, i / 8.0, date '2024-01-01' + i,"
        f" json_build_object('i', i)::jsonb, array[i, i + 1] from generate_series(1, {ROWS}) s(i)",
    ):
        answer = await client.ask(query(sql, X_Request_Id="setup"))
        assert answer.status == 200, answer.body


async def at_once(served: Served, client: Client, data: bytes) -> Answer:
    """The answer of a request that needs no task, at the latest after some of its kind."""
    for _ in range(USES_UNTIL_KNOWN):
        await client.ask(data)
    answer = await client.ask(data)
    assert served.ways[-1] is not Way.TASK
    return answer


def comparable(answer: Answer) -> tuple[int, list[tuple[str, str]], Any]:
    """Without what is never twice the same: times, ids, and the length that they make."""
    own = {"date", "x-request-id", "content-length"}
    headers = sorted(each for each in answer.headers if each[0] not in own)
    body = json.loads(answer.body)
    times = {"total_us", "exec_us"}
    for result in body.get("results", []):
        assert result.pop("timings").keys() == times
    if body["success"] and "results" in body:
        times |= {"commit_us"}
    assert body.pop("timings").keys() == times
    if "error" in body:
        assert body["error"].pop("request_id") == answer.header("x-request-id")
    return answer.status, headers, body


def code_of(answer: Answer) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["error"]["code"]
