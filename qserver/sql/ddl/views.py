"""CREATE VIEW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidObjectDefinition,
    InvalidTableDefinition,
    NotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedColumn,
    WrongObjectType,
)
from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.ddl.columns import type_of_output, with_default
from qserver.sql.ddl.create_table import check_definition
from qserver.sql.ddl.names import choose_relation_name, new_place, require_free, shown_name
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.rewrite import row_id_column
from qserver.sql.ddl.view_texts import follow_added
from qserver.sql.ddl.words import check_view_options
from qserver.sql.plan import OutputColumn
from qserver.values.identifiers import catalog_key
from qserver.values.relations import View
from qserver.values.schema import Column, Table
from qserver.values.temporary import TEMPORARY, is_temporary
from qserver.values.types import SqlType


def create_view(work: DdlPort, node: ast.CreateView) -> DdlSteps:
    (schema, name), old = _place(work, node, node.temporary)
    if any(not isinstance(each.statement, ast.Query) for each in node.query.common_tables):
        raise FeatureNotSupported("views must not contain data-modifying statements in WITH")
    found, names = yield from work.statements.describe(node.query, work.literals)
    written = _names_in(work, node.query)
    uses = tuple(each for each in names if each in written)
    if schema != TEMPORARY and any(map(is_temporary, uses)):
        (schema, name), old = _place(work, node, True)
    key, columns = catalog_key(schema, name), _columns(node, found)
    text = yield from work.statements.view_text(node.text)
    if isinstance(old, View):
        _require_compatible(old, columns)
        _require_no_circle(work, key, uses)
    view = View(
        name,
        columns,
        tuple(column.name for column in found),
        text,
        uses,
        old.comments if isinstance(old, View) else (),
        schema,
        node.check_option or check_view_options(node.options) or "",
        old.defaults if isinstance(old, View) else (),
    )
    if view.check_option and node.recursive:
        raise FeatureNotSupported("WITH CHECK OPTION not supported on recursive views")
    work.transaction.define(key, view)
    if view.check_option:
        yield from _require_updatable(work, view)
    if isinstance(old, View):
        shown = [name for name, _ in columns]
        for at in range(len(old.columns), len(shown)):
            yield from follow_added(work, view, shown[:at], shown[at])
    return 0


def _place(
    work: DdlPort, node: ast.CreateView, temporary: bool
) -> tuple[tuple[str, str], View | None]:
    """Return schema and name of the new view, and what it replaces."""
    schema, name = new_place(work, node.name, temporary=temporary)
    key = catalog_key(schema, name)
    old = work.find(key)
    if not node.replace or old is None:
        require_free(work, key)
        return (schema, name), None
    if not isinstance(old, View):
        raise WrongObjectType(f'"{name}" is not a view')
    return (schema, name), old


def _require_updatable(work: DdlPort, view: View) -> DdlSteps:
    """Refuse WITH CHECK OPTION for a view that is not updatable."""
    try:
        yield from work.statements.check(ast.Delete(ast.TableRef(view.path)))
    except NotInPrerequisiteState as error:
        raise FeatureNotSupported(
            "WITH CHECK OPTION is supported only on automatically updatable views",
            hint=error.detail,
        ) from None
    return 0


def set_view_options(work: DdlPort, view: View, options: Sequence[tuple[str, str]]) -> DdlSteps:
    """ALTER VIEW … SET (check_option = local)."""
    option = check_view_options(options)
    if option is not None:
        changed = replace(view, check_option=option)
        work.transaction.define(view.key, changed)
        yield from _require_updatable(work, changed)
    return 0


def _names_in(work: DdlPort, query: ast.Query) -> set[str]:
    """Return the relations and types that the query itself names, without those of its views."""
    names: set[str] = set()
    for node in nodes_of(query):
        if isinstance(node, ast.TableRef):
            names.add(work.key(node.name))
        elif isinstance(node, ast.TypeName):
            names.add(work.key(node.parts))
    return names


def _columns(
    node: ast.CreateView, found: tuple[OutputColumn, ...]
) -> tuple[tuple[str, SqlType], ...]:
    if len(node.column_aliases) > len(found):
        raise SqlSyntaxError("CREATE VIEW specifies more column names than columns")
    names = [*node.column_aliases, *(each.name for each in found[len(node.column_aliases) :])]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise DuplicateColumn(f'column "{name}" specified more than once', column=name)
    return tuple(
        (name, type_of_output(name, column)) for name, column in zip(names, found, strict=True)
    )


def rename_view_column(work: DdlPort, view: View, action: ast.AlterAction) -> View:
    names = [name for name, _ in view.columns]
    if action.name not in names:
        raise UndefinedColumn(f'column "{action.name}" does not exist', column=action.name)
    if action.new_name in names:
        raise DuplicateColumn(
            f'column "{action.new_name}" of relation "{view.name}" already exists'
        )
    columns = tuple(
        (action.new_name if name == action.name else name, sql_type)
        for name, sql_type in view.columns
    )
    defaults = tuple(
        (action.new_name if each[0] == action.name else each[0], *each[1:])
        for each in view.defaults
    )
    renamed = replace(view, columns=columns, defaults=defaults)
    work.transaction.define(view.key, renamed)
    return renamed


def set_view_default(work: DdlPort, view: View, action: ast.AlterAction) -> DdlSteps:
    """ALTER VIEW … ALTER COLUMN … SET DEFAULT, or DROP DEFAULT: for rows inserted through it."""
    types = dict(view.columns)
    if action.name not in types:
        raise UndefinedColumn(
            f'column "{action.name}" of relation "{view.name}" does not exist',
            table=view.name,
            column=action.name,
        )
    changed = without_default(view, action.name)
    if action.kind == "set default":
        column = Column(action.name, types[action.name])
        column = with_default(work, column, action.expression, action.text)
        new = (action.name, column.default or "", column.sequence)
        changed = replace(changed, defaults=(*changed.defaults, new))
        yield from _check_default(work, view.schema, column)
    work.transaction.define(view.key, changed)
    return 0


def _check_default(work: DdlPort, schema: str, column: Column) -> DdlSteps:
    """Raise the error of a table's column with the default: a view may be one that nobody fills."""
    name = choose_relation_name(work, schema, (column.name,), "default")
    columns = (column, row_id_column(schema))
    table = Table(work.transaction.next_tree(schema), name, columns, (1,), schema=schema)
    work.transaction.define(table.key, table)
    yield from check_definition(work, table)
    work.transaction.define(table.key, None)
    work.transaction.drop_trees(table.id)
    return 0


def without_default(view: View, column: str) -> View:
    kept = tuple(each for each in view.defaults if each[0] != column)
    return replace(view, defaults=kept)


def _require_compatible(old: View, columns: tuple[tuple[str, SqlType], ...]) -> None:
    """Require that a replaced view keeps its columns; it may get more."""
    if len(columns) < len(old.columns):
        raise InvalidTableDefinition("cannot drop columns from view")
    for (name, sql_type), (now, new_type) in zip(old.columns, columns, strict=False):
        if name != now:
            raise InvalidTableDefinition(
                f'cannot change name of view column "{name}" to "{now}"',
                hint="Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            )
        if sql_type != new_type:
            raise InvalidTableDefinition(
                f'cannot change data type of view column "{name}" from {sql_type} to {new_type}'
            )


def _require_no_circle(work: DdlPort, key: str, uses: tuple[str, ...]) -> None:
    seen: set[str] = set()
    waiting = list(uses)
    while waiting:
        each = waiting.pop()
        if each == key:
            raise InvalidObjectDefinition(
                f'infinite recursion detected in rules for relation "{shown_name(key)}"'
            )
        definition = work.find(each)
        if each not in seen and isinstance(definition, View):
            waiting += definition.uses
        seen.add(each)
