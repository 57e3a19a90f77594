"""A catalog for tests: definitions from CREATE statements, and nothing behind them.

It knows as much of CREATE TABLE as the binder can see: types, keys, defaults, checks.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.errors import DuplicateTable, UndefinedTable
from qserver.sql import ast
from qserver.sql.binder import Literals, bind, bind_type
from qserver.sql.statistics import Sizes
from qserver.values.constraints import Check
from qserver.values.relations import View
from qserver.values.schema import Column, Table, define_table
from qserver.values.types import BIGINT, INTEGER, SqlType
from tests.values.making import define_index, enum_type

_SERIALS = {"serial": INTEGER, "serial4": INTEGER, "bigserial": BIGINT, "serial8": BIGINT}


class TestCatalog:
    """Satisfies `CatalogPort`."""

    __test__ = False

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.views: dict[str, View] = {}
        self.types: dict[str, SqlType] = {}
        self._ids = 0

    def find_table(self, name: tuple[str, ...]) -> Table | None:
        return self.tables.get(name[-1]) if self._visible(name) else None

    def find_view(self, name: tuple[str, ...]) -> View | None:
        return self.views.get(name[-1]) if self._visible(name) else None

    def sequence_as_view(self, name: tuple[str, ...]) -> View | None:
        return None

    def find_type(self, name: tuple[str, ...]) -> SqlType | None:
        return self.types.get(name[-1])

    def has_schema(self, name: str) -> bool:
        return name == "public"

    def check_database(self, name: tuple[str, ...]) -> None:
        pass

    def read_definitions(self) -> None:
        pass

    @property
    def stored(self) -> TestCatalog:
        return self

    in_utc = True
    has_path = False

    statistics = Sizes(lambda table: 100)

    @staticmethod
    def _visible(name: tuple[str, ...]) -> bool:
        return len(name) == 1 or name[0] == "public"

    # --- definitions ---

    def define(self, statement: ast.Statement, literals: Literals) -> bool:
        """Carry out a definition; False if the statement is none that is known here."""
        match statement:
            case ast.CreateTable(query=None):
                self._create_table(statement, literals)
            case ast.CreateTable():
                self._create_table_as(statement, literals)
            case ast.CreateIndex():
                self._create_index(statement)
            case ast.CreateView():
                self._create_view(statement, literals)
            case ast.CreateEnum():
                labels = [literals.value(label.index) for label in statement.labels]
                self.types[statement.name[-1]] = enum_type(statement.name[-1], *labels)
            case ast.Drop():
                for name in statement.names:
                    self.tables.pop(name[-1], None)
                    self.views.pop(name[-1], None)
            case _:
                return False
        return True

    def _create_table(self, node: ast.CreateTable, literals: Literals) -> None:
        name = node.name[-1]
        if name in self.tables:
            if node.if_not_exists:
                return
            raise DuplicateTable(f'relation "{name}" already exists')
        columns = [self._column(each, literals) for each in node.columns]
        constraints = list(node.constraints)
        for each in node.columns:
            constraints += [
                replace(found, columns=found.columns or (each.name,)) for found in each.constraints
            ]
        key: tuple[str, ...] = ()
        checks: list[Check] = []
        uniques: list[tuple[str, ...]] = []
        for found in constraints:
            if found.kind == "primary key":
                key = found.columns
            elif found.kind == "unique":
                uniques.append(found.columns)
            elif found.kind == "check":
                checks.append(Check(found.name or f"{name}_check", found.text))
        table = define_table(self._next_id(), name, columns, key)
        table = replace(table, checks=tuple(checks))
        for unique in uniques:
            index_name = f"{name}_{'_'.join(unique)}_key"[:63]
            index = define_index(self._next_id(), index_name, table, unique, unique=True)
            table = table.with_index(replace(index, constraint=True))
        self.tables[name] = table

    def _column(self, node: ast.ColumnDefinition, literals: Literals) -> Column:
        serial = _SERIALS.get(node.type.name)
        sql_type = serial or bind_type(node.type, literals, self.find_type)
        column = Column(node.name, sql_type)
        for each in node.constraints:
            if each.kind == "not null":
                column = replace(column, nullable=False)
            elif each.kind == "default":
                column = replace(column, default=each.text)
            elif each.kind == "generated":
                column = replace(column, generated=each.text)
            elif each.kind.startswith("identity "):
                identity = each.kind.removeprefix("identity ")
                column = replace(
                    column, identity=identity, sequence=f"{node.name}_seq", nullable=False
                )
        return column if serial is None else replace(column, nullable=False)

    def _create_table_as(self, node: ast.CreateTable, literals: Literals) -> None:
        assert node.query is not None
        found = bind(node.query, literals, self).statement
        columns = getattr(found, "columns", ())
        names = [*node.column_names, *[each.name for each in columns[len(node.column_names) :]]]
        fields = [Column(name, each.type) for name, each in zip(names, columns, strict=True)]
        self.tables[node.name[-1]] = define_table(self._next_id(), node.name[-1], fields)

    def _create_index(self, node: ast.CreateIndex) -> None:
        table = self.tables.get(node.table[-1])
        if table is None:
            raise UndefinedTable(f'relation "{node.table[-1]}" does not exist')
        names = [
            item.expression.parts[0] for item in node.items if isinstance(item.expression, ast.Name)
        ]
        if len(names) < len(node.items) or node.where is not None:
            return
        name = node.name or f"{table.name}_{'_'.join(names)}_idx"
        index = define_index(self._next_id(), name, table, names, unique=node.unique)
        self.tables[table.name] = table.with_index(index)

    def _create_view(self, node: ast.CreateView, literals: Literals) -> None:
        found = bind(node.query, literals, self).statement
        columns = getattr(found, "columns", ())
        output = tuple(each.name for each in columns)
        names = (*node.column_aliases, *output[len(node.column_aliases) :])
        typed = tuple((name, each.type) for name, each in zip(names, columns, strict=True))
        self.views[node.name[-1]] = View(node.name[-1], typed, output, node.text)

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids
