"""Names and numbers of objects: what regclass, regtype and their kin read and show.

A name that the session's search_path finds is shown without its schema, others with it; quotes are
where they have to be. An oid that nothing has is shown as a number, 0 as a dash, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.engine.sequence_states import SequenceState, state_of
from qserver.engine.sequences import Sequences
from qserver.errors import (
    AmbiguousFunction,
    InvalidName,
    NumericValueOutOfRange,
    QserverError,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
)
from qserver.functions.context import PagePort
from qserver.query.catalog.data import recorded_by, recorded_rows, relations
from qserver.query.catalog.parts import indexes_of
from qserver.query.catalog.roles import ROLE_NAMES, ROLES
from qserver.query.catalog.search_path import OWN_SCHEMAS, full_name, own_schema, schema_of_row
from qserver.query.catalog.types import find_type_oid, shown_type, type_named
from qserver.query.catalog.world import Shown, World
from qserver.query.server_facts import NO_FACTS, ServerFacts
from qserver.sql import refuse_other_database
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.identifiers import identifiers, quote_identifier
from qserver.values.object_names import NO_OBJECT, ObjectName
from qserver.values.relations import Schema, Sequence, View
from qserver.values.schema import Table
from qserver.values.types import Kind, SqlType


class CatalogObjects:
    """The objects of one catalog. It answers for one run of a statement."""

    __slots__ = ("_sequences", "pages", "reader", "world")

    def __init__(
        self,
        reader: Transaction | Snapshot,
        pages: PagePort | None = None,
        session: Shown | None = None,
        server: ServerFacts = NO_FACTS,
        sequences: Sequences | None = None,
    ) -> None:
        """`sequences`: those that give values now; None where the database can only be read."""
        snapshot = reader.snapshot if isinstance(reader, Transaction) else reader
        self.world = World(reader.catalog, snapshot, session, server)
        self.reader = reader
        self.pages = pages
        self._sequences = sequences

    def state_of(self, sequence: Sequence) -> SequenceState:
        """Return the value that was given last, not the last one that is reserved."""
        given = None if self._sequences is None else self._sequences.state_given(sequence)
        return state_of(self.reader, sequence) if given is None else given

    def type_named(self, text: str) -> SqlType:
        return type_named(self.world, text)

    # --- from a number ---

    def named(self, kind: Kind, oid: int) -> ObjectName:
        if oid == 0:
            return NO_OBJECT
        return ObjectName(oid, _SHOWN[kind](self, oid) or str(oid))

    def class_name(self, oid: int) -> str | None:
        """Return the name of a relation or an index as regclass shows it."""
        place = self.class_place(oid)
        return None if place is None else self.world.path.shown_relation(*place)

    def class_place(self, oid: int) -> tuple[str, str] | None:
        """Return schema and name of a relation or an index."""
        for definition in self.world.with_oid(oid):
            if isinstance(definition, Table):
                for index in indexes_of(definition):
                    if index.oid == oid:
                        return definition.schema, index.name
            if isinstance(definition, Table | View | Sequence) and definition.oid == oid:
                return definition.schema, definition.name
        for row in recorded_by("pg_class", "oid").get(oid, ()):
            return own_schema(row[2]), row[1]
        return None

    def type_name(self, oid: int) -> str | None:
        return shown_type(self.world, oid)

    def schema_name(self, oid: int) -> str | None:
        for name, number in OWN_SCHEMAS.items():
            if number == oid:
                return quote_identifier(name)
        for each in self.world.with_oid(oid):
            if isinstance(each, Schema):
                return quote_identifier(each.name)
        return None

    def _procedure_name(self, oid: int) -> str | None:
        """Return a function's name; with its schema if that alone does not find it."""
        for row in recorded_by("pg_proc", "oid").get(oid, ()):
            return self._shown("pg_proc", row)
        return None

    def _procedure_signature(self, oid: int) -> str | None:
        for row in recorded_by("pg_proc", "oid").get(oid, ()):
            return f"{self._procedure_name(oid)}({self._types(_proc(row)['proargtypes'])})"
        return None

    def _types(self, oids: tuple[int, ...]) -> str:
        return ",".join(self.type_name(each) or str(each) for each in oids)

    def _operator_name(self, oid: int) -> str | None:
        for row in recorded_by("pg_operator", "oid").get(oid, ()):
            return str(row[1])
        return None

    def _shown(self, table: str, row: tuple[Any, ...]) -> str:
        """Return the name of one of PostgreSQL's own objects, after its schema if need be."""
        schema = schema_of_row(table, row)
        is_visible = self.world.path.has(schema)
        return quote_identifier(row[1]) if is_visible else full_name(schema, row[1])

    def _operator_signature(self, oid: int) -> str | None:
        for row in recorded_by("pg_operator", "oid").get(oid, ()):
            sides = [self.type_name(each) if each else "NONE" for each in row[7:9]]
            return f"{row[1]}({sides[0]},{sides[1]})"
        return None

    def _collation_name(self, oid: int) -> str | None:
        for row in recorded_by("pg_collation", "oid").get(oid, ()):
            return self._shown("pg_collation", row)
        return None

    # --- from a text ---

    def read(self, kind: Kind, text: str) -> ObjectName:
        word = text.strip()
        if word == "-":
            return NO_OBJECT
        if word.isascii() and word.isdigit():
            if len(word) > 10 or int(word) >= 2**32:
                raise NumericValueOutOfRange(f'value "{word}" is out of range for type oid')
            return self.named(kind, int(word))
        found = self.find(kind, text)
        if found is None:
            raise _missing(kind, text)
        return found

    def find(self, kind: Kind, text: str) -> ObjectName | None:
        try:
            found = _FOUND[kind](self, text)
        except (UndefinedSchema, InvalidName, SqlSyntaxError):
            return None
        return None if found is None else self.named(kind, found)

    def find_class(self, text: str) -> int | None:
        *schemas, name = identifiers(text)
        refuse_other_database((*schemas, name), self.world.server.database)
        return self.world.path.relation(name, schemas)

    def find_type(self, text: str) -> int | None:
        return find_type_oid(self.world, text)

    def _find_schema(self, text: str) -> int | None:
        name, *more = identifiers(text)
        if more:
            raise InvalidName("invalid name syntax")
        return self.world.schema_oid(name) or None

    def _find_role(self, text: str) -> int | None:
        name, *more = identifiers(text)
        return None if more else ROLES.get(name)

    def _find_procedure(self, text: str) -> int | None:
        found = list(self._procedures(text))
        if len(found) > 1:
            raise AmbiguousFunction(f'more than one function named "{text}"')
        return found[0][0] if found else None

    def _procedures(self, text: str) -> Iterator[tuple[Any, ...]]:
        return self._recorded("pg_proc", "proname", text)

    def _recorded(self, table: str, column: str, text: str) -> Iterator[tuple[Any, ...]]:
        """Yield PostgreSQL's own objects of a name, in its schema or on the path."""
        *schemas, name = identifiers(text)
        wanted = schemas[-1:] or self.world.path.schemas
        for row in recorded_by(table, column).get(name, ()):
            if schema_of_row(table, row) in wanted:
                yield row

    def _find_signature(self, text: str) -> int | None:
        name, parenthesis, rest = text.partition("(")
        if not parenthesis or not rest.rstrip().endswith(")"):
            raise SqlSyntaxError("expected a left parenthesis")
        words = [each for each in rest.rstrip()[:-1].split(",") if each.strip()]
        wanted = tuple(self.find_type(word) for word in words)
        for row in self._procedures(name):
            if _proc(row)["proargtypes"] == wanted:
                return int(row[0])
        return None

    def _find_operator(self, text: str) -> int | None:
        name = text.strip().rpartition(".")[2]
        found = recorded_by("pg_operator", "oprname").get(name, ())
        if len(found) > 1:
            raise AmbiguousFunction(f"more than one operator named {text}")
        return int(found[0][0]) if found else None

    def _find_operator_signature(self, text: str) -> int | None:
        name, _, rest = text.strip().partition("(")
        sides = [each.strip() for each in rest.rstrip(")").split(",")]
        oids = tuple(0 if side.lower() == "none" else self.find_type(side) for side in sides)
        for row in recorded_by("pg_operator", "oprname").get(name.rpartition(".")[2], ()):
            if row[7:9] == oids:
                return int(row[0])
        return None

    def _find_collation(self, text: str) -> int | None:
        return self._find_recorded("pg_collation", "collname", text)

    def _find_recorded(self, table: str, column: str, text: str) -> int | None:
        return next((int(row[0]) for row in self._recorded(table, column, text)), None)

    def _find_config(self, text: str) -> int | None:
        return self._find_recorded("pg_ts_config", "cfgname", text)

    def _find_dictionary(self, text: str) -> int | None:
        return self._find_recorded("pg_ts_dict", "dictname", text)

    def _config_name(self, oid: int) -> str | None:
        return next((str(row[1]) for row in recorded_rows("pg_ts_config") if row[0] == oid), None)

    def _dictionary_name(self, oid: int) -> str | None:
        return next((str(row[1]) for row in recorded_rows("pg_ts_dict") if row[0] == oid), None)


def _proc(row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(relations()["pg_catalog", "pg_proc"].names, row, strict=True))


def _missing(kind: Kind, text: str) -> QserverError:
    match kind:
        case Kind.REGCLASS:
            shown = ".".join(identifiers(text))
            return UndefinedTable(f'relation "{shown}" does not exist')
        case Kind.REGTYPE:
            return UndefinedObject(f'type "{text}" does not exist')
        case Kind.REGPROC | Kind.REGPROCEDURE:
            return UndefinedFunction(f'function "{text}" does not exist')
        case Kind.REGOPER | Kind.REGOPERATOR:
            return UndefinedFunction(f"operator does not exist: {text}")
        case Kind.REGNAMESPACE:
            return UndefinedSchema(f'schema "{text}" does not exist')
        case Kind.REGROLE:
            return UndefinedObject(f'role "{text}" does not exist')
        case _:
            return UndefinedObject(f'{kind.value.removeprefix("reg")} "{text}" does not exist')


_SHOWN: Final = {
    Kind.REGCLASS: CatalogObjects.class_name,
    Kind.REGTYPE: CatalogObjects.type_name,
    Kind.REGPROC: CatalogObjects._procedure_name,
    Kind.REGPROCEDURE: CatalogObjects._procedure_signature,
    Kind.REGOPER: CatalogObjects._operator_name,
    Kind.REGOPERATOR: CatalogObjects._operator_signature,
    Kind.REGNAMESPACE: CatalogObjects.schema_name,
    Kind.REGROLE: lambda objects, oid: ROLE_NAMES.get(oid),
    Kind.REGCOLLATION: CatalogObjects._collation_name,
    Kind.REGCONFIG: CatalogObjects._config_name,
    Kind.REGDICTIONARY: CatalogObjects._dictionary_name,
}
_FOUND: Final = {
    Kind.REGCLASS: CatalogObjects.find_class,
    Kind.REGTYPE: CatalogObjects.find_type,
    Kind.REGPROC: CatalogObjects._find_procedure,
    Kind.REGPROCEDURE: CatalogObjects._find_signature,
    Kind.REGOPER: CatalogObjects._find_operator,
    Kind.REGOPERATOR: CatalogObjects._find_operator_signature,
    Kind.REGNAMESPACE: CatalogObjects._find_schema,
    Kind.REGROLE: CatalogObjects._find_role,
    Kind.REGCOLLATION: CatalogObjects._find_collation,
    Kind.REGCONFIG: CatalogObjects._find_config,
    Kind.REGDICTIONARY: CatalogObjects._find_dictionary,
}
