"""Reads the text of an SQL/JSON path into a tree, with PostgreSQL's errors.

Operators and parentheses are kept on stacks of our own, so that any number of them may stand in a
row: `a || b || c …` is printed with as many parentheses as it has parts. What is nested otherwise
(filters, positions, steps behind each other) has a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from qserver.errors import (
    FeatureNotSupported,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    QserverError,
    SqlSyntaxError,
    StatementTooComplex,
)
from qserver.limits import JSON_PATH_DEPTH_MAX
from qserver.values.json_path_tokens import KEYWORDS, Token, bad, tokens
from qserver.values.json_paths import (
    FLAGS,
    AnyElement,
    AnyKey,
    Arithmetic,
    Chain,
    Compare,
    Datetime,
    Elements,
    Exists,
    Filter,
    IsUnknown,
    JsonPath,
    Key,
    Levels,
    LikeRegex,
    Literal,
    Logic,
    Method,
    Node,
    Not,
    Place,
    Predicate,
    Sign,
    Step,
    Variable,
)
from qserver.values.text_input import numeric_from_text

_BINDING: Final = {"||": 0, "&&": 1, "+": 3, "-": 3, "*": 4, "/": 4, "%": 4} | dict.fromkeys(
    ("==", "!=", "<", ">", "<=", ">="), 2
)
_SIGNS: Final = frozenset({"!", " +", " -"})
"""What stands before an operand."""
_METHODS: Final = frozenset({"abs", "size", "type", "floor", "double", "ceiling", "keyvalue"})
_CONSTANTS: Final = {"null": None, "true": True, "false": False}
_NAMES: Final = KEYWORDS | {"name", "string"}
_LEVEL_MAX: Final = 2**31 - 1
_SHORT_DIGITS: Final = 18


def json_path_from_text(text: str) -> str:
    """Return a path as PostgreSQL prints it."""
    return str(read_json_path(text))


def read_json_path(text: str) -> JsonPath:
    return _Parser(text).path()


@dataclass(frozen=True, slots=True)
class _Operand:
    node: Node
    depth: int = 1
    is_closed: bool = False
    """A predicate in parentheses, which may be a head of a chain."""

    @property
    def is_predicate(self) -> bool:
        return isinstance(self.node, Predicate)


@dataclass(slots=True)
class _Level:
    """What stands between two parentheses."""

    negated: bool = False
    operands: list[_Operand] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    """Signs have a blank before them."""


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._token = next(self._tokens)
        self._in_filter = 0
        self._in_positions = 0
        self._nested = 0
        self._misplaced: QserverError | None = None

    def path(self) -> JsonPath:
        if self._token.kind == "end":
            raise InvalidTextRepresentation(
                f'invalid input syntax for type jsonpath: "{self._text}"'
            )
        lax = self._token.kind != "strict"
        if self._token.kind in ("strict", "lax"):
            self._advance()
        operand = self._expression()
        self._expect("end")
        if self._misplaced is not None:
            raise self._misplaced
        return JsonPath(lax, operand.node)

    # --- tokens ----------------------------------------------------------------------------------

    def _advance(self) -> Token:
        token = self._token
        self._token = next(self._tokens, token)
        return token

    def _expect(self, kind: str) -> Token:
        if self._token.kind != kind:
            raise self._wrong()
        return self._advance()

    def _takes(self, kind: str) -> bool:
        if self._token.kind != kind:
            return False
        self._advance()
        return True

    def _wrong(self) -> QserverError:
        return bad("syntax error", self._token.near)

    # --- operators -------------------------------------------------------------------------------

    def _expression(self) -> _Operand:
        """Read operands and operators as far as they go."""
        levels = [_Level()]
        while True:
            self._open(levels)
            operand = self._primary()
            while not self._goes_on(levels[-1], operand):
                self._reduce(levels[-1], 0)
                if len(levels) == 1:
                    return levels[0].operands.pop()
                if self._token.kind != ")":
                    raise self._wrong()
                operand = self._closed(levels)

    def _open(self, levels: list[_Level]) -> None:
        """Read what may stand before an operand: parentheses and signs."""
        while (kind := self._token.kind) in ("(", "+", "-", "!"):
            if kind == "(":
                self._advance()
                levels.append(_Level())
            elif kind == "!":
                self._advance()
                if self._token.kind == "exists":
                    levels[-1].operators.append("!")
                    return
                self._expect("(")
                levels.append(_Level(negated=True))
            else:
                self._advance()
                levels[-1].operators.append(f" {kind}")

    def _goes_on(self, level: _Level, operand: _Operand) -> bool:
        """Keep an operand; tell whether an operator behind it wants another."""
        level.operands.append(operand)
        self._reduce_signs(level)
        kind = self._token.kind
        if kind in ("like_regex", "starts"):
            self._reduce(level, _BINDING["+"])
            level.operands.append(self._match_of_text(level.operands.pop(), kind))
            kind = self._token.kind
        if kind == "is":
            level.operands.append(self._unknown(level.operands.pop()))
            kind = self._token.kind
        binding = _BINDING.get(kind)
        if binding is None:
            return False
        self._reduce(level, binding)
        if level.operands[-1].is_predicate is (binding > 1):
            raise self._wrong()
        level.operators.append(kind)
        self._advance()
        return True

    def _reduce_signs(self, level: _Level) -> None:
        while level.operators and level.operators[-1] in _SIGNS:
            operator, operand = level.operators.pop(), level.operands.pop()
            if operator == "!":
                level.operands.append(self._above(Not(operand.node), operand))
            elif operand.is_predicate:
                raise self._wrong()
            else:
                level.operands.append(self._signed(operator[1], operand))

    def _signed(self, sign: str, operand: _Operand) -> _Operand:
        node = operand.node
        if isinstance(node, Literal) and type(node.value) in (int, Decimal):
            return _Operand(Literal(_negated(node.value))) if sign == "-" else operand
        return self._above(Sign(sign, node), operand)

    def _reduce(self, level: _Level, binding: int) -> None:
        """Apply the operators that bind as much or more."""
        while level.operators and _BINDING[level.operators[-1]] >= binding:
            operator = level.operators.pop()
            right, left = level.operands.pop(), level.operands.pop()
            own = _BINDING[operator]
            if right.is_predicate is (own > 1):
                raise self._wrong()
            level.operands.append(self._binary(operator, own, left, right))

    def _binary(self, operator: str, binding: int, left: _Operand, right: _Operand) -> _Operand:
        if binding > _BINDING["=="]:
            return self._above(Arithmetic(operator, left.node, right.node), left, right)
        if binding == _BINDING["=="]:
            return self._above(Compare(operator, left.node, right.node), left, right)
        first = left.node
        if isinstance(first, Logic) and first.operator == operator:
            node = Logic(operator, (*first.parts, right.node))
            return _Operand(node, max(left.depth, right.depth + 1))
        return self._above(Logic(operator, (first, right.node)), left, right)

    def _closed(self, levels: list[_Level]) -> _Operand:
        """Close a parenthesis; what is behind it belongs to the level around."""
        level = levels.pop()
        inner = level.operands.pop()
        if level.negated:
            if not inner.is_predicate:
                raise self._wrong()
            self._advance()
            return self._above(Not(inner.node), inner)
        self._advance()
        closed = self._with_steps(inner)
        if closed is not inner or not inner.is_predicate:
            return closed
        return _Operand(inner.node, inner.depth, is_closed=True)

    def _above(self, node: Node, *parts: _Operand) -> _Operand:
        return _Operand(node, 1 + _checked(max(each.depth for each in parts)))

    def _match_of_text(self, operand: _Operand, kind: str) -> _Operand:
        if operand.is_predicate:
            raise self._wrong()
        self._advance()
        if kind == "starts":
            self._expect("with")
            if self._token.kind not in ("string", "variable"):
                raise self._wrong()
            token = self._advance()
            start = Literal(token.text) if token.kind == "string" else Variable(token.text)
            return self._above(Compare("starts with", operand.node, start), operand)
        pattern = self._expect("string").text
        flags = self._expect("string").text if self._takes("flag") else ""
        return self._above(LikeRegex(operand.node, pattern, _regex_flags(flags)), operand)

    def _unknown(self, operand: _Operand) -> _Operand:
        if not operand.is_closed:
            raise self._wrong()
        self._advance()
        self._expect("unknown")
        return self._above(IsUnknown(operand.node), operand)

    # --- operands --------------------------------------------------------------------------------

    def _primary(self) -> _Operand:
        kind = self._token.kind
        if kind == "exists":
            self._advance()
            self._expect("(")
            inner = self._deeper(self._expression)
            if inner.is_predicate:
                raise self._wrong()
            self._expect(")")
            return self._above(Exists(inner.node), inner)
        return self._with_steps(_Operand(self._head()))

    def _head(self) -> Node:
        kind = self._token.kind
        if kind in ("$", "@", "last"):
            self._check_place(kind)
            self._advance()
            return Place(kind)
        if kind not in ("string", "number", "variable", *_CONSTANTS):
            raise self._wrong()
        text = self._token.text
        node: Node
        if kind == "number":
            node = Literal(_number(text))
        elif kind == "variable":
            node = Variable(text)
        else:
            node = Literal(text if kind == "string" else _CONSTANTS[kind])
        self._advance()
        return node

    def _check_place(self, word: str) -> None:
        if self._misplaced is not None:
            return
        if word == "@" and not self._in_filter:
            self._misplaced = SqlSyntaxError("@ is not allowed in root expressions")
        elif word == "last" and not self._in_positions:
            self._misplaced = SqlSyntaxError("LAST is allowed only in array subscripts")

    def _deeper(self, read: Callable[[], _Operand]) -> _Operand:
        """Read something inside; what is nested too deeply is refused before it is read."""
        self._nested = _checked(self._nested + 1)
        inner = read()
        self._nested -= 1
        return inner

    def _with_steps(self, operand: _Operand) -> _Operand:
        steps: list[Step] = []
        depth = operand.depth
        while self._token.kind in (".", "[", "?"):
            step, inner = self._step()
            steps.append(step)
            depth = _checked(max(depth, inner) + 1)
        if not steps:
            return operand
        head = operand.node
        if isinstance(head, Chain):
            return _Operand(Chain(head.head, (*head.steps, *steps)), depth)
        return _Operand(Chain(head, tuple(steps)), depth)

    def _step(self) -> tuple[Step, int]:
        """Return a step, and how deep it is."""
        kind = self._advance().kind
        if kind == "?":
            self._expect("(")
            self._in_filter += 1
            inner = self._deeper(self._expression)
            if not inner.is_predicate:
                raise self._wrong()
            self._in_filter -= 1
            self._expect(")")
            return Filter(inner.node), inner.depth
        if kind == "[":
            return self._positions()
        if self._takes("*"):
            return AnyKey(), 0
        if self._takes("**"):
            return self._levels(), 0
        return self._member(), 0

    def _member(self) -> Step:
        if self._token.kind not in _NAMES:
            raise self._wrong()
        token = self._advance()
        if self._token.kind != "(" or token.kind not in _METHODS | {"datetime"}:
            return Key(token.text)
        self._advance()
        template = None
        if token.kind == "datetime" and self._token.kind == "string":
            template = self._advance().text
        self._expect(")")
        return Datetime(template) if token.kind == "datetime" else Method(token.kind)

    def _positions(self) -> tuple[Step, int]:
        if self._takes("*"):
            self._expect("]")
            return AnyElement(), 0
        self._in_positions += 1
        ranges: list[tuple[Node, Node | None]] = []
        depth = 0
        while True:
            first = self._position()
            last = self._position() if self._takes("to") else None
            ranges.append((first.node, None if last is None else last.node))
            depth = max(depth, first.depth, 0 if last is None else last.depth)
            if not self._takes(","):
                break
        self._in_positions -= 1
        self._expect("]")
        return Elements(tuple(ranges)), depth

    def _position(self) -> _Operand:
        found = self._deeper(self._expression)
        if found.is_predicate:
            raise self._wrong()
        return found

    def _levels(self) -> Levels:
        if not self._takes("{"):
            return Levels(0, None)
        first = last = self._level()
        if self._takes("to"):
            last = self._level()
        self._expect("}")
        return Levels(first, last)

    def _level(self) -> int | None:
        if self._takes("last"):
            return None
        text = self._token.text
        if self._token.kind != "number" or not text.isdigit():
            raise self._wrong()
        if len(text) > _SHORT_DIGITS or int(text) > _LEVEL_MAX:
            raise NumericValueOutOfRange(f'value "{text}" is out of range for type integer')
        self._advance()
        return int(text)


def _checked(depth: int) -> int:
    if depth > JSON_PATH_DEPTH_MAX:
        raise StatementTooComplex(
            "stack depth limit exceeded",
            detail=f"A path may be nested {JSON_PATH_DEPTH_MAX} levels deep.",
        )
    return depth


def _number(text: str) -> int | Decimal:
    is_short = text.isdigit() and len(text) <= _SHORT_DIGITS
    return int(text) if is_short else numeric_from_text(text)


def _negated(number: Any) -> int | Decimal:
    if type(number) is int:
        return -number
    return number.copy_negate() if number else number  # type: ignore[no-any-return]


def _regex_flags(text: str) -> str:
    for flag in text:
        if flag not in FLAGS:
            raise SqlSyntaxError(
                "invalid input syntax for type jsonpath",
                detail=f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.',
            )
    if "x" in text and "q" not in text:
        raise FeatureNotSupported(
            'XQuery "x" flag (expanded regular expressions) is not implemented'
        )
    return "".join([flag for flag in FLAGS if flag in text])
