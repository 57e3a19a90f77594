"""The exceptions of PEP 249, found by the code of qserver's own.

    QserverError ──► class of its code ──► IntegrityError(sqlstate="23505", constraint=…)

The first two characters of a SQLSTATE are its class, and that decides, as with other drivers of
PostgreSQL. Codes of qserver's own (QS…) stand one by one. What the server said is in attributes;
`__cause__` is the exception of `qserver.errors`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from qserver.errors import QserverError


class Warning(Exception):
    """Of PEP 249; qserver raises none."""


class Error(Exception):
    """Any failure of a database, or of its use."""

    sqlstate: str | None = None
    """The code, PostgreSQL's where there is one; None for mistakes that the driver itself found."""
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    table: str | None = None
    column: str | None = None
    constraint: str | None = None
    retryable: bool = False
    """Whether the same may succeed later: of a conflict, the whole transaction."""
    conflict: Mapping[str, Any] | None = None
    """Of a serialization failure: what no longer held, see docs/http.md."""


class InterfaceError(Error):
    """The driver was used in a way that it does not allow: a closed cursor, a bad URL."""


class DatabaseError(Error):
    """The database refused something, or could not do it."""


class DataError(DatabaseError):
    """A value is wrong: out of range, not of its type, a division by zero."""


class OperationalError(DatabaseError):
    """Nobody's mistake in the statement: a conflict, a lost connection, a limit, a time-out."""


class IntegrityError(DatabaseError):
    """A constraint refused it."""


class InternalError(DatabaseError):
    """The state of the transaction does not allow it, or the server has a bug."""


class ProgrammingError(DatabaseError):
    """The statement is wrong, or what it names is not there."""


class NotSupportedError(DatabaseError):
    """qserver does not have it."""


_BY_CODE: Final[Mapping[str, type[DatabaseError]]] = {
    "QS001": ProgrammingError,
    "QS003": DataError,
    "QS005": ProgrammingError,
    "QS008": ProgrammingError,
    "QS009": DataError,
    "08P01": ProgrammingError,  # parameters that are missing, or too many
}
_BY_CLASS: Final[Mapping[str, type[DatabaseError]]] = {
    "0A": NotSupportedError,
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "24": InternalError,
    "25": InternalError,
    "26": ProgrammingError,
    "2B": InternalError,
    "2D": InternalError,
    "34": ProgrammingError,
    "3B": ProgrammingError,
    "3D": ProgrammingError,
    "3F": ProgrammingError,
    "42": ProgrammingError,
    "44": ProgrammingError,
    "XX": InternalError,
}
_COPIED: Final = ("detail", "hint", "position", "table", "column", "constraint", "retryable")


def class_of(code: str) -> type[DatabaseError]:
    """Everything that is no mistake of the caller's is operational."""
    return _BY_CODE.get(code) or _BY_CLASS.get(code[:2], OperationalError)


def error_of(cause: QserverError) -> DatabaseError:
    lines = [str(cause)]
    lines += [f"DETAIL:  {cause.detail}"] if cause.detail else []
    lines += [f"HINT:  {cause.hint}"] if cause.hint else []
    error = class_of(cause.code)("\n".join(lines))
    error.sqlstate = cause.code
    error.conflict = vars(cause).get("conflict")
    for name in _COPIED:
        setattr(error, name, getattr(cause, name))
    return error


@contextmanager
def errors_of_pep_249() -> Iterator[None]:
    try:
        yield
    except QserverError as cause:
        raise error_of(cause) from cause
