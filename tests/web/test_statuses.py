"""Which status goes with which error: the table of the documentation."""

from __future__ import annotations

import pytest

from qserver.errors import (
    AlreadyExists,
    DatabaseUnavailable,
    DivisionByZero,
    Forbidden,
    InvalidRequest,
    LogFailed,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    ProtocolViolation,
    QserverError,
    QueryCanceled,
    RateLimited,
    RequestTooLarge,
    SerializationFailure,
    SqlSyntaxError,
    TooManyRequests,
    Unauthorized,
    UndefinedTable,
    UniqueViolation,
    UnsupportedMediaType,
    WrongHost,
)
from qserver.web.statuses import headers_of, status_of

TABLE: list[tuple[QserverError, int, dict[bytes, bytes]]] = [
    (UndefinedTable("x"), 200, {}),
    (UniqueViolation("x"), 200, {}),
    (DivisionByZero("x"), 200, {}),
    (SerializationFailure("x", conflict=None), 200, {}),
    (QueryCanceled("x"), 200, {}),
    (SqlSyntaxError("x"), 400, {}),
    (InvalidRequest("x"), 400, {}),
    (ProtocolViolation("x"), 400, {}),
    (Unauthorized("x"), 401, {b"www-authenticate": b"Bearer"}),
    (Forbidden("x"), 403, {}),
    (Forbidden("x"), 403, {}),
    (NotFound("x"), 404, {}),
    (MethodNotAllowed("x", allowed=("GET", "HEAD")), 405, {b"allow": b"GET, HEAD"}),
    (AlreadyExists("x"), 409, {}),
    (RequestTooLarge("x"), 413, {}),
    (NotAcceptable("x"), 406, {}),
    (UnsupportedMediaType("x"), 415, {}),
    (RateLimited("x", retry_after_seconds=17), 429, {b"retry-after": b"17"}),
    (WrongHost("x", location="http://c.test/y"), 307, {b"location": b"http://c.test/y"}),
    (TooManyRequests("x"), 503, {b"retry-after": b"1"}),
    (DatabaseUnavailable("x"), 503, {b"retry-after": b"1"}),
    (LogFailed("x"), 503, {b"retry-after": b"1"}),
    (QserverError("x"), 500, {}),
]


@pytest.mark.parametrize(
    ("error", "status", "headers"), TABLE, ids=[type(row[0]).__name__ for row in TABLE]
)
def test_an_error_has_the_status_and_headers_of_its_kind(
    error: QserverError, status: int, headers: dict[bytes, bytes]
) -> None:
    assert status_of(error) == status
    assert dict(headers_of(error)) == headers
