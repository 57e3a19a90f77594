"""Is a bound statement sound? What every plan of the binder must satisfy, whatever it is for.

each column names a source that is made below it or, in a subquery, around it
at a position that the source has, with the type that is there
and is not called NOT NULL where the source may have NULL
a function's arguments have the types of its parameters
AND and OR are flat; no source is made twice
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from qserver.sql import expressions, plan
from qserver.sql.walk import is_plan, parts
from qserver.values.schema import Table
from qserver.values.types import BIGINT, INTEGER, Kind, SqlType

Shape = list[tuple[SqlType, bool]]
Shapes = dict[int, Shape]


def check_statement(statement: plan.Select | plan.Change) -> None:
    """Raise AssertionError if anything is wrong."""
    checker = _Checker()
    if isinstance(statement, plan.Select):
        made = checker.rows_of(statement.plan, {})
        assert list(made) == [statement.source], "a query makes its one source"
        _same_columns(made[statement.source], statement.columns)
    else:
        checker.change(statement, {})


def _same_columns(shape: Shape, columns: Sequence[plan.OutputColumn]) -> None:
    assert len(shape) == len(columns)
    for (sql_type, nullable), column in zip(shape, columns, strict=True):
        assert sql_type == column.type, f"{column.name}: {sql_type} is not {column.type}"
        assert column.nullable or not nullable, f"{column.name} may be NULL"


class _Checker:
    def __init__(self) -> None:
        self.made: set[int] = set()
        self.common_tables: dict[int, Shape] = {}

    # --- statements ---

    def change(self, node: plan.Change, around: Shapes) -> Shape:
        rows = around | self.rows_of(node.plan, around)
        new = self._make(getattr(node, "new_source", -1), _table_shape(node.table))
        match node:
            case plan.Insert():
                self._row(node.table, node.values, rows)
                if node.on_conflict is not None and node.on_conflict.values:
                    old = {node.on_conflict.old_source: _table_shape(node.table)}
                    self._row(node.table, node.on_conflict.values, around | new | old)
                    if node.on_conflict.condition is not None:
                        self._condition(node.on_conflict.condition, around | new | old)
            case plan.Update():
                self._row(node.table, node.values, rows)
                assert all(0 <= at < len(node.table.columns) for at in node.changed)
            case plan.Delete():
                assert node.old_source in rows
        for check in getattr(node, "checks", ()):
            self._condition(check.expression, around | new)
        if node.returning is None:
            return []
        shape = [self.expression(each, rows | new) for each in node.returning.expressions]
        _same_columns(shape, node.returning.columns)
        return shape

    def _row(self, table: Table, values: Sequence[expressions.Expression], rows: Shapes) -> None:
        assert len(values) == len(table.columns), "a value for each column"
        for column, value in zip(table.columns, values, strict=True):
            sql_type, _ = self.expression(value, rows)
            assert sql_type == column.type, f"{column.name}: {sql_type} is not {column.type}"

    # --- plans ---

    def rows_of(self, node: Any, around: Shapes) -> Shapes:
        """The shapes of the sources whose rows the plan hands on."""
        return getattr(self, f"_{type(node).__name__.lower()}")(node, around)  # type: ignore[no-any-return]

    def _make(self, source: int, shape: Shape) -> Shapes:
        assert source not in self.made, f"source {source} is made twice"
        self.made.add(source)
        return {source: shape}

    def _scan(self, node: plan.Scan, around: Shapes) -> Shapes:
        return self._make(node.source, _table_shape(node.table))

    def _onerow(self, node: plan.OneRow, around: Shapes) -> Shapes:
        return {}

    def _values(self, node: plan.Values, around: Shapes) -> Shapes:
        for row in node.items:
            for each, column in zip(row, node.columns, strict=True):
                sql_type, nullable = self.expression(each, around)
                assert sql_type.bare == column.type.bare, f"{sql_type} is not {column.type}"
                assert column.nullable or not nullable, f"{column.name} may be NULL"
        return self._make(node.source, _shape(node.columns))

    def _functionscan(self, node: plan.FunctionScan, around: Shapes) -> Shapes:
        self._arguments(node.arguments, node.function.parameters, around)
        return self._make(node.source, _shape(node.columns))

    def _join(self, node: plan.Join, around: Shapes) -> Shapes:
        left = self.rows_of(node.left, around)
        right = self.rows_of(node.right, around | left if node.lateral else around)
        if node.condition is not None:
            self._condition(node.condition, around | left | right)
        if node.kind in ("right", "full"):
            left = _nullable(left)
        if node.kind in ("left", "full"):
            right = _nullable(right)
        return left | right

    def _filter(self, node: plan.Filter, around: Shapes) -> Shapes:
        rows = self.rows_of(node.input, around)
        self._condition(node.condition, around | rows)
        return rows

    def _project(self, node: plan.Project, around: Shapes) -> Shapes:
        rows = around | self.rows_of(node.input, around)
        shape = [self.expression(each, rows) for each in node.expressions]
        _same_columns(shape, node.columns)
        return self._make(node.source, _shape(node.columns))

    def _aggregate(self, node: plan.Aggregate, around: Shapes) -> Shapes:
        rows = around | self.rows_of(node.input, around)
        shape = [self.expression(key, rows) for key in node.keys]
        if node.grouping_sets is not None:
            shape = [(sql_type, True) for sql_type, _ in shape]
        for call in node.calls:
            self._arguments(call.arguments, call.aggregate.parameters, rows)
            self._sort_keys(call.order_by, rows)
            if call.filter is not None:
                self._condition(call.filter, rows)
            shape.append((call.type, call.nullable))
        if node.grouping_sets is not None:
            shape.append((INTEGER, False))
        return self._make(node.source, shape)

    def _window(self, node: plan.Window, around: Shapes) -> Shapes:
        below = self.rows_of(node.input, around)
        rows = around | below
        for call in node.calls:
            for each in (*call.arguments, *call.partition_by):
                self.expression(each, rows)
            self._sort_keys(call.order_by, rows)
            if call.filter is not None:
                self._condition(call.filter, rows)
        shape = [(call.type, call.nullable) for call in node.calls]
        return below | self._make(node.source, shape)

    def _sort(self, node: plan.Sort, around: Shapes) -> Shapes:
        rows = self.rows_of(node.input, around)
        self._sort_keys(node.keys, around | rows)
        return rows

    def _limit(self, node: plan.Limit, around: Shapes) -> Shapes:
        rows = self.rows_of(node.input, around)
        for each in (node.limit, node.offset):
            if each is not None:
                assert self.expression(each, around)[0] == BIGINT
        self._sort_keys(node.with_ties, around | rows)
        return rows

    def _distinct(self, node: plan.Distinct, around: Shapes) -> Shapes:
        rows = self.rows_of(node.input, around)
        assert node.source in rows or (node.on and node.source == 0)
        for each in node.on:
            self.expression(each, around | rows)
        return rows

    def _setoperation(self, node: plan.SetOperation, around: Shapes) -> Shapes:
        for below, source in ((node.left, node.left_source), (node.right, node.right_source)):
            made = self.rows_of(below, around)
            assert list(made) == [source]
            for (sql_type, _), column in zip(made[source], node.columns, strict=True):
                assert sql_type.bare == column.type.bare, f"{sql_type} is not {column.type}"
        return self._make(node.source, _shape(node.columns))

    def _commontablescan(self, node: plan.CommonTableScan, around: Shapes) -> Shapes:
        known = self.common_tables[node.number]
        assert [each for each, _ in known] == [column.type for column in node.columns]
        return self._make(node.source, _shape(node.columns))

    def _withtables(self, node: plan.WithTables, around: Shapes) -> Shapes:
        for table in node.tables:
            if isinstance(table.plan, plan.Insert | plan.Update | plan.Delete):
                self.common_tables[table.number] = self.change(table.plan, around)
                continue
            made = self.rows_of(table.plan, around)
            assert list(made) == [table.source]
            self.common_tables[table.number] = made[table.source]
            if table.recursive is not None:
                again = self.rows_of(table.recursive, around)
                assert list(again) == [table.recursive_source]
        return self.rows_of(node.input, around)

    # --- expressions ---

    def expression(self, node: Any, rows: Shapes) -> tuple[SqlType, bool]:
        """The type of an expression, and whether it can be NULL."""
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if is_plan(each):
                self.rows_of(each, rows)
                continue
            self._one(each, rows)
            waiting.extend(parts(each))
        return node.type, node.nullable

    def _one(self, node: Any, rows: Shapes) -> None:
        match node:
            case expressions.Column():
                assert node.source in rows, f"nobody makes {node}"
                shape = rows[node.source]
                assert node.position < len(shape), f"{node} is past the last column"
                sql_type, nullable = shape[node.position]
                assert sql_type == node.type, f"{node} is of type {sql_type}"
                assert node.nullable or not nullable, f"{node} may be NULL"
            case expressions.Apply():
                self._types(node.arguments, node.function.parameters, node.function.variadic)
            case expressions.And() | expressions.Or():
                assert len(node.operands) > 1
                assert not any(type(each) is type(node) for each in node.operands)
                for each in node.operands:
                    assert each.type.kind is Kind.BOOLEAN

    def _arguments(
        self, arguments: Sequence[Any], parameters: Sequence[SqlType], rows: Shapes
    ) -> None:
        for each in arguments:
            self.expression(each, rows)

    @staticmethod
    def _types(arguments: Sequence[Any], parameters: Sequence[SqlType], variadic: bool) -> None:
        if variadic and len(arguments) > len(parameters):
            parameters = [*parameters, *[parameters[-1]] * (len(arguments) - len(parameters))]
        for argument, parameter in zip(arguments, parameters, strict=True):
            assert parameter.bare in (argument.type, argument.type.bare), (
                f"{argument.type} for {parameter}"
            )

    def _condition(self, node: Any, rows: Shapes) -> None:
        assert self.expression(node, rows)[0].kind is Kind.BOOLEAN

    def _sort_keys(self, keys: Iterable[expressions.SortKey], rows: Shapes) -> None:
        for key in keys:
            self.expression(key.expression, rows)


def _shape(columns: Sequence[plan.OutputColumn]) -> Shape:
    return [(column.type, column.nullable) for column in columns]


def _table_shape(table: Table) -> Shape:
    return [(column.type, column.nullable) for column in table.columns]


def _nullable(shapes: Shapes) -> Shapes:
    return {source: [(sql_type, True) for sql_type, _ in shape] for source, shape in shapes.items()}
