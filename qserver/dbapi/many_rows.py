"""`executemany`: one statement with many parameters, as few requests; no I/O.

    INSERT INTO t (a, b) VALUES (?, ?)  ──►  INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4), …
    anything else                       ──►  the statement, many times in a request

Rows are put together only where that means the same as one after the other: VALUES with one row of
parameters, literals and calls, then nothing, or ON CONFLICT … DO NOTHING. A subquery would see the
rows before it, and DO UPDATE may change a row twice: those stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from qserver.client import Statement
from qserver.client.requests import Parameters, bindable, encoded
from qserver.dbapi.exceptions import ProgrammingError, errors_of_pep_249
from qserver.lexing.lexer import Token, check_text, tokenize

ROWS_MAX: Final = 1000
"""Rows of a statement. Full statements have the same text, so the server plans it once."""
PARAMETERS_MAX: Final = 32_766
STATEMENTS_MAX: Final = 1000
REQUEST_BYTES_MAX: Final = 2 * 1024 * 1024
"""What a request holds, unless one row is longer. The server takes 8 MiB."""

_QUERIES: Final = frozenset({"select", "with", "values", "table"})
_DO_NOTHING: Final = ("do", "nothing")


class ValuesRow(NamedTuple):
    """An INSERT around the one row of its VALUES: between its parts are the parameters."""

    before: str
    parts: tuple[str, ...]
    after: str
    keys: tuple[int | str, ...]
    """Of each parameter, in order: its place among those that are given, or its name."""
    given: int | None
    """How many a row gives; None: a mapping."""


def requests_of(sql: str, rows: Iterable[Parameters]) -> Iterator[list[Statement]]:
    """The statements of each request."""
    with errors_of_pep_249():
        row = values_row_of(sql)
        if row is None:
            yield from _filled((sql, encoded(bindable(each))) for each in rows)
        else:
            yield from _filled(_statements(row, rows))


def values_row_of(sql: str) -> ValuesRow | None:
    """The INSERT with the row of its VALUES; None: its rows are not to be put together."""
    check_text(sql)
    tokens = list(tokenize(sql))
    words = [_word(token) for token in tokens]
    if not words or words[0] != "insert" or "values" not in words:
        return None
    start = words.index("values") + 1
    end = _group_end(tokens, start)
    if end is None or _QUERIES & {*words[: start - 1], *words[start:end]}:
        return None
    if not _ends_well(tokens[end:], words[end:]) or _has_parameter(tokens[: start - 1]):
        return None
    return _taken_apart(sql, tokens, start, end)


def _taken_apart(sql: str, tokens: list[Token], start: int, end: int) -> ValuesRow | None:
    first = tokens[start].start
    last = tokens[end - 1].start + 1
    parts, keys, position = [], [], first
    for token, key, length in _parameters(tokens, start, end):
        parts.append(sql[position : token.start])
        keys.append(key)
        position = token.start + length
    parts.append(sql[position:last])
    forms = {token.text[0] for token, _, _ in _parameters(tokens, start, end)}
    if len(forms) != 1:
        return None  # no parameter at all, or two ways to write them
    numbers = [key for key in keys if isinstance(key, int)]
    given = max(numbers) + 1 if numbers else None
    return ValuesRow(sql[:first], tuple(parts), sql[last:], tuple(keys), given)


def _parameters(
    tokens: list[Token], start: int, end: int
) -> Iterator[tuple[Token, int | str, int]]:
    """Each parameter of these tokens, its key and the length of its text."""
    count = 0
    for place in range(start, end):
        token = tokens[place]
        if token.kind == "parameter" and token.text == "?":
            yield token, count, 1
            count += 1
        elif token.kind == "parameter":
            yield token, int(token.text[1:]) - 1, len(token.text)
        elif _is_name(tokens, place):
            yield token, tokens[place + 1].text, 1 + len(tokens[place + 1].text)


def _is_name(tokens: list[Token], place: int) -> bool:
    """Does `:name` begin here?"""
    token = tokens[place]
    if token.text != ":" or place + 1 == len(tokens):
        return False
    after = tokens[place + 1]
    return after.kind == "word" and after.start == token.start + 1


def _has_parameter(tokens: list[Token]) -> bool:
    return any(
        token.kind == "parameter" or _is_name(tokens, place) for place, token in enumerate(tokens)
    )


def _group_end(tokens: list[Token], start: int) -> int | None:
    """Behind the parenthesis that closes the one which must begin here."""
    if start == len(tokens) or tokens[start].text != "(":
        return None
    depth = 0
    for place in range(start, len(tokens)):
        if tokens[place].kind == "punctuation":
            depth += {"(": 1, ")": -1}.get(tokens[place].text, 0)
        if depth == 0:
            return place + 1
    return None


def _ends_well(tokens: list[Token], words: list[str]) -> bool:
    if _has_parameter(tokens):
        return False
    while words and words[-1] == ";":
        words = words[:-1]
    return not words or (words[:2] == ["on", "conflict"] and tuple(words[-2:]) == _DO_NOTHING)


def _word(token: Token) -> str:
    return token.text.lower() if token.kind in ("word", "punctuation") else ""


def _statements(row: ValuesRow, rows: Iterable[Parameters]) -> Iterator[tuple[str, bytes]]:
    """Statements with as many rows as they may have, and their parameters as JSON."""
    most = max(1, min(ROWS_MAX, PARAMETERS_MAX // len(row.keys)))
    texts: dict[int, str] = {}
    found: list[list[Any]] = []
    size = 0
    values_of = _values_of(row)
    for number, each in enumerate(rows, 1):
        values = values_of(each, number)
        size += len(encoded(values))
        found.append(values)
        if len(found) == most or size > REQUEST_BYTES_MAX:
            yield _statement(row, found, texts)
            found, size = [], 0
    if found:
        yield _statement(row, found, texts)


def _statement(row: ValuesRow, found: list[list[Any]], texts: dict[int, str]) -> tuple[str, bytes]:
    count = len(found)
    if count not in texts:
        texts[count] = row.before + ", ".join(_row_text(row, at) for at in range(count)) + row.after
    return texts[count], encoded(list(chain.from_iterable(found)))


def _row_text(row: ValuesRow, number: int) -> str:
    first = number * len(row.keys) + 1
    places = (f"${first + each}" for each in range(len(row.keys)))
    return row.parts[0] + "".join(chain.from_iterable(zip(places, row.parts[1:], strict=True)))


def _values_of(row: ValuesRow) -> Callable[[Parameters, int], list[Any]]:
    """What picks the values of a row out of the parameters that are given for it."""

    def of_sequence(given: Parameters, number: int) -> list[Any]:
        if isinstance(given, Mapping | str | bytes) or len(given) != row.given:
            raise ProgrammingError(f"the parameters of row {number} are not {row.given} values")
        return [bindable(given[int(key)]) for key in row.keys]

    def of_mapping(given: Parameters, number: int) -> list[Any]:
        if not isinstance(given, Mapping) or given.keys() != set(row.keys):
            names = ", ".join(sorted({str(each) for each in row.keys}))
            raise ProgrammingError(f"the parameters of row {number} are not: {names}")
        return [bindable(given[str(key)]) for key in row.keys]

    return of_mapping if row.given is None else of_sequence


def _filled(statements: Iterable[tuple[str, bytes]]) -> Iterator[list[Statement]]:
    """Requests that hold as many statements as they may."""
    found: list[Statement] = []
    size = 0
    for sql, params in statements:
        length = len(sql) + len(params)
        if found and (len(found) == STATEMENTS_MAX or size + length > REQUEST_BYTES_MAX):
            yield found
            found, size = [], 0
        found.append(Statement(sql, msgspec.Raw(params)))
        size += length
    if found:
        yield found
