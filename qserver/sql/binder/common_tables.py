"""WITH: queries that have a name for the rest of the statement, and may refer to themselves.

A common table is computed once; whoever names it reads its rows (CommonTableScan). With RECURSIVE
the names are known before the queries are, so each is bound when it is first needed: by another
one, by itself, or at the end. One that refers to itself has two parts:

    WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)
                         start              again, on the rows that the last turn added

A query that nobody names is checked and left out; a change of data is always made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from qserver.errors import (
    DatatypeMismatch,
    DuplicateAlias,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidRecursion,
    QserverError,
    SqlSyntaxError,
)
from qserver.sql import syntax
from qserver.sql.binder.prepared import Finished
from qserver.sql.binder.relations import Relation, relation_of_query
from qserver.sql.binder.scope import Scope
from qserver.sql.functions.resolve import common_type
from qserver.sql.plan import (
    Aggregate,
    CommonTable,
    CommonTableScan,
    OutputColumn,
    Plan,
    WithTables,
)
from qserver.sql.walk import everything
from qserver.values.types import SqlType


class Entry:
    """One common table: not yet begun, begun (its columns may be known), or bound."""

    __slots__ = (
        *("begun", "columns", "named", "node", "number", "recursive", "self_named", "table"),
    )

    def __init__(self, node: syntax.CommonTable, number: int) -> None:
        self.node = node
        self.number = number
        self.begun = False
        self.recursive = False
        self.columns: tuple[OutputColumn, ...] | None = None
        self.table: CommonTable | None = None
        self.named = 0
        self.self_named: list[int] = []


class CommonTables:
    """The names of one WITH, and those around it."""

    __slots__ = ("bound", "entries", "parent", "scope")

    def __init__(self, parent: CommonTables | None) -> None:
        self.parent = parent
        self.entries: dict[str, Entry] = {}
        self.bound: list[Entry] = []
        self.scope: Scope | None = None

    def find(self, name: str) -> tuple[CommonTables, Entry] | None:
        tables: CommonTables | None = self
        while tables is not None:
            entry = tables.entries.get(name)
            if entry is not None:
                return tables, entry
            tables = tables.parent
        return None


def with_common_tables(scope: Scope, nodes: Sequence[syntax.CommonTable], recursive: bool) -> Scope:
    """The scope in which the names are known."""
    if not nodes:
        return scope
    tables = CommonTables(scope.common_tables)
    inner = replace(scope, common_tables=tables)
    tables.scope = inner
    entries = [Entry(node, scope.binding.new_common_table()) for node in nodes]
    if recursive:
        for entry in entries:
            _add(tables, entry)
        for entry in entries:
            _bind(tables, entry, recursive)
    else:
        for entry in entries:
            _bind(tables, entry, recursive)
            _add(tables, entry)
    return inner


def with_tables(scope: Scope, plan: Plan) -> Plan:
    """The plan with the common tables of the scope's WITH computed before it, if it needs any."""
    tables = scope.common_tables
    assert tables is not None
    needed = tuple(
        [
            entry.table
            for entry in tables.bound
            if entry.table is not None and (entry.named or _is_change(entry))
        ]
    )
    return WithTables(needed, plan) if needed else plan


def scan_common_table(
    scope: Scope, item: syntax.TableRef
) -> tuple[CommonTableScan, Relation] | None:
    """The rows of the common table of that name, if there is one."""
    found = None if scope.common_tables is None else scope.common_tables.find(item.name[0])
    if found is None:
        return None
    tables, entry = found
    if not entry.begun:
        _bind(tables, entry, recursive=True)
    if entry.table is not None:
        entry.named += 1
    else:
        entry.self_named.append(item.position)
    if entry.columns is None:
        raise _no_columns(entry, item)
    source = scope.binding.new_source()
    scan = CommonTableScan(source, entry.number, entry.columns)
    return scan, relation_of_query(entry.node.name, source, entry.columns)


def _no_columns(entry: Entry, item: syntax.TableRef) -> QserverError:
    """Why the columns of a common table that is named are not known."""
    name = entry.node.name
    if entry.table is not None:
        return FeatureNotSupported(
            f'WITH query "{name}" does not have a RETURNING clause', position=item.position + 1
        )
    if entry.recursive:
        return _misplaced(entry, "within its non-recursive term")
    return FeatureNotSupported(
        "mutual recursion between WITH items is not implemented",
        position=entry.node.position + 1,
    )


def _add(tables: CommonTables, entry: Entry) -> None:
    name = entry.node.name
    if name in tables.entries:
        raise DuplicateAlias(
            f'WITH query name "{name}" specified more than once',
            position=entry.node.position + 1,
        )
    tables.entries[name] = entry


def _is_change(entry: Entry) -> bool:
    return not isinstance(entry.node.statement, syntax.Query)


def _bind(tables: CommonTables, entry: Entry, recursive: bool) -> None:
    if entry.begun:
        return
    entry.begun = True
    scope, node = tables.scope, entry.node
    if node.search is not None or node.cycle is not None:
        raise FeatureNotSupported("SEARCH and CYCLE are not supported", position=node.position + 1)
    assert scope is not None
    scope.binding.enter()
    statement = node.statement
    if isinstance(statement, syntax.Query):
        if recursive and mentions(statement, node.name):
            _bind_recursive(scope, entry, statement)
        else:
            query = scope.binding.prepare_query(scope, statement).finish()
            entry.columns = _named_columns(node, query.columns)
            entry.table = CommonTable(entry.number, node.name, query.plan, query.source)
    else:
        _bind_change(scope, entry, statement)
    tables.bound.append(entry)
    scope.binding.leave()


def _bind_change(scope: Scope, entry: Entry, statement: Any) -> None:
    if scope.parent is not None:
        raise FeatureNotSupported(
            "WITH clause containing a data-modifying statement must be at the top level",
            position=entry.node.position + 1,
        )
    change = scope.binding.bind_change(scope, statement)
    if change.returning is not None:
        entry.columns = _named_columns(entry.node, change.returning.columns)
    entry.table = CommonTable(entry.number, entry.node.name, change, scope.binding.new_source())


def _named_columns(
    node: syntax.CommonTable, columns: Sequence[OutputColumn]
) -> tuple[OutputColumn, ...]:
    given = node.column_aliases
    if len(given) > len(columns):
        raise InvalidColumnReference(
            f'WITH query "{node.name}" has {len(columns)} columns available but '
            f"{len(given)} columns specified",
            position=node.position + 1,
        )
    names = [*given, *[column.name for column in columns[len(given) :]]]
    return tuple([replace(column, name=name) for column, name in zip(columns, names, strict=True)])


# --- recursion -----------------------------------------------------------------------------------


def _bind_recursive(scope: Scope, entry: Entry, query: syntax.Query) -> None:
    node, binding = entry.node, scope.binding
    body = query.body
    if not isinstance(body, syntax.SetOperation) or body.kind != "union":
        raise InvalidRecursion(
            f'recursive query "{node.name}" does not have the form '
            "non-recursive-term UNION [ALL] recursive-term",
            position=node.position + 1,
        )
    _refuse_around_recursion(query)
    entry.recursive = True
    prepared = binding.prepare_query(scope, _as_query(body.left))
    places = [outline.position for outline in prepared.outlines]
    start = prepared.finish()
    columns = _named_columns(node, start.columns)
    entry.columns = tuple([replace(column, nullable=True) for column in columns])
    again = _bind_again(scope, entry, body, start, places)
    entry.table = CommonTable(
        entry.number,
        node.name,
        start.plan,
        start.source,
        again.plan,
        again.source,
        body.every,
    )


def _bind_again(
    scope: Scope,
    entry: Entry,
    body: syntax.SetOperation,
    start: Finished,
    places: Sequence[int],
) -> Finished:
    """The part that is run on its own rows; it has the types of the start."""
    prepared = scope.binding.prepare_query(scope, _as_query(body.right))
    if len(prepared.outlines) != len(start.columns):
        raise SqlSyntaxError(
            "each UNION query must have the same number of columns",
            position=body.right.position + 1,
        )
    types = [column.type for column in start.columns]
    for at, (outline, wanted) in enumerate(zip(prepared.outlines, types, strict=True), 1):
        _check_type(entry.node.name, at, wanted, outline.type, places[at - 1])
    if len(entry.self_named) > 1:
        raise _misplaced(entry, "more than once", 1)
    again = prepared.finish(types)
    for each in everything(again.plan):
        if type(each) is Aggregate and any(
            type(below) is CommonTableScan and below.number == entry.number
            for below in everything(each.input)
        ):
            raise InvalidRecursion(
                "aggregate functions are not allowed in a recursive query's recursive term",
                position=body.right.position + 1,
            )
    return again


def _check_type(name: str, at: int, start: SqlType, again: SqlType, position: int) -> None:
    try:
        overall = common_type([start, again], "UNION")
    except QserverError as error:
        error.position = position + 1
        raise
    if overall.bare != start.bare:
        raise DatatypeMismatch(
            f'recursive query "{name}" column {at} has type {start} in non-recursive term '
            f"but type {overall} overall",
            hint="Cast the output of the non-recursive term to the correct type.",
            position=position + 1,
        )


def _misplaced(entry: Entry, where: str, which: int = 0) -> InvalidRecursion:
    return InvalidRecursion(
        f'recursive reference to query "{entry.node.name}" must not appear {where}',
        position=entry.self_named[which] + 1,
    )


def _refuse_around_recursion(query: syntax.Query) -> None:
    for what, given in (
        ("ORDER BY", query.order_by),
        ("OFFSET", query.offset),
        ("LIMIT", query.limit),
    ):
        if given:
            raise FeatureNotSupported(
                f"{what} in a recursive query is not implemented", position=query.position + 1
            )


def _as_query(body: syntax.QueryBody) -> syntax.Query:
    return body if isinstance(body, syntax.Query) else syntax.Query(body, position=body.position)


def mentions(node: Any, name: str) -> bool:
    """Is there a table of that name in FROM, anywhere inside?"""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, tuple):
            waiting.extend(each)
        elif isinstance(each, syntax.Query) and name in (c.name for c in each.common_tables):
            # From there on the name means another one.
            names = [common.name for common in each.common_tables]
            waiting.extend(each.common_tables[: names.index(name) + (not each.recursive)])
        elif isinstance(each, syntax.Node):
            if isinstance(each, syntax.TableRef) and each.name == (name,):
                return True
            waiting.extend([getattr(each, field.name) for field in fields(each)])
    return False
