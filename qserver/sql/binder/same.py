"""Do two bound expressions say the same?

GROUP BY a + 1 and SELECT a + 1 have two literals, each its own slot, and they are the same only if
both are worth the same. So literals are compared by value, last and only when everything else
agrees: looking at a value pins it. Columns are the same by source and position; whether they can be
NULL there, or what people call them, does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from qserver.sql import bound, plan
from qserver.sql.binder.literals import Literals
from qserver.sql.bound import Column, Constant, Expression, Slot

CONSTANTS = (Constant, Slot)


def same(left: Any, right: Any, literals: Literals | None = None) -> bool:
    """Without `literals`, two literals are never the same, whatever they are worth."""
    pairs: list[tuple[Slot, Slot]] = []
    waiting: list[tuple[Any, Any]] = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if one is other:
            continue
        if type(one) is Slot and type(other) is Constant:
            if not _is_worth(one, other, literals):
                return False
            continue
        if type(one) is not type(other):
            return False
        match one:
            case Column():
                if one.source != other.source or one.position != other.position:
                    return False
            case Slot():
                if one.type != other.type or one.convert is not other.convert:
                    return False
                if one.name != other.name:
                    pairs.append((one, other))
            case tuple():
                if len(one) != len(other):
                    return False
                waiting.extend(zip(one, other, strict=True))
            case _:
                names = _compared(type(one))
                if names is None:
                    if one != other:
                        return False
                else:
                    waiting.extend([(getattr(one, name), getattr(other, name)) for name in names])
    if pairs and literals is None:
        return False
    return all(_same_literal(one, other, literals) for one, other in pairs)


def position_in(
    expression: Expression, candidates: Sequence[Expression], literals: Literals | None = None
) -> int | None:
    """Where the first that says the same is."""
    for at, candidate in enumerate(candidates):
        if same(expression, candidate, literals):
            return at
    return None


def constant_in(expression: Expression, candidates: Sequence[Expression]) -> int | None:
    """Where this very constant is: another that is worth the same is another item."""
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
    """Is a literal of the statement the one of a definition, whose literals are constants?"""
    if literals is None or not isinstance(slot.name, int) or slot.type != constant.type:
        return False
    value = literals.value(slot.name)
    return bool((value if slot.convert is None else slot.convert(value)) == constant.value)


def _compared(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a node; None for a plain value, a type or a function."""
    if kind not in _COMPARED:
        is_node = kind.__module__ in (bound.__name__, plan.__name__)
        _COMPARED[kind] = tuple(each.name for each in fields(kind)) if is_node else None
    return _COMPARED[kind]


_COMPARED: dict[type, tuple[str, ...] | None] = {}
