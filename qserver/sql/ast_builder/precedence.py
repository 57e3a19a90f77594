"""Operator precedence: builds a tree from a flat chain of operands and operators.

    NOT a = b OR c BETWEEN 1 AND 2 + d
    ──► or( not(=(a, b)), between(c, 1, +(2, d)) )

The levels are those of PostgreSQL's manual: an operator waits on a stack until one comes that binds
no tighter, then takes its operands. Without recursion, a chain may have any number of terms.

A run of AND, or of OR, becomes a balanced tree: a thousand conditions are ten levels deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import (
    Between,
    Call,
    Expression,
    Like,
    Operator,
    Query,
    Row,
    ScalarQuery,
)
from qserver.sql.ast_builder.places import unexpected, unexpected_next
from qserver.sql.terminals import Terminal

OR: Final = 1
AND: Final = 2
NOT: Final = 3
IS: Final = 4
COMPARISON: Final = 5
MEMBERSHIP: Final = 6  # BETWEEN, IN, LIKE, ILIKE, SIMILAR
OTHER: Final = 7  # ||, ->, ~ and all others without a level
ADDITION: Final = 8
MULTIPLICATION: Final = 9
POWER: Final = 10
AT_TIME_ZONE: Final = 11
COLLATE: Final = 12
SIGN: Final = 13
CAST: Final = 14

# a < b < c and a IS NULL IS DISTINCT FROM b are errors. The other levels are left-associative.
_NOT_ASSOCIATIVE = frozenset({IS, COMPARISON, MEMBERSHIP})
_BY_SYMBOL = {
    **dict.fromkeys(("<", ">", "=", "<=", ">=", "<>"), COMPARISON),
    **dict.fromkeys("+-", ADDITION),
    **dict.fromkeys("*/%", MULTIPLICATION),
    "^": POWER,
}
_BY_TYPE = {"AND": AND, "OR": OR, "OVERLAPS": COMPARISON}
# Operators that are allowed between BETWEEN and its AND; others need parentheses.
_INSIDE_BETWEEN = frozenset({IS, COMPARISON, OTHER, ADDITION, MULTIPLICATION, POWER, CAST})

Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Infix:
    """An operator of several words, or one with more than a symbol."""

    level: int
    terminal: Terminal
    combine: Combine
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Suffix:
    """A postfix operator: IS NULL, ::integer, IN (…)."""

    level: int
    terminal: Terminal
    apply: Callable[[Any], Any]
    inside_between: bool = False


@dataclass(slots=True)
class _Waiting:
    """An operator on the stack. An open BETWEEN has not met its AND and blocks the stack."""

    level: int
    terminal: Terminal
    combine: Combine
    is_prefix: bool = False
    kind: str = ""
    is_open: bool = False


def operator_level(symbol: str) -> int:
    return _BY_SYMBOL.get(symbol, OTHER)


def build_chain(elements: Sequence[Any]) -> Any:
    """Build the tree of a chain: operands are nodes, operators terminals, `Infix` and `Suffix`."""
    if len(elements) == 1:
        return operand(elements[0])
    chain = _Chain()
    for element in elements:
        chain.add(element)
    return chain.finish()


def operand(element: Any) -> Any:
    """Turn a query among operands into a scalar query."""
    if isinstance(element, Query):
        return ScalarQuery(element, position=element.position)
    return element


class _Chain:
    def __init__(self) -> None:
        self._operands: list[Any] = []
        self._waiting: list[_Waiting] = []
        self._wants_operand = True
        self._open = 0  # the number of BETWEENs that wait for their AND

    def add(self, element: Any) -> None:
        if isinstance(element, Suffix):
            self._yield_to(element.level, element.terminal, element.inside_between)
            self._operands[-1] = element.apply(self._operands[-1])
        elif not isinstance(element, Infix | Terminal):
            self._operands.append(operand(element))
            self._wants_operand = False
        elif self._wants_operand:
            self._add_prefix(element)
        else:
            self._add_infix(element)
            self._wants_operand = True

    def finish(self) -> Any:
        while self._waiting:
            if self._waiting[-1].is_open:
                raise unexpected_next(self._waiting[-1].terminal.source)
            self._reduce()
        (tree,) = self._operands
        return tree

    # --- operators --------------------------------------------------------------------------------

    def _add_prefix(self, element: Any) -> None:
        terminal = element if isinstance(element, Terminal) else element.terminal
        symbol = terminal.value if isinstance(element, Terminal) else element.kind
        level = {"NOT": NOT, "SIGN": SIGN}.get(terminal.type, OTHER)
        if level == NOT and self._open:
            raise unexpected(terminal)

        def combine(_: Any, right: Any) -> Any:
            return Operator(symbol, None, right, position=terminal.start)

        self._waiting.append(_Waiting(level, terminal, combine, is_prefix=True))

    def _add_infix(self, element: Any) -> None:
        if isinstance(element, Infix):
            self._yield_to(element.level, element.terminal, element.level in _INSIDE_BETWEEN)
            waiting = _Waiting(element.level, element.terminal, element.combine, kind=element.kind)
            if element.kind == "between":
                waiting.is_open = True
                self._open += 1
        elif element.type == "AND" and self._open:
            self._close_between()
            return
        elif element.type == "ESCAPE":
            self._add_escape(element)
            return
        else:
            level = _BY_TYPE.get(element.type) or operator_level(element.value)
            self._yield_to(level, element, level in _INSIDE_BETWEEN and element.type != "OVERLAPS")
            waiting = _Waiting(level, element, _combiner(element))
        self._waiting.append(waiting)

    def _close_between(self) -> None:
        """Handle the AND of BETWEEN: everything since BETWEEN is the low end."""
        while not self._waiting[-1].is_open:
            self._reduce()
        between = self._waiting[-1]
        low = self._operands.pop()
        make = between.combine(low, None)
        between.combine = make
        between.is_open = False
        self._open -= 1

    def _add_escape(self, terminal: Terminal) -> None:
        """Attach ESCAPE to the LIKE before it."""
        while self._waiting and self._waiting[-1].kind != "like":
            if self._waiting[-1].is_open:
                break
            self._reduce()
        if not self._waiting or self._waiting[-1].kind != "like":
            raise unexpected(terminal)
        like = self._waiting[-1]
        pattern = self._operands.pop()
        combine = like.combine

        def escaped(left: Any, escape: Any) -> Any:
            made = combine(left, pattern)
            assert isinstance(made, Like)
            return Like(
                made.kind, made.operand, pattern, escape, made.negated, position=made.position
            )

        like.combine = escaped
        like.kind = ""

    # --- the stack --------------------------------------------------------------------------------

    def _yield_to(self, level: int, terminal: Terminal, inside_between: bool) -> None:
        """Let operators that bind tighter than the next one take their operands."""
        waiting = self._waiting
        while waiting and not waiting[-1].is_open and waiting[-1].level >= level:
            if waiting[-1].level == level:
                if level in _NOT_ASSOCIATIVE:
                    raise unexpected(terminal)
                if level in (AND, OR):
                    return
            self._reduce()
        if not inside_between and self._open:
            raise unexpected(terminal)

    def _reduce(self) -> None:
        waiting = self._waiting.pop()
        if waiting.level in (AND, OR):
            self._reduce_run(waiting)
            return
        right = self._operands.pop()
        left = None if waiting.is_prefix else self._operands.pop()
        self._operands.append(waiting.combine(left, right))

    def _reduce_run(self, last: _Waiting) -> None:
        """Build a AND b AND c AND d as (a AND b) AND (c AND d)."""
        run = [last]
        while self._waiting and self._waiting[-1].level == last.level:
            run.append(self._waiting.pop())
        run.reverse()
        operands = self._operands[-len(run) - 1 :]
        del self._operands[-len(run) - 1 :]

        def balanced(start: int, end: int) -> Any:
            if end - start == 1:
                return operands[start]
            middle = (start + end + 1) // 2
            return run[middle - 1].combine(balanced(start, middle), balanced(middle, end))

        self._operands.append(balanced(0, len(operands)))


# --- nodes of operators --------------------------------------------------------------------------


def _combiner(terminal: Terminal) -> Combine:
    if terminal.type == "OVERLAPS":
        return lambda left, right: _overlaps(left, right, terminal)
    symbol: str = terminal.value

    def combine(left: Expression, right: Expression) -> Expression:
        return Operator(symbol, left, right, position=terminal.start)

    return combine


def _overlaps(left: Any, right: Any, terminal: Terminal) -> Call:
    for side, row in (("left", left), ("right", right)):
        if not isinstance(row, Row):
            raise unexpected(terminal)
        if len(row.items) != 2:
            raise SqlSyntaxError(
                f"wrong number of parameters on {side} side of OVERLAPS expression",
                position=terminal.start + 1,
            )
    return Call(("overlaps",), left.items + right.items, position=terminal.start)


def like_operator(kind: str, negated: bool, terminal: Terminal) -> Infix:
    def combine(left: Expression, right: Expression) -> Like:
        return Like(kind, left, right, None, negated, position=terminal.start)

    return Infix(MEMBERSHIP, terminal, combine, "like")


def between_operator(negated: bool, symmetric: bool, terminal: Terminal) -> Infix:
    """Return BETWEEN, which takes the low end first, then the operand and the high end."""

    def combine(low: Expression, _: None) -> Combine:
        def finished(left: Expression, high: Expression) -> Between:
            return Between(left, low, high, negated, symmetric, position=terminal.start)

        return finished

    return Infix(MEMBERSHIP, terminal, combine, "between")
