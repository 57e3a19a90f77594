"""Describes the statements of a key in all of its databases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import trio

from qserver.control.access import Access
from qserver.control.owners import Owners
from qserver.control.records import Grant
from qserver.control.statement_texts import Statements, needed_scopes, read_statements, stored
from qserver.errors import (
    DatabaseDropped,
    DatabaseUnavailable,
    Forbidden,
    InvalidRequest,
    LogFailed,
    QserverError,
    QueryCanceled,
)
from qserver.query.sql_database import SqlDatabase
from qserver.sql import Described


async def described(
    access: Access,
    owners: Owners,
    grant: Grant,
    database_ids: Iterable[str],
    statements: Mapping[str, str],
) -> Statements:
    """Describe statements in all databases; raise InvalidRequest if one is invalid in any.

    All of them together have the time of one statement.

    Raise Forbidden if the grant lacks a scope that they need.
    """
    if not (grant.has("data:read") or grant.has("data:write")):
        raise Forbidden("a key cannot give what it lacks: data:read, data:write")
    ends = grant.deadline()
    found: dict[str, Described] = {}
    for database_id, name, family in await access.places(database_ids):
        left = max(0.0, ends - trio.current_time())
        text = await owners.ask_owner(family, "describe", database_id, name, statements, left)
        here = read_statements(text)
        for each in here:
            if found.setdefault(each, here[each]) != here[each]:
                raise InvalidRequest(
                    f"the statement {each!r} is not the same in all databases",
                    detail=f"In {name!r} it is {here[each].sql}",
                    hint="Name the columns instead of *, or make a key for each database.",
                )
    lacking = [scope for scope in needed_scopes(found) if not grant.has(scope)]
    if lacking:
        raise Forbidden(f"a key cannot give what it lacks: {', '.join(lacking)}")
    return found


async def describe_in(
    sql: SqlDatabase, database: str, statements: Mapping[str, str], seconds: float
) -> str:
    """Describe statements in one database, in the form in which a key has them."""
    ends = trio.current_time() + seconds
    found: dict[str, Described] = {}
    for name, text in statements.items():
        try:
            left_ms = max(0.0, ends - trio.current_time()) * 1000
            found[name] = await sql.describe(text, left_ms)
        except (DatabaseDropped, DatabaseUnavailable, LogFailed, QueryCanceled):
            raise
        except QserverError as error:
            raise _not_good(name, database, error) from None
    return stored(found)


def _not_good(name: str, database: str, error: QserverError) -> InvalidRequest:
    return InvalidRequest(
        f"the statement {name!r} is not good in the database {database!r}: {error.message}",
        detail=error.detail,
        hint=error.hint,
        position=error.position,
    )
