"""Ways to send a statement, each with an answer that can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from tests.http1.serving import Client
from tests.web.guards.kinds import CHANGE_OF_LOG, SCHEMA
from tests.web.served import ADMIN, Served, message

RESERVE: Final = ("create table ids as select 1", "drop table ids")
"""Numbers for rows without a key are reserved many at a time, which is a version."""
EVENTS: Final = {"Accept": "text/event-stream"}


@dataclass
class Told:
    """What an answer tells: its status, the code of its error, and how many rows it affected."""

    status: int
    code: str | None
    affected: int
    body: Any
    replayed: bool = False

    def __str__(self) -> str:
        return f"{self.status} {self.code} {self.affected}"


class Sender:
    """Sends requests of one key, and knows what has changed."""

    def __init__(self, served: Served, client: Client) -> None:
        self.served = served
        self.client = client
        self.token = ADMIN
        self.name: str | None = None
        """The name of the statement, for a key that can only run its own."""
        self.base = 0
        """The version at which everything is as it was."""

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> tuple[int, bytes, bool]:
        sent = message(method, path, body, token or self.token, headers)
        answer = await self.client.ask(sent, method)
        return answer.status, answer.body, answer.header("idempotency-replayed") == "true"

    async def version(self) -> int:
        _, body, _ = await self.ask("POST", "/v1/query", {"sql": "select 1"}, token=ADMIN)
        return int(json.loads(body)["version"])

    async def prepare(self) -> None:
        await self.ask("POST", "/v1/transaction", {"statements": SCHEMA}, token=ADMIN)
        for sql in RESERVE:
            await self.ask("POST", "/v1/query", {"sql": sql}, token=ADMIN)
        self.base = await self.version()

    async def restored(self) -> bool:
        """Whether something had changed; if so, it is as it was."""
        if await self.version() == self.base:
            return False
        address, body = "/v1/databases/main/restore", {"as_of": self.base}
        status, answer, _ = await self.ask("POST", address, body, token=ADMIN)
        assert status == 200, answer
        self.base = await self.version()
        return True

    async def stale(self) -> int:
        """A version since which `log` has changed, and nothing else has."""
        before = self.base
        await self.ask("POST", "/v1/query", {"sql": CHANGE_OF_LOG}, token=ADMIN)
        self.base = await self.version()
        return before

    # --- the ways ---

    def _asked(self, sql: str) -> dict[str, Any]:
        return {"sql": sql} if self.name is None else {"statement": self.name}

    async def query(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        return told(*await self.ask("POST", "/v1/query", {**self._asked(sql), **fields}, headers))

    async def text(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        address = f"/query?{urlencode(fields)}" if fields else "/query"
        plain = {"Content-Type": "text/plain", **headers}
        return told(*await self.ask("POST", address, sql.encode(), plain))

    async def transaction(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        body = {"statements": [sql if self.name is None else self._asked(sql)], **fields}
        return told(*await self.ask("POST", "/v1/transaction", body, headers))

    async def open(
        self,
        sql: str,
        headers: Mapping[str, str],
        opening: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Told:
        """A step of an open transaction, and its commit if the step succeeds."""
        status, body, _ = await self.ask("POST", "/v1/transaction/open", dict(opening or {}))
        if status != 201:
            return told(status, body)
        name = json.loads(body)["transaction"]["id"]
        body_of_step = {"sql": sql, "transaction": name, **fields}
        step = told(*await self.ask("POST", "/v1/query", body_of_step, headers))
        if step.code is None:
            ended = told(*await self.ask("POST", f"/v1/transaction/{name}/commit"))
            if ended.code is not None:
                return ended
        else:
            await self.ask("DELETE", f"/v1/transaction/{name}")
        return step

    async def stream(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        answer = await self.ask(
            "POST", "/v1/query", {**self._asked(sql), **fields}, {**EVENTS, **headers}
        )
        return streamed(*answer)

    async def lines(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        """CSV: it can express no error, so all of them come before the first byte."""
        accept = {"Accept": "text/csv", **headers}
        return lines_told(
            *await self.ask("POST", "/v1/query", {**self._asked(sql), **fields}, accept)
        )

    async def live(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        """The beginning of a live query, on a connection of its own that then ends."""
        body = {**self._asked(sql), "live": True, **fields}
        async with await self.served.client() as client:
            await client.send(message("POST", "/v1/query", body, self.token, headers))
            head = await client.until(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            if b"text/event-stream" not in head:
                client.buffer = head + b"\r\n\r\n" + client.buffer
                return told(status, (await client.answer("POST")).body)
            await client.until(b"event: ready")
            return Told(status, None, 0, None)

    async def get(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        address = "/v1/query?" + urlencode({**self._asked(sql), **fields})
        return lines_told(*await self.ask("GET", address, None, headers))

    async def get_lines(self, sql: str, headers: Mapping[str, str], **fields: Any) -> Told:
        return await self.get(sql, {"Accept": "text/csv", **headers}, **fields)


def told(status: int, body: bytes, replayed: bool = False) -> Told:
    answer = json.loads(body)
    code = None if answer["success"] else answer["error"]["code"]
    return Told(status, code, answer.get("affected_rows", 0), answer, replayed)


def lines_told(status: int, body: bytes, replayed: bool = False) -> Told:
    """CSV, or an answer that came instead; -1 rows are affected where the answer does not tell."""
    if body.startswith(b"{"):
        return told(status, body, replayed)
    return Told(status, None, -1, None, replayed)


def streamed(status: int, body: bytes, replayed: bool = False) -> Told:
    """The last event of a stream, or an answer that came instead of one."""
    if body.startswith(b"{"):
        return told(status, body, replayed)
    kind, data = body.strip().split(b"\n\n")[-1].split(b"\ndata: ")
    assert kind in (b"event: done", b"event: error"), body
    end = json.loads(data)
    if kind == b"event: error":
        return Told(status, end["code"] if "code" in end else end["error"]["code"], 0, end)
    return Told(status, None, end["affected_rows"], end, replayed)


WAYS: Final = (
    "query", "text", "transaction", "open", "stream", "lines", "live", "get", "get_lines",
)  # fmt: skip
