"""regexp_replace, regexp_match, regexp_split_to_array … and SUBSTRING by pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from qserver.errors import InvalidParameterValue
from qserver.functions.regex.linear import Match, Span
from qserver.functions.regex.regexes import Regex, regex, similar_to_escape
from qserver.functions.regex.syntax import parse_options
from qserver.functions.regex.time_limit import few
from qserver.functions.registry import Function, TableFunction
from qserver.functions.text.strings import checked_length
from qserver.values.types import BOOLEAN, INTEGER, TEXT, SqlType, array_of

TEXTS: Final = array_of(TEXT)

_REPLACEMENT: Final = re.compile(r"\\([1-9&\\])")


def _without_everywhere(function: str, pattern: str, letters: str) -> Regex:
    if "g" in letters and parse_options(letters).everywhere:
        hint = "Use the regexp_matches function instead." if function == "regexp_match" else None
        raise InvalidParameterValue(f'{function}() does not support the "global" option', hint=hint)
    return regex(pattern, letters)


def _piece(text: str, match: Match, group: int = 0) -> str | None:
    place = match[group]
    return None if place is None else text[place[0] : place[1]]


def _captured(text: str, match: Match) -> tuple[str | None, ...]:
    """Return the groups, or the whole match if the pattern has none."""
    if len(match) == 1:
        return (_piece(text, match),)
    return tuple([_piece(text, match, group) for group in range(1, len(match))])


# --- one match -----------------------------------------------------------------------------------


def substring(text: str, pattern: str) -> str | None:
    """Return the match of the first group, or of the whole pattern."""
    match = regex(pattern).search(text)
    return None if match is None else _captured(text, match)[0]


def substring_similar(text: str, pattern: str, escape: str) -> str | None:
    return substring(text, similar_to_escape(pattern, escape))


def regexp_like(text: str, pattern: str, letters: str = "") -> bool:
    return _without_everywhere("regexp_like", pattern, letters).matches(text)


def regexp_match(text: str, pattern: str, letters: str = "") -> tuple[str | None, ...] | None:
    match = _without_everywhere("regexp_match", pattern, letters).search(text)
    return None if match is None else _captured(text, match)


def regexp_count(text: str, pattern: str, start: int = 1, letters: str = "") -> int:
    _check("start", start, 1)
    found = _without_everywhere("regexp_count", pattern, letters)
    return sum(1 for _ in few(found.find_all(text, start - 1)))


def regexp_instr(
    text: str,
    pattern: str,
    start: int = 1,
    number: int = 1,
    after: int = 0,
    letters: str = "",
    group: int = 0,
) -> int:
    """Return the start of the number-th match, or with `after` the place behind it; 0 for none."""
    _check("start", start, 1)
    _check("n", number, 1)
    if after not in (0, 1):
        raise InvalidParameterValue(f'invalid value for parameter "endoption": {after}')
    _check("subexpr", group, 0)
    expression = _without_everywhere("regexp_instr", pattern, letters)
    match = _numbered(expression, text, start, number)
    place = None if match is None else _group(match, group)
    return 0 if place is None else place[after] + 1


def regexp_substr(
    text: str, pattern: str, start: int = 1, number: int = 1, letters: str = "", group: int = 0
) -> str | None:
    _check("start", start, 1)
    _check("n", number, 1)
    _check("subexpr", group, 0)
    expression = _without_everywhere("regexp_substr", pattern, letters)
    match = _numbered(expression, text, start, number)
    place = None if match is None else _group(match, group)
    return None if place is None else text[place[0] : place[1]]


def _numbered(expression: Regex, text: str, start: int, number: int) -> Match | None:
    return next(islice(few(expression.find_all(text, start - 1)), number - 1, None), None)


def _group(match: Match, number: int) -> Span | None:
    """Return the place of a group; a pattern without groups is its own first one."""
    if len(match) == 1 and number == 1:
        return match[0]
    return match[number] if number < len(match) else None


def _check(name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidParameterValue(f'invalid value for parameter "{name}": {value}')


# --- replacement ---------------------------------------------------------------------------------


def regexp_replace(text: str, pattern: str, replacement: str, letters: str = "") -> str:
    number = 0 if parse_options(letters).everywhere else 1
    return _replaced(text, regex(pattern, letters), replacement, 0, number)


def regexp_replace_from(
    text: str, pattern: str, replacement: str, start: int, number: int = 1, letters: str = ""
) -> str:
    """Replace the number-th match from `start` on; all for number 0."""
    _check("start", start, 1)
    _check("n", number, 0)
    return _replaced(text, regex(pattern, letters), replacement, start - 1, number)


def _replaced(text: str, expression: Regex, replacement: str, start: int, number: int) -> str:
    parts: list[str] = []
    copied = length = 0
    for count, match in enumerate(few(expression.find_all(text, start)), 1):
        if number not in (0, count):
            continue
        assert match[0] is not None, "the whole match has a place"
        parts += (text[copied : match[0][0]], _filled(replacement, text, match))
        copied = match[0][1]
        length += len(parts[-1]) + len(parts[-2])
        checked_length(length)
        if number:
            break
    return "".join([*parts, text[copied:]]) if parts else text


def _filled(replacement: str, text: str, match: Match) -> str:
    """Fill a replacement: \\1 is the first group, \\& the whole match, \\\\ a backslash."""
    if "\\" not in replacement:
        return replacement

    def fill(found: re.Match[str]) -> str:
        what = found[1]
        if what == "\\":
            return "\\"
        group = 0 if what == "&" else int(what)
        return (_piece(text, match, group) if group < len(match) else None) or ""

    return _REPLACEMENT.sub(fill, replacement)


# --- splitting -----------------------------------------------------------------------------------


def regexp_split(text: str, pattern: str, letters: str = "") -> tuple[str, ...]:
    """Return the parts between matches; empty matches at an edge or after another do not count."""
    expression = _without_everywhere("regexp_split_to_array", pattern, letters)
    return tuple(_parts(text, few(expression.find_all(text))))


def _parts(text: str, matches: Iterator[Match]) -> Iterator[str]:
    copied = previous_end = 0
    for match in matches:
        assert match[0] is not None, "the whole match has a place"
        first, end = match[0]
        if first < len(text) and end > previous_end:
            yield text[copied:first]
            copied = end
        previous_end = end
    yield text[copied:]


def split_to_rows(text: str, pattern: str, letters: str = "") -> Iterator[tuple[str]]:
    expression = _without_everywhere("regexp_split_to_table", pattern, letters)
    return zip(_parts(text, expression.find_all(text)))


def match_rows(
    text: str, pattern: str, letters: str = ""
) -> Iterator[tuple[tuple[str | None, ...]]]:
    """Return a row with the groups of each match; without the option g, of the first only."""
    matches = regex(pattern, letters).find_all(text)
    if not parse_options(letters).everywhere:
        matches = islice(matches, 1)
    return ((_captured(text, match),) for match in matches)


# --- the tables ----------------------------------------------------------------------------------


def _growing(
    name: str, parameters: tuple[SqlType, ...], least: int, returns: SqlType, call: Any, null: bool
) -> Iterator[Function]:
    """Yield one signature for each number of arguments from `least` on."""
    for count in range(least, len(parameters) + 1):
        yield Function(name, parameters[:count], returns, call, gives_null=null)


_PLACE: Final = (TEXT, TEXT, INTEGER, INTEGER)

FUNCTIONS: Final = (
    Function("substring", (TEXT, TEXT), TEXT, substring, gives_null=True),
    Function("substring", (TEXT, TEXT, TEXT), TEXT, substring_similar, gives_null=True),
    *_growing("regexp_like", (TEXT, TEXT, TEXT), 2, BOOLEAN, regexp_like, False),
    *_growing("regexp_match", (TEXT, TEXT, TEXT), 2, TEXTS, regexp_match, True),
    *_growing("regexp_count", (TEXT, TEXT, INTEGER, TEXT), 2, INTEGER, regexp_count, False),
    *_growing("regexp_instr", (*_PLACE, INTEGER, TEXT, INTEGER), 2, INTEGER, regexp_instr, False),
    *_growing("regexp_substr", (*_PLACE, TEXT, INTEGER), 2, TEXT, regexp_substr, True),
    *_growing("regexp_replace", (TEXT, TEXT, TEXT, TEXT), 3, TEXT, regexp_replace, False),
    *_growing(
        "regexp_replace",
        (TEXT, TEXT, TEXT, INTEGER, INTEGER, TEXT),
        4,
        TEXT,
        regexp_replace_from,
        False,
    ),
    *_growing("regexp_split_to_array", (TEXT, TEXT, TEXT), 2, TEXTS, regexp_split, False),
)

TABLE_FUNCTIONS: Final = tuple(
    TableFunction(name, (TEXT,) * count, ((name, returns),), call)
    for name, returns, call in (
        ("regexp_matches", TEXTS, match_rows),
        ("regexp_split_to_table", TEXT, split_to_rows),
    )
    for count in (2, 3)
)
