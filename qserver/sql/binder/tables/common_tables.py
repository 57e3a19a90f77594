"""WITH: queries that have a name for the rest of the statement, and may refer to themselves.

A CTE is computed once; each reference reads its rows (CommonTableScan). With RECURSIVE a query is
bound when it is first needed: by another one, by itself (see `recursive_tables`), or at the end.

A query without references is checked and dropped; INSERT, UPDATE and DELETE always run. References
are known only when the whole statement is bound, so its plan is wrapped in the CTEs last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qserver.errors import (
    DuplicateAlias,
    FeatureNotSupported,
    QserverError,
    SqlSyntaxError,
)
from qserver.sql import ast
from qserver.sql.binder.names.relations import Relation, relation_of_query
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.tables.recursive_tables import (
    Entry,
    bind_recursive,
    mentions,
    named_columns,
)
from qserver.sql.plan import (
    CommonTable,
    CommonTableScan,
    Plan,
    WithTables,
)
from qserver.sql.walk import everything


class CommonTables:
    """The names of one WITH, and of the WITHs around it."""

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


def with_common_tables(scope: Scope, nodes: Sequence[ast.CommonTable], recursive: bool) -> Scope:
    """Return the scope that knows the names."""
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
    """Wrap the plan in the CTEs of the scope's WITH that it needs."""
    tables = scope.common_tables
    assert tables is not None
    bound = [entry for entry in tables.bound if entry.table is not None]
    needed = [entry for entry in bound if entry.named or _is_change(entry)]
    while len(needed) < len(
        bound
    ):  # what only a table names that nobody needs is not needed either
        unneeded = _scans([entry.table for entry in bound if entry not in needed])
        scans = _scans([plan, *[entry.table for entry in needed]])
        kept = [
            entry
            for entry in needed
            if _is_change(entry) or scans[entry.number] or entry.named > unneeded[entry.number]
        ]
        if len(kept) == len(needed):
            break
        needed = kept
    made = tuple([entry.table for entry in needed if entry.table is not None])
    scope.binding.unused += [
        entry.table for entry in bound if entry not in needed and entry.table is not None
    ]
    return WithTables(made, plan) if made else plan


def _scans(nodes: Sequence[Any]) -> Counter[int]:
    """How often each common table is read."""
    return Counter(
        each.number
        for node in nodes
        for each in everything(node)
        if isinstance(each, CommonTableScan)
    )


def scan_common_table(scope: Scope, item: ast.TableRef) -> tuple[CommonTableScan, Relation] | None:
    """Return a scan of the CTE of that name, if there is one."""
    found = None if scope.common_tables is None else scope.common_tables.find(item.name[0])
    if found is None:
        return None
    tables, entry = found
    if not entry.begun:
        _bind(tables, entry, recursive=True)
    if entry.table is not None:
        entry.named += 1
    if entry.columns is None:
        raise _no_columns(entry, item)
    source = scope.binding.new_source()
    scan = CommonTableScan(source, entry.number, entry.columns)
    return scan, relation_of_query(entry.node.name, source, entry.columns)


def _no_columns(entry: Entry, item: ast.TableRef) -> QserverError:
    """Return the error for a reference to a CTE whose columns are not known."""
    name = entry.node.name
    if entry.table is not None:
        return FeatureNotSupported(
            f'WITH query "{name}" does not have a RETURNING clause', position=item.position + 1
        )
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
    return not isinstance(entry.node.statement, ast.Query)


def _bind(tables: CommonTables, entry: Entry, recursive: bool) -> None:
    if entry.begun:
        return
    entry.begun = True
    scope, node = tables.scope, entry.node
    assert scope is not None
    scope.binding.enter()
    statement = node.statement
    if isinstance(statement, ast.Query):
        if recursive and mentions(statement, node.name):
            bind_recursive(scope, entry, statement)
        elif node.search is not None or node.cycle is not None:
            raise SqlSyntaxError("WITH query is not recursive", position=node.position + 1)
        else:
            query = scope.binding.prepare_query(scope, statement).finish()
            entry.columns = named_columns(node, query.columns)
            entry.table = CommonTable(entry.number, node.name, query.plan, query.source)
    else:
        _bind_change(scope, entry, statement)
    tables.bound.append(entry)
    scope.binding.leave()


def _bind_change(scope: Scope, entry: Entry, statement: Any) -> None:
    if not any(entry.node is each for each in scope.binding.top_tables):
        raise FeatureNotSupported(
            "WITH clause containing a data-modifying statement must be at the top level",
            position=entry.node.position + 1,
        )
    change = scope.binding.bind_change(scope, statement)
    if change.returning is not None:
        entry.columns = named_columns(entry.node, change.returning.columns)
    entry.table = CommonTable(entry.number, entry.node.name, change, scope.binding.new_source())
