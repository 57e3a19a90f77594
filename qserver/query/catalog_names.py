"""Answers the binder's questions about names from a catalog.

A name without a schema belongs to `public`, or to the first schema of the session's search_path
that has it. The tables of `information_schema` and `pg_catalog` are
made of the catalog itself, see `catalog`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qserver.errors import UndefinedSchema
from qserver.query.catalog.data import SYSTEM_SCHEMAS
from qserver.query.catalog.relations import find_relation
from qserver.query.catalog.types import domain
from qserver.query.data_statistics import DataStatistics
from qserver.query.definition_texts import SYSTEM_TABLES
from qserver.query.extension_views import EXTENSION_VIEWS
from qserver.query.settings.values import Scope
from qserver.sql import refuse_other_database
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, catalog_key
from qserver.values.relations import Definition, Sequence, View
from qserver.values.schema import Table
from qserver.values.types import BIGINT, BOOLEAN, Kind, SqlType

OWN_SCHEMA: Final = "qserver_catalog"
_OF_SEQUENCE: Final = (("last_value", BIGINT), ("log_cnt", BIGINT), ("is_called", BOOLEAN))
_OWN: Final = {each.table.name: replace(each.table, schema=OWN_SCHEMA) for each in SYSTEM_TABLES}


class CatalogNames:
    """Names as one statement finds them; remembers what it was asked."""

    __slots__ = (
        "catalog",
        "database",
        "found",
        "in_utc",
        "names_database",
        "path",
        "statistics",
        "system_tables",
    )

    def __init__(
        self,
        catalog: Catalog,
        snapshot: Snapshot,
        scope: Scope | None = None,
        statistics: DataStatistics | None = None,
        database: str | None = None,
    ) -> None:
        """Whoever plans must hold the snapshot meanwhile, as a reader of its trees. Without
        `statistics` no page is read; without the name of a database any may stand before a schema.
        """
        self.catalog = catalog
        self.statistics = statistics or DataStatistics(snapshot.trees, may_read=False)
        self.found: dict[str, Definition | None] = {}
        """What was found under which key; None: nothing, where search_path has looked first."""
        self.system_tables = False
        """Whether a system table was found."""
        self.path = None if scope is None or scope.path == (PUBLIC,) else scope.path
        self.in_utc = scope is None or scope.tzinfo is None
        self.database = database
        self.names_database = False
        """Whether the statement names the database, which a request may know by another name."""

    @property
    def has_path(self) -> bool:
        return self.path is not None

    @property
    def stored(self) -> CatalogNames:
        if self.path is None and self.database is None:
            return self
        return StoredNames(self)

    def find(self, name: tuple[str, ...]) -> Definition | None:
        if len(name) == 1 and self.path is not None:
            return self._searched(name[0])
        self.check_database(name)
        key = catalog_key(name[-2] if len(name) > 1 else PUBLIC, name[-1])
        definition = self.catalog.find(key)
        if definition is not None:
            self.found[key] = definition
        return definition

    def check_database(self, name: tuple[str, ...]) -> None:
        """Raise unless a name of three parts begins with that of this database."""
        self.names_database = self.names_database or len(name) > 2
        if self.database is not None:
            refuse_other_database(name, self.database)

    def _searched(self, name: str) -> Definition | None:
        """Return the first definition of the name on the path; where there is none matters, too."""
        assert self.path is not None
        for schema in self.path:
            key = catalog_key(schema, name)
            definition = self.found[key] = self.catalog.find(key)
            if definition is not None:
                return definition
            if find_relation(schema, name) is not None:
                return None
        return None

    def find_table(self, name: tuple[str, ...]) -> Table | None:
        found = self._find_relation(name)
        return found if isinstance(found, Table) else None

    def find_view(self, name: tuple[str, ...]) -> View | None:
        found = self._find_relation(name)
        return found if isinstance(found, View) else None

    def sequence_as_view(self, name: tuple[str, ...]) -> View | None:
        """A sequence can be read as a relation with one row, which says where it has come to."""
        found = self._find_relation(name)
        if not isinstance(found, Sequence):
            return None
        self.system_tables = True
        text = (
            "SELECT last_value, 0::bigint AS log_cnt, is_called"
            f" FROM pg_catalog.pg_get_sequence_data({found.oid})"
        )
        names = tuple(column for column, _ in _OF_SEQUENCE)
        return View(found.name, _OF_SEQUENCE, names, text, schema=found.schema, oid=found.oid)

    def _find_relation(self, name: tuple[str, ...]) -> Definition | None:
        """Find what a name means: pg_catalog comes before public, as in PostgreSQL."""
        self.check_database(name)
        schema = name[-2] if len(name) > 1 else "pg_catalog"
        if schema in SYSTEM_SCHEMAS and (len(name) > 1 or name[-1].startswith("pg_")):
            found = find_relation(schema, name[-1])
            if found is not None:
                self.system_tables = True
                return found
        if schema == OWN_SCHEMA and name[-1] in _OWN:
            self.system_tables = True
            return _OWN[name[-1]]
        definition = self.find(name)
        if definition is None and len(name) == 1:
            for searched in self.path or ():
                found = find_relation(searched, name[0])
                if found is not None:
                    self.system_tables = True
                    return found
        if definition is None and name[-1] in EXTENSION_VIEWS and name[:-1] in ((), (PUBLIC,)):
            self.system_tables = True
            return EXTENSION_VIEWS[name[-1]]
        return definition

    def find_type(self, name: tuple[str, ...]) -> SqlType | None:
        """Return an ENUM, or what a domain is made of; raise if the schema does not exist."""
        definition = self.find(name)
        if isinstance(definition, Enumeration):
            return SqlType(Kind.ENUM, enum=definition.in_column)
        if name[:-1] == ("information_schema",):
            return domain(name[-1])
        if len(name) > 1 and not self.has_schema(name[-2]):
            raise UndefinedSchema(f'schema "{name[-2]}" does not exist')
        return None

    def has_schema(self, name: str) -> bool:
        own = name in (PUBLIC, OWN_SCHEMA, *SYSTEM_SCHEMAS)
        return own or self.find((name, "")) is not None

    def read_definitions(self) -> None:
        self.system_tables = True


class StoredNames(CatalogNames):
    """Names in texts of definitions: without the search_path, but part of the same statement."""

    __slots__ = ("_statement",)

    def __init__(self, statement: CatalogNames) -> None:
        self.catalog, self.found = statement.catalog, statement.found
        self.statistics = statement.statistics
        self.path, self.in_utc, self.database = None, statement.in_utc, None
        self.names_database = False
        self._statement = statement

    def _find_relation(self, name: tuple[str, ...]) -> Definition | None:
        self.system_tables = False
        found = super()._find_relation(name)
        if self.system_tables:
            self._statement.system_tables = True
        return found

    def read_definitions(self) -> None:
        self._statement.system_tables = True
