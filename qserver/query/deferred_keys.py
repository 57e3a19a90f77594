"""Foreign and unique keys that are checked at the end of the transaction, and which ones these are.

A key is DEFERRABLE or not, and INITIALLY DEFERRED or IMMEDIATE; SET CONSTRAINTS changes the latter
for a transaction. Only checks wait: ON DELETE CASCADE and the like act with the statement, and
RESTRICT never waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from qserver.errors import UndefinedObject, WrongObjectType
from qserver.storage.catalog import Catalog
from qserver.storage.transaction import Journal
from qserver.values.constraints import ForeignKey
from qserver.values.schema import Index, Table

Modes: TypeAlias = Mapping[tuple[str, str] | None, bool]
"""Whether a key waits, by its table's key and its name; None: all that may wait."""

NO_MODES: Final[Modes] = {}


class DeferredKeys:
    """What a transaction still has to check."""

    __slots__ = ("changes", "modes")

    def __init__(self) -> None:
        self.changes: Journal = []
        self.modes: Modes = NO_MODES

    def waits(self, table: str, key: ForeignKey | Index) -> bool:
        """Return whether the key of a table is checked at the end."""
        if not key.deferral:
            return False
        by_default = self.modes.get(None, key.deferral == "deferred")
        return self.modes.get((table, key.name), by_default)

    def set_all(self, deferred: bool) -> None:
        self.modes = {None: deferred}

    def set_one(self, table: str, name: str, deferred: bool) -> None:
        self.modes = {**self.modes, (table, name): deferred}


def constraints_named(
    catalog: Catalog, path: tuple[str, ...], name: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Return the deferrable constraints that a name means: their tables' keys, and their names."""
    schemas = path if len(name) == 1 else (name[-2],)
    tables = [each for each in catalog.definitions() if isinstance(each, Table)]
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
