"""DISTINCT, UNION, INTERSECT and EXCEPT, by a set of seen rows or two materialized sides."""

from __future__ import annotations

from collections.abc import Iterable

from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.long_values import columns_made, is_long, long_columns, types_made
from qserver.sql.codegen.nans import may_be_nan, one_nan, rows_told_apart
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.runtime import except_rows, intersect_rows
from qserver.values.types import SqlType


def produce_distinct(
    pipeline: Pipeline, node: plan.Distinct, rows: RowVariables, consume: Consumer
) -> None:
    seen = pipeline.source.fresh("seen")
    pipeline.source.line(f"{seen} = set()")
    types: Iterable[SqlType] = [each.type for each in node.on]
    long = [at for at, each in enumerate(node.on) if is_long(each, node.input)]
    compared = list(enumerate(node.on))
    if not node.on:
        long = list(long_columns(node.input, node.source))
        compared = list(enumerate(columns_made(node.input, node.source)))
        types = types_made(node.input, node.source)
    count = pipeline.source.fresh("n")
    pipeline.source.line(f"{count} = 0")

    def inside(inner: RowVariables) -> None:
        key = pipeline.printer.values(node.on, inner) if node.on else inner.row(node.source)
        name = pipeline.source.fresh("k")
        pipeline.source.line(f"{name} = {rows_told_apart(pipeline.source, types, key)}")
        looked_at = [(each, f"{name}[{at}]") for at, each in compared]
        pipeline.count_looks(looked_at, of_rows=True)
        with pipeline.source.block(f"if {name} not in {seen}:"):
            pipeline.source.line(f"{seen}.add({name})")
            pipeline.charge_memory(seen, 1)
            if long:
                pipeline.count_bytes(count, [f"{name}[{at}]" for at in long])
            consume(inner)

    pipeline.produce(node.input, rows, inside)


def produce_set_operation(
    pipeline: Pipeline, node: plan.SetOperation, rows: RowVariables, consume: Consumer
) -> None:
    """Print both sides in one generator, so that the consumer is printed once."""
    made = pipeline.source.fresh("both")
    hands_out, pipeline.hands_out = pipeline.hands_out, False
    with pipeline.source.block(f"def {made}():"):
        if node.kind == "union":
            _union(pipeline, node, rows)
        else:
            _intersect_or_except(pipeline, node, rows)
        pipeline.source.line("return")
        pipeline.source.line("yield")
    pipeline.hands_out = hands_out
    name = pipeline.source.fresh("r")
    with pipeline.for_each(name, f"{made}()"):
        if pipeline.may_yield:
            with pipeline.source.block(f"if {name} is None:"):
                pipeline.yield_check()
                pipeline.source.line("continue")
        consume(rows.with_row(node.source, name))


def _union(pipeline: Pipeline, node: plan.SetOperation, rows: RowVariables) -> None:
    count = pipeline.source.fresh("n")
    if not node.is_all:
        pipeline.source.line(f"seen, {count} = set(), 0")
    long = long_columns(node, node.source)

    compared = columns_made(node.left, node.left_source)
    types = [column.type for column in node.columns]

    def give(row: str) -> None:
        if node.is_all:
            pipeline.source.line(f"yield {row}")
            return
        alike = rows_told_apart(pipeline.source, types, row)
        if alike != row:
            row = pipeline.source.fresh("r")
            pipeline.source.line(f"{row} = {alike}")
        looked_at = [(each, f"{row}[{at}]") for at, each in enumerate(compared)]
        pipeline.count_looks(looked_at, of_rows=True)
        with pipeline.source.block(f"if {row} not in seen:"):
            pipeline.source.line(f"seen.add({row})")
            pipeline.charge_memory("seen", 1)
            if long:
                pipeline.count_bytes(count, [f"{row}[{at}]" for at in long])
            pipeline.source.line(f"yield {row}")

    pipeline.produce(node.left, rows, lambda inner: give(inner.row(node.left_source)))
    pipeline.produce(node.right, rows, lambda inner: give(inner.row(node.right_source)))


def _intersect_or_except(pipeline: Pipeline, node: plan.SetOperation, rows: RowVariables) -> None:
    pipeline.source.name("intersect_rows", intersect_rows)
    pipeline.source.name("except_rows", except_rows)
    left = pipeline.keep(node.left, rows)
    right = pipeline.keep(node.right, rows)
    if any(may_be_nan(column.type) for column in node.columns):
        pipeline.source.name("one_nan", one_nan)
        for side in (left, right):
            pipeline.source.line(f"{side} = map(one_nan, {side})")  # by pages, as they are read
    how = "intersect_rows" if node.kind == "intersect" else "except_rows"
    steps = f"{how}(context, {left}, {right}, {node.is_all})"
    if pipeline.may_yield:
        pipeline.source.line(f"yield from {steps}")
    else:
        pipeline.source.line(f"yield from (row for row in {steps} if row is not None)")
