"""Definitions as pg_get_indexdef, pg_get_constraintdef and pg_get_viewdef print them."""

from __future__ import annotations

from collections.abc import Iterable

from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.parts import AnyIndex, Constraint, Part, constraints_of, foreign_key_of
from qserver.query.catalog.search_path import full_name
from qserver.query.catalog.world import World
from qserver.query.definition_texts import deferral_text
from qserver.sql import shown_query
from qserver.values.identifiers import quote_identifier
from qserver.values.relations import View
from qserver.values.schema import Table, order_words
from qserver.values.types import BOOLEAN


def view_text(world: World, view: View) -> str:
    names = tuple(name for name, _ in view.columns)
    return f" {shown_query(view.text, world.path, view.output, names).strip()};"


def rule_text(world: World, view: View, pretty: bool) -> str:
    event = f"ON SELECT TO {_place(world, view, pretty)}"
    return f'CREATE RULE "_RETURN" AS\n    {event} DO INSTEAD {view_text(world, view)}'


def index_text(world: World, table: Table, index: AnyIndex, pretty: bool = False) -> str:
    kind = "UNIQUE INDEX" if index.unique else "INDEX"
    place = _place(world, table, pretty)
    parts = ", ".join(
        part_text(world, table, part, pretty) + order_words(part.descending, part.nulls_first)
        for part in index.parts
    )
    text = f"CREATE {kind} {quote_identifier(index.name)} ON {place} USING btree ({parts})"
    if not index.nulls_distinct:
        text += " NULLS NOT DISTINCT"
    if index.condition:
        condition = world.expression(table, index.condition)
        text += f" WHERE {condition.pretty if pretty else condition}"
    return text


def part_text(world: World, table: Table, part: Part, pretty: bool = False) -> str:
    """Return a column of an index, or an expression, in parentheses unless it is a call."""
    if part.number:
        return quote_identifier(part.text)
    tree = world.expression(table, part.text)
    text = tree.pretty if pretty else str(tree)
    return text if part.name != "expr" else f"({text})"


def constraint_text(objects: Objects, table: Table, oid: int, pretty: bool = False) -> str | None:
    world = objects.world
    found = next((each for each in constraints_of(table) if each.oid == oid), None)
    if found is None:
        return None
    names = dict(enumerate(table.positions, 1))
    if found.kind == "c":
        condition = world.expression(table, found.text, BOOLEAN)
        text = f"CHECK ({condition.pretty if pretty else condition})"
    elif found.kind == "f":
        text = _foreign_key(objects, table, found)
    else:
        word = "PRIMARY KEY" if found.kind == "p" else "UNIQUE"
        index = (
            next(each for each in table.indexes if each.name == found.name)
            if (found.kind == "u")
            else None
        )
        nulls = " NULLS NOT DISTINCT" if index is not None and not index.nulls_distinct else ""
        text = f"{word}{nulls} ({_columns(names[each] for each in found.columns)})"
        text += "" if index is None else deferral_text(index)
    return text if found.valid else f"{text} NOT VALID"


def _foreign_key(objects: Objects, table: Table, found: Constraint) -> str:
    key, other, _, _ = foreign_key_of(objects.world.catalog, table, found.name)
    text = f"FOREIGN KEY ({_columns(key.columns)}) REFERENCES {_place(objects.world, other)}"
    text += f"({_columns(key.referenced)})"
    if key.match == "full":
        text += " MATCH FULL"
    if key.on_update != "no action":
        text += f" ON UPDATE {key.on_update.upper()}"
    if key.on_delete != "no action":
        text += f" ON DELETE {key.on_delete.upper()}"
    only = f" ({_columns(key.on_delete_columns)})" if key.on_delete_columns else ""
    return text + only + deferral_text(key)


def _place(world: World, relation: Table | View, pretty: bool = True) -> str:
    """Return a relation's name: the definition of an index has its schema, unless it is pretty."""
    show = world.path.shown_relation if pretty else full_name
    return show(relation.schema, relation.name)


def _columns(names: Iterable[str]) -> str:
    return ", ".join(map(quote_identifier, names))
