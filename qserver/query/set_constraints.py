"""SET CONSTRAINTS: which foreign and unique keys are checked at the end of the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.errors import UndefinedObject, WrongObjectType
from qserver.query.catalog_names import CatalogNames
from qserver.query.cursor import Cursor, StatementSteps
from qserver.query.deferred_keys import DeferredKeys
from qserver.query.foreign_keys import check_deferred
from qserver.query.statement_port import StatementPort
from qserver.sql import ast
from qserver.values.constraints import ForeignKey
from qserver.values.schema import Index, Table


def set_constraints(
    run: StatementPort, node: ast.SetConstraints, literals: Sequence[Any]
) -> Cursor:
    return Cursor(_steps(run, run.own_session().deferred, node), run.context)


def _steps(run: StatementPort, deferred: DeferredKeys, node: ast.SetConstraints) -> StatementSteps:
    run.warn_outside_block("SET CONSTRAINTS")
    if node.names is None:
        deferred.set_all(node.deferred)
    for name in node.names or ():
        for table, key in _named(run.names, run.path, name):
            deferred.set_one(table, key, node.deferred)
    run.transaction.whole_catalog_seen = True
    if not node.deferred:
        yield from check_deferred(run, deferred, at_end=False)
    return 0


def _named(
    names: CatalogNames, path: tuple[str, ...], name: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Return the deferrable constraints that a name means: their tables' keys, and their names."""
    names.check_database(name)
    schemas = path if len(name) == 1 else (name[-2],)
    tables = [each for each in names.catalog.definitions() if isinstance(each, Table)]
    for schema in schemas:
        here = [each for each in tables if each.schema == schema]
        found = [(each, key) for each in here for key in _keys(each) if key.name == name[-1]]
        if any(not key.deferral for _, key in found) or any(
            _has_other(each, name) for each in here
        ):
            raise WrongObjectType(f'constraint "{name[-1]}" is not deferrable')
        if found:
            return [(table.key, key.name) for table, key in found]
    raise UndefinedObject(f'constraint "{name[-1]}" does not exist')


def _keys(table: Table) -> list[ForeignKey | Index]:
    return [*table.foreign_keys, *(index for index in table.indexes if index.deferral)]


def _has_other(table: Table, name: tuple[str, ...]) -> bool:
    """Return whether a table has a constraint of the name that can never wait."""
    names = [check.name for check in table.checks]
    names += [index.name for index in table.indexes if index.constraint and not index.deferral]
    return name[-1] in (*names, table.primary_key_name)
