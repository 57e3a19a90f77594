"""VALUES: rows that a statement brings along, written out or parameterized out of it as a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qserver.errors import QserverError
from qserver.sql import plan
from qserver.sql.codegen.current_rows import Rows
from qserver.sql.codegen.runtime import unreadable
from qserver.sql.expressions import Slot

if TYPE_CHECKING:
    from qserver.sql.codegen.operators import Consumer, Operators

_ROW_OF_SLOTS = re.compile(r"\(\*made\[(\d+):(\d+)\],\)|\(made\[(\d+)\],\)")


def produce_values(operators: Operators, node: plan.Values, rows: Rows, consume: Consumer) -> None:
    if node.repeated:
        _repeated_values(operators, node, rows, consume)
        return
    items = [operators.printer.values(item, rows) for item in node.items]
    code = _rows_of_slots(items, node) or (operators.printer.together(items) if items else "()")
    operators.loop(node.source, code, rows, consume)


def _rows_of_slots(items: list[str], node: plan.Values) -> str | None:
    """All rows at once, where they are the slots of an execution one after the other."""
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


def _repeated_values(
    operators: Operators, node: plan.Values, rows: Rows, consume: Consumer
) -> None:
    """All rows of a parameterized list: its slots are positions in a row of literals."""
    (item,) = node.items
    if all(
        isinstance(each, Slot) and each.name == at and each.convert is None
        for at, each in enumerate(item)
    ):
        operators.loop(node.source, f"slots[{node.slot}]", rows, consume, len(item))
        return
    given, row = operators.source.fresh("given"), operators.source.fresh("r")
    with operators.loop_by_pages(given, f"slots[{node.slot}]"):
        with operators.source.block("try:"):
            operators.printer.row_of_literals = given
            operators.source.line(f"{row} = {operators.printer.values(item, rows)}")
            operators.printer.row_of_literals = None
        _say_which_value(operators, node, given)
        consume(rows.with_row(node.source, row, len(item)))


def _say_which_value(operators: Operators, node: plan.Values, given: str) -> None:
    """A value that cannot be read is told by its number; who has the text finds its place."""
    readers = {
        each.name: each.convert
        for each in node.items[0]
        if isinstance(each, Slot) and isinstance(each.name, int) and each.convert is not None
    }
    known = operators.source.known(readers, "readers")
    operators.source.name("QserverError", QserverError)
    operators.source.name("unreadable", unreadable)
    with operators.source.block("except QserverError as error:"):
        operators.source.line(f"error.literal = {node.slot}")
        operators.source.line(f"error.item = unreadable(slots[{node.slot}], {given}, {known})")
        operators.source.line("raise")
