"""Copies operands for a second use.

a BETWEEN b AND c uses a twice, and so do CASE a WHEN …, NULLIF and comparisons of rows. If the
operand contains a subquery, the copy's plan gets new sources: no two plans of a statement produce
the same source.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qserver.sql.binder.binding import Binding
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown
from qserver.sql.binder.expressions.same import SOURCES
from qserver.sql.expressions import Column, Constant, Expression, Slot
from qserver.sql.plan import CommonTable, CommonTableScan
from qserver.sql.walk import everything, is_plan, rebuilt


def again(binding: Binding, operand: Operand) -> Operand:
    if isinstance(operand, Unknown):
        return operand
    if isinstance(operand, RowValue):
        return replace(operand, items=tuple([again(binding, item) for item in operand.items]))
    return copied(binding, operand)


def copied(binding: Binding, expression: Expression) -> Expression:
    """Copy the expression with new sources; without subqueries, return it as it is."""
    if isinstance(expression, Column | Constant | Slot):
        return expression
    sources: dict[int, int] = {}
    numbers: dict[int, int] = {}
    has_plan = False
    for each in everything(expression):
        binding.copy_node()
        has_plan = has_plan or is_plan(each)
        if type(each) is not Column:
            for name in SOURCES:
                source = getattr(each, name, 0)
                if source and source not in sources:
                    sources[source] = binding.new_source()
        if type(each) is CommonTable:
            numbers[each.number] = binding.new_common_table()
    if not has_plan:
        return expression

    def change(node: Any) -> Any:
        changes: dict[str, int] = {}
        for name in SOURCES:
            source = getattr(node, name, 0)
            if source in sources:
                changes[name] = sources[source]
        if type(node) in (CommonTable, CommonTableScan) and node.number in numbers:
            changes["number"] = numbers[node.number]
        return replace(node, **changes) if changes else node

    result: Expression = rebuilt(expression, change)
    return result
