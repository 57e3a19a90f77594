"""The nodes of a plan as EXPLAIN shows them: which stand below which."""

from __future__ import annotations

from typing import Any

from qserver.sql import plan
from qserver.sql.plan import Change, Plan
from qserver.sql.walk import is_plan, parts


def below(node: Plan | Change) -> list[Plan | Change]:
    """Return the nodes that are shown below a node."""
    return [*inputs_of(node), *subplans_of(node)]


def inputs_of(node: Plan | Change) -> list[Plan | Change]:
    inputs: list[Any] = []
    if isinstance(node, plan.Count):
        return inputs
    if isinstance(node, Change):
        return [node.plan]
    if isinstance(node, plan.WithTables):
        for table in node.tables:
            inputs.append(table.plan)
            if table.recursive is not None:
                inputs.append(table.recursive)
    for name in ("input", "left", "right"):
        inner = getattr(node, name, None)
        if inner is not None:
            inputs.append(inner)
    return inputs


def subplans_of(node: Plan | Change) -> list[Plan]:
    """Return the plans inside the expressions of the node itself."""
    found: list[Plan] = []
    inputs = {id(each) for each in inputs_of(node)}
    waiting: list[Any] = [node.input if isinstance(node, plan.Count) else node]
    while waiting:
        current = waiting.pop()
        for part in parts(current):
            if is_plan(part) or isinstance(part, Change):
                if id(part) not in inputs:
                    found.append(part)
            else:
                waiting.append(part)
    return found
