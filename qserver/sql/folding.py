"""Marks the constant parts of a statement, which are computed before any row is read.

PostgreSQL simplifies what is constant while it plans, so an error in it comes first, whatever the
rows are: `coalesce(a, 1 / 0)` fails even if no `a` is NULL. A plan here serves all values of its
literals; so constants are computed when the plan is run, at its very beginning (`Folded`), and
never again for a row.

Like PostgreSQL, the largest constant part is computed as a whole, and what a constant before it
decides is left out: nothing behind `false AND`, `true OR`, `coalesce(1,` or WHEN true; and nothing
before `AND false` or `OR true` but constants. Whether a constant has that value is known only when
the plan is run; hence the guards.

A function that is not immutable in PostgreSQL is no constant: what depends on the clock, on the
time zone, or on how a setting prints a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from qserver.functions.registry import Function
from qserver.sql.expressions import (
    And,
    Apply,
    Array,
    Case,
    Cast,
    Coalesce,
    Constant,
    Expression,
    Folded,
    Guard,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    Not,
    Or,
    Slot,
    Slots,
)
from qserver.sql.plan import CheckedExpression, Values
from qserver.sql.step_budget import StepBudget
from qserver.sql.walk import everything, parts, rewritten
from qserver.values.types import BOOLEAN, TEXT_KINDS, Kind, SqlType

STABLE: Final = frozenset(
    {
        "array_to_json",
        "array_to_string",
        "concat",
        "concat_ws",
        "convert_from",
        "convert_to",
        "format",
        "json_build_array",
        "json_build_object",
        "jsonb_build_array",
        "jsonb_build_object",
        "jsonb_path_exists_tz",
        "jsonb_path_match_tz",
        "jsonb_path_query_array_tz",
        "jsonb_path_query_first_tz",
        "make_timestamptz",
        "row_to_json",
        "to_char",
        "to_date",
        "to_json",
        "to_jsonb",
        "to_number",
        "to_timestamp",
    }
)
"""Functions whose result depends on settings in PostgreSQL, which so does not fold them."""

_PRINTED_BY_SETTINGS: Final = frozenset(
    {
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
        Kind.TIME,
        Kind.TIMETZ,
        Kind.INTERVAL,
        Kind.ENUM,
        Kind.ARRAY,
        Kind.RECORD,
    }
)
_MADE_OF_PARTS: Final = frozenset(
    {And, Or, Not, IsNull, IsTruth, IsDistinct, Case, Coalesce, InList, Array}
)
_NEVER: Final = Guard(Constant(False, BOOLEAN), "is True")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a constant stands; `conditional`: it may not be printed, or not be computed."""

    guards: tuple[Guard, ...] = ()
    conditional: bool = False

    def behind(self, *guards: Guard) -> _Place:
        return _Place((*self.guards, *guards), True)


def folded(statement: Any, budget: StepBudget | None = None) -> Any:
    """Return the bound statement with its constant parts marked."""
    constants = _constants(statement, (budget or StepBudget.boundless()).spend)
    if not constants:
        return statement
    return _Folding(constants).within(statement, _Place())


def is_constant(expression: Expression) -> bool:
    """Is it a value that is known before any row is read?"""
    leaf = isinstance(expression, Constant | Slot)
    return leaf or id(expression) in _constants(expression, lambda: None)


def is_cast_literal(slot: Slot | Slots) -> bool:
    """Is more done to the literal than to read it?"""
    return slot.convert is not None and slot.convert is not slot.reader


def is_surely_null(expression: Any) -> bool:
    """Is it NULL whatever the rows are, because a strict function has NULL as an argument?"""
    deep = 5
    waiting = [expression]
    while waiting and deep:
        deep -= 1
        below: list[Any] = []
        for each in waiting:
            if isinstance(each, Folded):
                each = each.expression
            if isinstance(each, Constant) and each.value is None:
                return True
            if isinstance(each, Apply) and each.function.strict:
                below += each.arguments
        waiting = below
    return False


def _constants(statement: Any, spend: Callable[[], None]) -> frozenset[int]:
    """Return the ids of the nodes that are constant, if any is more than a leaf."""
    found: set[int] = set()
    worth = False
    for node in reversed(list(everything(statement))):  # parts come before what is made of them
        spend()
        kind = type(node)
        if kind is Constant or kind is Slot or kind is Slots:
            found.add(id(node))
            worth = worth or (kind is Slot and is_cast_literal(node))
        elif (
            (kind is Apply and _is_immutable(node.function))
            or (kind is Cast and not _is_stable_cast(node.operand.type, node.type))
            or kind in _MADE_OF_PARTS
        ) and all(id(part) in found for part in parts(node)):
            found.add(id(node))
            worth = True
    return frozenset(found) if worth else frozenset()


def _is_immutable(function: Function) -> bool:
    if function.volatile or function.needs_context or function.name in STABLE:
        return False
    zoned = [each.kind is Kind.TIMESTAMPTZ for each in function.parameters]
    return not any(zoned) or (function.comparison is not None and all(zoned))


def _is_stable_cast(source: SqlType, target: SqlType) -> bool:
    kinds = {source.kind, target.kind}
    return Kind.TIMESTAMPTZ in kinds or (
        not kinds.isdisjoint(TEXT_KINDS) and not kinds.isdisjoint(_PRINTED_BY_SETTINGS)
    )


class _Folding:
    def __init__(self, constants: frozenset[int]) -> None:
        self._constants = constants

    def within(self, node: Any, place: _Place) -> Any:
        def change(part: Any) -> Any:
            return self._changed(part, place)

        return rewritten(node, change)

    def _changed(self, node: Any, place: _Place) -> Any:
        """Return the node with its constants marked; None if its parts have the same place."""
        if id(node) in self._constants:
            return self._marked(node, place)
        match node:
            case And():
                return replace(node, operands=self._chain(node.operands, False, place))
            case Or():
                return replace(node, operands=self._chain(node.operands, True, place))
            case Coalesce():
                return replace(node, operands=self._choices(node.operands, place))
            case Case():
                return self._case(node, place)
            case IsNull(operand=operand) if not place.conditional and not operand.nullable:
                return replace(node, operand=self.within(operand, _Place(place.guards, True)))
            case Apply() if not place.conditional and is_surely_null(node):
                return self.within(node, _Place(place.guards, True))
            case Values(repeated=True) | CheckedExpression():
                return node
        return None

    def _marked(self, node: Expression, place: _Place) -> Expression:
        if isinstance(node, Slot):
            wanted = place.conditional and isinstance(node.name, int) and is_cast_literal(node)
            wanted = wanted and node.type.kind not in _PRINTED_BY_SETTINGS
            return Folded(node, place.guards) if wanted else node
        return node if isinstance(node, Constant | Slots) else Folded(node, place.guards)

    def _chain(
        self, operands: tuple[Expression, ...], decides: bool, place: _Place
    ) -> tuple[Expression, ...]:
        """The operands of AND (false decides) or of OR (true does).

        A constant decides also for what stands before it, so constants come first.
        """
        made: list[Expression] = []
        for operand in operands:
            made.append(self.within(operand, place))
            place = place.behind(*self._guard(made[-1], f"is not {decides}", decides))
        return tuple(sorted(made, key=lambda each: not isinstance(each, Constant | Slot | Folded)))

    def _choices(self, operands: tuple[Expression, ...], place: _Place) -> tuple[Expression, ...]:
        made: list[Expression] = []
        for operand in operands:
            made.append(new := self.within(operand, place))
            guards: tuple[Guard, ...] = ()
            if isinstance(new, Constant | Slot | Folded):
                guards = (Guard(new, "is None"),) if new.nullable else (_NEVER,)
                if isinstance(new, Constant) and new.value is None:
                    guards = ()
            place = place.behind(*guards)
        return tuple(made)

    def _case(self, node: Case, place: _Place) -> Case:
        whens: list[tuple[Expression, Expression]] = []
        for condition, result in node.whens:
            test = self.within(condition, place)
            reached = place.behind(*self._guard(test, "is True", None))
            if (isinstance(test, Constant) and test.value is not True) or is_surely_null(test):
                reached = place.behind(_NEVER)
            whens.append((test, self.within(result, reached)))
            place = place.behind(*self._guard(test, "is not True", True))
        return replace(node, whens=tuple(whens), otherwise=self.within(node.otherwise, place))

    def _guard(self, operand: Expression, test: str, decides: bool | None) -> tuple[Guard, ...]:
        """What must hold of a constant, so that what stands behind it counts."""
        if isinstance(operand, Constant):
            return (_NEVER,) if decides is not None and operand.value is decides else ()
        return (Guard(operand, test),) if isinstance(operand, Slot | Folded) else ()
