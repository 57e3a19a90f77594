"""What the rows of catalogs are made of: one catalog, and what the look-ups in it find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from qserver.query.catalog.data import recorded_by, recorded_rows, relations
from qserver.query.catalog.expressions import NodeTree, node_tree
from qserver.query.catalog.search_path import OWN_SCHEMAS, SearchPath, own_schema
from qserver.query.permissions import NOBODY, Allowed
from qserver.query.server_facts import NO_FACTS, ServerFacts
from qserver.query.settings.values import DEFAULTS, Settings
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, catalog_key
from qserver.values.relations import Definition, Schema, View
from qserver.values.schema import Table
from qserver.values.shared_comments import ABOUT, SharedComment
from qserver.values.type_names import type_name_of
from qserver.values.types import Kind, SqlType

OWNER: Final = 10
"""The oid of the only role."""
DATABASE: Final = 2_000_000_000
"""The oid of the database. Tools take those below 16384 for PostgreSQL's own; no object has it."""
RULES_FROM: Final = 1 << 30
"""The rule of a view has the view's oid and this: a number that nothing else has."""
EXPRESSION_STEPS: Final = 256
"""What the text of an expression costs: it is parsed, bound and printed."""
CLASSES: Final = {
    "pg_class": 1259,
    "pg_type": 1247,
    "pg_constraint": 2606,
    "pg_namespace": 2615,
    "pg_attrdef": 2604,
    "pg_rewrite": 2618,
    "pg_proc": 1255,
    "pg_extension": 3079,
}


class TypeFacts(NamedTuple):
    """What pg_attribute repeats of pg_type."""

    oid: int
    length: int
    by_value: bool
    alignment: str
    storage: str
    collation: int


@cache
def _facts(name: str) -> TypeFacts:
    columns = relations()["pg_catalog", "pg_type"].names
    row = dict(zip(columns, recorded_by("pg_type", "typname")[name][0], strict=True))
    wanted = ("oid", "typlen", "typbyval", "typalign", "typstorage", "typcollation")
    return TypeFacts(*(row[column] for column in wanted))


@cache
def _operator_classes() -> dict[int, int]:
    names = relations()["pg_catalog", "pg_opclass"].names
    rows = [dict(zip(names, row, strict=True)) for row in recorded_rows("pg_opclass")]
    return {
        row["opcintype"]: row["oid"]
        for row in rows
        if row["opcdefault"] and row["opcmethod"] == 403
    }


class Shown(Protocol):
    """What catalogs show of the session that asks."""

    @property
    def statements(self) -> Iterable[Any]: ...
    @property
    def portals(self) -> Mapping[str, Any]: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def number(self) -> int: ...


class World:
    """A catalog as PostgreSQL's tables show it to a session; look-ups cost what they find."""

    __slots__ = (
        *("allowed", "catalog", "path", "server", "session", "settings", "snapshot", "steps"),
    )

    def __init__(
        self,
        catalog: Catalog,
        snapshot: Snapshot,
        session: Shown | None = None,
        server: ServerFacts = NO_FACTS,
        allowed: Allowed = NOBODY,
    ) -> None:
        self.server = server
        self.allowed = allowed
        """What the one who asks may see of others."""
        self.catalog = catalog
        self.snapshot = snapshot
        self.session = session
        """The session that asks; None: it has nothing to show."""
        self.steps = 0
        """Steps of work that were done and that no statement has been charged for yet."""
        self.settings = DEFAULTS if session is None else session.settings
        self.path = SearchPath(catalog, self.settings)

    def definitions(self) -> Iterator[Definition]:
        yield from self.catalog.tables.values()
        yield from self.catalog.others.values()

    def schemas(self) -> Iterator[Definition]:
        for name in self.catalog.schemas:
            yield from self.with_schema(name)

    # --- by number ---

    def with_oid(self, oid: int) -> Iterator[Definition]:
        """Find the definition of a relation or an index, or of a schema."""
        found = self.catalog.with_oid(oid)
        if found is not None:
            yield found

    def with_type(self, oid: int) -> Iterator[Definition]:
        """Find the definition that a type belongs to: row types and arrays have the next oids."""
        found = self.catalog.with_oid(oid)
        if isinstance(found, Table | View | Enumeration) and 0 <= oid - found.oid <= 2:
            yield found

    def with_constraint(self, oid: int) -> Iterator[Definition]:
        """Find a table by a constraint; that of a unique key comes after its index."""
        found = self.catalog.with_oid(oid)
        if isinstance(found, Table):
            yield found

    def with_rule(self, oid: int) -> Iterator[Definition]:
        """Find a view by its rule."""
        found = self.catalog.with_oid(oid - RULES_FROM)
        if isinstance(found, View) and found.oid == oid - RULES_FROM:
            yield found

    def with_any_oid(self, oid: int) -> Iterator[Definition]:
        yield from self.with_oid(oid)
        yield from self.with_rule(oid)

    def referring_to(self, oid: int) -> Iterator[Definition]:
        """Find what depends on what has an oid, and that itself: its parts depend on it."""
        found = self.catalog.with_oid(oid)
        if found is None or isinstance(found, Schema):
            yield from self.in_schema(oid)
        else:
            yield found
            for each in self.catalog.with_term("uses", found.key):
                if each is not found:
                    yield each

    def in_schema(self, oid: int) -> Iterator[Definition]:
        found = self.catalog.with_oid(oid)
        name = found.name if isinstance(found, Schema) else own_schema(oid)
        if self.schema_oid(name) == oid:
            yield from self.catalog.with_term("schema", catalog_key(name, ""))

    # --- by name ---

    def schema_names(self) -> list[str]:
        return [PUBLIC, *sorted(self.catalog.schemas)]

    def with_name(self, name: str) -> Iterator[Definition]:
        """Find relations and indexes of a name, in all schemas."""
        for schema in self.schema_names():
            key = catalog_key(schema, name)
            found = self.catalog.find(key) or self.catalog.index_owner(key)
            if found is not None:
                yield found

    def with_part(self, name: str) -> Iterator[Definition]:
        """Find tables that have a constraint of a name."""
        return self.catalog.with_term("constraint", name)

    def with_type_name(self, name: str) -> Iterator[Definition]:
        for schema in self.schema_names():
            for each in dict.fromkeys((name, name.removeprefix("_"))):
                found = self.catalog.find(catalog_key(schema, each))
                if found is not None:
                    yield found

    def with_schema(self, name: str) -> Iterator[Definition]:
        found = self.catalog.find(catalog_key(name, ""))
        if isinstance(found, Schema):
            yield found

    def schema_oid(self, name: str) -> int:
        own = OWN_SCHEMAS.get(name)
        if own is not None:
            return own
        found = self.catalog.find(catalog_key(name, ""))
        return found.oid if isinstance(found, Schema) else 0

    # --- what belongs to no schema ---

    def shared(self) -> Iterator[Definition]:
        for about in ABOUT:
            found = self.catalog.find(SharedComment.key_of(about))
            if found is not None:
                yield found

    def with_shared(self, oid: int) -> Iterator[Definition]:
        """Find what is about the database, or the role, with an oid."""
        return self.shared() if oid in (DATABASE, OWNER) else iter(())

    # --- types ---

    def type_oid(self, sql_type: SqlType) -> int:
        """Return the oid of a type, built-in or not."""
        enum = (sql_type.element or sql_type).enum
        if enum is not None:
            found = self.catalog.find(enum.key)
            oid = found.oid if isinstance(found, Enumeration) else 0
            return oid + 1 if sql_type.element is not None else oid
        return int(recorded_by("pg_type", "typname")[type_name_of(sql_type)][0][0])

    def type_facts(self, sql_type: SqlType) -> TypeFacts:
        """Return what rows about columns repeat of their types."""
        enum = (sql_type.element or sql_type).enum
        if enum is None:
            return _facts(type_name_of(sql_type))
        oid = self.type_oid(sql_type)
        if sql_type.element is not None:
            return TypeFacts(oid, -1, False, "i", "x", 0)
        return TypeFacts(oid, 4, True, "i", "p", 0)

    def operator_class(self, sql_type: SqlType) -> int:
        """Return the oid of the operator class that a B-tree over the type has by default."""
        oid = self.type_oid(sql_type)
        if sql_type.element is not None:
            oid = 2277
        elif sql_type.enum is not None:
            oid = 3500
        elif sql_type.kind is Kind.VARCHAR:
            oid = 25
        return _operator_classes().get(oid, 0)

    def equality(self, left: SqlType, right: SqlType) -> int:
        """Return the oid of the operator that compares two columns; 0 if it needs a cast."""
        sides = (self._compared(left), self._compared(right))
        for row in recorded_by("pg_operator", "oprname")["="]:
            if (row[7], row[8]) == sides:
                return int(row[0])
        return 0

    def _compared(self, sql_type: SqlType) -> int:
        if sql_type.element is not None:
            return 2277
        if sql_type.enum is not None:
            return 3500
        return 25 if sql_type.kind is Kind.VARCHAR else self.type_oid(sql_type)

    # --- texts ---

    def expression(self, table: Table, text: str, wanted: SqlType | None = None) -> NodeTree:
        """Return the text of an expression over a table's columns, as PostgreSQL prints it."""
        self.steps += EXPRESSION_STEPS
        return node_tree(table, text, wanted, self.path)


def type_modifier(sql_type: SqlType) -> int:
    """Return PostgreSQL's number for length, precision and fields; -1 for none."""
    sized = sql_type.element or sql_type
    if sized.kind is Kind.NUMERIC and sized.precision is not None:
        return (sized.precision << 16 | (sized.scale or 0) & 0x7FF) + 4
    if sized.length is not None:
        return sized.length + 4
    if sized.kind is Kind.INTERVAL and (sized.fields or sized.precision is not None):
        precision = 0xFFFF if sized.precision is None else sized.precision
        return INTERVAL_MASKS[sized.fields or ""] << 16 | precision
    return -1 if sized.precision is None else sized.precision


def modified(sql_type: SqlType, modifier: int) -> SqlType:
    """Return a type with the length, precision and fields of a modifier."""
    kind = sql_type.kind
    if modifier < 0:
        return sql_type
    if kind is Kind.NUMERIC:
        scale = (modifier - 4) & 0x7FF
        return SqlType(kind, (modifier - 4) >> 16 & 0xFFFF, scale - 0x800 * (scale > 0x3FF))
    if kind in (Kind.VARCHAR, Kind.CHAR):
        return SqlType(kind, length=modifier - 4)
    if kind is Kind.INTERVAL:
        fields = {mask: words for words, mask in INTERVAL_MASKS.items()}.get(modifier >> 16)
        precision = modifier & 0xFFFF
        return SqlType(kind, None if precision == 0xFFFF else precision, fields=fields or None)
    if kind in (Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return SqlType(kind, modifier)
    return sql_type


_BITS: Final = {"month": 2, "year": 4, "day": 8, "hour": 1024, "minute": 2048, "second": 4096}
_ORDER: Final = ("year", "month", "day", "hour", "minute", "second")


def _mask(words: str) -> int:
    first, _, last = words.partition(" to ")
    wanted = _ORDER[_ORDER.index(first) : _ORDER.index(last or first) + 1]
    return sum(_BITS[word] for word in wanted)


INTERVAL_MASKS: Final[dict[str, int]] = {
    "": 0x7FFF,
    **{
        words: _mask(words)
        for words in (
            *("year", "month", "day", "hour", "minute", "second", "year to month"),
            *("day to hour", "day to minute", "day to second", "hour to minute"),
            *("hour to second", "minute to second"),
        )
    },
}
