"""What a session's search_path finds, and so how names are shown: the schema where it is needed.

    SET search_path TO shop, stock     names are looked for in pg_catalog, shop, stock
                                       stock.t is shown as t, unless shop has a t as well

`pg_temp` and `pg_catalog` come first where the path does not name them. Relations with their
indexes are one name space, types with the row types of relations another, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from qserver.query.catalog.data import recorded_by, relations
from qserver.query.catalog.parts import indexes_of
from qserver.query.settings.values import Settings
from qserver.storage.catalog import Catalog
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, catalog_key, quote_identifier
from qserver.values.relations import Sequence, View
from qserver.values.schema import Table
from qserver.values.temporary import TEMPORARY
from qserver.values.types import SqlType

IMPLICIT: Final = "pg_catalog"
"""The schema that is searched whether or not search_path names it."""
OWN_SCHEMAS: Final = {IMPLICIT: 11, "pg_toast": 99, PUBLIC: 2200, "information_schema": 13124}
_OWN_NAMES: Final = {oid: name for name, oid in OWN_SCHEMAS.items()}


class SearchPath:
    """The search_path of a session in one catalog; a `NamesPort` for texts of definitions."""

    __slots__ = ("_catalog", "schemas")

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        path = settings.path
        path = path if IMPLICIT in path else (IMPLICIT, *path)
        is_implied = catalog.temporary is not None and TEMPORARY not in path
        self.schemas = (TEMPORARY, *path) if is_implied else path

    # --- looking ---

    def relation(self, name: str, schemas: Iterable[str] = ()) -> int | None:
        """Return the oid of the first relation or index of a name, in a schema or on the path."""
        return self._first(self._relation_in, name, schemas)

    def type(self, name: str, schemas: Iterable[str] = ()) -> int | None:
        """Return the oid of the first type of a name, by which pg_type has it: `_int4`."""
        return self._first(self._type_in, name, schemas)

    def _first(
        self, look: Callable[[str, str], int | None], name: str, schemas: Iterable[str]
    ) -> int | None:
        for schema in list(schemas)[-1:] or self.schemas:
            found = look(schema, name)
            if found is not None:
                return found
        return None

    def _relation_in(self, schema: str, name: str) -> int | None:
        data = relations().get((schema, name))
        if data is not None:
            return data.oid
        for row in recorded_by("pg_class", "relname").get(name, ()):
            if own_schema(row[2]) == schema:
                return int(row[0])
        key = catalog_key(schema, name)
        definition = self._catalog.find(key)
        if isinstance(definition, Table | View | Sequence):
            return definition.oid
        owner = self._catalog.index_owner(key)
        for index in indexes_of(owner) if owner is not None else ():
            if index.name == name:
                return index.oid
        return None

    def _type_in(self, schema: str, name: str) -> int | None:
        for row in recorded_by("pg_type", "typname").get(name, ()):
            if own_schema(row[2]) == schema:
                return int(row[0])
        own = self._type_of(schema, name)
        if own is not None or not name.startswith("_"):
            return own
        element = self._type_of(schema, name[1:])
        return None if element is None else element + 1

    def _type_of(self, schema: str, name: str) -> int | None:
        found = self._catalog.find(catalog_key(schema, name))
        if isinstance(found, Enumeration):
            return found.oid
        return found.oid + 1 if isinstance(found, Table | View) else None

    # --- showing ---

    def has(self, schema: str) -> bool:
        return schema in self.schemas

    def shown_relation(self, schema: str, name: str) -> str:
        is_visible = self.shows_relation(schema, name)
        return quote_identifier(name) if is_visible else full_name(schema, name)

    def shows_relation(self, schema: str, name: str) -> bool:
        """Whether a relation or index needs no schema before its name."""
        return self._shows(self._relation_in, schema, name)

    def shown_type(self, schema: str, name: str) -> str:
        return quote_identifier(name) if self.shows_type(schema, name) else full_name(schema, name)

    def shows_type(self, schema: str, name: str) -> bool:
        return self._shows(self._type_in, schema, name)

    def _shows(self, look: Callable[[str, str], int | None], schema: str, name: str) -> bool:
        if schema not in self.schemas:
            return False
        first = next((each for each in self.schemas if look(each, name) is not None), schema)
        return first == schema

    # --- names in stored texts, where one without a schema is of public ---

    def relation_text(self, name: tuple[str, ...]) -> str:
        if len(name) == 1 and (IMPLICIT, name[0]) in relations():
            return self.shown_relation(IMPLICIT, name[0])
        return self.shown_relation(name[-2] if len(name) > 1 else PUBLIC, name[-1])

    def type_name(self, name: tuple[str, ...]) -> str:
        return self.shown_type(name[-2] if len(name) > 1 else PUBLIC, name[-1])

    def type_text(self, sql_type: SqlType) -> str:
        enum = (sql_type.element or sql_type).enum
        if enum is None:
            return str(sql_type)
        shown = self.shown_type(enum.schema, enum.name)
        return shown if sql_type.element is None else f"{shown}[]"


def full_name(schema: str, name: str) -> str:
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def own_schema(oid: int) -> str:
    """Return the schema that one of PostgreSQL's own objects is in."""
    return _OWN_NAMES.get(oid, PUBLIC)


def schema_of_row(table: str, row: tuple[Any, ...]) -> str:
    """Return the schema of a recorded function, operator, collation …"""
    names = relations()["pg_catalog", table].names
    at = next(at for at, name in enumerate(names) if name.endswith("namespace"))
    return own_schema(row[at])
