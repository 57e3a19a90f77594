"""Turns an error object of the API back into the exception that the server raised.

The code selects the class, so `except UniqueViolation` works on both sides of the wire. For an
unknown code the client makes a class on the spot: a newer server must not turn every error into
"unknown". Every field of the object becomes an attribute, even if the class does not declare it
(`request_id`, `http_status`).

Network failures have their own classes, because "was anything applied?" has two answers: before the
request was sent, no; after, the client cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import qserver.errors
from qserver.errors import Applied, QserverError

_DECLARED: Final = ("detail", "hint", "position", "table", "column", "constraint")
_OF_THE_CLASS: Final = frozenset({"code", "name", "message"})
_SHOWN_BYTES_MAX: Final = 200


class ConnectionFailed(QserverError):
    """The network's fault, or a wrong URL's: the server was not reached. Nothing was sent."""

    code = "08001"
    name = "sqlclient_unable_to_establish_sqlconnection"
    retryable = True


class ConnectionLost(QserverError):
    """The network's fault, or the server's: the request went out and no whole answer came back.

    Only the server knows whether a write was applied: read first, or let a unique key refuse a
    duplicate.
    """

    code = "08006"
    name = "connection_failure"
    applied = Applied.UNKNOWN


class UnexpectedAnswer(QserverError):
    """Usually the URL's fault: the server there does not speak this API."""

    code = "08000"
    name = "connection_exception"


def error_from(
    fields: Mapping[str, Any], status: int | None = None, retry_after: str | None = None
) -> QserverError:
    error_class = _class_of(fields)
    error = error_class.__new__(error_class)
    # Some constructors require fields of their own; here all fields come from the object.
    QserverError.__init__(
        error, str(fields.get("message") or ""), **{each: fields.get(each) for each in _DECLARED}
    )
    known = _OF_THE_CLASS.union(_DECLARED)
    vars(error).update({each: value for each, value in fields.items() if each not in known})
    vars(error).setdefault("http_status", status)
    if retry_after is not None and retry_after.isdigit():
        vars(error).setdefault("retry_after_seconds", int(retry_after))
    return error


def ended_by(error: QserverError) -> bool:
    """Whether a commit that failed so has ended its transaction, or may have."""
    return error.applied is Applied.UNKNOWN or error.code in _ENDINGS


_ENDINGS: Final = frozenset({"40001", "QS030"})
"""A conflict, and a transaction that is gone."""


def unexpected_answer(status: int, body: bytes) -> UnexpectedAnswer:
    shown = body[:_SHOWN_BYTES_MAX].decode("utf-8", "replace").strip()
    return UnexpectedAnswer(
        f"the server answered with status {status} and no JSON object of this API",
        detail=f"It began: {shown}" if shown else "The answer was empty.",
        hint="Is the URL that of a qserver? GET / of one says so.",
    )


def _class_of(fields: Mapping[str, Any]) -> type[QserverError]:
    code, name = str(fields.get("code")), str(fields.get("name"))
    known = _BY_CODE.get(code)
    if known is not None:
        return known
    return type(
        "UnknownServerError",
        (QserverError,),
        {
            "__doc__": "The server knows whose fault: this version has no class for the code.",
            "code": code,
            "name": name,
            "retryable": fields.get("retryable") is True,
        },
    )


def _classes() -> Iterator[type[QserverError]]:
    for each in vars(qserver.errors).values():
        if isinstance(each, type) and issubclass(each, QserverError):
            yield each


_BY_CODE: Final = {each.code: each for each in _classes()}
