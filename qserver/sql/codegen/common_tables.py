"""WITH: each CTE is a list, computed before its readers.

    table1 = [ … ]                       a query, or the RETURNING of a change
    table2 = [first rows]                with RECURSIVE: iterations, until one adds no row
    rows0 = table2[:]
    while table2: …                      each reads only the rows that the last one added

A recursion whose rows go straight to a LIMIT may be infinite. It is a generator instead, which
computes rows on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from qserver.sql import plan
from qserver.sql.codegen.changes import produce_common_change
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.long_values import types_made
from qserver.sql.codegen.nans import may_be_nan, one_nan
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.plan import Change, Plan
from qserver.sql.walk import everything

ROWS_OF_ITERATION: Final = 8
"""An iteration that finds nothing costs as much as so many rows."""


def produce_with_tables(
    pipeline: Pipeline, node: plan.WithTables, rows: RowVariables, consume: Consumer
) -> None:
    source = pipeline.source
    lazy = _read_up_to_a_limit(node)
    for table in node.tables:
        name = f"table{table.number}"
        if isinstance(table.plan, Change):
            produce_common_change(pipeline, table.plan, name)
        elif table.recursive is None:
            source.line(f"{name} = []")
            _append_rows(pipeline, table.plan, table.source, name, rows)
        elif table.number in lazy:
            _lazy_recursion(pipeline, table, rows)
        else:
            _recursion(pipeline, table, rows)
    pipeline.produce(node.input, rows, consume)


def _append_rows(
    pipeline: Pipeline, node: Plan, made: int, name: str, rows: RowVariables, count: str = ""
) -> None:
    measure = pipeline.measure(node, (made,), count)

    def inside(inner: RowVariables) -> None:
        pipeline.source.line(f"{name}.append({inner.row(made)})")
        pipeline.charge_memory(name, 1)
        measure(inner)

    pipeline.produce(node, rows, inside)


def _recursion(pipeline: Pipeline, table: plan.CommonTable, rows: RowVariables) -> None:
    """Print a recursion that collects all rows in a list."""
    line, name = pipeline.source.line, f"table{table.number}"
    found = pipeline.source.fresh("rows")
    line(f"{found} = []")

    def keep(rows_made: str) -> None:
        line(f"{found} += {rows_made}")
        line(f"context.charge_memory(len({rows_made}), 4)")

    _print_iterations(pipeline, table, rows, keep)
    line(f"{name} = {found}")


def _lazy_recursion(pipeline: Pipeline, table: plan.CommonTable, rows: RowVariables) -> None:
    """Print a recursion that yields rows on demand: its reader may stop early."""
    source, name = pipeline.source, f"table{table.number}"
    made = source.fresh("iterations")
    with source.block(f"def {made}():"):
        own = pipeline.inside_a_function()
        with pipeline.printer.without_yielding():
            _print_iterations(
                own, table, rows, lambda rows_made: source.line(f"yield from {rows_made}")
            )
    source.line(f"{name} = {made}()")


def _print_iterations(
    pipeline: Pipeline, table: plan.CommonTable, rows: RowVariables, give: Callable[[str], None]
) -> None:
    """Print the iterations, each over the rows of the last one, until one adds none."""
    line, name = pipeline.source.line, f"table{table.number}"
    fresh, seen = pipeline.source.fresh("rows"), pipeline.source.fresh("seen")
    assert table.recursive is not None
    assert not isinstance(table.plan, Change)
    count = pipeline.source.fresh("n")
    line(f"{name}, {count} = [], 0")
    _append_rows(pipeline, table.plan, table.source, name, rows, count)
    alike = "{}"
    if any(map(may_be_nan, types_made(table.plan, table.source))):
        pipeline.source.name("one_nan", one_nan)
        alike = "map(one_nan, {})"
    if not table.is_all:
        line(f"{name} = list(dict.fromkeys({alike.format(name)}))")
        line(f"{seen} = set({name})")
    give(name)
    with pipeline.source.block(f"while {name}:"):
        pipeline.charge_rows(str(ROWS_OF_ITERATION))
        line(f"{fresh} = []")
        _append_rows(pipeline, table.recursive, table.recursive_source, fresh, rows, count)
        if not table.is_all:
            line(f"{fresh} = [r for r in dict.fromkeys({alike.format(fresh)}) if r not in {seen}]")
            line(f"{seen}.update({fresh})")
        give(fresh)
        line(f"{name} = {fresh}")


def _read_up_to_a_limit(node: plan.WithTables) -> set[int]:
    """Return the tables whose rows go one by one to a LIMIT, and nowhere else."""
    parts = [node.input, *(table.plan for table in node.tables)]
    limited = {number for part in parts if (number := _limited_table(part)) is not None}
    readers = Counter(_tables_read(node.input))
    for table in node.tables:
        readers.update(_tables_read(table.plan))
        if table.recursive is not None:
            readers.update(_tables_read(table.recursive))
            readers[table.number] -= 1  # the table itself
    return {number for number in limited if readers[number] == 1}


def _limited_table(node: Plan | Change) -> int | None:
    below, limited = node, False
    while isinstance(below, plan.Project | plan.Filter | plan.Limit):
        if isinstance(below, plan.Limit):
            limited = limited or (below.limit is not None and not below.with_ties)
        below = below.input
    return below.number if limited and isinstance(below, plan.CommonTableScan) else None


def _tables_read(node: Plan | Change) -> list[int]:
    return [each.number for each in everything(node) if type(each) is plan.CommonTableScan]
