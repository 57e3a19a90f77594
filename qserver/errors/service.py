"""Errors of the service around the databases: requests that fail before any SQL is read.

PostgreSQL has no codes for them, so theirs begin with QS. The front end maps each to its HTTP
status.
"""

from __future__ import annotations

from typing import Any

from qserver.errors.error import QserverError


class InvalidRequest(QserverError):
    """The caller's fault: the request is not one of those that the documentation describes."""

    code = "QS001"


class Unauthorized(QserverError):
    """The caller's fault: no key or session came along, or one that is not (or no longer) good."""

    code = "QS002"
    name = "not_authorized"


class HistoryTooOld(QserverError):
    """The caller's fault: the version or time is from before the history that is kept."""

    code = "QS004"
    is_gone = False
    """It was asked for by a route of its own, not by a statement."""


class Forbidden(QserverError):
    """The caller's fault: the key is good, but not for this."""

    code = "QS005"
    name = "insufficient_scope"


class NotFound(QserverError):
    """The caller's fault: no such route, database, key or probe, or none that the key may see."""

    code = "QS006"


class MethodNotAllowed(QserverError):
    """The caller's fault: the route is there, but not for this method."""

    code = "QS007"

    def __init__(self, message: str, *, allowed: tuple[str, ...], **fields: Any) -> None:
        super().__init__(message, **fields)
        self.allowed = allowed


class AlreadyExists(QserverError):
    """The caller's fault, or a race of callers: the name is taken, or the work under way."""

    code = "QS008"


class IdempotencyMismatch(QserverError):
    """The caller's fault: its Idempotency-Key was used with another request. Use a new key."""

    code = "QS032"


class RequestInProgress(QserverError):
    """The caller's fault, or its network's: the same request is still running. Retry later."""

    code = "QS033"
    retryable = True


class RequestTooLarge(QserverError):
    """The caller's fault: a body or statement is larger than a limit allows."""

    code = "QS009"


class UnsupportedMediaType(QserverError):
    """The caller's fault: the body is of a kind that the route does not take."""

    code = "QS010"
    is_compressed = False
    """The content coding is refused, not the media type."""


class NotAcceptable(QserverError):
    """The fault of whoever runs the server: what writes the format that the client asks for is not
    installed. Ask for another one."""

    code = "QS011"


class TransactionNotFound(NotFound):
    """The caller's fault, or time's: no open transaction has this id, or none that the key may use.
    It may have been committed, rolled back, idle for too long, or ended by a restart,
    or by a move of its database to another node."""

    code = "QS030"


class RateLimited(QserverError):
    """The caller's fault, or its organization's: too many requests in a minute."""

    code = "QS012"
    retryable = True

    def __init__(self, message: str, *, retry_after_seconds: int, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.retry_after_seconds = retry_after_seconds


class TooManyOpen(QserverError):
    """The caller's fault, or its organization's: so many may be open at once. Retry when one has
    ended."""

    code = "QS034"
    retryable = True

    def __init__(self, message: str, *, retry_after_seconds: int = 1, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.retry_after_seconds = retry_after_seconds


class ReaderTooSlow(QserverError):
    """The caller's fault: it reads more slowly than the database changes, and what it would read
    next is no longer kept. Begin anew."""

    code = "QS031"


class WrongHost(QserverError):
    """The caller's fault: this host has no such route, another one does."""

    code = "QS013"

    def __init__(self, message: str, *, location: str, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.location = location


class StorageTestFailed(QserverError):
    """The disk's fault: what was written did not come back, or could not be written."""

    code = "QS014"


class InvalidSetting(QserverError):
    """The operator's fault: a setting is unknown, or its value makes no sense."""

    code = "F0000"
    name = "config_file_error"


class CannotListen(QserverError):
    """The operator's fault: the address or port cannot be had, or the certificate not read."""

    code = "QS015"
