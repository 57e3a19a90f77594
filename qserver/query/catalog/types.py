"""Types by oid, as format_type prints them, and by name, as regtype reads them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from qserver.errors import QserverError
from qserver.query.catalog.data import recorded_rows, relations
from qserver.query.catalog.search_path import own_schema
from qserver.query.catalog.world import World, modified
from qserver.sql import refuse_other_database, type_of_text
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import identifiers
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
        return _shown_name(world, row)
    return _sized(known, modifier)


def _sized(known: SqlType, modifier: int | None) -> str:
    if known.kind is Kind.CHAR and modifier == -1:
        return "bpchar"
    if modifier is None or modifier < 0:
        return str(known)
    return str(modified(known, modifier))


def _shown_name(world: World, row: dict[str, Any]) -> str:
    if row["typname"] in _WORDS:
        return _WORDS[row["typname"]]
    return world.path.shown_type(own_schema(row["typnamespace"]), row["typname"])


_WORDS: Final = {"bit": "bit", "varbit": "bit varying"}


def _shown_definition(world: World, oid: int) -> str | None:
    for each in world.with_type(oid):
        assert isinstance(each, Table | View | Enumeration)
        shown = world.path.shown_type(each.schema, each.name)
        own = each.oid if isinstance(each, Enumeration) else each.oid + 1
        return {own: shown, own + 1: f"{shown}[]"}.get(oid)
    return None


def find_type_oid(world: World, text: str) -> int | None:
    """Return the oid of a type as SQL writes it: `int`, `varchar(10)[]`, `shop.mood`."""
    try:
        known = type_named(world, text)
    except QserverError:
        known = None
    if known is not None:
        return world.type_oid(known)
    is_array = text.strip().endswith("[]")
    *schemas, name = identifiers(text.strip().removesuffix("[]"))
    refuse_other_database((*schemas, name), world.server.database)
    return world.path.type(f"_{name}" if is_array else name, schemas)


def type_named(world: World, text: str) -> SqlType:
    """Return the type that a text names, with its length or precision."""
    return type_of_text(text, lambda name: _enum(world, name))


def _enum(world: World, name: tuple[str, ...]) -> SqlType | None:
    refuse_other_database(name, world.server.database)
    oid = world.path.type(name[-1], name[:-1])
    found = None if oid is None else world.catalog.with_oid(oid)
    if isinstance(found, Enumeration) and found.oid == oid:
        return SqlType(Kind.ENUM, enum=found)
    return None
