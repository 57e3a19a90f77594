"""Object ids: the numbers under which PostgreSQL's catalogs know tables, types and constraints.

A definition carries its oid, and those of its parts, so they are the same in every snapshot, after
a restart and in branches, as long as the object lives. `numbered` gives numbers to what has none:
to what a statement has just made, and to definitions of logs that were written before there were
oids. It depends on nothing but its arguments, so a log that is read twice gives the same numbers.

An object takes the oids next to its own for what belongs to it:

    table, view    oid, oid + 1: its row type, oid + 2: the array of that
    enum           oid, oid + 1: its array
    unique key     oid: the index, oid + 1: the constraint
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

from qserver.values.enumeration import Enumeration
from qserver.values.relations import Definition, View
from qserver.values.schema import Column, Table

FIRST_OID: Final = 16384
"""Smaller ones are PostgreSQL's own objects."""

Take = Callable[[int], int]
"""Returns the first of so many unused numbers."""
Part = TypeVar("Part")


def row_type_oid(relation: Table | View) -> int:
    """Return the oid of the type of its rows; 0 if it is none of a database."""
    return relation.oid + 1 if relation.oid >= FIRST_OID else 0


def numbered(definition: Definition, before: Definition | None, take: Take) -> Definition:
    """Return the definition with oids; `before` is what was defined under its name."""
    if type(before) is not type(definition):
        before = None
    if isinstance(definition, Table):
        return _table(definition, before if isinstance(before, Table) else None, take)
    if isinstance(definition, Enumeration):
        return _enumeration(definition, before, take)
    if isinstance(definition, View):
        return _view(definition, before, take)
    return definition if definition.oid else replace(definition, oid=_kept(before) or take(1))


def oids_of(definition: Definition | None) -> Iterator[int]:
    """Yield all oids of a definition, its own first, and those of its parts."""
    match definition:
        case Table():
            yield from _oids_of_table(definition)
        case View():
            yield from (definition.oid, definition.oid + 1, definition.oid + 2)
            yield from definition.default_oids
        case Enumeration():
            yield from (definition.oid, definition.oid + 1)
            yield from definition.label_oids
        case None:
            pass
        case _:
            yield definition.oid


def _oids_of_table(table: Table) -> Iterator[int]:
    yield from (table.oid, table.oid + 1, table.oid + 2)
    if table.primary_key_oid:
        yield from (table.primary_key_oid, table.primary_key_oid + 1)
    for index in table.indexes:
        yield index.oid
        if index.constraint:
            yield index.oid + 1
    yield from (check.oid for check in table.checks)
    yield from (key.oid for key in table.foreign_keys)
    yield from (column.default_oid for column in table.columns if column.default_oid is not None)


def _kept(before: Any) -> int:
    return 0 if before is None else int(before.oid)


def _table(table: Table, before: Table | None, take: Take) -> Table:
    changes: dict[str, Any] = {}
    if not table.oid:
        changes["oid"] = _kept(before) or take(3)
    if not table.has_row_id and not table.primary_key_oid:
        kept = 0 if before is None else before.primary_key_oid
        changes["primary_key_oid"] = kept or take(2)
    for name in ("indexes", "checks", "foreign_keys"):
        parts, former = getattr(table, name), () if before is None else getattr(before, name)
        if not all(part.oid for part in parts):
            changes[name] = _parts(parts, former, take)
    if any(_lacks_oid(column) for column in table.columns):
        changes["columns"] = _columns(table, before, take)
    return replace(table, **changes) if changes else table


def _view(view: View, before: Any, take: Take) -> View:
    if view.oid and len(view.default_oids) == len(view.defaults):
        return view
    former = view if before is None else before
    names = [name for name, *_ in former.defaults]
    known = dict(zip(names, former.default_oids, strict=False))
    oid = view.oid or _kept(before) or take(3)
    oids = tuple(known.get(name) or take(1) for name, *_ in view.defaults)
    return replace(view, oid=oid, default_oids=oids)


def _parts(parts: tuple[Any, ...], former: tuple[Any, ...], take: Take) -> tuple[Any, ...]:
    known = {part.name: part.oid for part in former}
    return tuple(
        part if part.oid else replace(part, oid=known.get(part.name) or take(2)) for part in parts
    )


def _lacks_oid(column: Column) -> bool:
    """Has it a default, or an expression, without a number?"""
    has_default = column.default is not None or column.generated is not None
    return has_default and not column.hidden and column.default_oid is None


def _columns(table: Table, before: Table | None, take: Take) -> tuple[Column, ...]:
    former = () if before is None else before.columns
    known = {column.name: column.default_oid for column in former}
    return tuple(
        replace(column, default_oid=known.get(column.name) or take(1))
        if _lacks_oid(column)
        else column
        for column in table.columns
    )


def _enumeration(enum: Enumeration, before: Any, take: Take) -> Enumeration:
    if enum.oid and len(enum.label_oids) == len(enum.labels):
        return enum
    former = before if before is not None else enum
    known = dict(zip(former.labels, former.label_oids, strict=False)) if former.label_oids else {}
    oid = enum.oid or _kept(before) or take(2)
    return replace(
        enum, oid=oid, label_oids=tuple(known.get(each) or take(1) for each in enum.labels)
    )
