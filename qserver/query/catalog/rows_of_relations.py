"""The rows that tables, views, sequences and indexes have in PostgreSQL's catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.query.catalog.data import recorded_by
from qserver.query.catalog.parts import (
    AnyIndex,
    Part,
    columns_of,
    constraints_of,
    foreign_key_of,
    indexes_of,
)
from qserver.query.catalog.world import (
    CLASSES,
    EXPRESSION_STEPS,
    OWNER,
    RULES_FROM,
    World,
    type_modifier,
)
from qserver.sql import view_facts
from qserver.values.extensions import Extension
from qserver.values.relations import Definition, Schema, Sequence, View
from qserver.values.schema import Column, Table
from qserver.values.shared_comments import SharedComment
from qserver.values.temporary import TEMPORARY
from qserver.values.types import BIGINT, BOOLEAN, Kind, SqlType

Rows = Iterator[dict[str, Any]]

HEAP: Final = 2
BTREE: Final = 403
ACTIONS: Final = {
    "no action": "a",
    "restrict": "r",
    "cascade": "c",
    "set null": "n",
    "set default": "d",
}
SYSTEM_COLUMNS: Final = tuple(
    (number, Column(name, SqlType(kind), nullable=False))
    for number, name, kind in (
        (-6, "tableoid", Kind.OID),
        (-5, "cmax", Kind.CID),
        (-4, "xmax", Kind.XID),
        (-3, "cmin", Kind.CID),
        (-2, "xmin", Kind.XID),
        (-1, "ctid", Kind.TID),
    )
)
"""Columns that PostgreSQL's catalog lists for each table; statements can name the first here."""
SEQUENCE_COLUMNS: Final = (("last_value", BIGINT), ("log_cnt", BIGINT), ("is_called", BOOLEAN))


# --- pg_class ------------------------------------------------------------------------------------


def classes(world: World, each: Definition) -> Rows:
    match each:
        case Table():
            yield _class_of_table(world, each)
            for index in indexes_of(each):
                yield _class_of_index(world, each, index)
        case View():
            row = _class(world, each, each.oid, each.name, "v", len(each.columns))
            options = (f"check_option={each.check_option}",) if each.check_option else None
            row |= {"relhasrules": True, "reltype": each.oid + 1, "relreplident": "n"}
            yield row | {"reloptions": options}
        case Sequence():
            row = _class(world, each, each.oid, each.name, "S", len(SEQUENCE_COLUMNS))
            yield row | {"reltuples": 1.0, "relpages": 1, "relreplident": "n"}


def _class(
    world: World, each: Table | View | Sequence, oid: int, name: str, kind: str, width: int
) -> dict[str, Any]:
    return {
        "oid": oid,
        "relname": name,
        "relnamespace": world.schema_oid(each.schema),
        "relowner": OWNER,
        "relfilenode": 0 if kind == "v" else oid,
        "relpersistence": "t" if each.schema == TEMPORARY else "p",
        "relkind": kind,
        "relnatts": width,
        "relispopulated": True,
        "relreplident": "d",
    }


def _class_of_table(world: World, table: Table) -> dict[str, Any]:
    row = _class(world, table, table.oid, table.name, "r", len(list(columns_of(table))))
    return row | {
        "reltype": table.oid + 1,
        "relam": HEAP,
        "reltuples": float(world.snapshot.count(table.id)),
        "relhasindex": bool(table.indexes or not table.has_row_id),
        "relchecks": len(table.checks),
        "relhastriggers": bool(table.foreign_keys or table.referenced_by),
    }


def _class_of_index(world: World, table: Table, index: AnyIndex) -> dict[str, Any]:
    row = _class(world, table, index.oid, index.name, "i", len(index.parts))
    rows = float(world.snapshot.count(table.id))
    return row | {"relam": BTREE, "reltuples": rows, "relreplident": "n"}


# --- pg_attribute, pg_attrdef --------------------------------------------------------------------


def attributes(world: World, each: Definition) -> Rows:
    match each:
        case Table():
            for number, column in (*SYSTEM_COLUMNS, *columns_of(each)):
                yield _attribute(world, each.oid, number, column)
            for index in indexes_of(each):
                for number, part in enumerate(index.parts, 1):
                    column = Column(part.name, part.type, collation=part.collation)
                    yield _attribute(world, index.oid, number, column)
        case View():
            defaults = {name: text for name, text, _ in each.defaults}
            for number, (name, sql_type) in enumerate(each.columns, 1):
                column = Column(name, sql_type, default=defaults.get(name))
                yield _attribute(world, each.oid, number, column)
        case Sequence():
            for number, (name, sql_type) in enumerate(SEQUENCE_COLUMNS, 1):
                yield _attribute(world, each.oid, number, Column(name, sql_type, nullable=False))


def _attribute(world: World, oid: int, number: int, column: Column) -> dict[str, Any]:
    facts = world.type_facts(column.type)
    return {
        "attrelid": oid,
        "attname": column.name,
        "atttypid": facts.oid,
        "attstattarget": -1,
        "attlen": facts.length,
        "attnum": number,
        "attndims": int(column.type.element is not None),
        "attcacheoff": -1,
        "atttypmod": type_modifier(column.type),
        "attbyval": facts.by_value,
        "attalign": facts.alignment,
        "attstorage": facts.storage,
        "attnotnull": not column.nullable,
        "atthasdef": column.default is not None or column.generated is not None,
        "attidentity": {"always": "a", "by default": "d"}.get(column.identity or "", ""),
        "attgenerated": "s" if column.generated is not None else "",
        "attislocal": True,
        "attcollation": collation_oid(column.collation, facts.collation),
    }


def defaults(world: World, each: Definition) -> Rows:
    if isinstance(each, View):
        numbers = {column.name: number for number, column in columns_of(each)}
        for oid, (name, text, _) in zip(each.default_oids, each.defaults, strict=True):
            yield {"oid": oid, "adrelid": each.oid, "adnum": numbers[name], "adbin": text}
    if not isinstance(each, Table):
        return
    for number, column in columns_of(each):
        expression = column.default if column.generated is None else column.generated
        if expression is not None:
            yield {
                "oid": column.default_oid,
                "adrelid": each.oid,
                "adnum": number,
                "adbin": world.expression(each, expression, column.type),
            }


# --- pg_index, pg_constraint ---------------------------------------------------------------------


def indexes(world: World, each: Definition) -> Rows:
    if not isinstance(each, Table):
        return
    for index in indexes_of(each):
        parts = index.parts
        expressions = [world.expression(each, part.text) for part in parts if not part.number]
        condition = index.condition
        yield {
            "indexrelid": index.oid,
            "indrelid": each.oid,
            "indnatts": len(parts),
            "indnkeyatts": len(parts),
            "indisunique": index.unique,
            "indnullsnotdistinct": not index.nulls_distinct,
            "indisprimary": index.primary,
            "indimmediate": not index.deferral,
            "indisvalid": True,
            "indisready": True,
            "indislive": True,
            "indkey": tuple(part.number for part in parts),
            "indcollation": tuple(_collation_of_part(world, part) for part in parts),
            "indclass": tuple(world.operator_class(part.type) for part in parts),
            "indoption": tuple(part.descending + 2 * part.nulls_first for part in parts),
            "indexprs": ", ".join(expressions) or None,
            "indpred": world.expression(each, condition) if condition else None,
        }


def _collation_of_part(world: World, part: Part) -> int:
    return collation_oid(part.collation, world.type_facts(part.type).collation)


def collation_oid(name: str | None, default: int) -> int:
    """Return the oid of a collation; without a name that of the type."""
    return default if name is None else int(recorded_by("pg_collation", "collname")[name][0][0])


def constraints(world: World, each: Definition) -> Rows:
    if not isinstance(each, Table):
        return
    for constraint in constraints_of(each):
        row = {
            "oid": constraint.oid,
            "conname": constraint.name,
            "connamespace": world.schema_oid(each.schema),
            "contype": constraint.kind,
            "convalidated": constraint.valid,
            "condeferrable": bool(constraint.deferral),
            "condeferred": constraint.deferral == "deferred",
            "conrelid": each.oid,
            "conislocal": True,
            "connoinherit": constraint.kind != "c",
            "conkey": constraint.columns or None,
            "conindid": constraint.index,
            "confupdtype": " ",
            "confdeltype": " ",
            "confmatchtype": " ",
        }
        if constraint.kind == "c":
            row["conbin"] = world.expression(each, constraint.text, BOOLEAN)
        if constraint.kind == "f":
            row |= _foreign_key(world, each, constraint.name)
        yield row


def _foreign_key(world: World, table: Table, name: str) -> dict[str, Any]:
    key, other, referenced, index = foreign_key_of(world.catalog, table, name)
    own = {column.name: number for number, column in columns_of(table)}
    equal = tuple(
        world.equality(table.column(column).type, other.column(referred).type)
        for column, referred in zip(key.columns, key.referenced, strict=True)
    )
    return {
        "condeferrable": bool(key.deferral),
        "condeferred": key.deferral == "deferred",
        "confrelid": other.oid,
        "confkey": referenced,
        "conindid": index,
        "confupdtype": ACTIONS[key.on_update],
        "confdeltype": ACTIONS[key.on_delete],
        "confmatchtype": "f" if key.match == "full" else "s",
        "conpfeqop": equal,
        "conppeqop": equal,
        "conffeqop": equal,
        "confdelsetcols": tuple(own[each] for each in key.on_delete_columns) or None,
    }


# --- the rest ------------------------------------------------------------------------------------


def sequences(world: World, each: Definition) -> Rows:
    if isinstance(each, Sequence):
        yield {
            "seqrelid": each.oid,
            "seqtypid": world.type_oid(each.type),
            "seqstart": each.start,
            "seqincrement": each.increment,
            "seqmax": each.maximum,
            "seqmin": each.minimum,
            "seqcache": each.cache,
            "seqcycle": each.cycle,
        }


def rules(world: World, each: Definition) -> Rows:
    if isinstance(each, View):
        yield {
            "oid": RULES_FROM + each.oid,
            "rulename": "_RETURN",
            "ev_class": each.oid,
            "ev_type": "1",
            "ev_enabled": "O",
            "is_instead": True,
            "ev_qual": "<>",
            "ev_action": "<>",
        }


def comments(world: World, each: Definition) -> Rows:
    if isinstance(each, SharedComment):
        return
    for about, text in each.comments:
        place = _commented(each, about)
        if place is not None:
            catalog, oid, number = place
            row = {"objoid": oid, "classoid": CLASSES[catalog], "objsubid": number}
            yield row | {"description": text}


def _commented(each: Definition, about: str) -> tuple[str, int, int] | None:
    """Return the catalog, the oid and the column's number of what a comment is about."""
    word, _, name = about.partition(" ")
    if not about:
        if isinstance(each, Schema):
            return "pg_namespace", each.oid, 0
        if isinstance(each, Extension):
            return "pg_extension", each.oid, 0
        is_relation = isinstance(each, Table | View | Sequence)
        return "pg_class" if is_relation else "pg_type", each.oid, 0
    if word == "column" and isinstance(each, Table | View):
        names = [column.name for _, column in columns_of(each)]
        return ("pg_class", each.oid, names.index(name) + 1) if name in names else None
    if not isinstance(each, Table):
        return None
    parts: dict[str, int]
    if word == "constraint":
        parts = {part.name: part.oid for part in constraints_of(each)}
    else:
        parts = {part.name: part.oid for part in indexes_of(each)}
    catalog = "pg_constraint" if word == "constraint" else "pg_class"
    return (catalog, parts[name], 0) if name in parts else None


def dependencies(world: World, each: Definition) -> Rows:
    """What would be dropped with what: constraints, indexes, defaults, owned sequences, views."""
    match each:
        case Table():
            yield from _of_table(world, each)
        case Sequence() if each.owner is not None:
            table = world.catalog.tables.get(each.owner[0])
            for number, column in columns_of(table) if table is not None else ():
                if table is not None and column.name == each.owner[1]:
                    kind = "i" if column.identity else "a"
                    yield _depends("pg_class", each.oid, "pg_class", table.oid, number, kind)
        case View():
            yield _depends("pg_type", each.oid + 1, "pg_class", each.oid, 0, "i")
            rule = RULES_FROM + each.oid
            yield _depends("pg_rewrite", rule, "pg_class", each.oid, 0, "i")
            world.steps += EXPRESSION_STEPS
            facts = view_facts(each.text)
            for key in each.uses:
                used = world.catalog.find(key)
                for number, column in columns_of(used) if isinstance(used, Table | View) else ():
                    if used is not None and facts.uses(used.name, column.name):
                        yield _depends("pg_rewrite", rule, "pg_class", used.oid, number, "n")


def _of_table(world: World, table: Table) -> Rows:
    schema = world.schema_oid(table.schema)
    yield _depends("pg_class", table.oid, "pg_namespace", schema, 0, "n")
    yield _depends("pg_type", table.oid + 1, "pg_class", table.oid, 0, "i")
    owners: dict[str, int] = {}
    for constraint in constraints_of(table):
        owners[constraint.name] = constraint.oid
        for number in constraint.columns or (0,):
            yield _depends("pg_constraint", constraint.oid, "pg_class", table.oid, number, "a")
        if constraint.kind == "f":
            found = foreign_key_of(world.catalog, table, constraint.name)
            _, other, referenced, index_oid = found
            for number in referenced:
                yield _depends("pg_constraint", constraint.oid, "pg_class", other.oid, number, "n")
            yield _depends("pg_constraint", constraint.oid, "pg_class", index_oid, 0, "n")
    for index in indexes_of(table):
        if index.constraint:
            owner = owners[index.name]
            yield _depends("pg_class", index.oid, "pg_constraint", owner, 0, "i")
            continue
        for part in index.parts:
            yield _depends("pg_class", index.oid, "pg_class", table.oid, part.number, "a")
    for number, column in columns_of(table):
        if column.default_oid is not None:
            row = _depends("pg_attrdef", column.default_oid, "pg_class", table.oid, number, "a")
            yield row
            sequence = world.catalog.find(column.sequence) if column.sequence else None
            if sequence is not None:
                oid = column.default_oid
                yield _depends("pg_attrdef", oid, "pg_class", sequence.oid, 0, "n")


def _depends(
    catalog: str, oid: int, other_catalog: str, other: int, number: int, kind: str
) -> dict[str, Any]:
    return {
        "classid": CLASSES[catalog],
        "objid": oid,
        "refclassid": CLASSES[other_catalog],
        "refobjid": other,
        "refobjsubid": number,
        "deptype": kind,
    }
