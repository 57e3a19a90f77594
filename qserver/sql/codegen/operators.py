"""The table of producers for all plan nodes, and the producers of the small ones."""

from __future__ import annotations

from typing import Final

from qserver.sql import plan
from qserver.sql.codegen.aggregates import produce_aggregate
from qserver.sql.codegen.charges import costly_rows
from qserver.sql.codegen.common_tables import produce_with_tables
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.joins import produce_join
from qserver.sql.codegen.pipeline import Consumer, Pipeline, Producers
from qserver.sql.codegen.row_limits import produce_limit
from qserver.sql.codegen.scans import produce_count, produce_scan
from qserver.sql.codegen.set_operations import produce_distinct, produce_set_operation
from qserver.sql.codegen.sorting import produce_sort, produce_top_n
from qserver.sql.codegen.value_lists import produce_values
from qserver.sql.codegen.vector_trees import produce_vectors
from qserver.sql.codegen.windows import produce_window
from qserver.values.sizes import is_sized


def produce_one_row(
    pipeline: Pipeline, node: plan.OneRow, rows: RowVariables, consume: Consumer
) -> None:
    consume(rows)


def produce_filter(
    pipeline: Pipeline, node: plan.Filter, rows: RowVariables, consume: Consumer
) -> None:
    def inside(inner: RowVariables) -> None:
        with pipeline.source.block(f"if {pipeline.printer.truth(node.condition, inner)}:"):
            consume(inner)

    pipeline.produce(node.input, rows, inside)


def produce_project(
    pipeline: Pipeline, node: plan.Project, rows: RowVariables, consume: Consumer
) -> None:
    def inside(inner: RowVariables) -> None:
        name = pipeline.source.fresh("r")
        pipeline.source.line(f"{name} = {pipeline.printer.values(node.expressions, inner)}")
        consume(inner.with_row(node.source, name, len(node.expressions)))

    pipeline.produce(node.input, rows, inside)


def produce_function_scan(
    pipeline: Pipeline, node: plan.FunctionScan, rows: RowVariables, consume: Consumer
) -> None:
    arguments = [pipeline.printer.value(each, rows) for each in node.arguments]
    names = []
    for code in arguments:
        names.append(pipeline.source.fresh("v"))
        pipeline.source.line(f"{names[-1]} = {code}")
    made = pipeline.source.fresh("v")
    given = ["context", *names] if node.function.takes_context else names
    call = f"{pipeline.source.known(node.function.call, 'call')}({', '.join(given)})"
    if node.function.cost is not None or any(is_sized(each.type) for each in node.arguments):
        call = pipeline.printer.costly(costly_rows(node.function), names)
    if node.function.strict and names:
        call = f"(() if {' or '.join(f'{name} is None' for name in names)} else {call})"
    pipeline.source.line(f"{made} = {call}")
    if node.ordinality:
        name = pipeline.source.fresh("n")
        made = f"((*v, {name}) for {name}, v in enumerate({made}, 1))"
    pipeline.loop(node.source, made, rows, consume)


def produce_common_table_scan(
    pipeline: Pipeline, node: plan.CommonTableScan, rows: RowVariables, consume: Consumer
) -> None:
    pipeline.loop(node.source, f"table{node.number}", rows, consume)


PRODUCERS: Final[Producers] = {
    plan.OneRow: produce_one_row,
    plan.Scan: produce_scan,
    plan.Count: produce_count,
    plan.Values: produce_values,
    plan.FunctionScan: produce_function_scan,
    plan.Join: produce_join,
    plan.Vectors: produce_vectors,
    plan.Filter: produce_filter,
    plan.Project: produce_project,
    plan.Aggregate: produce_aggregate,
    plan.Window: produce_window,
    plan.Sort: produce_sort,
    plan.TopN: produce_top_n,
    plan.Limit: produce_limit,
    plan.Distinct: produce_distinct,
    plan.SetOperation: produce_set_operation,
    plan.CommonTableScan: produce_common_table_scan,
    plan.WithTables: produce_with_tables,
}
