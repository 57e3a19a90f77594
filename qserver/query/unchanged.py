"""`if_version`: runs a request only if no table that it touches has changed since a version.

A request touches the tables that its statements name, those that foreign keys lead to, and those
whose definitions it changes. A touched table counts as a whole: it becomes part of the footprint,
so that a change before the commit makes the request run again, and be refused. So does the catalog:
a definition that was changed and changed back is equal to the one that was read, and has changed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from qserver.engine.work import Step
from qserver.errors import InvalidRequest, SerializationFailure
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.results import Body, Result
from qserver.storage.conflict import Conflict
from qserver.storage.conflict_place import statement_naming
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.values.identifiers import name_of_key
from qserver.values.schema import Table


def check_reads(version: int, statements: Iterable[PreparedStatement], snapshot: Snapshot) -> None:
    """Raise if a table that these plans read has changed since the version."""
    _check_exists(version, snapshot)
    for index, statement in enumerate(statements):
        plan = statement.plan
        assert plan is not None, "statements that only read have plans"
        for definition in plan.names.values():
            if isinstance(definition, Table):
                _check(definition, version, snapshot, index)


def run_unchanged(
    body: Body, version: int, transaction: Transaction
) -> Generator[Step, Any, list[Result]]:
    """Run statements; raise if a table that they touched has changed since the version."""
    snapshot = transaction.snapshot
    _check_exists(version, snapshot)
    if transaction.marks is None:
        transaction.marks = []  # to name the statement
    results = yield from body(transaction)
    for table in _touched(transaction):
        trees = (table.id, *(index.id for index in table.indexes))
        index = statement_naming(table.key, transaction)
        if transaction.earlier and any(tree in transaction.earlier for tree in trees):
            raise _changed(table.key, version, snapshot.version + 1, index)
        _check(table, version, snapshot, index)
        transaction.ranges.append(ScannedRange(table.id, None, None, None))
    transaction.whole_catalog_seen = True
    return results


def check_all(version: int, then: Snapshot, transaction: Transaction) -> None:
    """Raise if any table or definition has changed since a version; `then` is its snapshot."""
    now = transaction.snapshot
    _check_exists(version, now)
    catalogs = now.catalog, then.catalog
    for key in sorted({key for each in catalogs for key in (*each.tables, *each.others)}):
        found = now.catalog.find(key)
        changed, _ = now.catalog.last_change_of(key)
        if isinstance(found, Table):
            changed, _ = now.last_change(found)
            trees = (found.id, *(index.id for index in found.indexes))
            if transaction.earlier and any(tree in transaction.earlier for tree in trees):
                changed = now.version + 1
        if changed > version or found != then.catalog.find(key):
            raise _changed(key, version, max(changed, version + 1))


def _touched(transaction: Transaction) -> list[Table]:
    """Return the tables of the snapshot that the transaction has read, written, named or
    redefined."""
    catalog = transaction.snapshot.catalog
    trees = {*transaction.keys, *transaction.writes, *(each.tree for each in transaction.ranges)}
    ids = {catalog.table_of_tree(tree) for tree in trees}
    named = [
        *transaction.names_seen.values(),
        *map(catalog.find, transaction.catalog_changes.definitions),
    ]
    ids |= {each.id for each in named if isinstance(each, Table)}
    return [table for _, table in sorted(catalog.tables.items()) if table.id in ids]


def _check_exists(version: int, snapshot: Snapshot) -> None:
    if version > snapshot.version:
        raise InvalidRequest(
            f"there is no version {version} yet, the newest is {snapshot.version}",
            hint="Send a version that an answer has named.",
        )


def _check(table: Table, version: int, snapshot: Snapshot, index: int | None = None) -> None:
    changed, _ = snapshot.last_change(table)
    if changed > version:
        raise _changed(table.key, version, changed, index)


def _changed(
    key: str, version: int, changed: int, index: int | None = None
) -> SerializationFailure:
    name = name_of_key(key)
    conflict = Conflict(
        "a table has changed",
        table=name,
        version_read=version,
        version_found=changed,
        statement=index,
        is_exact=True,
    )
    error = SerializationFailure(
        f'table "{name}" has changed since version {version}',
        hint="Read it again, and decide anew.",
        conflict=conflict,
    )
    error.retryable = False  # the same request cannot succeed
    return error
