"""ALTER TYPE of an enum: adds a label, renames a label, renames the type, or moves it.

A column's type contains its enum with all labels, so every table and view that uses the enum gets a
new definition. Rows contain labels with their positions: a new label does not change them, a
renamed one is written into every row that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qserver.errors import DuplicateObject, FeatureNotSupported, InvalidParameterValue
from qserver.sql import ast
from qserver.sql.ddl.dependencies import is_of
from qserver.sql.ddl.labels_in_texts import labels_in, users_of_label, with_label
from qserver.sql.ddl.named_in_texts import with_other_name
from qserver.sql.ddl.names import new_place
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.rewrite import count_written
from qserver.values.enumeration import Enumeration, Label
from qserver.values.identifiers import quote_identifier
from qserver.values.keys import Row
from qserver.values.relations import View
from qserver.values.schema import Table, check_name
from qserver.values.types import SqlType


def alter_type(work: DdlPort, enumeration: Enumeration, action: ast.AlterAction) -> DdlSteps:
    match action.kind:
        case "add value":
            _add_value(work, enumeration, action)
        case "rename value":
            yield from _rename_value(work, enumeration, action)
        case "rename":
            check_name(action.new_name)
            _move(work, enumeration, enumeration.schema, action.new_name)
        case "set schema":
            schema, _ = new_place(work, (action.new_name, enumeration.name))
            if schema != enumeration.schema:
                _move(work, enumeration, schema, enumeration.name)
        case "owner":
            pass
        case kind:
            raise FeatureNotSupported(f"ALTER TYPE … {kind.upper()} is not supported")
    return 0


def _label(work: DdlPort, node: object) -> str:
    assert isinstance(node, ast.Literal)
    return str(work.value(node))


def _add_value(work: DdlPort, old: Enumeration, action: ast.AlterAction) -> None:
    text = _label(work, action.expression)
    if text in old.labels:
        error = DuplicateObject(f'enum label "{text}" already exists')
        if action.if_exists:
            work.skip(error.message, error.code)
            return
        raise error
    neighbour = None if action.new_label is None else _label(work, action.new_label)
    before = neighbour if action.neighbour == "before" else None
    after = neighbour if action.neighbour == "after" else None
    _replace(work, old, old.with_label(text, before, after))


def _rename_value(work: DdlPort, old: Enumeration, action: ast.AlterAction) -> DdlSteps:
    text, new_text = _label(work, action.expression), _label(work, action.new_label)
    if text not in old.labels:
        raise InvalidParameterValue(f'"{text}" is not an existing enum label')
    if new_text in old.labels:
        raise DuplicateObject(f'enum label "{new_text}" already exists')
    labels = tuple(
        Label(new_text, label.position) if label == text else label for label in old.labels
    )
    tables = [each for each in _tables(work) if any(is_of(c.type, old) for c in each.columns)]
    literals = {}
    for user in users_of_label(work, text):
        literals[user.key] = yield from labels_in(work, user, old, text)
    _replace(work, old, replace(old, labels=labels))
    for key, found in literals.items():
        yield from with_label(work, key, found, text, new_text)
    by_position = {label.position: label for label in labels}
    for table in tables:
        yield from _relabel(work, table, old, by_position)
    return 0


def _relabel(
    work: DdlPort, old: Table, enumeration: Enumeration, labels: dict[float, Label]
) -> DdlSteps:
    now = work.table_now(old.key)
    places = [at for at, column in enumerate(old.columns) if is_of(column.type, enumeration)]

    def renamed(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(renamed, value))
        return labels[value.position] if isinstance(value, Label) else value

    rows: list[Row] = []
    for _, page in work.transaction.scan(old.id):
        count_written(work, old.columns, range(len(old.columns)), page)
        rows += page
        yield
    for count, row in enumerate(rows):
        values = list(row)
        for at in places:
            values[at] = renamed(values[at])
        work.transaction.delete(old, old.key_of(row))
        work.transaction.insert(now, tuple(values))
        if count % 1000 == 999:
            yield
    return 0


def _move(work: DdlPort, old: Enumeration, schema: str, name: str) -> None:
    """Give the type another name or another schema; the texts that name it follow."""
    new = replace(old, schema=schema, name=name)
    if work.find(new.key) is not None:
        where = "" if schema == old.schema else f' in schema "{schema}"'
        raise DuplicateObject(f'type "{name}" already exists{where}')
    work.transaction.define(old.key, None)
    _replace(work, old, new)
    written = f"{quote_identifier(new.schema)}.{quote_identifier(new.name)}"
    for other in list(work.transaction.catalog.definitions()):
        if isinstance(other, Table | View):
            found = with_other_name(work.statements, other, old, written)
            if isinstance(found, View):
                uses = tuple(new.key if each == old.key else each for each in found.uses)
                found = replace(found, uses=uses)
            if found != other:
                work.transaction.define(other.key, found)


def _tables(work: DdlPort) -> list[Table]:
    return [each for each in work.transaction.catalog.definitions() if isinstance(each, Table)]


def _replace(work: DdlPort, old: Enumeration, new: Enumeration) -> None:
    """Replace the enum in all definitions that use it."""

    def changed(sql_type: SqlType) -> SqlType:
        if sql_type.enum == old:
            return replace(sql_type, enum=new.in_column)
        if sql_type.element is not None:
            return replace(sql_type, element=changed(sql_type.element))
        return sql_type

    work.transaction.define(new.key, new)
    for other in list(work.transaction.catalog.definitions()):
        if isinstance(other, Table | View):
            found = _with_types(other, changed)
            if found != other:
                work.transaction.define(other.key, found)


def _with_types(definition: Table | View, changed: Callable[[SqlType], SqlType]) -> Table | View:
    if isinstance(definition, View):
        columns = tuple((name, changed(sql_type)) for name, sql_type in definition.columns)
        return replace(definition, columns=columns)
    return replace(
        definition,
        columns=tuple(replace(each, type=changed(each.type)) for each in definition.columns),
    )
