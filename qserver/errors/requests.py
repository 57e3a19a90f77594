"""Errors of requests that are not wrong in themselves: conflicts, limits, the disk."""

from __future__ import annotations

from typing import Any

from qserver.errors.error import Applied, QserverError
from qserver.errors.values import DataError

# --- classes 40 and 08: how a transaction ended --------------------------------------------------


class SerializationFailure(QserverError):
    """Nobody's fault: another transaction changed what this one had read. Retry.

    `conflict` says where: an object with table, key and versions, opaque to this module.
    """

    code = "40001"
    retryable = True

    def __init__(self, message: str = "", *, conflict: object = None, **fields: Any) -> None:
        super().__init__(message or "could not serialize access due to concurrent update", **fields)
        self.conflict = conflict


class DeadlockDetected(QserverError):
    """Nobody's fault alone: sessions wait for each other's advisory locks. Retry, and lock in one
    order."""

    code = "40P01"
    retryable = True


class ReadOnlyTransaction(QserverError):
    """The caller's fault: a request that may only read wants to write. Retrying cannot help."""

    code = "25006"
    name = "read_only_sql_transaction"


class OutcomeUnknown(QserverError):
    """The server's fault: it failed while committing, so the commit may or may not have happened.

    Do not retry blindly: read first, once the database is open again, or let a unique key refuse
    what comes twice.
    """

    code = "08007"
    name = "transaction_resolution_unknown"
    applied = Applied.UNKNOWN


# --- classes 53, 54 and 57: not now, or not this much --------------------------------------------


class DiskFull(QserverError):
    """The organization's fault, or the disk's: there is no room to store more.

    Reads and what removes data go on. Retrying helps once something was removed.
    """

    code = "53100"


class OutOfMemory(QserverError):
    """The request's fault: it needs more memory than it may have. Retrying cannot help."""

    code = "53200"


class TooManyRequests(QserverError):
    """The load's fault: a bounded mailbox is full. Retry after a pause."""

    code = "53300"
    name = "too_many_connections"
    retryable = True


class ProgramLimitExceeded(QserverError):
    """The caller's fault: something is larger than a limit allows. Retrying cannot help."""

    code = "54000"


class TooManyAffected(QserverError):
    """The caller's fault: more rows would change than its `max_affected` allows. Nothing was
    applied; retrying cannot help."""

    code = "QS003"


class StatementTooComplex(ProgramLimitExceeded):
    """The caller's fault: a statement is nested too deeply. Retrying cannot help."""

    code = "54001"


class TooManyColumns(ProgramLimitExceeded):
    """The caller's fault: a table or index has too many columns. Retrying cannot help."""

    code = "54011"


class QueryCanceled(QserverError):
    """The caller's wish, or the deadline's: the request was stopped before it wrote anything.

    The same request with more time may succeed.
    """

    code = "57014"


class DatabaseUnavailable(QserverError):
    """The server's fault, or its operator's: the database recovers or has stopped. Retry later."""

    code = "57P03"
    name = "cannot_connect_now"
    retryable = True


class DatabaseDropped(QserverError):
    """The caller's wish: the database was deleted meanwhile. Retrying cannot help."""

    code = "57P04"


class CardinalityViolation(QserverError):
    """The caller's fault: a subquery gave more rows than its place can take. Do not retry."""

    code = "21000"


class InvalidRowCountInLimit(DataError):
    """The caller's fault: LIMIT is negative. Retrying cannot help."""

    code = "2201W"
    name = "invalid_row_count_in_limit_clause"


class InvalidFrameOffset(DataError):
    """The caller's fault: the offset of a window's frame is negative. Retrying cannot help."""

    code = "22013"
    name = "invalid_preceding_or_following_size"


class InvalidArgumentForNtile(DataError):
    """The caller's fault: ntile of no buckets. Retrying cannot help."""

    code = "22014"
    name = "invalid_argument_for_ntile_function"


class InvalidArgumentForNthValue(DataError):
    """The caller's fault: nth_value of a place before the first. Retrying cannot help."""

    code = "22016"
    name = "invalid_argument_for_nth_value_function"


class InvalidRowCountInOffset(DataError):
    """The caller's fault: OFFSET is negative. Retrying cannot help."""

    code = "2201X"
    name = "invalid_row_count_in_result_offset_clause"


# --- qserver's own, the disk, the data -----------------------------------------------------------


class LogFailed(QserverError):
    """The disk's fault: the log cannot be written. What waited for it may be in it or not."""

    code = "QS022"
    name = "log_failed"
    applied = Applied.UNKNOWN


class PageUnreadable(LogFailed):
    """The disk's fault: a page of the database cannot be read now. Nothing was applied. It is read
    again for the next statement that needs it."""

    code = "58030"
    name = "io_error"
    applied = Applied.NO


class DatabaseMoved(QserverError):
    """The server's fault: the process that has the database does not answer. Nothing was applied.
    It begins again by itself; retry."""

    code = "QS023"
    name = "database_moved"
    retryable = True


class ChangeUnconfirmed(QserverError):
    """The server's fault: a change of keys, databases or organizations was not confirmed, though it
    may have been made. Look whether it is as you want it, then repeat it."""

    code = "QS024"
    name = "change_unconfirmed"
    applied = Applied.UNKNOWN


class NotFreshEnough(QserverError):
    """Nobody's fault, or the caller's: what is here is older than the request wants. Nothing was
    applied. Retry; a version that the database never had does not come."""

    code = "QS025"
    name = "not_fresh_enough"
    retryable = True


class LogTaken(QserverError):
    """Nobody's fault, or the operator's: another process has taken over the log, and writes the
    database now. Nothing was applied. Retry where it is written now.

    `version`: none of our records is in the log from there on.
    """

    code = "QS021"
    name = "log_taken"
    retryable = True

    def __init__(self, message: str = "", *, version: int = 0, **fields: Any) -> None:
        super().__init__(message or "another process has taken over the log", **fields)
        self.version = version

    def again(self) -> LogTaken:
        """A copy for the next waiter: a raised error belongs to one task."""
        return LogTaken(str(self), version=self.version, detail=self.detail, hint=self.hint)


class DataCorrupted(QserverError):
    """The disk's fault, or a version's: stored bytes do not say what they should. An operator
    must look; retrying cannot help."""

    code = "XX001"


class DataUnknown(DataCorrupted):
    """The operator's fault: the file is not qserver's, or a newer release has written it. It was
    not touched; retrying cannot help."""

    code = "QS020"
    name = "data_unknown"


class DataInUse(QserverError):
    """The operator's fault: another process works on the same data. Retry when it has ended."""

    code = "55006"
    name = "object_in_use"
