"""Tells whether two bound expressions are equal.

GROUP BY a + 1 and SELECT a + 1 have two literals, and are equal only if both have the same value.
Literals are compared last, only if everything else is equal: reading a value makes it part of the
fingerprint. Columns are equal by source and position; nullability and names do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeAlias

from qserver.sql import expressions, plan
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.expressions import Column, Constant, Expression, Slot
from qserver.sql.walk import everything

CONSTANTS = (Constant, Slot)

SOURCES = ("source", "left_source", "right_source", "recursive_source")
"""The fields of plans that number what they produce."""

FIELDS: Final[Mapping[type, tuple[str, ...]]] = {
    kind: tuple(each.name for each in fields(kind))
    for module in (expressions, plan)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__ and is_dataclass(kind)
}
"""The fields of each node. What is not here is a plain value, a type or a function."""

FEW = 8
"""Up to this many candidates are compared one by one; more are indexed by structure."""

Structure: TypeAlias = tuple[Any, ...]


def same(left: Any, right: Any, literals: Literals | None = None) -> bool:
    """Tell whether expressions are equal. Without `literals`, two literals are never equal."""
    pairs: list[tuple[Slot, Slot]] = []
    sources = _Sources(left, right)
    waiting: list[tuple[Any, Any]] = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if one is other:
            continue
        if type(one) is Slot and type(other) is Constant:
            if not _is_worth(one, other, literals):
                return False
        elif type(one) is not type(other) or not _agree(one, other, sources, waiting):
            return False
        elif type(one) is Slot and one.name != other.name:
            pairs.append((one, other))
    if pairs and literals is None:
        return False
    return all(_same_literal(one, other, literals) for one, other in pairs)


def _agree(one: Any, other: Any, sources: _Sources, waiting: list[tuple[Any, Any]]) -> bool:
    """Tell whether two nodes of one kind agree, but for their parts: these are to be compared."""
    match one:
        case Column():
            return one.position == other.position and sources.agree(one.source, other.source)
        case Slot():
            return one.type == other.type and one.convert is other.convert
        case tuple():
            if len(one) != len(other):
                return False
            waiting.extend(zip(one, other, strict=True))
            return True
    names = FIELDS.get(type(one))
    if names is None:
        return bool(one == other)
    for name in names:
        if name not in SOURCES:
            waiting.append((getattr(one, name), getattr(other, name)))
        elif not sources.agree(getattr(one, name), getattr(other, name)):
            return False
    return True


class _Sources:
    """Which sources of subqueries on one side stand for which on the other.

    A subquery that is bound twice reads the same tables by other numbers.
    """

    __slots__ = ("_left", "_pairs", "_right")

    def __init__(self, left: Any, right: Any) -> None:
        self._left, self._right = left, right
        self._pairs: dict[int, int] | None = None

    def agree(self, one: int, other: int) -> bool:
        if self._pairs is None:
            if one == other:
                return True
            if type(self._left) is Column:
                return False
            self._pairs = {}
            self._left, self._right = _own_sources(self._left), _own_sources(self._right)
        if one not in self._left or other not in self._right:
            return one == other
        return self._pairs.setdefault(one, other) == other


def _own_sources(expression: Any) -> frozenset[int]:
    """Return the sources of the subqueries in an expression."""
    return frozenset(
        getattr(each, name)
        for each in everything(expression)
        if type(each) is not Column
        for name in SOURCES
        if hasattr(each, name)
    )


def position_in(
    expression: Expression, candidates: Sequence[Expression], literals: Literals | None = None
) -> int | None:
    for at, candidate in enumerate(candidates):
        if same(expression, candidate, literals):
            return at
    return None


class Alike:
    """Finds the first equal candidate in a list that only grows, however long it is.

    Beyond a few candidates it indexes them by structure: the expression without the values of its
    literals. With `literals`, candidates of one structure are compared by those values.
    """

    __slots__ = ("_by_structure", "_by_values", "_literals", "_seen")

    def __init__(self, literals: Literals | None = None) -> None:
        self._literals = literals
        self._by_structure: dict[Structure, list[int]] = {}
        self._by_values: dict[tuple[Structure, Structure], int] = {}
        self._seen = 0

    def position(self, expression: Any, candidates: Sequence[Any]) -> int | None:
        if len(candidates) <= FEW:
            return position_in(expression, candidates, self._literals)
        for at in range(self._seen, len(candidates)):
            structure, _ = _structure(candidates[at], self._literals is None)
            self._by_structure.setdefault(structure, []).append(at)
        self._seen = len(candidates)
        structure, slots = _structure(expression, self._literals is None)
        alike = self._by_structure.get(structure, [])
        if self._literals is not None and slots and len(alike) > FEW:
            found = self._by_value(structure, slots, alike, candidates)
            alike = [] if found is None else [found]
        for at in alike:
            if same(expression, candidates[at], self._literals):
                return at
        return None

    def _by_value(
        self, structure: Structure, slots: list[Slot], alike: list[int], candidates: Sequence[Any]
    ) -> int | None:
        known = self._by_values
        counted = known.get((structure, ()), 0)
        for at in alike[counted:]:
            values = self._values(_structure(candidates[at], False)[1])
            known.setdefault((structure, values), at)
        known[structure, ()] = len(alike)
        return known.get((structure, self._values(slots)))

    def _values(self, slots: list[Slot]) -> Structure:
        literals = self._literals
        assert literals is not None
        values: list[Any] = []
        for slot in slots:
            if isinstance(slot.name, int):
                value = literals.value(slot.name)
                values.append((type(value), str(value)))
            else:
                values.append(slot.name)
        return tuple(values)


def _structure(expression: Any, named: bool) -> tuple[Structure, list[Slot]]:
    """Return what equal expressions have in common, and the slots in order.

    `named`: slots are compared by their names, else only by their conversions.
    """
    found: list[Any] = []
    slots: list[Slot] = []
    waiting: list[Any] = [expression]
    own = {source: -n for n, source in enumerate(sorted(_own_sources(expression)), 1)}
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is Column:
            found.append((own.get(node.source, node.source), node.position))
        elif kind is Slot:
            slots.append(node)
            found.append((node.type, id(node.convert), node.name if named else None))
        elif kind is tuple:
            found.append(len(node))
            waiting.extend(node)
        else:
            names = FIELDS.get(kind)
            if names is None:
                found.append((kind, node if _is_plain(node) else None))
            else:
                found.append(kind)
                waiting.extend([getattr(node, name) for name in names if name not in SOURCES])
    return tuple(found), slots


def _is_plain(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def constant_in(expression: Expression, candidates: Sequence[Expression]) -> int | None:
    """Return the position of this constant itself: another one of equal value is another item."""
    for at, candidate in enumerate(candidates):
        if candidate is expression or (isinstance(expression, Slot) and candidate == expression):
            return at
    return None


def _same_literal(left: Slot, right: Slot, literals: Literals | None) -> bool:
    if literals is None or not (isinstance(left.name, int) and isinstance(right.name, int)):
        return False
    one, other = literals.value(left.name), literals.value(right.name)
    return type(one) is type(other) and str(one) == str(other)


def _is_worth(slot: Slot, constant: Constant, literals: Literals | None) -> bool:
    """Tell whether a literal of the statement equals a constant from a definition."""
    if literals is None or not isinstance(slot.name, int) or slot.type != constant.type:
        return False
    value = literals.value(slot.name)
    return bool((value if slot.convert is None else slot.convert(value)) == constant.value)
