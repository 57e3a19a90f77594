"""Answers the binder's questions about names from a catalog.

A name without a schema belongs to `public`. The tables of `information_schema` and `pg_catalog` are
made of the catalog itself, see `system_tables`.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import UndefinedSchema
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

    __slots__ = ("catalog", "found", "system_tables", "trees")

    def __init__(self, catalog: Catalog, snapshot: Snapshot) -> None:
        self.catalog = catalog
        self.trees = snapshot.trees  # only to count: a planner is no reader of the snapshot
        self.found: dict[str, Definition] = {}
        self.system_tables = False
        """Whether a system table was found."""

    def find(self, name: tuple[str, ...]) -> Definition | None:
        key = catalog_key(name[-2] if len(name) > 1 else PUBLIC, name[-1])
        definition = self.catalog.find(key)
        if definition is not None:
            self.found[key] = definition
        return definition

    def find_table(self, name: tuple[str, ...]) -> Table | None:
        definition = self.find(name)
        if definition is not None or (len(name) > 1 and name[-2] not in SCHEMAS):
            return definition if isinstance(definition, Table) else None
        table = find_system_table(name[-2] if len(name) > 1 else "pg_catalog", name[-1])
        if table is not None:
            self.system_tables = True
        return table

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
