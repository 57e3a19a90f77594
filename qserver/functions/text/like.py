"""LIKE and ILIKE: compiles a pattern once, to the cheapest test that decides it.

    abc       ==                      ab%cd%ef     startswith ab, endswith ef, and between them
    abc%      startswith                           the leftmost cd
    %abc      endswith                a_c%         the same, with `_` pieces found by a tiny
    %abc%     in                                   regular expression without repetition

Pieces between % are found from left to right, each at its leftmost place, without backtracking; so
no pattern takes more time than its length times that of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from qserver.errors import InvalidEscapeSequence
from qserver.functions.costs import linear, lower_pattern_cost, pattern_cost
from qserver.functions.registry import Function
from qserver.functions.text.letters import lower
from qserver.values.types import BOOLEAN, BYTEA, TEXT, Kind, SqlType

Matcher = Callable[[str], bool]
MatcherOfAll = Callable[[list[str]], list[bool]]
Finder = Callable[[str, int, int], int]
"""The first place of a piece between two places of a text; -1 if it is not there."""

_KEPT_LENGTH_MAX: Final = 1024
"""Longer patterns are not cached."""

_ANY: Final = object()
"""Stands for `_` in a piece."""

Piece = list[object]  # single characters and _ANY


def like_matcher(pattern: str, escape: str = "\\") -> Matcher:
    """Return the test for a pattern, cached if it is short; an empty `escape` disables escapes."""
    return (_kept_matcher if len(pattern) <= _KEPT_LENGTH_MAX else _matcher)(pattern, escape)


def _matcher(pattern: str, escape: str) -> Matcher:
    if _ends_with_escape(pattern, escape):
        return _unfinished(pattern[:-1], escape)
    pieces = _pieces(pattern, escape)
    literals = [_literal(piece) for piece in pieces]
    first, last = literals[0], literals[-1]
    if len(pieces) == 1:
        return first.__eq__ if first is not None else _whole(pieces[0])
    if all(literal is not None for literal in literals):
        if len(pieces) == 2 and not last:
            return _starting(first or "")
        if len(pieces) == 2 and not first:
            return _ending(last or "")
        if len(pieces) == 3 and not first and not last:
            return _containing(literals[1] or "")
    return _in_order(pieces)


_kept_matcher = lru_cache(maxsize=4096)(_matcher)


def ilike_matcher(pattern: str, escape: str = "\\") -> Matcher:
    matches = like_matcher(lower(pattern), escape)
    return lambda text: matches(lower(text))


def like_matcher_of_all(pattern: str) -> MatcherOfAll:
    """Return the test of many texts: a call for each would take longer than to look into it."""
    return (_kept_matcher_of_all if len(pattern) <= _KEPT_LENGTH_MAX else _matcher_of_all)(pattern)


def _matcher_of_all(pattern: str) -> MatcherOfAll:
    matches = like_matcher(pattern)
    pieces = [] if _ends_with_escape(pattern, "\\") else _pieces(pattern, "\\")
    match [_literal(piece) for piece in pieces]:
        case [str(start), ""]:
            return lambda texts: [text.startswith(start) for text in texts]
        case ["", str(end)]:
            return lambda texts: [text.endswith(end) for text in texts]
        case ["", str(one), ""]:
            return lambda texts: [one in text for text in texts]
        case ["", str(one), str(other), ""]:
            skipped = len(one)
            return lambda texts: [
                one in text and text.find(other, text.find(one) + skipped) >= 0 for text in texts
            ]
    return lambda texts: list(map(matches, texts))


_kept_matcher_of_all = lru_cache(maxsize=4096)(_matcher_of_all)


def ilike_matcher_of_all(pattern: str) -> MatcherOfAll:
    match_all = like_matcher_of_all(lower(pattern))
    return lambda texts: match_all(list(map(lower, texts)))


def like_escape(pattern: str, escape: str) -> str:
    """Rewrite a pattern to \\ as its escape character."""
    if len(escape) > 1:
        raise InvalidEscapeSequence(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    if not escape:
        return pattern.replace("\\", "\\\\")
    if escape == "\\":
        return pattern
    result: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            result += ("\\", next(characters, ""))
        else:
            result.append("\\\\" if character == "\\" else character)
    return "".join(result)


def like(text: str, pattern: str) -> bool:
    return like_matcher(pattern)(text)


def not_like(text: str, pattern: str) -> bool:
    return not like_matcher(pattern)(text)


def ilike(text: str, pattern: str) -> bool:
    return ilike_matcher(pattern)(text)


def not_ilike(text: str, pattern: str) -> bool:
    return not ilike_matcher(pattern)(text)


# --- compilation ---------------------------------------------------------------------------------


def _pieces(pattern: str, escape: str) -> list[Piece]:
    pieces: list[Piece] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            pieces[-1].append(next(characters))
        elif character == "%":
            if len(pieces) == 1 or pieces[-1]:  # %% equals %
                pieces.append([])
        else:
            pieces[-1].append(_ANY if character == "_" else character)
    return pieces


def _ends_with_escape(pattern: str, escape: str) -> bool:
    if not escape or not pattern.endswith(escape):
        return False
    count = len(pattern) - len(pattern.rstrip(escape))
    return count % 2 == 1


def _unfinished(begun: str, escape: str) -> Matcher:
    """Return the test for a pattern that ends in an escape: an error if a text matches that far."""
    reaches_the_end = like_matcher(begun + "_%", escape)

    def matches(text: str) -> bool:
        if reaches_the_end(text):
            raise InvalidEscapeSequence("LIKE pattern must not end with escape character")
        return False

    return matches


def _literal(piece: Piece) -> str | None:
    """Return the text of a piece; None if it contains `_`."""
    return None if _ANY in piece else "".join(map(str, piece))


def _starting(prefix: str) -> Matcher:
    return lambda text: text.startswith(prefix)


def _ending(suffix: str) -> Matcher:
    return lambda text: text.endswith(suffix)


def _containing(piece: str) -> Matcher:
    return lambda text: piece in text


def _whole(piece: Piece) -> Matcher:
    matches = _compiled(piece).fullmatch
    return lambda text: matches(text) is not None


def _literals_in_order(first: str, between: list[str], last: str) -> Matcher:
    """Return the test for texts between `%`: without regular expressions it is twice as fast."""
    length_min = len(first) + sum(map(len, between)) + len(last)
    begin = len(first)
    if not (first or last) and len(between) == 2:
        one, other = between
        skipped = len(one)

        def has_both(text: str) -> bool:
            at = text.find(one)
            return at >= 0 and text.find(other, at + skipped) >= 0

        return has_both

    def matches(text: str) -> bool:
        if len(text) < length_min or not (text.startswith(first) and text.endswith(last)):
            return False
        at, end = begin, len(text) - len(last)
        for piece in between:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True

    return matches


def _in_order(pieces: list[Piece]) -> Matcher:
    literals = [text for text in map(_literal, pieces) if text is not None]
    if len(literals) == len(pieces):
        return _literals_in_order(literals[0], literals[1:-1], literals[-1])
    first, last = _compiled(pieces[0]), _compiled(pieces[-1])
    between = [(_finder(piece), len(piece)) for piece in pieces[1:-1]]
    first_length, last_length = len(pieces[0]), len(pieces[-1])
    length_min = sum(map(len, pieces))

    def matches(text: str) -> bool:
        if len(text) < length_min or last.match(text, len(text) - last_length) is None:
            return False
        if first.match(text) is None:
            return False
        at, end = first_length, len(text) - last_length
        for find, length in between:
            at = find(text, at, end)
            if at < 0:
                return False
            at += length
        return at <= end

    return matches


def _finder(piece: Piece) -> Finder:
    """Return the search for a piece: a regular expression takes a hundred times as long to make as
    a text to find."""
    literal = _literal(piece)
    if literal is not None:
        return lambda text, start, end: text.find(literal, start, end)
    search = _compiled(piece).search

    def find(text: str, start: int, end: int) -> int:
        found = search(text, start, end)
        return -1 if found is None else found.start()

    return find


def _compiled(piece: Piece) -> re.Pattern[str]:
    source = "".join("." if each is _ANY else re.escape(str(each)) for each in piece)
    return re.compile(source, re.DOTALL)


# --- the tables ----------------------------------------------------------------------------------


def negation_of(matcher: Callable[[str], Matcher]) -> Callable[[str], Matcher]:
    """Return the preparation of a pattern for the negated operator."""

    def prepare(pattern: str) -> Matcher:
        matches = matcher(pattern)
        return lambda text: not matches(text)

    return prepare


def negation_of_all(matcher: Callable[[str], MatcherOfAll]) -> Callable[[str], MatcherOfAll]:
    def prepare(pattern: str) -> MatcherOfAll:
        match_all = matcher(pattern)
        return lambda texts: [not each for each in match_all(texts)]

    return prepare


def _operators() -> Iterator[Function]:
    for symbol, call, matcher, of_all, negated in (
        ("~~", like, like_matcher, like_matcher_of_all, False),
        ("!~~", not_like, like_matcher, like_matcher_of_all, True),
        ("~~*", ilike, ilike_matcher, ilike_matcher_of_all, False),
        ("!~~*", not_ilike, ilike_matcher, ilike_matcher_of_all, True),
    ):
        for each in (TEXT, SqlType(Kind.CHAR)):
            yield Function(
                symbol,
                (each, TEXT),
                BOOLEAN,
                call,
                inline=f"({'not ' if negated else ''}{matcher.__name__}({{1}})({{0}}))",
                names={matcher.__name__: matcher},
                symbol=symbol,
                cost=lower_pattern_cost if matcher is ilike_matcher else pattern_cost,
                sees_blanks=True,
                prepare=negation_of(matcher) if negated else matcher,
                prepare_all=negation_of_all(of_all) if negated else of_all,
            )


def _as_letters(value: bytes) -> str:
    """Map bytes to the characters of the same numbers, so that they can be a pattern."""
    return value.decode("latin-1")


def _bytes_cost(value: bytes, pattern: bytes) -> int:
    return pattern_cost(_as_letters(value), _as_letters(pattern))


def like_bytes(value: bytes, pattern: bytes) -> bool:
    return like_matcher(_as_letters(pattern))(_as_letters(value))


def not_like_bytes(value: bytes, pattern: bytes) -> bool:
    return not like_bytes(value, pattern)


def like_escape_bytes(pattern: bytes, escape: bytes) -> bytes:
    return like_escape(_as_letters(pattern), _as_letters(escape)).encode("latin-1")


OPERATORS: Final = (
    *_operators(),
    Function("~~", (BYTEA, BYTEA), BOOLEAN, like_bytes, symbol="~~", cost=_bytes_cost),
    Function("!~~", (BYTEA, BYTEA), BOOLEAN, not_like_bytes, symbol="!~~", cost=_bytes_cost),
)

FUNCTIONS: Final = (
    Function("like_escape", (TEXT, TEXT), TEXT, like_escape, cost=linear(200)),
    Function("like_escape", (BYTEA, BYTEA), BYTEA, like_escape_bytes, cost=linear(200)),
    Function("like", (TEXT, TEXT), BOOLEAN, like, cost=pattern_cost),
    Function("notlike", (TEXT, TEXT), BOOLEAN, not_like, cost=pattern_cost),
)
