"""Regular expressions, compiled: ~ ~* !~ !~*, SIMILAR TO, and what other functions build on.

Python's engine is fast but backtracks, so a hostile pattern could stop the whole server. Each
pattern is judged once: as long as the text is short enough for its risk, Python searches; past that
the automaton does, which is slower for a character but never takes more than one look at it. Only
patterns with back references or looking around have no automaton.

Of several matches at one place PostgreSQL takes the longest, or the shortest if the first
repetition is lazy; Python takes the first that it comes across. Where that can differ, the
automaton finds the place, too, and what its groups are is found by taking it apart.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from qserver.errors import InvalidEscapeSequence, InvalidUseOfEscapeCharacter
from qserver.sql.functions.regex_automaton import ATOMS_MOST, Automaton
from qserver.sql.functions.regex_groups import Dissection
from qserver.sql.functions.regex_source import (
    agrees_on_length,
    check_size,
    needs_backtracking,
    prefers_short,
    python_source,
    risk,
)
from qserver.sql.functions.regex_syntax import Options, bad, parse, parse_options
from qserver.sql.functions.registry import Function
from qserver.values.types import BOOLEAN, TEXT, Kind, SqlType

Span = tuple[int, int]
Match = tuple[Span | None, ...]
"""The place of the whole match, then of each group; None for a group that took no part."""

# The longest text that Python may search, by the power of its length that a search may take.
_LENGTH_MOST: Final = {0: 1 << 30, 1: 4000, 2: 300, 3: 80}
_LENGTH_MOST_OF_MANY: Final = 24
_LENGTH_MOST_NESTED: Final = 12


class Regex:
    """A pattern with its options."""

    def __init__(self, pattern: str, options: Options) -> None:
        parsed = parse(pattern, options)
        check_size(parsed.tree, ATOMS_MOST)
        self.groups = parsed.groups
        self._tree = parsed.tree
        self._flags = re.IGNORECASE if parsed.options.ignore_case else 0
        self._python = _compiled(python_source(parsed.tree), self._flags)
        power = risk(parsed.tree)
        self._length_most = (
            _LENGTH_MOST_NESTED if power is None else _LENGTH_MOST.get(power, _LENGTH_MOST_OF_MANY)
        )
        self._has_automaton = not needs_backtracking(parsed.tree)
        self._short = bool(prefers_short(parsed.tree))
        self._by_length = self._has_automaton and not agrees_on_length(parsed.tree)
        self._automaton: Automaton | None = None
        self._dissection: Dissection | None = None

    def matches(self, text: str) -> bool:
        """Does it match anywhere in the text?"""
        if len(text) <= self._length_most or not self._has_automaton:
            return self._python.search(text) is not None
        return self._own_automaton().matches(text)

    def search(self, text: str, start: int = 0) -> Match | None:
        """The first match at `start` or later."""
        risky = self._has_automaton and len(text) - start > self._length_most
        if not (self._by_length or risky):
            found = self._python.search(text, start)
            return None if found is None else _spans(found)
        place = self._own_automaton().search(text, start, self._short)
        if place is None:
            return None
        if self.groups == 0:
            return (place,)
        return (place, *self._own_dissection().groups_of(text, *place))

    def find_all(self, text: str, start: int = 0) -> Iterator[Match]:
        """One match after the other; after an empty one the search goes on a character later."""
        while start <= len(text):
            match = self.search(text, start)
            if match is None:
                return
            yield match
            assert match[0] is not None, "the whole match has a place"
            first, start = match[0]
            start += first == start

    def _own_dissection(self) -> Dissection:
        if self._dissection is None:
            self._dissection = Dissection(self._tree, self.groups, self._flags)
        return self._dissection

    def _own_automaton(self) -> Automaton:
        if self._automaton is None:
            self._automaton = Automaton(self._tree, self._flags)
        return self._automaton


def _compiled(source: str, flags: int) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sets that a later Python may read otherwise
            return re.compile(source, flags)
    except (re.error, OverflowError, RecursionError):
        # What Python cannot do, such as looking behind at a text of any length.
        raise bad("regular expression is too complex") from None


def _spans(found: re.Match[str]) -> Match:
    places = (found.span(number) for number in range(found.re.groups + 1))
    return tuple(None if place == (-1, -1) else place for place in places)


@lru_cache(maxsize=2048)
def regex(pattern: str, letters: str = "") -> Regex:
    """The pattern with the options that the letters name."""
    return Regex(pattern, parse_options(letters))


# --- SIMILAR TO ----------------------------------------------------------------------------------


def similar_to_escape(pattern: str, escape: str = "\\") -> str:
    """SQL's pattern as a regular expression that must match the whole text.

    `escape`" separates the part that SUBSTRING … SIMILAR returns from what stands around it.
    """
    if len(escape) > 1:
        raise InvalidEscapeSequence(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    result, escaped, in_set, quotes = ["^(?:"], False, False, 0
    for character in pattern:
        if escaped:
            escaped = False
            if character == '"' and not in_set:
                if quotes == 2:
                    raise InvalidUseOfEscapeCharacter(
                        "SQL regular expression may not contain more than two "
                        "escape-double-quote separators"
                    )
                result.append("){1,1}?(" if quotes == 0 else "){1,1}(?:")
                quotes += 1
            else:
                result.append("\\" + character)
        elif character == escape:
            escaped = True
        elif in_set:
            result.append("\\\\" if character == "\\" else character)
            in_set = character != "]"
        else:
            in_set = character == "["
            result.append(_SIMILAR.get(character, character))
    return "".join([*result, ")$"])


_SIMILAR: Final = {
    "%": ".*",
    "_": ".",
    "(": "(?:",
    "\\": "\\\\",
    ".": "\\.",
    "^": "\\^",
    "$": "\\$",
}


# --- what there is -------------------------------------------------------------------------------

Matcher = Callable[[str], bool]


@lru_cache(maxsize=2048)
def regex_matcher(pattern: str) -> Matcher:
    """The test for ~"""
    return regex(pattern).matches


@lru_cache(maxsize=2048)
def iregex_matcher(pattern: str) -> Matcher:
    """The test for ~*"""
    return regex(pattern, "i").matches


def _negated(matcher: Callable[[str], Matcher]) -> Callable[[str], Matcher]:
    def prepare(pattern: str) -> Matcher:
        matches = matcher(pattern)
        return lambda text: not matches(text)

    return prepare


def _operators() -> Iterator[Function]:
    for symbol, matcher, negated in (
        ("~", regex_matcher, False),
        ("!~", regex_matcher, True),
        ("~*", iregex_matcher, False),
        ("!~*", iregex_matcher, True),
    ):
        prepare = _negated(matcher) if negated else matcher
        for each in (TEXT, SqlType(Kind.CHAR)):
            yield Function(
                symbol,
                (each, TEXT),
                BOOLEAN,
                _called(prepare),
                inline=f"({'not ' if negated else ''}{matcher.__name__}({{1}})({{0}}))",
                names={matcher.__name__: matcher},
                symbol=symbol,
                prepare=prepare,
            )


def _called(prepare: Callable[[str], Matcher]) -> Callable[[str, str], bool]:
    return lambda text, pattern: prepare(pattern)(text)


OPERATORS: Final = tuple(_operators())

FUNCTIONS: Final = (
    Function("similar_to_escape", (TEXT,), TEXT, similar_to_escape),
    Function("similar_to_escape", (TEXT, TEXT), TEXT, similar_to_escape),
    Function("similar_escape", (TEXT, TEXT), TEXT, similar_to_escape),
)
