"""Walking bound expressions and plans: what they are made of, what they name, rebuilding them.

Everything here goes by the fields of the frozen nodes, so a new kind of node needs no word here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from qserver.sql import bound, plan
from qserver.sql.bound import And, Apply, Column, Expression
from qserver.sql.plan import Plan

_EXPRESSIONS = frozenset(
    {
        bound.Constant,
        bound.Slot,
        bound.Column,
        bound.Apply,
        bound.Cast,
        bound.And,
        bound.Or,
        bound.Not,
        bound.IsNull,
        bound.IsTruth,
        bound.IsDistinct,
        bound.Case,
        bound.Coalesce,
        bound.InList,
        bound.ScalarQuery,
        bound.Exists,
        bound.InQuery,
        bound.Quantified,
        bound.ArrayQuery,
        bound.Array,
        bound.Elements,
    }
)
_PLANS = frozenset(
    {
        plan.Scan,
        plan.OneRow,
        plan.Values,
        plan.FunctionScan,
        plan.Join,
        plan.Filter,
        plan.Project,
        plan.Aggregate,
        plan.Window,
        plan.Sort,
        plan.TopN,
        plan.Limit,
        plan.Distinct,
        plan.SetOperation,
        plan.CommonTableScan,
        plan.WithTables,
    }
)
_PARTS = (
    _EXPRESSIONS
    | _PLANS
    | {
        bound.SortKey,
        bound.AggregateCall,
        bound.WindowCall,
        bound.WindowFrame,
        plan.KeyRange,
        plan.Access,
        plan.CommonTable,
        plan.Select,
        plan.Insert,
        plan.Update,
        plan.Delete,
        plan.Merge,
        plan.MergeAction,
        plan.ConflictAction,
        plan.CheckedExpression,
        plan.Returning,
    }
)


def _field_names(kind: type[Any]) -> tuple[str, ...]:
    names = _FIELD_NAMES.get(kind)
    if names is None:
        names = tuple(each.name for each in fields(kind) if each.name not in ("table", "columns"))
        _FIELD_NAMES[kind] = names
    return names


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def parts(node: Any) -> Iterator[Any]:
    """The nodes directly below a node: expressions, plans, sort keys, calls."""
    for name in _field_names(type(node)):
        yield from _parts_of(getattr(node, name))


def _parts_of(value: Any) -> Iterator[Any]:
    if type(value) in _PARTS:
        yield value
    elif type(value) is tuple:
        for each in value:
            yield from _parts_of(each)


def everything(node: Any) -> Iterator[Any]:
    """A node and all nodes below it, plans inside subqueries included."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(parts(current))


def is_plan(node: Any) -> bool:
    return type(node) in _PLANS


def sources_named(node: Any) -> frozenset[int]:
    """The sources whose columns are named anywhere in a node."""
    return frozenset(each.source for each in everything(node) if type(each) is Column)


def sources_made(node: Any) -> frozenset[int]:
    """The sources that a plan, or the plans inside an expression, make."""
    made = set()
    for each in everything(node):
        if type(each) is not Column:
            for name in ("source", "new_source", "old_source"):
                made.add(getattr(each, name, None))
    return frozenset(number for number in made if number is not None)


def free_columns(node: Any) -> tuple[Column, ...]:
    """The columns that a node names and does not make itself, each once, in order."""
    made = sources_made(node)
    found: dict[tuple[int, int], Column] = {}
    for each in everything(node):
        if type(each) is Column and each.source not in made:
            found.setdefault((each.source, each.position), each)
    return tuple(found[key] for key in sorted(found))


def free_sources(node: Any) -> frozenset[int]:
    return sources_named(node) - sources_made(node)


def output_sources(node: Plan) -> tuple[int, ...]:
    """The sources whose rows a plan hands to the one above it, in order."""
    match node:
        case plan.Join(kind="semi" | "anti"):
            return output_sources(node.left)
        case plan.Join():
            return output_sources(node.left) + output_sources(node.right)
        case plan.Distinct() | plan.Filter() | plan.Sort() | plan.TopN() | plan.Limit():
            return output_sources(node.input)
        case plan.WithTables():
            return output_sources(node.input)
        case plan.Distinct():  # DISTINCT ON passes on rows of several sources
            return output_sources(node.input)
        case plan.Window():
            return (*output_sources(node.input), node.source)
        case plan.OneRow():
            return ()
        case _:
            return (node.source,)


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """The node with `change` made to every part, from the leaves up; shared where unchanged."""
    changes = {}
    for name in _field_names(type(node)):
        old = getattr(node, name)
        new = _rebuilt_value(old, change)
        if new is not old:
            changes[name] = new
    if changes:
        assert is_dataclass(node) and not isinstance(node, type)
        node = replace(node, **changes)
    return change(node)


def tree_rebuilt(node: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The plan with `change` made to every node of its own tree, from the leaves up.

    The tree is what hands rows upward: inputs and both sides of joins. Plans of subqueries and of
    common tables are trees of their own.
    """
    changes: dict[str, Plan] = {}
    for name in ("input", "left", "right"):
        below = getattr(node, name, None)
        if below is not None:
            new = tree_rebuilt(below, change)
            if new is not below:
                changes[name] = new
    return change(replace(node, **changes) if changes else node)  # type: ignore[arg-type]


def _rebuilt_value(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in _PARTS:
        return rebuilt(value, change)
    if type(value) is tuple and value:
        items = tuple([_rebuilt_value(each, change) for each in value])
        if any(new is not old for new, old in zip(items, value, strict=True)):
            return items
    return value


def conjuncts(expression: Expression | None) -> tuple[Expression, ...]:
    """The conditions that all must be true."""
    if expression is None:
        return ()
    if not isinstance(expression, And):
        return (expression,)
    found: list[Expression] = []
    for operand in expression.operands:
        found.extend(conjuncts(operand))
    return tuple(found)


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """One expression for all conditions, None for none."""
    every = tuple(conditions)
    if not every:
        return None
    return every[0] if len(every) == 1 else And(every)


def has_subquery(expression: Expression) -> bool:
    return any(is_plan(each) for each in everything(expression))


def is_volatile(node: Any) -> bool:
    return any(type(each) is bound.Apply and each.function.volatile for each in everything(node))


def substituted(node: Any, replacements: dict[tuple[int, int], Expression]) -> Any:
    """The node with columns replaced by expressions.

    What could not be NULL may be so now: a column of EXCEPT is one of its left side, and the same
    condition on the right side meets other values.
    """

    def change(each: Any) -> Any:
        if type(each) is Column:
            return replacements.get((each.source, each.position), each)
        if type(each) is Apply and each.function.strict and not each.nullable:
            return replace(each, nullable=any(argument.nullable for argument in each.arguments))
        return each

    return rebuilt(node, change)
