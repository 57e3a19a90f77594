"""VALUES: rows of the statement, written out or parameterized as a list."""

from __future__ import annotations

import re
from contextlib import nullcontext

from qserver.errors import QserverError
from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.runtime import rows_of_parameters, unreadable
from qserver.sql.expressions import Slot

_ROW_OF_SLOTS = re.compile(r"\(\*made\[(\d+):(\d+)\],\)|\(made\[(\d+)\],\)")


def produce_values(
    pipeline: Pipeline, node: plan.Values, rows: RowVariables, consume: Consumer
) -> None:
    if node.repeated:
        _repeated_values(pipeline, node, rows, consume)
        return
    if len(node.items) == 1:
        row = pipeline.source.fresh("r")
        with pipeline.weighed("1"):
            pipeline.source.line(f"{row} = {pipeline.printer.values(node.items[0], rows)}")
            consume(rows.with_row(node.source, row))
        return
    items = [pipeline.printer.values(item, rows) for item in node.items]
    code = _rows_of_slots(items, node) or (pipeline.printer.together(items) if items else "()")
    pipeline.loop(node.source, code, rows, consume)


def _rows_of_slots(items: list[str], node: plan.Values) -> str | None:
    """Return all rows at once, if they are consecutive slots of the execution."""
    width = len(node.items[0]) if items else 0
    end = first = -1
    single = len(items)
    while single and (found := _ROW_OF_SLOTS.fullmatch(items[single - 1])) is not None:
        low = int(found[1] or found[3])
        high = int(found[2] or low + 1)
        if high - low != width or first not in (-1, high):
            break
        first, end = low, max(end, high)
        single -= 1
    if len(items) - single < 2:
        return None
    rest = f"*zip(*[iter(made[{first}:{end}])] * {width})"
    return f"({', '.join([*items[:single], rest])},)"


def is_given(node: plan.Values) -> bool:
    """Tell whether the rows are those of a parameterized list, unconverted."""
    return node.repeated and all(
        isinstance(each, Slot) and each.name == at and each.convert is None
        for at, each in enumerate(node.items[0])
    )


def rows_given(pipeline: Pipeline, node: plan.Values) -> str:
    """Return the code of the rows of a parameterized list, or of those made of parameters."""
    if not isinstance(node.slot, range):
        return f"slots[{node.slot}]"
    pipeline.source.name("rows_of_parameters", rows_of_parameters)
    return f"rows_of_parameters(slots, {node.slot!r}, {len(node.items[0])})"


def _repeated_values(
    pipeline: Pipeline, node: plan.Values, rows: RowVariables, consume: Consumer
) -> None:
    """Print the loop over a parameterized list: its slots are positions in a row of literals."""
    (item,) = node.items
    if is_given(node):
        pipeline.loop(node.source, rows_given(pipeline, node), rows, consume, len(item))
        return
    given, row = pipeline.source.fresh("given"), pipeline.source.fresh("r")
    with pipeline.loop_by_pages(given, rows_given(pipeline, node)):
        is_literal = isinstance(node.slot, int)
        with pipeline.source.block("try:") if is_literal else nullcontext():
            pipeline.printer.row_of_literals = given
            pipeline.source.line(f"{row} = {pipeline.printer.values(item, rows)}")
            pipeline.printer.row_of_literals = None
        if is_literal:
            _say_which_value(pipeline, node, given)
        consume(rows.with_row(node.source, row, len(item)))


def _say_which_value(pipeline: Pipeline, node: plan.Values, given: str) -> None:
    """Print an error handler that adds the literal's number, for the caller to locate."""
    readers = {
        each.name: each.convert
        for each in node.items[0]
        if isinstance(each, Slot) and isinstance(each.name, int) and each.convert is not None
    }
    known = pipeline.source.known(readers, "readers")
    pipeline.source.name("QserverError", QserverError)
    pipeline.source.name("unreadable", unreadable)
    with pipeline.source.block("except QserverError as error:"):
        pipeline.source.line(f"error.literal = {node.slot}")
        arguments = f"slots[{node.slot}], {given}, {known}, error"
        pipeline.source.line(f"error.item = unreadable({arguments})")
        pipeline.source.line("raise")
