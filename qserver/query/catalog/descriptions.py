"""pg_describe_object: what an object is called in messages, by its catalog and its oid."""

from __future__ import annotations

from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.parts import columns_of, constraints_of
from qserver.query.catalog.types import shown_type
from qserver.query.catalog.world import CLASSES
from qserver.values.object_names import ObjectName
from qserver.values.relations import View, kind_of
from qserver.values.schema import Table
from qserver.values.types import Kind


def described(objects: Objects, catalog: int, oid: int, number: int) -> str | None:
    for name, describe in _OF_CATALOGS.items():
        if CLASSES[name] == catalog:
            return describe(objects, oid, number)
    return None


def _relation(objects: Objects, oid: int, number: int) -> str | None:
    shown = objects.class_name(oid)
    if shown is None:
        return None
    kind = "index" if any(True for _ in objects.world.with_oid(oid)) else "table"
    for each in objects.world.with_oid(oid):
        if each.oid == oid:
            kind = kind_of(each)
            if number:
                names = dict(columns_of(each)) if isinstance(each, Table | View) else {}
                found = names.get(number)
                return None if found is None else f"column {found.name} of {kind} {shown}"
    return None if number else f"{kind} {shown}"


def _type(objects: Objects, oid: int, number: int) -> str | None:
    shown = shown_type(objects.world, oid)
    return None if shown is None else f"type {shown}"


def _schema(objects: Objects, oid: int, number: int) -> str | None:
    shown = objects.schema_name(oid)
    return None if shown is None else f"schema {shown}"


def _constraint(objects: Objects, oid: int, number: int) -> str | None:
    for table in objects.world.with_constraint(oid):
        for each in constraints_of(table) if isinstance(table, Table) else ():
            if each.oid == oid:
                return f"constraint {each.name} on table {objects.class_name(table.oid)}"
    return None


def _default(objects: Objects, oid: int, number: int) -> str | None:
    for each in objects.world.with_oid(oid):
        if isinstance(each, Table):
            names = {column.default_oid: column.name for _, column in columns_of(each)}
        elif isinstance(each, View):
            named = zip(each.default_oids, each.defaults, strict=True)
            names = {own: name for own, (name, *_) in named}
        else:
            continue
        if oid in names:
            place = f"{kind_of(each)} {objects.class_name(each.oid)}"
            return f"default value for column {names[oid]} of {place}"
    return None


def _rule(objects: Objects, oid: int, number: int) -> str | None:
    for view in objects.world.with_rule(oid):
        if isinstance(view, View):
            return f"rule _RETURN on view {objects.class_name(view.oid)}"
    return None


def _function(objects: Objects, oid: int, number: int) -> str | None:
    found: ObjectName = objects.named(Kind.REGPROCEDURE, oid)
    return None if found.text == str(oid) else f"function {found.text}"


_OF_CATALOGS = {
    "pg_class": _relation,
    "pg_type": _type,
    "pg_namespace": _schema,
    "pg_constraint": _constraint,
    "pg_attrdef": _default,
    "pg_rewrite": _rule,
    "pg_proc": _function,
}
