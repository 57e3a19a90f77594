"""Sorts materialized rows by keys that order NULL and NaN as SQL does; see `sorted_rows`.

Keys of one direction become one tuple and one sort. Mixed directions are sorted from the last run
of equal directions to the first, which works because the sort is stable, also in reverse.
"""

from __future__ import annotations

from itertools import groupby

from qserver.functions.context import CostlyCall
from qserver.functions.costs import array_key_cost, key_cost, linear
from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.long_values import long_columns
from qserver.sql.codegen.materialize import pattern
from qserver.sql.codegen.pipeline import ROWS_BETWEEN_CHECKS, Consumer, Pipeline
from qserver.sql.codegen.row_limits import bounds
from qserver.sql.codegen.sorted_rows import KEY_BYTES_SHORT, nesting, sort_rows
from qserver.sql.codegen.vectors import take_first_rows
from qserver.sql.expressions import Column, SortKey
from qserver.sql.walk import output_sources
from qserver.values.keys import canonical
from qserver.values.sizes import is_sized, size_of
from qserver.values.types import FLOAT_KINDS, INTEGER_KINDS, TEXT_KINDS, Kind, SqlType

_NATIVE = frozenset(
    {*INTEGER_KINDS, *TEXT_KINDS, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
)
"""Kinds whose values Python orders as SQL does."""


KEY_COSTS = {
    kind: CostlyCall("a sort", canonical, cost, makes_long=False)
    for kind, cost in (
        (Kind.ARRAY, array_key_cost),
        (Kind.RECORD, linear(40)),
        (Kind.JSONB, key_cost),
    )
}
"""Kinds whose values become keys of their own, part by part."""


def produce_sort(
    pipeline: Pipeline, node: plan.Sort, rows: RowVariables, consume: Consumer
) -> None:
    name = pipeline.keep(node.input, rows)
    print_sort(pipeline, name, node.keys, output_sources(node.input), rows)
    pipeline.replay(name, node.input, rows, consume)


def produce_top_n(
    pipeline: Pipeline, node: plan.TopN, rows: RowVariables, consume: Consumer
) -> None:
    """Hold a few times as many rows as wanted, and sort and cut when there are more."""
    line = pipeline.source.line
    limit, offset = bounds(pipeline, node.limit, node.offset, rows)
    most, name = pipeline.source.fresh("most"), pipeline.source.fresh("rows")
    line(f"{most} = {limit} + {offset}")
    peak, size = pipeline.source.fresh("n"), pipeline.source.fresh("n")
    line(f"{name}, {peak}, {size} = [], {ROWS_BETWEEN_CHECKS}, 0")
    sources = output_sources(node.input)
    long = [(made, at) for made in sources for at in long_columns(node.input, made)]

    def inside(inner: RowVariables) -> None:
        line(f"{name}.append({pattern(sources, inner)})")
        with pipeline.source.block(f"if len({name}) > {peak}:"):
            line(f"{peak} += {ROWS_BETWEEN_CHECKS}")
            line(f"context.charge_memory({ROWS_BETWEEN_CHECKS}, {4 * len(sources)}, {name})")
            pipeline.yield_check()
        if long:
            _hold_until_cut(pipeline, size, [f"{inner.row(made)}[{at}]" for made, at in long])
        with pipeline.source.block(f"if len({name}) > 4 * {most} + {ROWS_BETWEEN_CHECKS}:"):
            print_sort(pipeline, name, node.keys, sources, rows)
            line(f"del {name}[{most}:]")
            if long:  # the remaining rows are charged after the next cut
                line(f"context.free_bytes({size})")
                line(f"{size} = 0")

    if node.vectors:
        take_first_rows(pipeline, node, rows, most)
    if isinstance(node.input, plan.Vectors):
        pipeline.mosts[output_sources(node.input)[0]] = most
    pipeline.produce(node.input, rows, inside)
    print_sort(pipeline, name, node.keys, sources, rows)
    pipeline.loop_over(f"{name}[{offset}:{most}]", sources, rows, consume)


def _hold_until_cut(pipeline: Pipeline, size: str, codes: list[str]) -> None:
    """Print the charge for long values that are held until the next cut."""
    pipeline.source.name("size_of", size_of)
    own = pipeline.source.fresh("n")
    pipeline.source.line(f"{own} = {' + '.join(f'size_of({code})' for code in codes)}")
    with pipeline.source.block(f"if {own}:"):
        pipeline.source.line(f"{size} += {own}")
        pipeline.source.line(f"context.hold_bytes({own})")


def print_sort(
    pipeline: Pipeline,
    name: str,
    keys: tuple[SortKey, ...],
    sources: tuple[int, ...],
    rows: RowVariables,
) -> None:
    runs = [(down, list(run)) for down, run in groupby(keys, key=lambda key: key.descending)]
    for descending, run in reversed(runs):
        print_sort_by(pipeline, name, sources, rows, descending, run)


def print_sort_by(
    pipeline: Pipeline,
    name: str,
    sources: tuple[int, ...],
    rows: RowVariables,
    descending: bool,
    keys: list[SortKey],
) -> None:
    """Print the sort by keys of one direction: first a list of the keys."""
    source = pipeline.source
    found, size, held = source.fresh("keys"), source.fresh("n"), source.fresh("n")
    source.line(f"{found}, {size}, {held} = [], 0, 0")
    # A key that is not the value of a column is a new value, held until the rows are sorted.
    is_made = any(
        has_long_key(each.expression.type)
        or (is_sized(each.expression.type) and not isinstance(each.expression, Column))
        for each in keys
    )

    def inside(inner: RowVariables) -> None:
        elements: list[str] = []
        sizes: list[str] = []
        nested = ""
        key = source.fresh("k")
        for each in keys:
            elements += key_elements(pipeline, each, inner)
            if is_sized(each.expression.type):
                sizes.append(_size(pipeline, key, len(elements) - 1, each.expression.type.kind))
            if has_long_key(each.expression.type):
                source.name("nesting", nesting)
                nested = f" * (nesting({key}) if {{length}} > {KEY_BYTES_SHORT // 4} else 1)"
        code = elements[0] if len(elements) == 1 else f"({', '.join(elements)})"
        source.line(f"{key} = {code}")
        source.line(f"{found}.append({key})")
        if sizes:
            whole = [size.replace("[0]", "") for size in sizes] if len(elements) == 1 else sizes
            length = source.fresh("n")
            source.line(f"{length} = {' + '.join(whole)}")
            source.line(f"{size} += {length}{nested.format(length=length)}")
            if is_made:
                with source.block(f"if {length} > {KEY_BYTES_SHORT}:"):
                    source.line(f"context.hold_bytes({length})")
                    source.line(f"{held} += {length}")

    pipeline.loop_over(name, sources, rows, inside)
    call = f"sort_rows(context, {name}, {found}, {descending}, {size})"
    source.line(pipeline.steps(call, sort_rows))
    source.line(f"context.let_go({found})")
    source.line(f"{found} = None")
    if is_made:
        source.line(f"context.free_bytes({held})")


def _size(pipeline: Pipeline, key: str, position: int, kind: Kind) -> str:
    if kind in TEXT_KINDS:
        return f"len({key}[{position}] or '')"
    pipeline.source.name("size_of", size_of)
    return f"size_of({key}[{position}])"


def key_elements(pipeline: Pipeline, key: SortKey, rows: RowVariables) -> list[str]:
    """Return the elements that a key compares by: the places of NULL and NaN, then the value."""
    expression = key.expression
    code = pipeline.printer.value(expression, rows)
    kind = expression.type.kind
    may_be_nan = kind in FLOAT_KINDS or kind is Kind.NUMERIC
    if not (expression.nullable or may_be_nan):
        return [sortable(pipeline, code, kind)]
    name = pipeline.source.fresh("v")
    # Descending sorts are reversed as a whole, so NULL must be on the other side.
    null_is_greater = key.nulls_first == key.descending
    elements = [f"(({name} := {code}) is {'' if null_is_greater else 'not '}None)"]
    if not may_be_nan:
        elements.append(sortable(pipeline, name, kind))
        return elements
    return [
        *elements,
        f"({name} != {name})",
        f"(0 if {name} is None or {name} != {name} else {name})",
    ]


def sortable(pipeline: Pipeline, code: str, kind: Kind) -> str:
    """Return code for a value that Python compares in the order of its type; NULL stays None."""
    if kind in _NATIVE:
        return code
    pipeline.source.name("canonical", canonical)
    cost = KEY_COSTS.get(kind)
    if cost is None:
        return f"canonical({code})"
    return pipeline.printer.by_size(cost, "canonical", code)


def has_long_key(sql_type: SqlType) -> bool:
    """Tell whether values of a type are sorted by keys of their own, as long as they are."""
    return sql_type.kind in KEY_COSTS
