"""Compiled regular expressions: ~ ~* !~ !~*, SIMILAR TO, and the base of other functions.

    short text, little risk      Python's engine: the fastest to start, but it backtracks
    any other text               RE2, see `linear`: an automaton in C, linear time
    back references, look-around the engine of the package `regex`, which has a timeout

Of several matches at one place PostgreSQL takes the longest, or the shortest if the first
repetition is lazy; Python takes the first that it finds. Where that can differ, RE2 finds the
place, and `groups` finds the groups. The few patterns that RE2 cannot run use our own automaton,
which counts its steps.

No call takes more than a fraction of a second: beyond that it is refused with 54000, because no
other task runs meanwhile.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache, partial
from typing import Any, Final

import regex as stoppable

from qserver.errors import InvalidEscapeSequence, InvalidUseOfEscapeCharacter
from qserver.functions.regex.automaton import Automaton
from qserver.functions.regex.groups import Attempt, Dissection
from qserver.functions.regex.linear import STEPS_MOST, Linear, Match, NotLinear, atom_count
from qserver.functions.regex.source import (
    agrees_on_length,
    check_size,
    holds,
    prefers_short,
    python_source,
    ways,
)
from qserver.functions.regex.syntax import (
    Back,
    Look,
    Node,
    RegexOptions,
    bad,
    parse,
    parse_options,
    too_long,
)
from qserver.functions.regex.time_limit import Stopwatch
from qserver.functions.registry import Function
from qserver.functions.text.like import negation_of
from qserver.limits import REGEX_ATOMS_MAX, REGEX_SOURCE_LENGTH_MAX
from qserver.values.types import BOOLEAN, TEXT, Kind, SqlType

PATTERNS_KEPT: Final = 256
"""The number of cached patterns; each may hold some megabytes of states."""

CALL_SECONDS_MOST: Final = 0.1
"""The time limit of one search with a backtracking engine."""

_LENGTHS: Final = (1000, 100, 32, 12, 6, 3)
"""The longest text for Python's engine is one of these, or none."""

_TRIES_MOST: Final = 1_200_000
"""The limit of start places times ways to continue from each: some milliseconds."""


class Regex:
    def __init__(self, pattern: str, options: RegexOptions) -> None:
        parsed = parse(pattern, options)
        check_size(parsed.tree, REGEX_ATOMS_MAX)
        self.groups = parsed.groups
        self._tree = parsed.tree
        self._flags = re.IGNORECASE if parsed.options.ignore_case else 0
        source = python_source(parsed.tree)
        if len(source) > REGEX_SOURCE_LENGTH_MAX:
            raise bad("regular expression is too complex")
        self._python = _compiled(re.compile, source, self._flags)
        self._length_most = _length_most(parsed.tree)
        self._stoppable: Any = None
        looks, refers = holds(parsed.tree, Look), holds(parsed.tree, Back)
        self._divides = refers and not looks
        """Whether a match that backtracking finds must be divided to know what it is."""
        if looks or refers:
            self._stoppable = _compiled(stoppable.compile, source, self._flags)
        self._short = bool(prefers_short(parsed.tree))
        self._by_length = not agrees_on_length(parsed.tree)
        self._linear: Linear | None = None
        self._automaton: Automaton | None = None

    def matches(self, text: str) -> bool:
        if self._stoppable is not None:
            return self._stopped_search(text, 0) is not None
        if len(text) <= self._length_most:
            return self._python.search(text) is not None
        try:
            linear = self._own_linear()
            return linear.matches(linear.coded(text))
        except NotLinear:
            return self._own_automaton().matches(text)

    def search(self, text: str, start: int = 0) -> Match | None:
        return next(self.find_all(text, start), None)

    def find_all(self, text: str, start: int = 0) -> Iterator[Match]:
        """Yield match after match; after an empty one the search continues a character later."""
        if start > len(text):
            return iter(())
        if self._stoppable is not None:
            search = partial(self._stopped_search, text)
        elif not self._by_length and len(text) <= self._length_most:
            return one_after_the_other(partial(self._python_search, text), text, start)
        else:
            try:
                linear = self._own_linear()
                coded = linear.coded(text)
                if not (self._by_length and (self._short or self.groups)):
                    found = linear.find_all(coded, start, longest=self._by_length)
                    return Stopwatch(found, len(text))
                search = partial(self._search_by_length, linear, coded, text)
            except NotLinear:
                search = partial(self._search_by_steps, text)
        return Stopwatch(one_after_the_other(search, text, start), len(text))

    def _python_search(self, text: str, start: int) -> Match | None:
        return _spans(self._python.search(text, start))

    def _search_by_length(
        self, linear: Linear, coded: bytes, text: str, start: int
    ) -> Match | None:
        place = linear.search(coded, start)
        if place is None:
            return None
        first, end = place
        if self._short:
            end = linear.shortest_end(coded, first, end)
        return self._with_groups(text, first, end)

    def _search_by_steps(self, text: str, start: int) -> Match | None:
        place = self._own_automaton().search(text, start, self._short)
        return None if place is None else self._with_groups(text, *place)

    def _with_groups(self, text: str, first: int, end: int) -> Match:
        if self.groups == 0:
            return ((first, end),)
        return ((first, end), *self._dissection.groups_of(text, first, end))

    def _stopped_search(self, text: str, start: int) -> Match | None:
        if not self._divides:
            return self._backtracking_search(text, start)
        tries = Stopwatch(self._divided_matches(text, start), len(text))
        return next((match for match in tries if match is not None), None)

    def _divided_matches(self, text: str, start: int) -> Iterator[Match | None]:
        """Yield, for each place where backtracking finds a match, what PostgreSQL finds there.

        It divides a match in fewer ways, and so it may find nothing."""
        attempt = Attempt(text, self.groups)
        at = start
        while (found := self._backtracking_search(text, at)) is not None:
            assert found[0] is not None, "the whole match has a place"
            first = found[0][0]
            if first == len(text) and not self._dissection.tries_the_end(text, start):
                return
            yield self._dissection.match_at(attempt, first)
            if first == len(text):
                return
            at = first + 1

    def _backtracking_search(self, text: str, start: int) -> Match | None:
        try:
            return _spans(self._stoppable.search(text, start, timeout=CALL_SECONDS_MOST))
        except TimeoutError:
            raise too_long(len(text)) from None

    @cached_property
    def _dissection(self) -> Dissection:
        return Dissection(self._tree, self.groups, self._flags)

    def _own_linear(self) -> Linear:
        if self._linear is None:
            self._linear = Linear(self._tree, self._flags)
        return self._linear

    def _own_automaton(self) -> Automaton:
        if self._automaton is None:
            self._automaton = Automaton(self._tree, self._flags)
        return self._automaton


def one_after_the_other(
    search: Callable[[int], Match | None], text: str, start: int
) -> Iterator[Match]:
    while start <= len(text):
        match = search(start)
        if match is None:
            return
        yield match
        assert match[0] is not None, "the whole match has a place"
        first, start = match[0]
        start += first == start


def _length_most(tree: Node) -> int:
    """Return the length of the longest text that Python's engine may search."""
    any_length = ways(tree, STEPS_MOST)
    if any_length == ways(tree, _LENGTHS[0]):
        # Without long repetitions Python is the fastest from match to match. From each place it
        # takes at most as many steps as there are atoms, in each of its ways.
        return STEPS_MOST // (max(atom_count(tree), 1) * any_length)
    for length in _LENGTHS:
        if length * ways(tree, length) <= _TRIES_MOST:
            return length
    return 0


def _compiled(compile: Callable[[str, int], Any], source: str, flags: int) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sets that a later Python may read differently
            return compile(source, flags)
    except (re.error, stoppable.error, OverflowError, RecursionError):
        # Python cannot compile it, for example a look-behind of variable length.
        raise bad("regular expression is too complex") from None


def _spans(found: Any) -> Match | None:
    if found is None:
        return None
    places = (found.span(number) for number in range(found.re.groups + 1))
    return tuple([None if place == (-1, -1) else place for place in places])


@lru_cache(maxsize=PATTERNS_KEPT)
def regex(pattern: str, letters: str = "") -> Regex:
    return Regex(pattern, parse_options(letters))


# --- SIMILAR TO ----------------------------------------------------------------------------------


def similar_to_escape(pattern: str, escape: str = "\\") -> str:
    """Convert SQL's pattern to a regular expression that must match the whole text.

    `escape`" separates the part that SUBSTRING … SIMILAR returns from the rest.
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


# --- the tables ----------------------------------------------------------------------------------

Matcher = Callable[[str], bool]


@lru_cache(maxsize=PATTERNS_KEPT)
def regex_matcher(pattern: str) -> Matcher:
    return regex(pattern).matches


@lru_cache(maxsize=PATTERNS_KEPT)
def iregex_matcher(pattern: str) -> Matcher:
    return regex(pattern, "i").matches


def _operators() -> Iterator[Function]:
    for symbol, matcher, negated in (
        ("~", regex_matcher, False),
        ("!~", regex_matcher, True),
        ("~*", iregex_matcher, False),
        ("!~*", iregex_matcher, True),
    ):
        prepare = negation_of(matcher) if negated else matcher
        for each in (TEXT, SqlType(Kind.CHAR)):
            yield Function(
                symbol,
                (each, TEXT),
                BOOLEAN,
                _called(prepare),
                inline=f"({'not ' if negated else ''}{matcher.__name__}({{1}})({{0}}))",
                names={matcher.__name__: matcher},
                symbol=symbol,
                sees_blanks=True,
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
