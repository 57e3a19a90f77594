"""Prints vector trees: the tree gives all rows, or row code does.

rows0 = (yield from run_tree(tree_0, context, (lambda: scan_chunks(7, …), …), lambda: (slot0,), …))
if rows0 is None:
    rows0 = []
    …                                   the loops of the plan, which add to it
for r0 in rows0:
"""

from __future__ import annotations

from qserver.functions.registry import Aggregate
from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.scans import predicate_of
from qserver.sql.vectors.tree_planning import Planned
from qserver.sql.vectors.tree_start import run_tree
from qserver.sql.walk import output_sources


def produce_vectors(
    pipeline: Pipeline, node: plan.Vectors, rows: RowVariables, consume: Consumer
) -> None:
    source, planned = pipeline.source, node.planned
    assert isinstance(planned, Planned)
    planned_tree = planned.tree.giving(output_sources(node))
    tree = source.known(planned_tree, "tree")
    scans = []
    for scan in planned.scans:
        predicate = predicate_of(pipeline, scan, rows)
        scans.append(f"lambda: scan_chunks({scan.table.id}, None, None, {predicate})")
    with pipeline.printer.without_yielding():
        constants = [pipeline.printer.value(each, rows) for each in planned.constants]
    finishes = [_finish(pipeline, call.aggregate) for call in planned.finishes]
    given = f"{_tuple(scans)}, lambda: {_tuple(constants)}, {_tuple(finishes)}"
    if planned_tree.first is not None:
        given += f", {pipeline.mosts.pop(output_sources(node)[0])}"
    found = pipeline.steps(f"run_tree({tree}, context, {given})", run_tree)
    name = source.fresh("rows")
    source.line(f"{name} = {found}")
    with source.block(f"if {name} is None:"):
        pipeline.keep(node.input, rows, name)
    pipeline.replay(name, node.input, rows, consume)


def _finish(pipeline: Pipeline, aggregate: Aggregate) -> str:
    """Return a function from the states of an average to its value."""
    for name, value in aggregate.names.items():
        pipeline.source.name(name, value)
    states = [pipeline.source.fresh("s") for _ in aggregate.initial]
    code = pipeline.printer.fill(aggregate.finish, [], states)
    return f"lambda {', '.join(states)}: {code}"


def _tuple(codes: list[str]) -> str:
    return f"({', '.join(codes)}{',' if len(codes) == 1 else ''})"
