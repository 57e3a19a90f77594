"""A server that is measured: its address, and requests to it as bytes, ready to send."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from qserver.benchmarks.wire import Address
from qserver.workloads.operations import Operation

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
LINES: Final = "application/x-ndjson"

_encode = msgspec.json.Encoder().encode


class Target:
    """The server, and the database there; without one it is the key's own."""

    def __init__(self, address: Address, key: str, database: str | None = None) -> None:
        self.address = address
        self.database = database
        self._constant = (
            f" HTTP/1.1\r\nHost: {address.authority}\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: "
        )

    def request(
        self,
        path: str,
        body: bytes = b"",
        *,
        method: str = "POST",
        content: str = JSON,
        accept: str = JSON,
        header: str = "",
    ) -> bytes:
        """`header` is one line more."""
        head = (
            f"{method} {self.address.prefix}{path}{self._constant}{content}\r\nAccept: {accept}\r\n"
            f"{header}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body

    def post(
        self,
        path: str,
        body: dict[str, Any],
        *,
        database: str | None = None,
        accept: str = JSON,
        header: str = "",
    ) -> bytes:
        """The name of a database is added to the body."""
        if database := database or self.database:
            body["database"] = database
        return self.request(path, _encode(body), accept=accept, header=header)

    def query(
        self,
        sql: str,
        *params: Any,
        database: str | None = None,
        accept: str = JSON,
        header: str = "",
    ) -> bytes:
        body = {"sql": sql, "params": params}
        return self.post("/v1/query", body, database=database, accept=accept, header=header)

    def operation(self, operation: Operation, header: str = "") -> bytes:
        """The request for one statement, or for several as a transaction."""
        statements = [{"sql": sql, "params": params} for sql, params in operation.statements]
        if len(statements) == 1:
            return self.post("/v1/query", statements[0], header=header)
        return self.post("/v1/transaction", {"statements": statements}, header=header)
