"""The server's own answers: to a request that it refuses, and for an application that failed.

The body is the JSON error object of the service, so a client needs one way to read errors. `code`
is PostgreSQL's where one fits.

    400 malformed            408 too slow           413 414 431 too large
    417 501 505 not spoken   500 a bug              503 too many connections, or stopping
"""

from __future__ import annotations

import secrets
from http import HTTPStatus

import msgspec

from qserver.http1.application import Response
from qserver.http1.headers import Headers

JSON = Headers([(b"content-type", b"application/json")])
COME_AGAIN = Headers([*JSON.pairs, (b"retry-after", b"1")])

CODES: dict[int, tuple[str, str]] = {
    400: ("08P01", "protocol_violation"),
    408: ("57P05", "idle_session_timeout"),
    413: ("QS009", "request_too_large"),
    414: ("QS009", "request_too_large"),
    417: ("0A000", "feature_not_supported"),
    431: ("QS009", "request_too_large"),
    500: ("XX000", "internal_error"),
    501: ("0A000", "feature_not_supported"),
    503: ("53300", "too_many_connections"),
    505: ("0A000", "feature_not_supported"),
}

STOPPING = ("57P03", "cannot_connect_now")


class Refusal(Exception):
    """Raised for a request that the server answers itself; the connection then closes."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str | None = None,
        code: tuple[str, str] | None = None,
    ) -> None:
        """`code` is SQL's code of the error with its name, if not the usual one of the status."""
        super().__init__(message)
        assert status in CODES, f"no code for {status}"
        self.code = code or CODES[status]
        self.status = status
        self.message = message
        self.hint = hint

    def __repr__(self) -> str:
        return f"<{self.status} {HTTPStatus(self.status).phrase}: {self.message}>"


def new_request_id() -> str:
    return secrets.token_hex(12)


def refusal_response(refusal: Refusal, request_id: str, total_us: int) -> tuple[Response, bytes]:
    """The answer and its body: the error object of the service, as JSON."""
    code, name = refusal.code
    body = msgspec.json.encode(
        {
            "success": False,
            "columns": [],
            "rows": [],
            "affected_rows": 0,
            "timings": {"total_us": total_us, "exec_us": 0},
            "error": {
                "code": code,
                "name": name,
                "message": refusal.message,
                "detail": None,
                "hint": refusal.hint,
                "position": None,
                "statement": None,
                "table": None,
                "column": None,
                "constraint": None,
                "retryable": refusal.status in (408, 503),
                "request_id": request_id,
            },
        }
    )
    headers = COME_AGAIN if refusal.status == 503 else JSON
    return Response(refusal.status, headers, body, request_id), body
