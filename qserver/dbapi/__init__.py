"""PEP 249: Python's interface to databases, over HTTP.

    from qserver import dbapi

    with dbapi.connect("qserver://:key@127.0.0.1:8000/main") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT name FROM users WHERE id = ?", [1])
        print(cursor.fetchone())

    connecting.py ──► Connection ──► Cursor ──► qserver.client ──► server
                      open transaction │ └── many_rows.py: executemany
                      type_objects.py ─┘     exceptions.py: the errors of PEP 249

A connection is no socket that a server keeps: it is a client and, between the first statement and
`commit()` or `rollback()`, the id of an open transaction. Nothing is sent before the first
statement, and nothing is sent twice: what fails raises.

Parameters are `?` (`paramstyle`), or `$1`, or `:name` with a mapping: the server binds them.
"""

from __future__ import annotations

from typing import Final

from qserver.dbapi.connecting import connect
from qserver.dbapi.connection import Connection
from qserver.dbapi.cursor import Cursor
from qserver.dbapi.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from qserver.dbapi.type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel: Final = "2.0"
threadsafety: Final = 1
"""Threads may share the module. A connection has one transaction, which is one thread's."""
paramstyle: Final = "qmark"

__all__ = [
    "apilevel",
    "threadsafety",
    "paramstyle",
    "connect",
    "Connection",
    "Cursor",
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
    "Binary",
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
]
