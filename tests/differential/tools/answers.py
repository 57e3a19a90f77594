"""Runs what a tool sends on PostgreSQL and on qserver, both over the wire, and compares answers.

Numbers of objects that somebody has made never count: an oid from 16384 on, and that of the owner,
is any oid. What is asked by such a number is asked by that of the same object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg

from tests.differential.engines import Outcome, Postgres
from tests.differential.tools.sent import REFERENCE, SCHEMA, Sent

OWNER: Final = "qserver"
DATABASE: Final = "main"
TEMPLATE: Final = "tools"
SHOWN: Final = 6
_OIDS: Final = frozenset({"oid", "oid[]", "oidvector", "xid", "regclass", "regtype"})
_NARROWER: Final = frozenset(
    {
        *("attndims", "attinhcount", "attstattarget"),
        *("dimensions_number", "array_dimensions"),
    }
)
"""Columns that PostgreSQL 16 has made smallint."""
_NUMBER: Final = re.compile(r"\b(?:10|1638[4-9]|1639\d|16[4-9]\d\d|1[7-9]\d{3}|[2-9]\d{4,})\b")
_CATALOGS: Final = {
    "class": "SELECT '{}'::regclass::oid",
    "type": "SELECT '{}'::regtype::oid",
    "namespace": "SELECT '{}'::regnamespace::oid",
    "role": "SELECT '{}'::regrole::oid",
}


@dataclass(frozen=True)
class Difference:
    sent: Sent
    wanted: Outcome
    found: Outcome

    def __str__(self) -> str:
        about = f"line {self.sent.line}: {' '.join(self.sent.sql.split())}"
        if self.sent.differs:
            return f"{about}\nis answered as by PostgreSQL"
        wanted, found = _comparable(self.wanted, self.sent), _comparable(self.found, self.sent)
        if self.wanted.error or self.found.error:
            return f"{about}\nPostgreSQL: {self.wanted}\nqserver: {self.found}"
        lines = [about, *_others("columns", wanted.columns, found.columns)]
        lines += _others("types", wanted.types, found.types)
        lines += _others("rows", wanted.rows, found.rows)
        return "\n".join(lines)


def _others(what: str, wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[str]:
    """Yield those of PostgreSQL that qserver has not, and the other way round."""
    if tuple(wanted) == tuple(found):
        return
    yield f"{what} of PostgreSQL alone: {[each for each in wanted if each not in found][:SHOWN]}"
    yield f"{what} of qserver alone:    {[each for each in found if each not in wanted][:SHOWN]}"


def differences(postgres: Postgres, qserver: Postgres, sent: list[Sent]) -> Iterator[Difference]:
    """Yield the statements that are answered otherwise than their file says."""
    for each in sent:
        wanted, found = _answer(postgres, each), _answer(qserver, each)
        is_same = _comparable(wanted, each) == _comparable(found, each)
        if is_same is bool(each.differs):
            yield Difference(each, wanted, found)


def _answer(engine: Postgres, sent: Sent) -> Outcome:
    def oid(match: re.Match[str]) -> str:
        found = engine.run(_CATALOGS[match[1]].format(match[2]))
        assert found.rows and found.rows[0][0], f"{match[0]}: {found}"
        return found.rows[0][0]

    values = [None if each is None else REFERENCE.sub(oid, each) for each in sent.parameters]
    return engine.run(REFERENCE.sub(oid, sent.sql), values)


def _comparable(outcome: Outcome, sent: Sent) -> Outcome:
    """What of an outcome has to be the same."""
    rows: list[tuple[str | None, ...]] = []
    for row in () if sent.columns_only else outcome.rows:
        about = zip(row, outcome.columns, outcome.types, strict=True)
        rows.append(tuple(_shown(value, name, kind, sent) for value, name, kind in about))
    if not sent.ordered:
        rows.sort(key=str)
    named = zip(outcome.columns, outcome.types, strict=True)
    types = tuple("integer" if name in _NARROWER else kind for name, kind in named)
    return replace(outcome, message="", position=None, types=types, rows=tuple(rows))


def _shown(value: str | None, name: str, kind: str, sent: Sent) -> str | None:
    if name in sent.hidden or (kind == "pg_node_tree" and value is not None):
        return "*"
    return _NUMBER.sub("#", value) if value is not None and kind in _OIDS else value


# --- sessions -------------------------------------------------------------------------------------


def prepare_template(server: Any) -> None:
    """Make a database of PostgreSQL with the schema; its owner is named as that of qserver."""
    with psycopg.connect(server.get_uri(), autocommit=True) as first:
        if first.execute("SELECT FROM pg_roles WHERE rolname = %s", [OWNER]).fetchone() is None:
            rights = "SUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS LOGIN"
            first.execute(f"CREATE ROLE {OWNER} {rights}".encode())
        first.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}".encode())
        first.execute(
            f"CREATE DATABASE {TEMPLATE} OWNER {OWNER} TEMPLATE template0 ENCODING 'UTF8'"
            " LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'".encode()
        )
    with psycopg.connect(_address(server, TEMPLATE), autocommit=True) as connection:
        connection.execute(SCHEMA.read_bytes())


@contextmanager
def session_of_postgres(server: Any) -> Iterator[Postgres]:
    """A session in a fresh copy of the database."""
    with psycopg.connect(server.get_uri(), autocommit=True) as first:
        first.execute(f"DROP DATABASE IF EXISTS {DATABASE}".encode())
        first.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER} TEMPLATE {TEMPLATE}".encode())
    with psycopg.connect(_address(server, DATABASE), autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        yield Postgres(connection)


@contextmanager
def session_of_qserver(url: str) -> Iterator[Postgres]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA.read_bytes())
        yield Postgres(connection)


def _address(server: Any, database: str) -> str:
    return (
        str(server.get_uri(database))
        .replace("postgres:", f"{OWNER}:", 1)
        .replace("postgresql//", "postgresql://")
    )
