"""Errors of sessions over PostgreSQL's protocol."""

from __future__ import annotations

from qserver.errors.error import QserverError
from qserver.errors.values import DataError


class InvalidBinaryRepresentation(DataError):
    """The caller's fault: bytes are not a value of the type. Retrying cannot help."""

    code = "22P03"


class BadCopyFileFormat(DataError):
    """The caller's fault: data of COPY are not in the format that it names. Do not retry."""

    code = "22P04"


class IdleInTransaction(QserverError):
    """The caller's fault: its session was idle in a transaction for too long, and has ended."""

    code = "25P03"
    name = "idle_in_transaction_session_timeout"


class InvalidStatementName(QserverError):
    """The caller's fault: the session has no prepared statement of this name. Do not retry."""

    code = "26000"
    name = "invalid_sql_statement_name"


class InvalidPassword(QserverError):
    """The caller's fault: the password is no key, or the proof of it is wrong. Do not retry."""

    code = "28P01"


class InvalidAuthorization(QserverError):
    """The caller's fault: it cannot be let in this way. Retrying cannot help."""

    code = "28000"
    name = "invalid_authorization_specification"


class InvalidCursorName(QserverError):
    """The caller's fault: the session has no portal of this name. Retrying cannot help."""

    code = "34000"


class InvalidCursorState(QserverError):
    """The caller's fault: the cursor stands on no row that could be changed. Do not retry."""

    code = "24000"


class UnknownDatabase(QserverError):
    """The caller's fault: there is no database of this name. Retrying cannot help."""

    code = "3D000"
    name = "invalid_catalog_name"


class DuplicatePreparedStatement(QserverError):
    """The caller's fault: the session has a prepared statement of this name. Do not retry."""

    code = "42P05"
    name = "duplicate_prepared_statement"


class DuplicateCursor(QserverError):
    """The caller's fault: the session has a cursor of this name. Retrying cannot help."""

    code = "42P03"


class SessionEnded(QserverError):
    """The server's wish: it stops, or the database went elsewhere. Nothing was applied; connect
    again."""

    code = "57P01"
    name = "admin_shutdown"
