"""Finds dependencies: of views on relations, of foreign keys on keys, of columns on types.

Dependencies are not stored: a catalog is small, so DROP scans it for dependents. Without CASCADE a
dependent is an error; with it, dependents are dropped first, recursively.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from qserver.errors import DependentObjectsStillExist
from qserver.sql.ddl.named_in_texts import names, places_in_query
from qserver.sql.ddl.names import described
from qserver.sql.ddl.port import DdlPort
from qserver.values.enumeration import Enumeration
from qserver.values.relations import Definition, Sequence, View
from qserver.values.schema import Column, Table
from qserver.values.types import SqlType

USE_CASCADE = "Use DROP ... CASCADE to drop the dependent objects too."


@dataclass(frozen=True, slots=True)
class Dependent:
    """An object that depends on a dropped one: its description, and how to remove it.

    `name` is the key of a view, which may have dependents itself; `on` is what it depends on.
    """

    text: str
    remove: Callable[[DdlPort], None]
    name: str | None = None
    on: str = ""


def dependents(
    work: DdlPort,
    definition: Definition,
    going: Collection[str],
    among: Iterable[Definition] | None = None,
) -> list[Dependent]:
    """Return the dependents of a definition, recursively, without those in `going`."""
    what, key = described(definition), definition.key
    found = [
        replace(dependent, on=what)
        for other in (work.transaction.catalog.definitions() if among is None else among)
        if other.key != key and other.key not in going
        for dependent in _dependents_in(work, other, definition)
    ]
    if isinstance(definition, Table):
        for sequence in owned_sequences(work, key):
            found += dependents(work, sequence, (*going, key), among)
    return with_hanging(work, found, going)


def with_hanging(
    work: DdlPort, found: list[Dependent], going: Collection[str] = ()
) -> list[Dependent]:
    """Return the dependents, each view followed by its own dependents."""
    result: list[Dependent] = []
    for dependent in found:
        view = None if dependent.name is None else work.find(dependent.name)
        more = [] if view is None else dependents(work, view, going)
        texts = [each.text for each in result]
        result += [each for each in (dependent, *more) if each.text not in texts]
    return result


def require_no_dependents(
    work: DdlPort, what: str, found: list[Dependent], cascade: bool, table: str | None = None
) -> None:
    """Refuse to drop `what` if it has dependents, or with `cascade` remove them."""
    if not found:
        return
    if not cascade:
        raise DependentObjectsStillExist(
            f"cannot drop {what} because other objects depend on it",
            detail="\n".join(
                f"{dependent.text} depends on {dependent.on or what}" for dependent in found
            ),
            hint=USE_CASCADE,
            table=table,
        )
    work.cascaded.update(dict.fromkeys(each.text for each in found))
    for dependent in found:
        dependent.remove(work)


def _dependents_in(work: DdlPort, other: Definition, definition: Definition) -> Iterator[Dependent]:
    named = definition if isinstance(definition, Sequence | Enumeration) else None
    if isinstance(other, View):
        if (
            definition.key in other.uses
            or _has_type(other, definition)
            or (named is not None and places_in_query(work.statements, other.text, named))
        ):
            yield view_dependent(other)
        for name, text, sequence in other.defaults:
            if named is not None and (sequence == named.key or names(work.statements, text, named)):
                yield _view_default_dependent(other, name)
    elif isinstance(other, Table):
        for key in other.foreign_keys:
            if isinstance(definition, Table) and key.table == definition.key:
                yield foreign_key_dependent(other, key.name)
        if named is not None:
            yield from _dependents_in_texts(work, other, named)


def _dependents_in_texts(
    work: DdlPort, table: Table, named: Sequence | Enumeration
) -> Iterator[Dependent]:
    """Columns, defaults, constraints and indexes of a table that need a type or a sequence."""
    for at, column in enumerate(table.columns):
        place = f"column {column.name} of table {table.name}"
        if isinstance(named, Enumeration) and needs_type(work, column, named):
            for index in table.indexes if column.hidden else ():
                if at in index.columns:
                    yield Dependent(f"index {index.name}", _refuse_to_guess)
            if not column.hidden:
                yield Dependent(place, _refuse_to_guess)
        elif column.default is not None and (
            column.sequence == named.key or names(work.statements, column.default, named)
        ):
            yield default_dependent(table, column)
    for check in table.checks:
        if names(work.statements, check.text, named):
            yield _check_dependent(table, check.name)


def needs_type(work: DdlPort, column: Column, named: Enumeration) -> bool:
    """Tell whether a column is of an enum, or computed by means of it."""
    text = column.generated
    return is_of(column.type, named) or (text is not None and names(work.statements, text, named))


def view_dependent(view: View) -> Dependent:
    return Dependent(described(view), lambda work: drop_definition(work, view.key), view.key)


def _view_default_dependent(view: View, column: str) -> Dependent:
    def remove(work: DdlPort) -> None:
        now = work.find(view.key)
        if isinstance(now, View):
            kept = tuple(each for each in now.defaults if each[0] != column)
            work.transaction.define(view.key, replace(now, defaults=kept))

    return Dependent(f"default value for column {column} of view {view.name}", remove)


def foreign_key_dependent(table: Table, name: str) -> Dependent:
    return Dependent(
        f"constraint {name} on table {table.name}",
        lambda work: _drop_foreign_key(work, table.key, name),
    )


def default_dependent(table: Table, column: Column) -> Dependent:
    return Dependent(
        f"default value for column {column.name} of table {table.name}",
        lambda work: _change_column(work, table.key, column.name, default=None),
    )


def _check_dependent(table: Table, name: str) -> Dependent:
    def remove(work: DdlPort) -> None:
        now = work.find(table.key)
        if isinstance(now, Table):
            kept = tuple(each for each in now.checks if each.name != name)
            work.transaction.define(table.key, replace(now, checks=kept))

    return Dependent(f"constraint {name} on table {table.name}", remove)


def _has_type(other: View, definition: Definition) -> bool:
    return isinstance(definition, Enumeration) and any(
        is_of(sql_type, definition) for _, sql_type in other.columns
    )


def is_of(sql_type: SqlType, enumeration: Enumeration) -> bool:
    return sql_type.enum == enumeration or (
        sql_type.element is not None and is_of(sql_type.element, enumeration)
    )


def _refuse_to_guess(work: DdlPort) -> None:
    """Unreachable: DROP TYPE … CASCADE has already removed the columns and indexes of the type."""
    raise AssertionError("a column of a dropped type is still there")


# --- removal -------------------------------------------------------------------------------------


def drop_definition(
    work: DdlPort,
    name: str,
    going: Collection[str] = (),
    cascade: bool = True,
    among: Iterable[Definition] | None = None,
) -> None:
    """Drop a definition with its trees, owned sequences and dependents.

    `among`: where its dependents are, if that is known.
    """
    definition = work.find(name)
    if definition is None:
        return  # a cascade has dropped it already
    found = dependents(work, definition, going, among)
    require_no_dependents(work, described(definition), found, cascade, name)
    definition = work.find(name) or definition
    work.transaction.define(name, None)
    if isinstance(definition, Table):
        trees = (definition.id, *(index.id for index in definition.indexes))
        work.transaction.drop_trees(*trees)
        remaining = work.transaction.catalog.definitions()
        users = [each for each in remaining if isinstance(each, Table | View)]
        for sequence in owned_sequences(work, name):
            drop_definition(work, sequence.key, among=users)
    elif isinstance(definition, Sequence):
        work.statements.drop_sequence(definition)


def owned_sequences(work: DdlPort, table: str, column: str | None = None) -> list[Sequence]:
    return [
        each
        for each in work.transaction.catalog.definitions()
        if isinstance(each, Sequence)
        and each.owner is not None
        and each.owner[0] == table
        and column in (None, each.owner[1])
    ]


def _drop_foreign_key(work: DdlPort, table: str, name: str) -> None:
    definition = work.find(table)
    if isinstance(definition, Table):
        kept = tuple(key for key in definition.foreign_keys if key.name != name)
        work.transaction.define(table, replace(definition, foreign_keys=kept))


def _change_column(work: DdlPort, table: str, name: str, default: str | None) -> None:
    definition = work.find(table)
    if isinstance(definition, Table):
        columns = tuple(
            replace(column, default=default, sequence=None) if column.name == name else column
            for column in definition.columns
        )
        work.transaction.define(table, replace(definition, columns=columns))
