"""Traverses and rewrites bound expressions and plans.

    parts(node), everything(node)     to inspect
    with_parts(node, change)          one level down; the other rewrites are built on it:
      rebuilt       from the leaves up: `change` gets nodes whose parts are already changed
      rewritten     from the top down: `change` gets the largest expression first
      tree_rebuilt  plans alone, without their expressions, from the leaves up

All functions go by the fields of the frozen nodes, so a new node class needs no change here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from itertools import islice
from operator import is_
from typing import Any, TypeAlias, get_args

from qserver.sql import expressions, plan
from qserver.sql.expressions import And, Apply, Column, Expression
from qserver.sql.plan import Plan

Rewrite: TypeAlias = Callable[[Any], Any]

_PLANS = frozenset(get_args(Plan))
_PARTS = frozenset(
    kind
    for module in (expressions, plan)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
) - {plan.OutputColumn}


_NO_PARTS = frozenset(
    {
        *("bool", "int", "float", "str", "int | str", "int | None", "str | None", "Any"),
        *("Callable[[Any], Any]", "Callable[[Any], Any] | None"),
        *("SqlType", "Table", "Function", "Aggregate", "Aggregate | None", "TableFunction"),
    }
)
"""Types of fields, as they are written, that hold no parts. A value of any type is a constant."""


class _FieldNames(dict[type, tuple[str, ...]]):
    """Knows the fields of each kind of node that may hold parts."""

    def __missing__(self, kind: type[Any]) -> tuple[str, ...]:
        names = tuple(
            each.name
            for each in fields(kind)
            if each.name not in ("table", "columns") and each.type not in _NO_PARTS
        )
        self[kind] = names
        return names


_FIELD_NAMES = _FieldNames()


def parts(node: Any) -> list[Any]:
    """Return the nodes directly below a node: expressions, plans, sort keys, calls."""
    found: list[Any] = []
    _add_parts(node, found)
    return found


def _add_parts(node: Any, found: list[Any]) -> None:
    for name in _FIELD_NAMES[type(node)]:
        value = getattr(node, name)
        kind = type(value)
        if kind in _PARTS:
            found.append(value)
        elif kind is tuple and value:
            _gather(value, found)


def _gather(items: tuple[Any, ...], found: list[Any]) -> None:
    for each in items:
        kind = type(each)
        if kind in _PARTS:
            found.append(each)
        elif kind is tuple:
            _gather(each, found)


def everything(node: Any) -> Iterator[Any]:
    """Yield a node and all nodes below it, including the plans of subqueries."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        if _FIELD_NAMES[type(current)]:  # thousands of slots and constants have none
            _add_parts(current, waiting)


def is_plan(node: Any) -> bool:
    return type(node) in _PLANS


def sources_named(node: Any) -> frozenset[int]:
    """Return the sources of all columns in a node."""
    return frozenset(each.source for each in everything(node) if type(each) is Column)


def sources_made(node: Any) -> frozenset[int]:
    """Return the sources that a plan, or the plans inside an expression, produce."""
    made = set()
    for each in everything(node):
        if type(each) is not Column:
            for name in ("source", "new_source", "old_source"):
                made.add(getattr(each, name, None))
    return frozenset(number for number in made if number is not None)


def free_columns(node: Any) -> tuple[Column, ...]:
    """Return the columns of sources that the node does not produce, each once, in order."""
    made = sources_made(node)
    found: dict[tuple[int, int], Column] = {}
    for each in everything(node):
        if type(each) is Column and each.source not in made:
            found.setdefault((each.source, each.position), each)
    return tuple(found[key] for key in sorted(found))


def free_sources(node: Any) -> frozenset[int]:
    return sources_named(node) - sources_made(node)


def output_sources(node: Plan) -> tuple[int, ...]:
    """Return the sources whose rows a plan passes to its parent, in order."""
    match node:
        case plan.Join(kind="semi" | "anti"):
            return output_sources(node.left)
        case plan.Join():
            return output_sources(node.left) + output_sources(node.right)
        case plan.Filter() | plan.Sort() | plan.TopN() | plan.Limit() | plan.WithTables():
            return output_sources(node.input)
        case plan.Vectors():
            return output_sources(node.input)
        case plan.Distinct():  # DISTINCT ON passes on rows of several sources
            return output_sources(node.input)
        case plan.Window():
            return (*output_sources(node.input), node.source)
        case plan.OneRow():
            return ()
        case _:
            return (node.source,)


def with_parts(node: Any, change: Rewrite) -> Any:
    """Apply `change` to the parts directly below a node; return the same node if none changes."""
    changes = {}
    for name in _FIELD_NAMES[type(node)]:
        old = getattr(node, name)
        kind = type(old)
        if kind in _PARTS:
            new = change(old)
        elif kind is tuple and old:
            new = _changed_items(old, change)
        else:
            continue
        if new is not old:
            changes[name] = new
    if not changes:
        return node
    if type(node) is Apply:
        return with_arguments(node, changes["arguments"])
    return replace(node, **changes)


def _changed_items(items: tuple[Any, ...], change: Rewrite) -> tuple[Any, ...]:
    changed = []
    is_same = True
    for old in items:
        if type(old) in _PARTS:
            new = change(old)
        elif type(old) is tuple:
            new = _changed_items(old, change)
        else:
            new = old
        is_same = is_same and new is old
        changed.append(new)
    return items if is_same else tuple(changed)


def rebuilt(node: Any, change: Rewrite) -> Any:
    """Apply `change` to every part, from the leaves up; unchanged parts are shared."""

    def visit(part: Any) -> Any:
        return change(with_parts(part, visit))

    return visit(node)


def rewritten(node: Any, change: Rewrite) -> Any:
    """Apply `change` from the top down; where it returns None, rewrite the node's parts."""

    def visit(part: Any) -> Any:
        changed = change(part)
        if changed is not None:
            return changed
        return along_chain(part) if type(part) is Apply else with_parts(part, visit)

    def along_chain(node: Apply) -> Any:
        """Follow first arguments in a loop: a + b + c + … is as deep as it is long."""
        chain = [node]
        result: Any = None
        while node.arguments and type(first := node.arguments[0]) is Apply:
            result = change(first)
            if result is not None:
                break
            chain.append(node := first)
        else:
            result = with_parts(chain.pop(), visit)
        for link in reversed(chain):
            arguments = (result, *map(visit, link.arguments[1:]))
            is_same = all(map(is_, arguments, link.arguments))
            result = link if is_same else with_arguments(link, arguments)
        return result

    return visit(node)


def with_arguments(node: Apply, arguments: tuple[Expression, ...]) -> Apply:
    """Return the call with other arguments, nullable if a strict function's new arguments are.

    A column of EXCEPT is one of its left side, and the same condition on the right side gets other
    values; a key that ROLLUP leaves out is NULL whatever the column says.
    """
    strict = node.function.strict
    nullable = node.nullable or (strict and any(each.nullable for each in arguments))
    return replace(node, arguments=arguments, nullable=nullable)


def tree_rebuilt(node: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Apply `change` to every node of a plan's own tree, from the leaves up.

    The tree consists of inputs and both sides of joins. Plans of subqueries and of CTEs are trees
    of their own.
    """

    def visit(part: Any) -> Any:
        return change(with_parts(part, visit)) if type(part) in _PLANS else part

    result: Plan = visit(node)
    return result


def conjuncts(expression: Expression | None) -> tuple[Expression, ...]:
    """Split a condition at its ANDs."""
    if expression is None:
        return ()
    if not isinstance(expression, And):
        return (expression,)
    found: list[Expression] = []
    for operand in expression.operands:
        found.extend(conjuncts(operand))
    return tuple(found)


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """Join conditions with AND; None for no condition."""
    every = tuple(conditions)
    if not every:
        return None
    return every[0] if len(every) == 1 else And(every)


def has_subquery(expression: Expression) -> bool:
    return any(is_plan(each) for each in everything(expression))


def is_volatile(node: Any) -> bool:
    return any(
        type(each) is expressions.Apply and each.function.volatile for each in everything(node)
    )


SUBSTITUTED_NODES_MAX = 64
"""By how many nodes a rule may make an expression longer. A column that is used twice, of a column
that is used twice, doubles it with each projection."""


def may_substitute(node: Any, replacements: dict[tuple[int, int], Expression]) -> bool:
    """Tell whether a node stays short with its columns replaced."""
    more = 0
    for each in everything(node):
        if type(each) is Column:
            new = replacements.get((each.source, each.position))
            if new is not None and type(new) is not Column:
                left = SUBSTITUTED_NODES_MAX - more
                more += sum(1 for _ in islice(everything(new), left + 1))
                if more > SUBSTITUTED_NODES_MAX:
                    return False
    return True


def substituted(node: Any, replacements: dict[tuple[int, int], Expression]) -> Any:
    def change(each: Any) -> Any:
        if type(each) is Column:
            return replacements.get((each.source, each.position), each)
        return each

    return rebuilt(node, change)
