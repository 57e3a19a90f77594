"""Prints scans over vectors: a filter, an aggregate or a top-n takes the chunks of a scan first.

for page0 in filter_0.pages(scan_chunks(7, None, None, matches0), context, lambda: (slot0,)):
    known0 = type(page0) is Matched
    for r0 in page0:
        if known0 or r0[2] > slot0:

`Pipeline.pages` tells the printer of the scan. An aggregate of a join is given the right sides too.
Those are only kept before: they become vectors to join chunks with, and the table of row code when
there is a row to look up in it (`sql.vectors.builds`).

hash0 = {}
taken0 = []
rows0 = []
for page1 in build_0.pages(scan_chunks(8, None, None, None), context, lambda: (), rows0, taken0):
    for r1 in page1:
        rows0.append(r1)
build0 = Build(join_0, rows0, taken0, hash0, lambda item: item[0])
for page0 in aggregate_0.pages(scan_chunks(7, …), context, …, groups0, lambda: [0], build0):
"""

from __future__ import annotations

from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.nans import told_apart
from qserver.sql.codegen.pipeline import Pages, Pipeline
from qserver.sql.expressions import Expression
from qserver.sql.vectors.builds import Build
from qserver.sql.vectors.planning import vector_aggregate, vector_build, vector_filter, vector_top
from qserver.sql.walk import output_sources


def pages_of_filter(pipeline: Pipeline, node: plan.Scan, rows: RowVariables) -> Pages:
    made = vector_filter(node)
    assert made is not None, "the optimizer asked the same question"
    return _pages(pipeline, "filter", *made, rows)


def take_first_rows(pipeline: Pipeline, node: plan.TopN, rows: RowVariables, most: str) -> None:
    """Let the scan below drop rows that cannot be among the first."""
    made = vector_top(node)
    assert made is not None, "the optimizer asked the same question"
    (source,) = output_sources(node.input)
    pipeline.pages[source] = _pages(pipeline, "top", *made, rows, most)


def take_into_groups(
    pipeline: Pipeline, node: plan.Aggregate, rows: RowVariables, groups: str, new_group: str
) -> None:
    """Let the groups take the chunks of the scan below, through the joins between.

    `new_group` is the code of the initial states of a group.
    """
    made = vector_aggregate(node)
    assert made is not None, "the optimizer asked the same question"
    vectors, constants = made
    builds = []
    for join in vectors.joins:
        builds.append(pipeline.source.fresh("build"))
        pipeline.builds[join.sources[0]] = join, builds[-1]
    more = groups, f"lambda: {new_group}", *builds
    first = vectors.condition.program.source
    pipeline.pages[first] = _pages(pipeline, "aggregate", vectors, constants, rows, *more)


def keep_for_vectors(
    pipeline: Pipeline,
    node: plan.Join,
    rows: RowVariables,
    keys: tuple[Expression, ...],
    table: str,
) -> None:
    """Print the right side of a join as a `Build`, which fills the table when row code needs it."""
    source, sources = pipeline.source, output_sources(node.right)
    join, build = pipeline.builds.pop(sources[0])
    taken, kept = source.fresh("taken"), source.fresh("rows")
    source.line(f"{taken} = []")
    made = vector_build(node.right, join)
    if made is not None:
        pipeline.pages[sources[0]] = _pages(pipeline, "build", *made, rows, kept, taken)
    pipeline.keep(node.right, rows, kept)
    places = ["item"] if len(sources) == 1 else [f"item[{at}]" for at in range(len(sources))]
    item = RowVariables(dict(zip(sources, places, strict=True)))
    with pipeline.printer.without_yielding():
        codes = [told_apart(source, key.type, pipeline.printer.value(key, item)) for key in keys]
    key = codes[0] if len(codes) == 1 else f"({', '.join(codes)})"
    source.name("Build", Build)
    given = ", ".join([source.known(join, "join"), kept, taken, table, f"lambda item: {key}"])
    source.line(f"{build} = Build({given})")


def _pages(
    pipeline: Pipeline,
    what: str,
    vectors: object,
    constants: list[Expression],
    rows: RowVariables,
    *more: str,
) -> Pages:
    name = pipeline.source.known(vectors, what)
    with pipeline.printer.without_yielding():
        codes = [pipeline.printer.value(each, rows) for each in constants]
    given = f"lambda: ({', '.join(codes)}{',' if len(codes) == 1 else ''})"
    arguments = ", ".join(["context", given, *more])
    return lambda chunks: f"{name}.pages({chunks}, {arguments})"
