"""Prints scans over vectors: the pages of a scan go through a filter or an aggregate first.

for page0 in filter_0.pages(scan_chunks(7, None, None, matches0), context, lambda: (slot0,)):
    known0 = type(page0) is Matched
    for r0 in page0:
        if known0 or r0[2] > slot0:
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.pipeline import Pipeline
from qserver.sql.expressions import Expression
from qserver.sql.vectors.planning import vector_aggregate, vector_filter, vector_top

Pages: TypeAlias = Callable[[str], str]
"""Returns the code of the pages that are left for row code, given the code of the chunks."""


def pages_of_filter(pipeline: Pipeline, node: plan.Scan, rows: RowVariables) -> Pages:
    made = vector_filter(node)
    assert made is not None, "the optimizer asked the same question"
    vectors, constants = made
    name = pipeline.source.known(vectors, "filter")
    given = _constants(pipeline, constants, rows)
    return lambda chunks: f"{name}.pages({chunks}, context, {given})"


def pages_of_aggregate(
    pipeline: Pipeline, node: plan.Aggregate, rows: RowVariables, groups: str, new_group: str
) -> Pages:
    """`new_group` is the code of the initial states of a group."""
    made = vector_aggregate(node)
    assert made is not None, "the optimizer asked the same question"
    vectors, constants = made
    name = pipeline.source.known(vectors, "aggregate")
    given = _constants(pipeline, constants, rows)
    return lambda chunks: f"{name}.pages({chunks}, context, {given}, {groups}, lambda: {new_group})"


def pages_of_first_rows(
    pipeline: Pipeline, node: plan.TopN, rows: RowVariables, most: str
) -> Pages:
    made = vector_top(node)
    assert made is not None, "the optimizer asked the same question"
    vectors, constants = made
    name = pipeline.source.known(vectors, "top")
    given = _constants(pipeline, constants, rows)
    return lambda chunks: f"{name}.pages({chunks}, context, {given}, {most})"


def _constants(pipeline: Pipeline, constants: list[Expression], rows: RowVariables) -> str:
    with pipeline.printer.without_yielding():
        codes = [pipeline.printer.value(each, rows) for each in constants]
    return f"lambda: ({', '.join(codes)}{',' if len(codes) == 1 else ''})"
