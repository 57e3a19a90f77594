"""EXPLAIN: shows a plan as lines of text, each node with its details and its estimated rows.

With FORMAT JSON the same nodes have the names that PostgreSQL's tools look for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from qserver.sql import expressions, plan
from qserver.sql.explain_trees import TreeNode
from qserver.sql.expressions import Expression, SortKey
from qserver.sql.join_conditions import hash_keys, residual, scan_keys
from qserver.sql.measuring import Meter, Profile
from qserver.sql.plan import Change, KeyRange, Plan, Select
from qserver.sql.plan_nodes import inputs_of, subplans_of
from qserver.sql.vectors.trees import FilterPart, ScanPart
from qserver.sql.walk import everything, is_plan
from qserver.values.schema import Table
from qserver.values.text_output import text_function

_SCAN: Final = re.compile("(Index )?Scan( Backward)?|Lookup")
_KIND: Final = re.compile(" Backward on | using | on ")
"""Ends the kind of a node in its title."""
_TITLES: Final[Mapping[type, str]] = MappingProxyType(
    {plan.WithTables: "With", plan.OneRow: "Result"}
)


@dataclass(frozen=True, slots=True)
class Details:
    """What is shown of each node beside what it does."""

    costs: bool = True
    verbose: bool = False
    timing: bool = True
    buffers: bool = False
    profile: Profile | None = None
    """What ANALYZE has measured."""


ESTIMATES: Final = Details()


def explain(statement: Select | Change, details: Details = ESTIMATES) -> list[str]:
    lines: list[str] = []
    _print(_top(statement), 0, lines, details)
    return lines


def explain_as_json(statement: Select | Change, details: Details = ESTIMATES) -> dict[str, Any]:
    """Return the tree of nodes, as PostgreSQL nests and names them."""
    return _tree(_top(statement), details)


def _top(statement: Select | Change) -> Plan | Change:
    return statement.plan if isinstance(statement, Select) else statement


_Node: TypeAlias = Plan | Change | TreeNode


def _inputs_of(node: _Node, shown: Details) -> Sequence[_Node]:
    """Return the nodes below; of a vector tree that has run its parts."""
    if isinstance(node, TreeNode):
        return node.inputs
    profile = shown.profile
    if isinstance(node, plan.Vectors) and profile is not None and profile.has_run_as_tree(node):
        return [TreeNode(node.planned.tree.root, node.planned.scans)]
    return inputs_of(node)


def _subplans_of(node: _Node) -> Sequence[Plan]:
    return () if isinstance(node, TreeNode) else subplans_of(node)


def _tree(
    node: _Node, shown: Details, place: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a node with those below it; `place` says how it belongs to the one above."""
    title, texts = _describe(node, shown)
    if isinstance(node, Change):
        tree: dict[str, Any] = {"Node Type": "ModifyTable", "Operation": type(node).__name__}
        tree = {**tree, **place, **_named(node.table, shown)}
    else:
        tree = {"Node Type": _KIND.split(title)[0], **place, **_relation(node, shown)}
        if shown.costs and not isinstance(node, TreeNode):
            tree["Plan Rows"] = round(node.rows)
    tree.update(_measured(node, shown))
    for name, _, text in [detail.partition(": ") for detail in texts if detail]:
        tree[name] = text
    tree.update(_removed(node, shown))
    tree.update(_loaded(node, shown))
    inputs = _inputs_of(node, shown)
    named = zip(inputs, ("Outer", "Inner", *("Member",) * len(inputs)), strict=False)
    inner = [_tree(each, shown, {"Parent Relationship": how}) for each, how in named]
    for number, query in enumerate(_subplans_of(node), 1):
        how = {"Parent Relationship": "SubPlan", "Subplan Name": f"SubPlan {number}"}
        inner.append(_tree(query, shown, how))
    return {**tree, "Plans": inner} if inner else tree


def _relation(node: Plan | TreeNode, shown: Details) -> dict[str, str]:
    """Return what a node reads, if that is a table."""
    scan: Plan | None
    if isinstance(node, TreeNode):
        scan = node.scan
    else:
        scan = node.input if isinstance(node, plan.Count) else node
    if not isinstance(scan, plan.Scan):
        return {}
    found = {**_named(scan.table, shown), "Alias": scan.alias or scan.table.name}
    if scan.access.index is not None:
        found["Index Name"] = scan.access.index.name
    return {**found, "Scan Direction": "Backward" if scan.access.backward else "Forward"}


def _named(table: Table, shown: Details) -> dict[str, str]:
    schema = {"Schema": table.schema} if shown.verbose else {}
    return {"Relation Name": table.name, **schema}


def _print(node: _Node, depth: int, lines: list[str], shown: Details) -> None:
    title, texts = _describe(node, shown)
    if shown.costs and not isinstance(node, Change | TreeNode):
        title += f"  (rows={node.rows:.0f})"
    arrow = "  " * (depth - 1) + "->  " if depth else ""
    lines.append(f"{arrow}{title}{_actual(node, shown)}")
    indent = "  " * (depth + 1) + "  "
    lines += [f"{indent}{text}" for text in texts if text]
    lines += [f"{indent}{name}: {count}" for name, count in _removed(node, shown).items() if count]
    for count in filter(None, _loaded(node, shown).values()):
        lines.append(f"{indent}Buffers: shared read={count}")
    for each in _inputs_of(node, shown):
        _print(each, depth + 1, lines, shown)
    for number, query in enumerate(_subplans_of(node), 1):
        lines.append(f"{indent}SubPlan {number}")
        _print(query, depth + 2, lines, shown)


# --- what was measured ---------------------------------------------------------------------------


def _meter_of(node: _Node, shown: Details) -> Meter | None:
    if shown.profile is None:
        return None
    return shown.profile.of(node.part if isinstance(node, TreeNode) else node)


def _measured(node: _Node, shown: Details) -> dict[str, Any]:
    """Return averages of a loop, as PostgreSQL has them."""
    meter = _meter_of(node, shown)
    if meter is None:
        return {}
    loops, found = max(meter.loops, 1), {}
    if shown.timing:
        found["Actual Startup Time"] = round(1000 * meter.startup / loops, 3)
        found["Actual Total Time"] = round(1000 * meter.total / loops, 3)
    return {**found, "Actual Rows": round(meter.rows / loops), "Actual Loops": meter.loops}


def _actual(node: _Node, shown: Details) -> str:
    measured = _measured(node, shown)
    if not measured:
        return ""
    if not measured["Actual Loops"]:
        return " (never executed)"
    *times, rows, loops = measured.values()
    time = "time={:.3f}..{:.3f} ".format(*times) if times else ""
    return f" (actual {time}rows={rows} loops={loops})"


def _removed(node: _Node, shown: Details) -> dict[str, int]:
    """Return how many rows of a loop did not satisfy a condition."""
    meter = _meter_of(node, shown)
    if meter is None or not meter.loops:
        return {}
    kind = node.part if isinstance(node, TreeNode) else node
    if isinstance(kind, plan.Filter | FilterPart):
        input_ = _meter_of(_inputs_of(node, shown)[0], shown)
        looked_at = 0 if input_ is None else input_.rows
    elif isinstance(kind, plan.Scan | ScanPart) and kind.condition is not None:
        looked_at = meter.looked_at
    else:
        return {}
    return {"Rows Removed by Filter": round(max(looked_at - meter.rows, 0) / meter.loops)}


def _loaded(node: _Node, shown: Details) -> dict[str, int]:
    meter = _meter_of(node, shown)
    return {} if meter is None or not shown.buffers else {"Shared Read Blocks": meter.all_loads}


def _describe(node: _Node, shown: Details) -> tuple[str, list[str]]:
    if isinstance(node, Change):
        return f"{type(node).__name__} on {_name_of(node.table, shown)}", []
    if isinstance(node, TreeNode):
        return node.described(lambda table: _name_of(table, shown), text_of)
    title, texts = _describe_shortly(node, shown)
    if shown.verbose and isinstance(node, plan.Project):
        texts = [f"Output: {', '.join(map(text_of, node.expressions))}", *texts]
    return title, texts


def _describe_shortly(node: Plan, shown: Details) -> tuple[str, list[str]]:
    match node:
        case plan.Count():
            title, details = _describe_scan(node.input, shown)
            return _SCAN.sub("Count", title, count=1), details
        case plan.Scan():
            return _describe_scan(node, shown)
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
            in_order = "In Order: a group is given when the next begins" if node.in_order else ""
            details = [keys and f"Group Key: {keys}", vectors, in_order]
            return ("GroupAggregate" if node.keys else "Aggregate"), details
        case plan.Vectors():
            return "Vectors", _details_of_tree(node)
        case plan.Sort() | plan.TopN():
            return _describe_sort(node)
        case plan.SetOperation():
            return f"{node.kind.capitalize()}{' All' if node.is_all else ''}", []
        case plan.FunctionScan():
            return f"Function Scan on {node.function.name}", []
        case plan.CommonTableScan():
            return f"CTE Scan on {node.number}", []
        case _:
            return _TITLES.get(type(node), type(node).__name__), []


def _name_of(table: Table, shown: Details) -> str:
    return f"{table.schema}.{table.name}" if shown.verbose else table.name


def _describe_sort(node: plan.Sort | plan.TopN) -> tuple[str, list[str]]:
    details = [f"Sort Key: {_sort_keys(node.keys)}"]
    if isinstance(node, plan.Sort):
        return "Sort", details
    return "Top-N Sort", [*details, "Vectors: first rows" if node.vectors else ""]


def _details_of_tree(node: plan.Vectors) -> list[str]:
    tree = node.planned.tree
    details = [f"Tree: {tree.told}"]
    if node.by_rows:
        details.append(f"Cost: {tree.rows:.0f} rows in vectors, {node.by_rows} by row code")
    return details


def _describe_scan(node: plan.Scan, shown: Details) -> tuple[str, list[str]]:
    access, keys = node.access, node.access.range
    details = []
    columns = node.table.primary_key if access.index is None else access.index.columns
    names = [node.table.columns[at].name if at >= 0 else "expression" for at in columns]
    terms = _terms_of(keys, names)
    if terms:
        details.append(f"Key: {' AND '.join(terms)}")
    if keys.query is not None:
        details.append(f"Else: reads all, for more than {keys.few} rows of the SubPlan")
    if node.hashed:
        pairs = [f"{text_of(own)} = {text_of(other)}" for own, other in scan_keys(node)]
        details.append(f"Hash Key: {' AND '.join(pairs)}")
    if node.condition is not None:
        details.append(f"Filter: {text_of(node.condition)}")
    if node.vectors:
        details.append("Vectors: filter")
    name = _name_of(node.table, shown)
    if node.alias not in ("", node.table.name):
        name = f"{name} {node.alias}"
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
        items = ["SubPlan"] if keys.query else map(text_of, keys.choices)
        terms.append(f"{following} IN ({', '.join(items)})")
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
