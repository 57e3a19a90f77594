"""SELECT … INTO table: a CREATE TABLE AS by another name, and turned into one."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import CreateTable, Query, QueryBody, Select, SetOperation, Statement
from qserver.sql.terminals import Source


@dataclass(frozen=True, slots=True)
class Into:
    """The new table."""

    name: tuple[str, ...]
    temporary: bool
    position: int


@dataclass(frozen=True, slots=True)
class SelectInto(Select):
    """A SELECT with INTO, as it comes from the grammar. No reader of syntax ever sees one."""

    into: Into | None = None


def without_into(statement: Statement, source: Source) -> Statement:
    """The statement, as CREATE TABLE AS if it has an INTO where one may stand: in the SELECT of the
    statement itself, or in the first of its UNION."""
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
    """The body with an ordinary SELECT in place of the leftmost; its INTO is put into the list."""
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
