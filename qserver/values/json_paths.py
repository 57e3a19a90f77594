"""SQL/JSON paths as trees, and the text that PostgreSQL prints of them.

    $.a[*] ? (@.b > 1).c     Chain($, [Key a, AnyElement, Filter(Compare >, …), Key c])

A value of type jsonpath is that text; whoever runs a path reads it once and keeps what it compiles.
`a && b && c` is one node, however many parts it has: they would be nested as deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from qserver.values.jsonb import number_text, quoted

Scalar: TypeAlias = bool | int | Decimal | str | None


@dataclass(frozen=True, slots=True)
class Literal:
    value: Scalar


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Place:
    """`$`, `@` or `last`."""

    word: str


@dataclass(frozen=True, slots=True)
class Chain:
    """What a path begins with, and its steps."""

    head: Node
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Sign:
    operator: str
    operand: Node


# --- predicates ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison, or `starts with`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class LikeRegex:
    operand: Node
    pattern: str
    flags: str


@dataclass(frozen=True, slots=True)
class Logic:
    """`&&` or `||` of two or more."""

    operator: str
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Node


@dataclass(frozen=True, slots=True)
class IsUnknown:
    part: Node


@dataclass(frozen=True, slots=True)
class Exists:
    operand: Node


# --- steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key:
    name: str


@dataclass(frozen=True, slots=True)
class AnyKey:
    """`.*`"""


@dataclass(frozen=True, slots=True)
class AnyElement:
    """`[*]`"""


@dataclass(frozen=True, slots=True)
class Elements:
    """`[1, 2 to last]`: each a position, or the first and the last."""

    ranges: tuple[tuple[Node, Node | None], ...]


@dataclass(frozen=True, slots=True)
class Levels:
    """`.**{1 to 3}`; None for `last`."""

    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Method:
    name: str


@dataclass(frozen=True, slots=True)
class Datetime:
    template: str | None


@dataclass(frozen=True, slots=True)
class Filter:
    predicate: Node


Step: TypeAlias = Key | AnyKey | AnyElement | Elements | Levels | Method | Datetime | Filter
Predicate: TypeAlias = Compare | LikeRegex | Logic | Not | IsUnknown | Exists
Node: TypeAlias = Literal | Variable | Place | Chain | Arithmetic | Sign | Predicate


@dataclass(frozen=True, slots=True)
class JsonPath:
    lax: bool
    root: Node

    def __str__(self) -> str:
        return f"{'' if self.lax else 'strict '}{_text(self.root, True)}"


# --- the text ------------------------------------------------------------------------------------

FLAGS: Final = "ismxq"
"""The flags of like_regex, in the order in which they are printed."""

_BINDING: Final = {
    "||": 0,
    "&&": 1,
    "+": 3,
    "-": 3,
    "*": 4,
    "/": 4,
    "%": 4,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">=", "starts with"), 2),
}
_BINDING_OF_SIGNS: Final = 5
_BINDING_OF_OTHERS: Final = 6


def _binding(node: Node) -> int:
    match node:
        case Arithmetic() | Compare() | Logic():
            return _BINDING[node.operator]
        case Sign():
            return _BINDING_OF_SIGNS
        case Chain(head=head):
            return _binding(head)
    return _BINDING_OF_OTHERS


def _text(node: Node, in_brackets: bool) -> str:
    """Print a node; `in_brackets`: an operator needs them here."""
    match node:
        case Literal(value):
            return _scalar_text(value)
        case Variable(name):
            return f"${quoted(name)}"
        case Place(word):
            return word
        case Chain(head, steps):
            return _head_text(head) + "".join(map(_step_text, steps))
        case Not(part):
            return f"!({_text(part, False)})"
        case IsUnknown(part):
            return f"({_text(part, False)}) is unknown"
        case Exists(operand):
            return f"exists ({_text(operand, False)})"
    text = _operator_text(node)
    return f"({text})" if in_brackets else text


def _operator_text(node: Arithmetic | Sign | Compare | LikeRegex | Logic) -> str:
    match node:
        case Logic(operator, (first, *others)):
            texts = (f" {operator} {_operand(other, node)}" for other in others)
            return f"{'(' * (len(others) - 1)}{_operand(first, node)}{')'.join(texts)}"
        case LikeRegex(operand, pattern, flags):
            flag = f' flag "{flags}"' if flags else ""
            return f"{_operand(operand, node)} like_regex {quoted(pattern)}{flag}"
        case Sign(operator, operand):
            return f"{operator}{_operand(operand, node)}"
        case Arithmetic(operator, left, right) | Compare(operator, left, right):
            return f"{_operand(left, node)} {operator} {_operand(right, node)}"
    raise AssertionError(f"no operator: {node}")


def _operand(node: Node, parent: Node) -> str:
    return _text(node, _binding(node) <= _binding(parent))


def _head_text(head: Node) -> str:
    """Print what steps follow, in parentheses where it would not be the head as it stands."""
    is_number = isinstance(head, Literal) and type(head.value) in (int, Decimal)
    if is_number or isinstance(head, Not | IsUnknown | Exists):
        return f"({_text(head, True)})"
    return _text(head, True)


def _scalar_text(value: Scalar) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return quoted(value) if isinstance(value, str) else number_text(value)


def _step_text(step: Step) -> str:
    match step:
        case Key(name):
            return f".{quoted(name)}"
        case AnyKey():
            return ".*"
        case AnyElement():
            return "[*]"
        case Elements(ranges):
            return f"[{','.join(_range_text(first, last) for first, last in ranges)}]"
        case Levels(first, last):
            return f".**{_levels_text(first, last)}"
        case Method(name):
            return f".{name}()"
        case Datetime(template):
            return f".datetime({'' if template is None else quoted(template)})"
        case Filter(predicate):
            return f"?({_text(predicate, False)})"


def _range_text(first: Node, last: Node | None) -> str:
    text = _text(first, False)
    return text if last is None else f"{text} to {_text(last, False)}"


def _levels_text(first: int | None, last: int | None) -> str:
    if (first, last) == (0, None):
        return ""
    low, high = ("last" if each is None else each for each in (first, last))
    return f"{{{low}}}" if first == last else f"{{{low} to {high}}}"
