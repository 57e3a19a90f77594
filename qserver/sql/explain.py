"""EXPLAIN: shows a plan as lines of text, each node with its details and its estimated rows.

With FORMAT JSON the same nodes have the names that PostgreSQL's tools look for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from qserver.sql import expressions, plan
from qserver.sql.expressions import Expression, SortKey
from qserver.sql.join_conditions import hash_keys, residual, scan_keys
from qserver.sql.plan import Change, KeyRange, Plan, Select
from qserver.sql.walk import everything, is_plan, parts
from qserver.values.text_output import text_function

_SCAN: Final = re.compile("(Index )?Scan( Backward)?|Lookup")
_KIND: Final = re.compile(" Backward on | using | on ")
"""Ends the kind of a node in its title."""
_TITLES: Final[Mapping[type, str]] = MappingProxyType(
    {plan.WithTables: "With", plan.OneRow: "Result"}
)


def explain(statement: Select | Change) -> list[str]:
    lines: list[str] = []
    if isinstance(statement, Select):
        _print(statement.plan, 0, lines)
        return lines
    what = type(statement).__name__
    lines.append(f"{what} on {statement.table.name}")
    _print(statement.plan, 1, lines)
    return lines


def explain_as_json(statement: Select | Change) -> dict[str, Any]:
    """Return the tree of nodes, as PostgreSQL nests and names them."""
    if isinstance(statement, Select):
        return _tree(statement.plan)
    return {
        "Node Type": "ModifyTable",
        "Operation": type(statement).__name__,
        "Relation Name": statement.table.name,
        "Plans": [_tree(statement.plan, {"Parent Relationship": "Outer"})],
    }


def _tree(node: Plan, place: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Return a node with those below it; `place` says how it belongs to the one above."""
    title, details = _describe(node)
    tree: dict[str, Any] = {"Node Type": _KIND.split(title)[0], **place, **_relation(node)}
    tree["Plan Rows"] = round(node.rows)
    for name, _, text in [detail.partition(": ") for detail in details if detail]:
        tree[name] = text
    inputs = zip(_inputs(node), ("Outer", "Inner", *("Member",) * len(_inputs(node))), strict=False)
    below = [_tree(each, {"Parent Relationship": how}) for each, how in inputs]
    for number, query in enumerate(_subplans(node), 1):
        how = {"Parent Relationship": "SubPlan", "Subplan Name": f"SubPlan {number}"}
        below.append(_tree(query, how))
    return {**tree, "Plans": below} if below else tree


def _relation(node: Plan) -> dict[str, str]:
    """Return what a node reads, if that is a table."""
    scan = node.input if isinstance(node, plan.Count) else node
    if not isinstance(scan, plan.Scan):
        return {}
    found = {"Relation Name": scan.table.name, "Alias": scan.alias or scan.table.name}
    if scan.access.index is not None:
        found["Index Name"] = scan.access.index.name
    return {**found, "Scan Direction": "Backward" if scan.access.backward else "Forward"}


def _print(node: Plan, depth: int, lines: list[str]) -> None:
    title, details = _describe(node)
    arrow = "  " * (depth - 1) + "->  " if depth else ""
    lines.append(f"{arrow}{title}  (rows={node.rows:.0f})")
    indent = "  " * (depth + 1) + "  "
    lines += [f"{indent}{detail}" for detail in details if detail]
    for below in _inputs(node):
        _print(below, depth + 1, lines)
    for number, query in enumerate(_subplans(node), 1):
        lines.append(f"{indent}SubPlan {number}")
        _print(query, depth + 2, lines)


def _inputs(node: Plan) -> list[Plan]:
    inputs: list[Any] = []
    if isinstance(node, plan.Count):
        return inputs
    if isinstance(node, plan.WithTables):
        inputs += [table.plan for table in node.tables if is_plan(table.plan)]
    for name in ("input", "left", "right"):
        below = getattr(node, name, None)
        if below is not None:
            inputs.append(below)
    return inputs


def _subplans(node: Plan) -> list[Plan]:
    """Return the plans inside the expressions of the node itself."""
    found: list[Plan] = []
    below = {id(each) for each in _inputs(node)}
    waiting: list[Any] = [node.input if isinstance(node, plan.Count) else node]
    while waiting:
        current = waiting.pop()
        for part in parts(current):
            if is_plan(part):
                if id(part) not in below:
                    found.append(part)
            else:
                waiting.append(part)
    return found


def _describe(node: Plan) -> tuple[str, list[str]]:
    match node:
        case plan.Count():
            title, details = _describe_scan(node.input)
            return _SCAN.sub("Count", title, count=1), details
        case plan.Scan():
            return _describe_scan(node)
        case plan.Join():
            return _describe_join(node)
        case plan.Filter():
            return "Filter", [f"Condition: {text_of(node.condition)}"]
        case plan.Project() if node.unread:
            names = ", ".join([node.columns[at].name for at in node.unread])
            return "Project", [f"Not computed: {names}"]
        case plan.Aggregate():
            keys = ", ".join(map(text_of, node.keys))
            vectors = "Vectors: aggregates" if node.vectors else ""
            details = [keys and f"Group Key: {keys}", vectors]
            return ("GroupAggregate" if node.keys else "Aggregate"), details
        case plan.Sort():
            return "Sort", [f"Sort Key: {_sort_keys(node.keys)}"]
        case plan.TopN():
            vectors = "Vectors: first rows" if node.vectors else ""
            return "Top-N Sort", [f"Sort Key: {_sort_keys(node.keys)}", vectors]
        case plan.SetOperation():
            return f"{node.kind.capitalize()}{' All' if node.is_all else ''}", []
        case plan.FunctionScan():
            return f"Function Scan on {node.function.name}", []
        case plan.CommonTableScan():
            return f"CTE Scan on {node.number}", []
        case _:
            return _TITLES.get(type(node), type(node).__name__), []


def _describe_scan(node: plan.Scan) -> tuple[str, list[str]]:
    access, keys = node.access, node.access.range
    details = []
    columns = node.table.primary_key if access.index is None else access.index.columns
    names = [node.table.columns[at].name if at >= 0 else "expression" for at in columns]
    terms = _terms_of(keys, names)
    if terms:
        details.append(f"Key: {' AND '.join(terms)}")
    if node.hashed:
        pairs = [f"{text_of(own)} = {text_of(other)}" for own, other in scan_keys(node)]
        details.append(f"Hash Key: {' AND '.join(pairs)}")
    if node.condition is not None:
        details.append(f"Filter: {text_of(node.condition)}")
    if node.vectors:
        details.append("Vectors: filter")
    name = (
        node.table.name
        if node.alias in ("", node.table.name)
        else f"{node.table.name} {node.alias}"
    )
    if access.index is not None:
        kind = f"Index Scan using {access.index.name}"
    elif len(keys.equal) + bool(keys.choices) == len(columns):
        kind = "Key Lookup"
    elif terms:
        kind = "Key Range Scan"
    else:
        kind = "Scan"
    order = " Backward" if access.backward else ""
    return f"{kind}{order} on {name}", details


def _terms_of(keys: KeyRange, names: Sequence[str]) -> list[str]:
    """Return what a range of keys holds its columns to."""
    terms = [f"{names[at]} = {text_of(each)}" for at, each in enumerate(keys.equal)]
    following = names[len(keys.equal)] if len(keys.equal) < len(names) else ""
    if keys.choices:
        terms.append(f"{following} IN ({', '.join(map(text_of, keys.choices))})")
    for bounded, symbol in ((keys.low, ">"), (keys.high, "<")):
        if bounded is not None:
            terms.append(f"{following} {symbol}{'=' if bounded[1] else ''} {text_of(bounded[0])}")
    if keys.not_null:
        terms.append(f"{following} IS NOT NULL")
    return terms


def _describe_join(node: plan.Join) -> tuple[str, list[str]]:
    method = {"hash": "Hash Join", "index": "Lookup Join"}.get(node.method or "", "Nested Loop")
    kind = "" if node.kind in ("inner", "cross") else f"{node.kind.capitalize()} "
    details = []
    if node.method == "hash":
        pairs = [f"{text_of(left)} = {text_of(right)}" for left, right in hash_keys(node)]
        details.append(f"Hash Key: {' AND '.join(pairs)}")
    rest = residual(node)
    if rest is not None:
        details.append(f"Condition: {text_of(rest)}")
    if node.vectors:
        details.append("Vectors: join")
    return f"{kind}{method}", details


def _sort_keys(keys: tuple[SortKey, ...]) -> str:
    texts = []
    for key in keys:
        text = text_of(key.expression) + (" DESC" if key.descending else "")
        if key.nulls_first != key.descending:
            text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
        texts.append(text)
    return ", ".join(texts)


_JOINED: Final[Mapping[type[Expression], tuple[str, str]]] = {
    expressions.And: ("", " AND "),
    expressions.Or: ("", " OR "),
    expressions.Coalesce: ("COALESCE", ", "),
}
"""What stands before and between the operands."""


def text_of(expression: Expression) -> str:
    """Return an expression as SQL-like text."""
    match expression:
        case expressions.Constant():
            return _text_of_constant(expression)
        case expressions.Slot():
            return _text_of_slot(expression.name)
        case expressions.Slots():
            return ", ".join(map(_text_of_slot, expression.names))
        case expressions.Folded() | expressions.Direct():
            return text_of(expression.expression)
        case expressions.GroupKey():
            return text_of(expression.key)
        case expressions.Column():
            return expression.name or f"#{expression.source}.{expression.position}"
        case expressions.Apply():
            return _text_of_call(expression)
        case expressions.Cast():
            return f"{text_of(expression.operand)}::{expression.type}"
        case expressions.And() | expressions.Or() | expressions.Coalesce():
            before, between = _JOINED[type(expression)]
            return f"{before}({between.join(map(text_of, expression.operands))})"
        case expressions.Not():
            return f"NOT {text_of(expression.operand)}"
        case expressions.IsNull():
            return f"{text_of(expression.operand)} IS {_not(expression)}NULL"
        case expressions.InList():
            items = ", ".join(map(text_of, expression.items))
            return f"{text_of(expression.operand)} {_not(expression)}IN ({items})"
        case expressions.Elements():
            return f"elements of {text_of(expression.array)}"
        case expressions.Case():
            return "CASE … END"
        case _ if any(is_plan(each) for each in everything(expression)):
            return "(SubPlan)"
        case _:
            return type(expression).__name__


def _text_of_slot(name: int | str) -> str:
    return f"?{name + 1}" if isinstance(name, int) else name


def _not(expression: expressions.IsNull | expressions.InList) -> str:
    return "NOT " if expression.negated else ""


def _text_of_constant(expression: expressions.Constant) -> str:
    """Return a constant as SQL would write it: numbers and booleans bare, others in quotes."""
    if expression.value is None:
        return "NULL"
    text = text_function(expression.type)(expression.value)
    if isinstance(expression.value, bool | int | float | Decimal):
        return text
    quoted = "'" + text.replace("'", "''") + "'"
    return quoted if isinstance(expression.value, str) else f"{quoted}::{expression.type}"


def _text_of_call(expression: expressions.Apply) -> str:
    function, arguments = expression.function, [text_of(each) for each in expression.arguments]
    if function.symbol is None:
        return f"{function.name}({', '.join(arguments)})"
    if len(arguments) == 1:
        return f"{function.symbol}{arguments[0]}"
    return f"({arguments[0]} {function.symbol} {arguments[1]})"
