"""Reads a PostgreSQL that is running as a Move, in one REPEATABLE READ transaction.

    pg_catalog ─► postgres_catalog.py: definitions, as PostgreSQL prints them
    COPY t TO STDOUT ─► rows of texts

Definitions and rows are those of one moment, whatever others write meanwhile. A second run has
another moment: tables that the first has loaded stay as they were then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from qserver.cli.moving.move import Move
from qserver.cli.moving.postgres_catalog import CatalogReader
from qserver.cli.transfer.batches import TextRow
from qserver.client import ConnectionFailed, ConnectionLost
from qserver.errors import InvalidRequest
from qserver.query.copying.statement import CopyFormat
from qserver.query.copying.text import Lines

if TYPE_CHECKING:
    import psycopg

SCHEMES: Final = ("postgres://", "postgresql://")
_SETTINGS: Final = (
    "SET search_path = ''",  # PostgreSQL then prints every name with its schema
    "SET datestyle = 'ISO, MDY'",
    "SET intervalstyle = 'postgres'",
    "SET timezone = 'UTC'",
    "SET extra_float_digits = 3",
    "SET bytea_output = 'hex'",
    "SET statement_timeout = 0",
)
_HINT: Final = "Is it running, and are the address, the user and the password right?"


@contextmanager
def postgres_move(url: str) -> Iterator[Move]:
    """What the database holds, as long as the block lasts."""
    try:
        import psycopg
    except ImportError as error:
        raise InvalidRequest(
            "to read a PostgreSQL needs psycopg, which is not installed",
            hint="pip install 'qserver[postgres]'",
        ) from error
    try:
        connection = psycopg.connect(url, application_name="qserver import", connect_timeout=30)
    except psycopg.Error as error:
        raise ConnectionFailed(_first_line(error), hint=_HINT) from None
    source = _Source(connection, _shown(url))
    with connection:
        try:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            for setting in _SETTINGS:
                connection.execute(setting)
            yield source.move()
        except psycopg.OperationalError as error:
            raise source.lost(error) from error
        except psycopg.Error as error:
            raise InvalidRequest(f"cannot read {source.name}: {_first_line(error)}") from error
        finally:
            if not connection.closed:
                connection.rollback()


class _Source:
    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        self._connection = connection
        self.name = name

    def move(self) -> Move:
        move = Move(self.name, "", is_live=True)
        CatalogReader(self._ask, self._rows, move).read()
        digest = sha256("\n".join(move.before).encode()).hexdigest()[:16]
        move.state = f"{self.name}, definitions {digest}"
        return move

    def lost(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(f"the connection to {self.name} broke: {_first_line(error)}")

    def _ask(self, sql: str) -> list[Any]:
        return self._connection.execute(sql.encode()).fetchall()

    def _rows(self, query: str, columns: tuple[str, ...], name: str) -> Iterator[TextRow]:
        import psycopg

        lines = Lines(CopyFormat(), columns, name)
        try:
            with self._connection.cursor().copy(f"COPY {query} TO STDOUT".encode()) as copy:
                for piece in copy:
                    yield from lines.feed(bytes(piece))
            yield from lines.feed(b"", last=True)
        except psycopg.Error as error:
            raise self.lost(error) from error


def _shown(url: str) -> str:
    """The address without the password."""
    parts = urlsplit(url)
    place = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    return f"postgres://{place}{parts.path}"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
