"""The HTTP status and headers for each error.

A SQL error is an ordinary answer: 200 with `success: false`. Other statuses are for malformed
requests, for keys, and for a service that cannot serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qserver.errors import (
    AlreadyExists,
    ChangeUnconfirmed,
    DatabaseDropped,
    DatabaseMoved,
    DatabaseUnavailable,
    DataCorrupted,
    DiskFull,
    Forbidden,
    HistoryTooOld,
    IdempotencyMismatch,
    InvalidRequest,
    InvalidTextRepresentation,
    LogFailed,
    LogTaken,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    NotFreshEnough,
    ProtocolViolation,
    QserverError,
    RateLimited,
    RequestInProgress,
    RequestTooLarge,
    SqlSyntaxError,
    StorageTestFailed,
    TooManyOpen,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
    WrongHost,
)

Pair = tuple[bytes, bytes]
Pairs = list[Pair]

RETRY_AFTER_SECONDS: Final = b"1"

STATUSES: Final[Mapping[type[QserverError], int]] = {
    InvalidRequest: 400,
    SqlSyntaxError: 400,
    ProtocolViolation: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    DatabaseDropped: 404,
    WrongHost: 307,
    MethodNotAllowed: 405,
    NotAcceptable: 406,
    AlreadyExists: 409,
    RequestInProgress: 409,
    RequestTooLarge: 413,
    UnsupportedMediaType: 415,
    IdempotencyMismatch: 422,
    RateLimited: 429,
    TooManyOpen: 429,
    TooManyRequests: 503,
    DatabaseUnavailable: 503,
    ChangeUnconfirmed: 503,
    DatabaseMoved: 503,
    NotFreshEnough: 503,
    LogFailed: 503,
    LogTaken: 503,
    DataCorrupted: 503,
    StorageTestFailed: 503,
}


def status_of(error: QserverError) -> int:
    if isinstance(error, HistoryTooOld) and error.is_gone:
        return 410
    if isinstance(error, InvalidTextRepresentation) and error.is_body:
        return 400
    if type(error) is QserverError:  # a bug: see `Service.internal_error`
        return 500
    if isinstance(error, DiskFull) and error.statement is None:
        return 400  # a database was to be made, no statement to be run
    for cls in type(error).__mro__:
        if cls in STATUSES:
            return STATUSES[cls]
    return 200


def headers_of(error: QserverError) -> Pairs:
    """The headers that the status requires."""
    if isinstance(error, Unauthorized):
        return [(b"www-authenticate", b"Bearer")]
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", ", ".join(error.allowed).encode())]
    if isinstance(error, RateLimited | TooManyOpen):
        return [(b"retry-after", b"%d" % error.retry_after_seconds)]
    if isinstance(error, UnsupportedMediaType) and error.is_compressed:
        return [(b"accept-encoding", b"identity")]
    if isinstance(error, WrongHost):
        return [(b"location", error.location.encode())]
    if status_of(error) == 503 or isinstance(error, RequestInProgress):
        return [(b"retry-after", RETRY_AFTER_SECONDS)]
    return []
