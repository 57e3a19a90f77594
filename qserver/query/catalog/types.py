"""Types by oid, as format_type prints them, and by name, as regtype reads them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from qserver.errors import QserverError
from qserver.query.catalog.data import recorded_by, recorded_rows, relations
from qserver.query.catalog.world import OWN_SCHEMAS, World, modified
from qserver.sql import type_of_text
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, catalog_key, identifiers, quote_identifier
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import Kind, SqlType


@cache
def builtin_types() -> dict[int, dict[str, Any]]:
    """Return PostgreSQL's own types, by oid."""
    names = relations()["pg_catalog", "pg_type"].names
    rows = (dict(zip(names, row, strict=True)) for row in recorded_rows("pg_type"))
    return {row["oid"]: row for row in rows}


@cache
def domain(name: str) -> SqlType | None:
    """Return what a domain of information_schema is made of."""
    for row in builtin_types().values():
        if row["typname"] == name and row["typtype"] == "d":
            base = TYPES_BY_NAME[builtin_types()[row["typbasetype"]]["typname"]]
            return modified(base, row["typtypmod"])
    return None


def shown_type(world: World, oid: int, modifier: int | None = None) -> str | None:
    """Return the name that SQL has for a type, with its length or precision; None for none."""
    row = builtin_types().get(oid)
    if row is None:
        return _shown_definition(world, oid)
    element = row["typelem"]
    is_array = element and row["typsubscript"].text == "array_subscript_handler"
    if is_array and row["typlen"] == -1 and row["typname"].startswith("_"):
        return f"{shown_type(world, element, modifier)}[]"
    known = TYPES_BY_NAME.get(row["typname"])
    if known is None or known.fields is not None:
        return _shown_name(row)
    return _sized(known, modifier)


def _sized(known: SqlType, modifier: int | None) -> str:
    if known.kind is Kind.CHAR and modifier == -1:
        return "bpchar"
    if modifier is None or modifier < 0:
        return str(known)
    return str(modified(known, modifier))


def _shown_name(row: dict[str, Any]) -> str:
    name = quote_identifier(row["typname"])
    if row["typname"] in _WORDS:
        return _WORDS[row["typname"]]
    is_own = row["typnamespace"] != OWN_SCHEMAS["information_schema"]
    return name if is_own else f"information_schema.{name}"


_WORDS: Final = {"varbit": "bit varying", "any": '"any"'}


def _shown_definition(world: World, oid: int) -> str | None:
    for each in world.with_type(oid):
        assert isinstance(each, Table | View | Enumeration)
        name = quote_identifier(each.name)
        shown = name if each.schema == PUBLIC else f"{quote_identifier(each.schema)}.{name}"
        own = each.oid if isinstance(each, Enumeration) else each.oid + 1
        return {own: shown, own + 1: f"{shown}[]"}.get(oid)
    return None


def find_type_oid(world: World, text: str) -> int | None:
    """Return the oid of a type as SQL writes it: `int`, `varchar(10)[]`, `shop.mood`."""
    try:
        known = type_of_text(text, lambda name: _enum(world, name))
    except QserverError:
        known = None
    if known is not None:
        return world.type_oid(known)
    is_array = text.strip().endswith("[]")
    *schemas, name = identifiers(text.strip().removesuffix("[]"))
    for row in recorded_by("pg_type", "typname").get(f"_{name}" if is_array else name, ()):
        return int(row[0])
    for schema in [schemas[-1]] if schemas else [PUBLIC]:
        found = world.catalog.find(catalog_key(schema, name))
        if isinstance(found, Table | View):
            return found.oid + (2 if is_array else 1)
    return None


def _enum(world: World, name: tuple[str, ...]) -> SqlType | None:
    found = world.catalog.find(catalog_key(name[-2] if len(name) > 1 else PUBLIC, name[-1]))
    return SqlType(Kind.ENUM, enum=found) if isinstance(found, Enumeration) else None
