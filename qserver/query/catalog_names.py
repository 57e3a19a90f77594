"""Answers the binder's questions about names from a catalog.

A name without a schema belongs to `public`, or to the first schema of the session's search_path
that has it. The tables of `information_schema` and `pg_catalog` are
made of the catalog itself, see `system_tables`.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import UndefinedSchema
from qserver.query.settings.values import Scope
from qserver.query.system_tables import SCHEMAS, find_system_table
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, catalog_key
from qserver.values.relations import Definition, View
from qserver.values.schema import Table
from qserver.values.types import BIGINT, TEXT, Kind, SqlType

STANDING_FOR_OTHERS: Final = {
    "regclass": TEXT,
    "regtype": TEXT,
    "regproc": TEXT,
    "regnamespace": TEXT,
    "oid": BIGINT,
    "xid": BIGINT,
    '"char"': TEXT,
}
"""Types that tools ask PostgreSQL for; here a name is a text, and an oid an integer."""


class CatalogNames:
    """Names as one statement finds them; remembers what it was asked."""

    __slots__ = ("catalog", "found", "in_utc", "path", "system_tables", "trees")

    def __init__(self, catalog: Catalog, snapshot: Snapshot, scope: Scope | None = None) -> None:
        self.catalog = catalog
        self.trees = snapshot.trees  # only to count: a planner is no reader of the snapshot
        self.found: dict[str, Definition | None] = {}
        """What was found under which key; None: nothing, where search_path has looked first."""
        self.system_tables = False
        """Whether a system table was found."""
        self.path = None if scope is None or scope.path == (PUBLIC,) else scope.path
        self.in_utc = scope is None or scope.tzinfo is None

    @property
    def stored(self) -> CatalogNames:
        if self.path is None:
            return self
        return StoredNames(self)

    def find(self, name: tuple[str, ...]) -> Definition | None:
        if len(name) == 1 and self.path is not None:
            return self._searched(name[0])
        key = catalog_key(name[-2] if len(name) > 1 else PUBLIC, name[-1])
        definition = self.catalog.find(key)
        if definition is not None:
            self.found[key] = definition
        return definition

    def _searched(self, name: str) -> Definition | None:
        """Return the first definition of the name on the path; where there is none matters, too."""
        assert self.path is not None
        for schema in self.path:
            key = catalog_key(schema, name)
            definition = self.found[key] = self.catalog.find(key)
            if definition is not None:
                return definition
            if schema in SCHEMAS and find_system_table(schema, name) is not None:
                return None
        return None

    def find_table(self, name: tuple[str, ...]) -> Table | None:
        definition = self.find(name)
        if definition is not None or (len(name) > 1 and name[-2] not in SCHEMAS):
            return definition if isinstance(definition, Table) else None
        for schema in name[-2:-1] or (*(self.path or ()), "pg_catalog"):
            table = find_system_table(schema, name[-1])
            if table is not None:
                self.system_tables = True
                return table
        return None

    def find_view(self, name: tuple[str, ...]) -> View | None:
        definition = self.find(name)
        return definition if isinstance(definition, View) else None

    def find_type(self, name: tuple[str, ...]) -> SqlType | None:
        """Return an ENUM, or a type that stands for PostgreSQL's own oids and names.

        Raise if the schema does not exist.
        """
        definition = self.find(name)
        if isinstance(definition, Enumeration):
            return SqlType(Kind.ENUM, enum=definition)
        if len(name) > 1 and not self.has_schema(name[-2]):
            raise UndefinedSchema(f'schema "{name[-2]}" does not exist')
        return STANDING_FOR_OTHERS.get(name[-1]) if name[:-1] in ((), ("pg_catalog",)) else None

    def has_schema(self, name: str) -> bool:
        return name == PUBLIC or name in SCHEMAS or self.find((name, "")) is not None

    def row_count(self, table: Table) -> int:
        return len(self.trees.tree(table.id))


class StoredNames(CatalogNames):
    """Names in texts of definitions: without the search_path, but part of the same statement."""

    __slots__ = ("_statement",)

    def __init__(self, statement: CatalogNames) -> None:
        self.catalog, self.trees, self.found = statement.catalog, statement.trees, statement.found
        self.path, self.in_utc = None, statement.in_utc
        self._statement = statement

    def find_table(self, name: tuple[str, ...]) -> Table | None:
        self.system_tables = False
        table = super().find_table(name)
        if self.system_tables:
            self._statement.system_tables = True
        return table
