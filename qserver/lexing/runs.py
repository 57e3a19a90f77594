"""Finds runs: many literals of one kind, or consecutive parameters, in a list.

    a IN (17, 4, 8, … 23)          word word punctuation number punctuation run punctuation
    s LIKE ANY (ARRAY['a', … 'z'])
    a IN ($1, $2, … $900)

    INSERT INTO t VALUES ($1, $2), ($3, $4), … ($899, $900)       rows of them: "parameter rows"

A list of ten thousand is data, not language: it becomes one token, one node of the AST and one
expression. A run is found only in the parentheses of IN and in the brackets of ARRAY, and behind a
comma: the first item is a token like any other. Whatever is no plain item (a sign, a NULL, a cast,
a comment, another kind) ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from qserver.lexing import lexer
from qserver.lexing.lexer import Token, tokenize
from qserver.limits import STATEMENT_TOKENS_MAX

RUN_ITEMS_MIN: Final = 64
"""A shorter list is not worth a second way."""

_SPACE = lexer.SPACE
# In the order in which they are tried. The kinds are those of `literals`, and "$" and "?".
_ITEMS: Final = {
    "i": r"(?:[0-9]{1,9}|1[0-9]{9})",
    "l": r"(?:[3-9][0-9]{9}|[1-9][0-9]{10,17}|[1-8][0-9]{18})",
    "n": r"[0-9]{1,30}\.[0-9]{1,30}",
    "s": r"'[^']*+(?>''[^']*+)*+'",
    "$": r"\$[1-9][0-9]{0,4}",
    "?": r"\?",
}


def _pattern(item: str) -> re.Pattern[str]:
    item = rf"{item}(?={_SPACE}*+[,)\]])"
    return re.compile(rf"{item}(?>{_SPACE}*+,{_SPACE}*+{item}){{{RUN_ITEMS_MIN - 1},}}+")


_RUNS: Final = {kind: _pattern(item) for kind, item in _ITEMS.items()}
_ITEM: Final = {kind: re.compile(item) for kind, item in _ITEMS.items()}


def _rows_of(item: str) -> str:
    row = rf"\({_SPACE}*+{item}(?>{_SPACE}*+,{_SPACE}*+{item})*+{_SPACE}*+\)"
    return rf"{row}(?>{_SPACE}*+,{_SPACE}*+{row})++(?!{_SPACE}*+,)"


_PARAMETER_ROWS: Final = re.compile(f"{_rows_of(_ITEMS['$'])}|{_rows_of(_ITEMS['?'])}")
_BEGIN: Final = re.compile(rf"{_SPACE}*+(?=([0-9'$?]))")
_KINDS: Final = {"'": "s", "$": "$", "?": "?"}
# What was tried and is no run: it need not be tried again for each of its items.
_FEW: Final = {
    kind: re.compile(rf"(?>{item}{_SPACE}*+,{_SPACE}*+)++") for kind, item in _ITEMS.items()
}


def may_have_runs(sql: str) -> bool:
    return len(sql) > 2 * RUN_ITEMS_MIN and sql.count(",") >= RUN_ITEMS_MIN


def tokenize_with_runs(sql: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of a text; a run is a token of kind "run", whatever its length."""
    stop = len(sql) if end is None else end
    count = 0
    lists: list[bool] = []
    before = ""
    tried = start
    tokens: Iterator[Token] | None = tokenize(sql, start, stop)
    while tokens is not None:
        found, tokens = tokens, None
        for token in found:
            yield token
            text = token.text
            count += 1
            if token.kind == "word" and text.lower() == "values":
                rows = _rows_at(sql, token.start + len(text), stop)
                if rows is not None:
                    yield rows
                    count += rows.text.count(",")
                    tokens = tokenize(sql, rows.start + len(rows.text), stop)
                    break
            elif text in ("(", "["):
                lists.append(_is_list(text, before, lists))
            elif text in (")", "]") and lists:
                lists.pop()
            elif text == "," and lists and lists[-1] and token.start >= tried:
                run, tried = _run_at(sql, token.start + 1, stop)
                if run is not None:
                    yield run
                    count += run.text.count(",")
                    tokens = tokenize(sql, tried, stop)
                    break
            before = text
        if count > STATEMENT_TOKENS_MAX:
            raise lexer.too_many_tokens()


def _is_list(sign: str, before: str, lists: list[bool]) -> bool:
    if sign == "(":
        return before.lower() == "in"
    return before.lower() == "array" or (bool(lists) and lists[-1] and before in ("[", ","))


def _rows_at(sql: str, position: int, stop: int) -> Token | None:
    """Return rows of VALUES that are consecutive parameters, each row as long as the first."""
    first = sql.find("(", position, stop)
    if first < 0 or sql[position:first].strip(" \t\n\r\f"):
        return None
    found = _PARAMETER_ROWS.match(sql, first, stop)
    if found is None or found.group().count(",") < RUN_ITEMS_MIN:
        return None
    text = found.group()
    widths = {row.count(",") for row in text.split("(")[1:-1]}
    widths.add(text[text.rindex("(") :].count(",") + 1)
    if len(widths) > 1 or ("$" in text and not _is_consecutive(text)):
        return None
    return Token("parameter rows", text, first)


def _run_at(sql: str, position: int, stop: int) -> tuple[Token | None, int]:
    """Return the run at a position, if there is one, and the end of what was looked at."""
    begin = _BEGIN.match(sql, position, stop)
    if begin is None:
        return None, position
    start, tried = begin.end(), position
    for kind in _KINDS.get(begin[1], "iln"):
        found = _RUNS[kind].match(sql, start, stop)
        if found is not None and (kind != "$" or _is_consecutive(found.group())):
            return Token("run", found.group(), start), found.end()
        few = _FEW[kind].match(sql, start, stop)
        if few is not None:
            tried = max(tried, few.end())
    return None, tried


def _is_consecutive(text: str) -> bool:
    _, numbers = read_run(text)
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def read_run(text: str) -> tuple[str, Sequence[Any]]:
    """Return the kind of a run, or of rows, and the values: of `$1`, the numbers; of `?`, signs."""
    text = text.lstrip("( \t\n\r\f")
    kind = _KINDS.get(text[0]) or _kind_of_number(text[: text.index(",")].strip(" \t\n\r\f"))
    items = _ITEM[kind].findall(text)
    values: Sequence[Any] = items
    if kind == "s":
        values = [item[1:-1] for item in items]
        if "''" in text:
            values = [value.replace("''", "'") for value in values]
    elif kind == "$":
        values = [int(item[1:]) for item in items]
    elif kind != "?":
        values = list(map(Decimal if kind == "n" else int, items))
    return kind, values


def _kind_of_number(text: str) -> str:
    return next(kind for kind in "iln" if _ITEM[kind].fullmatch(text))
