"""Turns SELECT … INTO table into CREATE TABLE AS."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import CreateTable, Query, QueryBody, Select, SetOperation, Statement
from qserver.sql.terminals import Source


@dataclass(frozen=True, slots=True)
class Into:
    name: tuple[str, ...]
    temporary: bool
    position: int


@dataclass(frozen=True, slots=True)
class SelectInto(Select):
    """A SELECT with INTO, as the grammar produces it. It never leaves the parser."""

    into: Into | None = None


def without_into(statement: Statement, source: Source) -> Statement:
    """Return the statement, as CREATE TABLE AS if it has an INTO in an allowed place: in the SELECT
    of the statement itself, or in the first of its UNION."""
    if not source.selects_into:
        return statement
    found: list[Into] = []
    if isinstance(statement, Query):
        statement = replace(statement, body=_plain(statement.body, found))
    for into in source.selects_into:
        if into not in found:
            raise SqlSyntaxError("SELECT ... INTO is not allowed here", position=into.position + 1)
    assert isinstance(statement, Query)
    (into,) = found
    return CreateTable(
        into.name, (), temporary=into.temporary, query=statement, position=statement.position
    )


def _plain(body: QueryBody, found: list[Into]) -> QueryBody:
    """Replace the leftmost SELECT by an ordinary one, and append its INTO to the list."""
    operations: list[SetOperation] = []
    while isinstance(body, SetOperation):
        operations.append(body)
        body = body.left
    if isinstance(body, SelectInto) and body.into is not None:
        found.append(body.into)
        body = Select(**{each.name: getattr(body, each.name) for each in fields(Select)})
    for operation in reversed(operations):
        body = replace(operation, left=body)
    return body
