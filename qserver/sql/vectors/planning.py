"""Decides which scans and aggregates of a plan are vectorized, and compiles their programs."""

from __future__ import annotations

from typing import Final

from qserver.sql import plan
from qserver.sql.expressions import AggregateCall, Column, Expression
from qserver.sql.vectors.planning_joins import Chain, chain_of
from qserver.sql.vectors.plans import Aggregation, Call, Condition, ConstantKind, JoinPlan, Order
from qserver.sql.vectors.program import NotVectorized, Program
from qserver.sql.vectors.scans import VectorAggregate, VectorBuild, VectorFilter, VectorTop
from qserver.values import vector_families as families
from qserver.values.types import Kind
from qserver.values.vector_families import family_of

_NUMBERS: Final = frozenset({families.INTEGER, families.NUMERIC, families.FLOAT})
_TIMES: Final = frozenset({families.DATE, families.TIMESTAMP, families.ZONED})
_FAMILIES_OF: Final = {
    "sum": _NUMBERS,
    "avg": _NUMBERS,
    "min": _NUMBERS | _TIMES | {families.TEXT},
    "max": _NUMBERS | _TIMES | {families.TEXT},
    "bool_and": frozenset({families.BOOLEAN}),
    "every": frozenset({families.BOOLEAN}),
    "bool_or": frozenset({families.BOOLEAN}),
}
_KEYS: Final = frozenset(
    {families.INTEGER, families.NUMERIC, families.BOOLEAN, families.TEXT} | _TIMES
)


def reads_whole_pages(node: plan.Plan) -> bool:
    """Return whether a plan scans a table's own tree to its end."""
    if not isinstance(node, plan.Scan):
        return False
    access = node.access
    equal = len(access.range.equal) + bool(access.range.choices)
    return (
        access.index is None
        and not access.partial
        and not access.backward
        and access.range.query is None
        and equal < len(node.table.primary_key)
    )


def vector_filter(node: plan.Scan) -> tuple[VectorFilter, list[Expression]] | None:
    """Return the vectorized filter of a scan, with its constants; None if it has none."""
    if node.condition is None or not reads_whole_pages(node):
        return None
    constants: list[Expression] = []
    try:
        condition = _condition(node, constants)
    except NotVectorized:
        return None
    return VectorFilter(condition), constants


def vector_aggregate(node: plan.Aggregate) -> tuple[VectorAggregate, list[Expression]] | None:
    """Return a vectorized aggregate of a scan, perhaps with joins, and its constants.

    None if it has none.
    """
    if node.grouping_sets is not None:
        return None
    constants: list[Expression] = []
    try:
        scan, links = chain_of(node.input)
        if not reads_whole_pages(scan):
            return None
        chain = Chain(scan, links, constants)
        program = chain.program()
        keys = tuple(_key(program, key) for key in node.keys)
        calls, state = [], 0
        for call in node.calls:
            calls.append(_call(program, call, state))
            state += len(call.aggregate.initial)
        joins = chain.joins(program)
        condition = _condition(scan, constants)
    except NotVectorized:
        return None
    aggregation = Aggregation(program, keys, tuple(calls))
    return VectorAggregate(condition, aggregation, joins), constants


def vector_build(node: plan.Plan, join: JoinPlan) -> tuple[VectorBuild, list[Expression]] | None:
    """Return what takes the chunks of the right side of a join; None if its rows are read."""
    if not isinstance(node, plan.Scan) or not reads_whole_pages(node):
        return None
    constants: list[Expression] = []
    try:
        condition = _condition(node, constants)
    except NotVectorized:
        return None
    return VectorBuild(condition, tuple([each.vector for each in join.columns])), constants


def vector_top(node: plan.TopN) -> tuple[VectorTop, list[Expression]] | None:
    """Return the vectorized top-n of a scan, with its constants; None if it has none.

    Dropped rows are not sorted, so no other key may raise for them.
    """
    scan, (first, *others) = node.input, node.keys
    if not isinstance(scan, plan.Scan) or not reads_whole_pages(scan):
        return None
    if not all(isinstance(key.expression, Column) for key in others):
        return None
    constants: list[Expression] = []
    program = Program(scan.source, constants)
    try:
        key = program.value(first.expression)
        condition = _condition(scan, constants)
    except NotVectorized:
        return None
    order = Order(program, key, first.descending, first.nulls_first, not others)
    return VectorTop(condition, order), constants


def _condition(node: plan.Scan, constants: list[Expression]) -> Condition:
    """Return the condition; its constants come last."""
    program = Program(node.source, constants)
    truth = None if node.condition is None else program.truth(node.condition)
    return Condition(program, truth, tuple(map(constant_kind, constants)))


def constant_kind(constant: Expression) -> ConstantKind:
    element = constant.type.element
    family = family_of(element or constant.type)
    assert family is not None, "a constant has a family"
    return ConstantKind(family, element is not None)


def _key(program: Program, key: Expression) -> int:
    number = program.value(key)
    if program.families[number] not in _KEYS or program.steps[number].operation == "constant":
        raise NotVectorized
    return number


def _is_text_constant(program: Program, number: int) -> bool:
    """Tell whether a step is a text of the statement, which is no vector."""
    is_constant = program.steps[number].operation == "constant"
    return is_constant and program.families[number] == families.TEXT


def _call(program: Program, call: AggregateCall, state: int) -> Call:
    aggregate = call.aggregate
    if call.distinct or call.order_by or len(call.arguments) > 1:
        raise NotVectorized
    kept = None if call.filter is None else program.truth(call.filter)
    if aggregate.name == "count":
        argument = program.value(call.arguments[0]) if call.arguments else None
        if argument is not None and _is_text_constant(program, argument):
            raise NotVectorized
        return Call("count", "", argument, kept, state)
    if aggregate.name not in _FAMILIES_OF or len(call.arguments) != 1:
        raise NotVectorized
    argument = program.value(call.arguments[0])
    family = program.families[argument]
    if family not in _FAMILIES_OF[aggregate.name] or family != family_of(aggregate.parameters[0]):
        raise NotVectorized
    if aggregate.name == "sum" and aggregate.returns.kind is Kind.REAL:
        raise NotVectorized  # each sum is rounded to 32 bits
    if program.steps[argument].operation == "constant":
        raise NotVectorized
    return Call(aggregate.name, family, argument, kept, state)
