"""Parses PostgreSQL's regular expressions into a tree.

    ab|c*?     Choice((Sequence((One a, One b)), Repeat(One c, 0, None, lazy)))

The dialect is Henry Spencer's "advanced" expressions. They differ from Python's in escapes (\\m \\M
\\y \\A \\Z), in classes ([[:alpha:]]), in where { is an ordinary character, and in errors. `source`
prints the tree for Python, `automaton` runs it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from qserver.errors import (
    InvalidParameterValue,
    InvalidRegularExpression,
    ProgramLimitExceeded,
)
from qserver.functions.regex.classes import (
    ANY_BUT_NEWLINE,
    ANY_CHARACTER,
    ESCAPES,
    character_source,
    named_class,
    range_source,
    set_source,
)
from qserver.limits import REGEX_DEPTH_MAX, REGEX_LENGTH_MAX, REGEX_REPEAT_MAX
from qserver.values.digits import clipped_integer


@dataclass(frozen=True, slots=True)
class One:
    """Exactly one character; `source` is a Python expression for it."""

    source: str


@dataclass(frozen=True, slots=True)
class Place:
    """A condition on the place: "start", "end", "line start", "line end", "word start",
    "word end", "boundary", "no boundary"."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: Node
    least: int
    most: int | None
    greedy: bool | None
    """Whether it prefers to be long. None: for a fixed count {m} the part decides."""


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group, numbered from 1 by its opening parenthesis."""

    number: int
    part: Node


@dataclass(frozen=True, slots=True)
class Look:
    """`opening` is ?= ?! ?<= or ?<!"""

    opening: str
    part: Node


@dataclass(frozen=True, slots=True)
class Back:
    """A back reference to the match of a group, whose inside is `part`."""

    number: int
    part: Node


Node: TypeAlias = One | Place | Sequence | Choice | Repeat | Group | Look | Back


@dataclass(frozen=True, slots=True)
class RegexOptions:
    """Options of a pattern; the letters are PostgreSQL's."""

    ignore_case: bool = False  # i, c
    literal: bool = False  # q
    expanded: bool = False  # x, t
    dot_minds_newline: bool = False  # n, m, p; not s, w
    anchors_mind_newline: bool = False  # n, m, w; not s, p
    everywhere: bool = False  # g


PLAIN: Final = RegexOptions()


@dataclass(frozen=True, slots=True)
class Pattern:
    tree: Node
    options: RegexOptions
    groups: int


def parse_options(letters: str, options: RegexOptions = PLAIN) -> RegexOptions:
    """Parse option letters; the last of conflicting ones wins."""
    values = {name: getattr(options, name) for name in RegexOptions.__slots__}
    for letter in letters:
        changes = _LETTERS.get(letter)
        if changes is None:
            raise InvalidParameterValue(f'invalid regular expression option: "{letter}"')
        values.update(changes)
    return RegexOptions(**values)


_NEWLINES = ("dot_minds_newline", "anchors_mind_newline")
_LETTERS: Final[dict[str, dict[str, bool]]] = {
    "b": {},
    "c": {"ignore_case": False},
    "e": {},
    "g": {"everywhere": True},
    "i": {"ignore_case": True},
    "m": dict.fromkeys(_NEWLINES, True),
    "n": dict.fromkeys(_NEWLINES, True),
    "p": {"dot_minds_newline": True, "anchors_mind_newline": False},
    "q": {"literal": True},
    "s": dict.fromkeys(_NEWLINES, False),
    "t": {"expanded": False},
    "w": {"dot_minds_newline": False, "anchors_mind_newline": True},
    "x": {"expanded": True},
}


def bad(problem: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(f"invalid regular expression: {problem}")


def too_long(length: int) -> ProgramLimitExceeded:
    return ProgramLimitExceeded(
        "the regular expression could take too long on this text",
        detail=f"The text has {length} characters.",
        hint="Use a shorter text or a simpler expression.",
    )


def parse(pattern: str, options: RegexOptions) -> Pattern:
    """Parse a pattern, including the options at its beginning."""
    if len(pattern) > REGEX_LENGTH_MAX:
        raise bad("regular expression is too complex")
    if pattern.startswith("***="):
        pattern, options = pattern[4:], parse_options("q", options)
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    elif pattern.startswith("***"):
        raise bad("invalid regexp (reg version 0.8)")
    if options.literal:
        return Pattern(Sequence(tuple(map(literal, pattern))), options, 0)
    embedded = re.match(r"\(\?([a-z]+)\)", pattern)
    if embedded is not None:
        try:
            options = parse_options(embedded[1], options)
        except InvalidParameterValue:
            raise bad("invalid embedded option") from None
        pattern = pattern[embedded.end() :]
    parser = _Parser(pattern, options)
    tree = parser.choice(0)
    if parser.at < len(pattern):
        raise bad("parentheses () not balanced")
    return Pattern(tree, options, parser.groups)


def literal(character: str) -> One:
    return One(f"\\{character}" if character in r".^$*+?{}[]\|()-&#~ " else character)


class _Parser:
    """Parses in one pass from left to right; `at` is the next character."""

    def __init__(self, pattern: str, options: RegexOptions) -> None:
        self.pattern = pattern
        self.options = options
        self.at = 0
        self.groups = 0
        self.closed: dict[int, Node] = {}
        self.is_looking = False

    def choice(self, depth: int) -> Node:
        if depth > REGEX_DEPTH_MAX:
            raise bad("regular expression is too complex")
        options = [self.sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            options.append(self.sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while True:
            self.skip_expanded()
            character = self.peek()
            if character in ("", "|") or (character == ")" and depth > 0):
                break
            if character == ")":
                raise bad("parentheses () not balanced")
            part = self.atom(depth)
            if part is not None:
                parts.append(self.quantified(part))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1 : self.at]

    def skip_expanded(self) -> None:
        while (
            self.options.expanded and self.peek() and (self.peek().isspace() or self.peek() == "#")
        ):
            if self.peek() == "#":
                end = self.pattern.find("\n", self.at)
                self.at = len(self.pattern) if end < 0 else end
            else:
                self.at += 1

    # --- atoms ---

    def atom(self, depth: int) -> Node | None:
        character = self.take()
        if character == "(":
            return self.parenthesis(depth)
        if character == "[":
            return self.bracket()
        if character == "\\":
            return self.escape()
        if character == ".":
            return One(ANY_BUT_NEWLINE if self.options.dot_minds_newline else ANY_CHARACTER)
        if character in "^$":
            lines = "line " if self.options.anchors_mind_newline else ""
            return Place(lines + ("start" if character == "^" else "end"))
        if character in "*+?" or (character == "{" and self.peek().isdigit()):
            raise bad("quantifier operand invalid")
        return literal(character)

    def parenthesis(self, depth: int) -> Node | None:
        rest = self.pattern[self.at :]
        if rest.startswith("?#"):
            end = rest.find(")")
            if end < 0:
                raise bad("parentheses () not balanced")
            self.at += end + 1
            return None
        opening = next(
            (each for each in ("?:", "?=", "?!", "?<=", "?<!") if rest.startswith(each)), ""
        )
        if rest.startswith("?") and not opening:
            raise bad("quantifier operand invalid")
        self.at += len(opening)
        if not opening and self.is_looking:
            opening = "?:"  # groups are not kept there
        number = 0
        if not opening:
            self.groups += 1
            number = self.groups
        was_looking = self.is_looking
        self.is_looking = was_looking or opening not in ("", "?:")
        inside = self.choice(depth + 1)
        self.is_looking = was_looking
        if self.take() != ")":
            raise bad("parentheses () not balanced")
        if not opening:
            self.closed[number] = inside
            return Group(number, inside)
        return Sequence((inside,)) if opening == "?:" else Look(opening, inside)

    def quantified(self, part: Node) -> Node:
        self.skip_expanded()
        opening = self.at
        bounds = self.quantifier()
        if bounds is None:
            return part
        if isinstance(part, Place | Look):
            raise bad("quantifier operand invalid")
        fixed = self.pattern[self.at - 1] == "}" and "," not in self.pattern[opening : self.at]
        greedy: bool | None = None if fixed else True
        if self.peek() == "?":
            self.at += 1
            greedy = None if fixed else False
        if self.peek() in ("*", "+", "?") and self.peek():
            raise bad("quantifier operand invalid")
        return Repeat(part, *bounds, greedy)

    def quantifier(self) -> tuple[int, int | None] | None:
        character = self.peek()
        if character in _QUANTIFIERS:
            self.at += 1
            return _QUANTIFIERS[character]
        if character != "{" or not self.pattern[self.at + 1 : self.at + 2].isdigit():
            return None
        match = re.compile(r"\{([0-9]+)(,?)([0-9]*)").match(self.pattern, self.at)
        assert match is not None, "a digit follows the brace"
        self.at = match.end()
        closing = self.take()
        if closing != "}":
            raise bad("braces {} not balanced" if not closing else "invalid repetition count(s)")
        least = clipped_integer(match[1])
        most = (clipped_integer(match[3]) if match[3] else None) if match[2] else least
        if least > REGEX_REPEAT_MAX or (most is not None and not least <= most <= REGEX_REPEAT_MAX):
            raise bad("invalid repetition count(s)")
        return least, most

    # --- sets ---

    def bracket(self) -> Node:
        for whole, kind in (("[:<:]]", "word start"), ("[:>:]]", "word end")):
            if self.pattern.startswith(whole, self.at):
                self.at += len(whole)
                return Place(kind)
        negated = self.peek() == "^"
        self.at += negated
        members: list[str] = []
        classes: list[str] = []
        first = True
        while first or self.peek() != "]":
            member = self.member()
            first = False
            if len(member) > 1:
                classes.append(member)
                if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                    raise bad("invalid character range")
                continue
            members.append(self.range_from(member))
        self.at += 1
        source = set_source("".join(members), classes, negated, self.options.dot_minds_newline)
        return One(source)

    def range_from(self, first: str) -> str:
        if self.peek() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return character_source(first)
        self.at += 1
        last = self.member()
        if len(last) > 1 or last < first:
            raise bad("invalid character range")
        return range_source(first, last)

    def member(self) -> str:
        """Return a character, or the source of a class, which is always longer."""
        character = self.take()
        if not character:
            raise bad("brackets [] not balanced")
        if character == "[" and self.peek() in (":", ".", "=") and self.peek():
            return self.named_member(self.take())
        if character != "\\":
            return character
        letter = self.peek()
        if letter in ESCAPES and letter:
            self.at += 1
            return ESCAPES[letter]
        return self.character_escape()

    def named_member(self, sign: str) -> str:
        end = self.pattern.find(f"{sign}]", self.at)
        if end < 0:
            raise bad("brackets [] not balanced")
        name = self.pattern[self.at : end]
        self.at = end + 2
        if sign == ":":
            source = named_class(name)
            if source is None:
                raise bad("invalid character class")
            return source
        if len(name) != 1:
            raise bad("invalid collating element")
        return name

    # --- escapes ---

    def escape(self) -> Node:
        letter = self.peek()
        if not letter:
            raise bad("invalid escape \\ sequence")
        if letter in _PLACES:
            self.at += 1
            return Place(_PLACES[letter])
        if letter in ESCAPES:
            self.at += 1
            return One(ESCAPES[letter])
        match = re.compile(r"[1-9][0-9]?").match(self.pattern, self.at)
        if match is not None and (len(match[0]) == 1 or int(match[0]) <= self.groups):
            self.at = match.end()
            number = int(match[0])
            if number not in self.closed or self.is_looking:
                raise bad("invalid backreference number")
            return Back(number, self.closed[number])
        return literal(self.character_escape())

    def character_escape(self) -> str:
        letter = self.take()
        if letter in _CHARACTERS:
            return _CHARACTERS[letter]
        if letter == "c":
            return chr(ord(self.take() or "\x00") & 0x1F)
        for opening, digits in (
            ("u", "[0-9A-Fa-f]{4}"),
            ("U", "[0-9A-Fa-f]{8}"),
            ("x", "[0-9A-Fa-f]+"),
        ):
            if letter == opening:
                return self.code(digits)
        if letter.isdigit():
            self.at -= 1
            match = re.compile("[0-7]{1,3}").match(self.pattern, self.at)
            if match is None:
                raise bad("invalid escape \\ sequence")
            self.at = match.end()
            return chr(int(match[0], 8))
        if not letter or (letter.isascii() and letter.isalnum()):
            raise bad("invalid escape \\ sequence")
        return letter

    def code(self, digits: str) -> str:
        match = re.compile(digits).match(self.pattern, self.at)
        if match is None or int(match[0], 16) > 0x10FFFF:
            raise bad("invalid escape \\ sequence")
        self.at = match.end()
        return chr(int(match[0], 16))


_QUANTIFIERS: Final[dict[str, tuple[int, int | None]]] = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
}
_PLACES: Final = {
    "A": "start",
    "Z": "end",
    "m": "word start",
    "M": "word end",
    "y": "boundary",
    "Y": "no boundary",
}
_CHARACTERS: Final = {
    "a": "\a",
    "b": "\b",
    "B": "\\",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
