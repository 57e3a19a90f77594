"""The texts of expressions in definitions, as PostgreSQL prints them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, final

from qserver.query.catalog.data import SYSTEM_SCHEMAS
from qserver.sql import NamesPort, Sizes, StoredExpression
from qserver.values.identifiers import PUBLIC, catalog_key
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.types import Kind, SqlType

TEXTS_KEPT: Final = 4096


@final
class NodeTree(str):
    """A value of pg_node_tree: the expression that it is, and how it is printed pretty."""

    __slots__ = ("pretty",)

    pretty: str

    def __new__(cls, text: str, pretty: str) -> NodeTree:
        value = super().__new__(cls, text)
        value.pretty = pretty
        return value


def node_tree(table: Table, text: str, wanted: SqlType | None, names: NamesPort) -> NodeTree:
    """Return an expression as it is printed with the names of a session."""
    return NodeTree(*_stored(_Itself(table), text, wanted).printed(names))


@final
class _Itself:
    """A table that is equal to none but itself: to compare definitions would take longer."""

    __slots__ = ("table",)

    def __init__(self, table: Table) -> None:
        self.table = table

    def __eq__(self, other: object) -> bool:
        return type(other) is _Itself and self.table is other.table

    def __hash__(self) -> int:
        return id(self.table)


@lru_cache(maxsize=TEXTS_KEPT)
def _stored(table: _Itself, text: str, wanted: SqlType | None) -> StoredExpression:
    return StoredExpression(text, table.table, _TypesOf(table.table), wanted)


class _TypesOf:
    """A catalog for the binder, of the types of a table's columns: expressions need no more."""

    def __init__(self, table: Table) -> None:
        types = [column.type.element or column.type for column in table.columns]
        self._enums = {each.enum.key: each.enum for each in types if each.enum is not None}

    def find_table(self, name: tuple[str, ...]) -> Table | None:
        return None

    def find_view(self, name: tuple[str, ...]) -> View | None:
        return None

    sequence_as_view = find_view

    def find_type(self, name: tuple[str, ...]) -> SqlType | None:
        enum = self._enums.get(catalog_key(name[-2] if len(name) > 1 else PUBLIC, name[-1]))
        return None if enum is None else SqlType(Kind.ENUM, enum=enum)

    def check_database(self, name: tuple[str, ...]) -> None:
        pass

    def has_schema(self, name: str) -> bool:
        return name == PUBLIC or name in SYSTEM_SCHEMAS

    @property
    def stored(self) -> _TypesOf:
        return self

    in_utc = True
    has_path = False

    def read_definitions(self) -> None:
        pass

    statistics = Sizes(lambda table: 0)
