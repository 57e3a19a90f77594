"""Bound statements as text, for golden scripts: one node of the plan a line.

#2.0            column 0 of source 2; with `?` if it can be NULL
{0 integer}     the literal with index 0 as an integer; {0 -> date}: it is converted
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from qserver.sql import expressions, plan
from qserver.values.casts import unchanged


def printed(statement: plan.Select | plan.Change) -> str:
    """The whole statement."""
    if isinstance(statement, plan.Select):
        columns = ", ".join(map(_column, statement.columns))
        return "\n".join([f"select #{statement.source}: {columns}", *_plan(statement.plan, 1)])
    return "\n".join(_change(statement, 0))


def _change(statement: plan.Change, depth: int) -> Iterator[str]:
    indent = "  " * depth
    table = statement.table.name
    match statement:
        case plan.Insert():
            yield f"{indent}insert into {table} #{statement.new_source}: {_row(statement.values)}"
            yield from _checks(statement.checks, indent)
            if statement.on_conflict is not None:
                yield from _conflict(statement.on_conflict, indent)
        case plan.Update():
            changed = sorted(statement.changed)
            yield (
                f"{indent}update {table} #{statement.old_source} -> #{statement.new_source}, "
                f"changed {changed}: {_row(statement.values)}"
            )
            yield from _checks(statement.checks, indent)
        case plan.Delete():
            yield f"{indent}delete from {table} #{statement.old_source}"
    if statement.returning is not None:
        columns = ", ".join(map(_column, statement.returning.columns))
        yield f"{indent}  returning {columns}: {_row(statement.returning.expressions)}"
    yield from _plan(statement.plan, depth + 1)


def _checks(checks: Iterable[plan.CheckedExpression], indent: str) -> Iterator[str]:
    for check in checks:
        yield f"{indent}  check {check.name}: {text(check.expression)}"


def _conflict(action: plan.ConflictAction, indent: str) -> Iterator[str]:
    arbiters = ", ".join(
        "primary key" if index is None else index.name for index in action.arbiters
    )
    what = f"do update {_row(action.values)}" if action.values else "do nothing"
    where = "" if action.condition is None else f" where {text(action.condition)}"
    yield f"{indent}  on conflict ({arbiters}) old #{action.old_source} {what}{where}"


def _plan(node: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    match node:
        case plan.Scan():
            yield f"{indent}scan {node.table.name} #{node.source}"
        case plan.OneRow():
            yield f"{indent}one row"
        case plan.Values():
            rows = "; ".join(map(_row, node.items))
            repeated = " repeated" if node.repeated else ""
            yield f"{indent}values{repeated} #{node.source}: {rows}"
        case plan.FunctionScan():
            arguments = ", ".join(map(text, node.arguments))
            ordinality = " with ordinality" if node.ordinality else ""
            yield f"{indent}{node.function.name}({arguments}){ordinality} #{node.source}"
        case plan.Join():
            lateral = " lateral" if node.lateral else ""
            on = "" if node.condition is None else f" on {text(node.condition)}"
            yield f"{indent}{node.kind}{lateral} join{on}"
        case plan.Filter():
            yield f"{indent}filter {text(node.condition)}"
        case plan.Project():
            yield f"{indent}project #{node.source}: {_row(node.expressions)}"
        case plan.Aggregate():
            sets = "" if node.grouping_sets is None else f" sets {list(node.grouping_sets)}"
            calls = ", ".join(map(_aggregate, node.calls))
            yield f"{indent}group #{node.source} by {_row(node.keys)}{sets}: {calls}"
        case plan.Window():
            yield f"{indent}window #{node.source}: {'; '.join(map(_window, node.calls))}"
        case plan.Sort():
            yield f"{indent}sort {_keys(node.keys)}"
        case plan.Limit():
            ties = f" with ties {_keys(node.with_ties)}" if node.with_ties else ""
            parts = [
                f"{word} {text(each)}"
                for word, each in (("limit", node.limit), ("offset", node.offset))
                if each is not None
            ]
            yield f"{indent}{' '.join(parts)}{ties}"
        case plan.Distinct():
            on = f" on {_row(node.on)}" if node.on else ""
            yield f"{indent}distinct #{node.source}{on}"
        case plan.SetOperation():
            every = " all" if node.is_all else ""
            columns = ", ".join(map(_column, node.columns))
            yield f"{indent}{node.kind}{every} #{node.source}: {columns}"
        case plan.CommonTableScan():
            yield f"{indent}common table {node.number} #{node.source}"
        case plan.WithTables():
            yield f"{indent}with"
            for table in node.tables:
                yield from _common_table(table, depth + 1)
        case _:
            raise AssertionError(f"{type(node).__name__} does not come from the binder")
    for name in ("left", "right", "input"):
        below = getattr(node, name, None)
        if below is not None:
            yield from _plan(below, depth + 1)


def _common_table(table: plan.CommonTable, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield f"{indent}{table.number} {table.name} from #{table.source}"
    if isinstance(table.plan, plan.Insert | plan.Update | plan.Delete):
        yield from _change(table.plan, depth + 1)
    else:
        yield from _plan(table.plan, depth + 1)
    if table.recursive is not None:
        every = " all" if table.is_all else ""
        yield f"{indent}union{every} again from #{table.recursive_source}"
        yield from _plan(table.recursive, depth + 1)


def _column(column: plan.OutputColumn) -> str:
    return f"{column.name} {column.type}{'?' if column.nullable else ''}"


def _row(expressions: Iterable[Any]) -> str:
    return f"({', '.join(map(text, expressions))})"


def _keys(keys: Iterable[expressions.SortKey]) -> str:
    return ", ".join(map(_key, keys))


def _key(key: expressions.SortKey) -> str:
    direction = " desc" if key.descending else ""
    nulls = "" if key.nulls_first == key.descending else f" nulls {_first(key.nulls_first)}"
    return f"{text(key.expression)}{direction}{nulls}"


def _first(first: bool) -> str:
    return "first" if first else "last"


def _aggregate(call: expressions.AggregateCall) -> str:
    distinct = "distinct " if call.distinct else ""
    order = f" order by {_keys(call.order_by)}" if call.order_by else ""
    where = "" if call.filter is None else f" filter {text(call.filter)}"
    arguments = ", ".join(map(text, call.arguments))
    return f"{call.aggregate.name}({distinct}{arguments}{order}){where} {call.type}"


def _window(call: expressions.WindowCall) -> str:
    arguments = ", ".join(map(text, call.arguments))
    where = "" if call.filter is None else f" filter {text(call.filter)}"
    partition = f"partition by {_row(call.partition_by)} " if call.partition_by else ""
    order = f"order by {_keys(call.order_by)} " if call.order_by else ""
    frame = call.frame
    bounds = " to ".join(
        word if offset is None else f"{text(offset)} {word}"
        for word, offset in (frame.start, frame.end)
    )
    over = f"({partition}{order}{frame.mode} {bounds})"
    return f"{call.name}({arguments}){where} over {over} {call.type}"


def text(expression: Any) -> str:
    """One expression."""
    return str(_PRINTERS[type(expression)](expression))


def _constant(node: expressions.Constant) -> str:
    return f"NULL {node.type}" if node.value is None else f"{node.value!r}"


def _slot(node: expressions.Slot) -> str:
    arrow = "-> " if node.convert is not None else ""
    return f"{{{node.name} {arrow}{node.type}}}"


def _named(node: expressions.Column) -> str:
    return f"#{node.source}.{node.position}{'?' if node.nullable else ''}"


def _apply(node: expressions.Apply) -> str:
    arguments = [text(each) for each in node.arguments]
    if node.function.symbol and len(arguments) == 2:
        return f"({arguments[0]} {node.function.symbol} {arguments[1]})"
    return f"{node.function.name}({', '.join(arguments)})"


def _cast(node: expressions.Cast) -> str:
    word = "as" if node.function is unchanged else "to"
    return f"({text(node.operand)} {word} {node.type})"


def _case(node: expressions.Case) -> str:
    whens = " ".join(f"when {text(when)} then {text(then)}" for when, then in node.whens)
    return f"(case {whens} else {text(node.otherwise)})"


def _in_list(node: expressions.InList) -> str:
    return f"({text(node.operand)}{_not(node.negated)} in {_row(node.items)})"


def _in_query(node: expressions.InQuery) -> str:
    return f"({_row(node.operands)}{_not(node.negated)} in {_subplan(node.plan)})"


def _quantified(node: expressions.Quantified) -> str:
    word = "all" if node.is_all else "any"
    return f"({text(node.operand)} {node.comparison.symbol} {word} {_subplan(node.plan)})"


def _not(negated: bool) -> str:
    return " not" if negated else ""


def _subplan(node: Any) -> str:
    """A plan inside an expression, on one line."""
    return "[" + " < ".join(line.strip() for line in _plan(node, 0)) + "]"


_PRINTERS: dict[type, Any] = {
    expressions.Constant: _constant,
    expressions.Slot: _slot,
    expressions.Column: _named,
    expressions.Apply: _apply,
    expressions.Cast: _cast,
    expressions.And: lambda node: f"({' and '.join(map(text, node.operands))})",
    expressions.Or: lambda node: f"({' or '.join(map(text, node.operands))})",
    expressions.Not: lambda node: f"(not {text(node.operand)})",
    expressions.IsNull: lambda node: f"({text(node.operand)} is{_not(node.negated)} null)",
    expressions.IsTruth: lambda node: (
        f"({text(node.operand)} is{_not(node.negated)} {str(node.truth).lower()})"
    ),
    expressions.IsDistinct: lambda node: (
        f"({text(node.left)} is{_not(node.negated)} distinct from {text(node.right)})"
    ),
    expressions.Case: _case,
    expressions.Coalesce: lambda node: f"coalesce{_row(node.operands)}",
    expressions.InList: _in_list,
    expressions.ScalarQuery: lambda node: f"{_subplan(node.plan)}",
    expressions.Exists: lambda node: f"exists {_subplan(node.plan)}",
    expressions.InQuery: _in_query,
    expressions.Quantified: _quantified,
    expressions.ArrayQuery: lambda node: f"array {_subplan(node.plan)}",
    expressions.Array: lambda node: f"array[{', '.join(map(text, node.items))}]",
    expressions.Elements: lambda node: f"elements of {text(node.array)}",
}
