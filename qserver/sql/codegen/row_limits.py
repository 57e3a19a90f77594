"""LIMIT, OFFSET and WITH TIES: a count of rows, and an exit from the loops when it is reached."""

from __future__ import annotations

from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.runtime import row_limit, row_offset, with_ties
from qserver.sql.expressions import Expression
from qserver.sql.walk import output_sources


def produce_limit(
    pipeline: Pipeline, node: plan.Limit, rows: RowVariables, consume: Consumer
) -> None:
    line = pipeline.source.line
    if node.with_ties:
        _limit_with_ties(pipeline, node, rows, consume)
        return
    done = pipeline.source.known(type("Done", (Exception,), {}), "Done")
    limit, offset = bounds(pipeline, node.limit, node.offset, rows)
    seen, stop = pipeline.source.fresh("n"), pipeline.source.fresh("most")
    line(f"{seen} = 0")
    if node.limit is not None:
        line(f"{stop} = {limit} + {offset}")

    def inside(inner: RowVariables) -> None:
        line(f"{seen} += 1")
        if node.offset is None:
            consume(inner)
        else:
            with pipeline.source.block(f"if {seen} > {offset}:"):
                consume(inner)
        if node.limit is not None:
            with pipeline.source.block(f"if {seen} >= {stop}:"):
                line(f"raise {done}")

    with pipeline.source.block("try:"):
        head = f"if {limit} > 0:" if node.limit is not None else "if True:"
        with pipeline.source.block(head):
            pipeline.produce(node.input, rows, inside)
    with pipeline.source.block(f"except {done}:"):
        line("pass")


def bounds_of_rows(pipeline: Pipeline, node: plan.Limit, rows: RowVariables) -> tuple[str, str]:
    """Print the bounds of LIMIT and OFFSET; return the names of the first row and of the end."""
    limit, offset = bounds(pipeline, node.limit, node.offset, rows)
    if node.offset is None:
        return offset, limit
    stop = pipeline.source.fresh("most")
    pipeline.source.line(f"{stop} = {limit} + {offset}")
    return offset, stop


def _limit_with_ties(
    pipeline: Pipeline, node: plan.Limit, rows: RowVariables, consume: Consumer
) -> None:
    pipeline.source.name("with_ties", with_ties)
    limit, offset = bounds(pipeline, node.limit, node.offset, rows)
    name = pipeline.keep(node.input, rows)
    sources = output_sources(node.input)
    target, inner = pipeline.unpack(sources, rows)
    with pipeline.printer.without_yielding():
        key = pipeline.printer.values(tuple(each.expression for each in node.with_ties), inner)
    kept = f"with_ties({name}, lambda {target}: {key}, {limit}, {offset})"
    if len(sources) > 1:
        names = target.strip("(),").split(", ")
        key = f"lambda t: (lambda {', '.join(names)}: {key})(*t)"
        kept = f"with_ties({name}, {key}, {limit}, {offset})"
    pipeline.loop_over(kept, sources, rows, consume)


def bounds(
    pipeline: Pipeline, limit: Expression | None, offset: Expression | None, rows: RowVariables
) -> tuple[str, str]:
    pipeline.source.name("row_limit", row_limit)
    pipeline.source.name("row_offset", row_offset)
    names = []
    for what, expression in (("row_limit", limit), ("row_offset", offset)):
        if expression is None:
            names.append("0")
            continue
        names.append(pipeline.source.fresh("n"))
        value = pipeline.printer.value(expression, rows)
        bound = value if value.isdecimal() else f"{what}({value})"
        pipeline.source.line(f"{names[-1]} = {bound}")
    return names[0], names[1]
