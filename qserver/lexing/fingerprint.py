"""Parameterizes statements: separates a text into its fingerprint and its literals.

    INSERT INTO t VALUES (1, 'a') RETURNING id + 1.5
    ──► fingerprint  INSERT INTO t VALUES (␀, ␀) RETURNING id + ␀
        literals     [1, 'a', Decimal('1.5')]
        kinds        "isn"

Statements with equal fingerprint and kinds differ only in the values of their slots, so the two are
the key of every statement cache. Each request is parameterized, so this creates no tokens: one
regular expression, built from the lexer's patterns, splits the text at its literals. It must find
the lexer's literals, in the same order; a Hypothesis test compares the two.

A NUL stands for a literal. No statement may contain one, so no text can forge another's
fingerprint.

Rows of VALUES
    INSERT INTO t VALUES (1, 'a'), (-2, NULL), (3, 'c') RETURNING id
    ──► fingerprint  INSERT INTO t VALUES ␀␀ RETURNING id
        literals     [[(1, 'a'), (-2, None), (3, 'c')]]
        kinds        "(is)"

Two or more rows of plain values become one slot whose value is the list of rows, so a thousand rows
have the fingerprint of two; see `value_rows`. NULL is None in any column, and all other values of a
column have one kind. ␀␀ stands for the rows: two literals are never adjacent in a valid statement,
and even then the parentheses in `kinds` distinguish them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import msgspec

from qserver.errors import QserverError, SqlSyntaxError
from qserver.lexing import lexer
from qserver.lexing.literals import LITERAL_TOKENS, read_literal
from qserver.lexing.value_rows import ValuesList, find_plain_rows, find_rows
from qserver.limits import STATEMENT_BYTES_MAX, STATEMENT_TOKENS_MAX
from qserver.values.types import SqlType

MARK: Final = "\0"
ROWS_MARK: Final = "\0\0"
_SAFE_LENGTH = STATEMENT_BYTES_MAX // 4

# Each match is a piece without literals and its end: a literal, the NUL appended to the text, or
# something unterminated.
_SCAN: Final = re.compile(
    rf"((?>{lexer.OTHER}|{lexer.LINE_COMMENT}|{lexer.BLOCK_COMMENT})*+)"
    rf"({lexer.NUMBER}|{lexer.STRING}|\x00|{lexer.OPEN})",
    re.DOTALL,
)


# Most texts have no quoted name, comment, parameter or special string. Then the first character and
# the one before it identify a literal, and the search skips to such a character very fast.
_SIMPLE: Final = re.compile(
    r"(['0-9.](?:"
    rf"(?<=')(?<![eEbBnNxX&]'){lexer.PLAIN_REST}"
    rf"|(?<=[0-9])(?<!{lexer.PART}[0-9])[0-9]*+{lexer.NUMBER_REST}"
    rf"|(?<=\.)[0-9]++{lexer.EXPONENT}))"
)


class Parameterized(msgspec.Struct, frozen=True):
    """`kinds` has a letter for each literal (see `literals`), and a group in parentheses, with a
    letter for each column, where the literal is a list of rows."""

    fingerprint: str
    literals: list[Any]
    kinds: str
    declared: Mapping[int | str, SqlType] | None = None
    """Types that the client declares for its parameters, if it does; `kinds` names them, too."""

    def with_declared(self, types: Mapping[int | str, SqlType]) -> Parameterized:
        """Return the same for parameters of declared types: its plan is another."""
        names = ",".join([f"{number} {types[number]}" for number in sorted(types, key=str)])
        kinds = f"{self.kinds}|{names}"
        return Parameterized(self.fingerprint, self.literals, kinds, types)


def parameterize(sql: str, *, repeat: bool = True) -> Parameterized:
    """Return fingerprint and literals of a text; refuse a text that has no valid tokens.

    Without `repeat`, rows of VALUES are not merged into one slot.
    """
    _check_text(sql)
    try:
        rows = find_rows(sql) if repeat and "(" in sql else None
        if rows is not None:
            return _around(rows, sql)
        literals: list[Any] = []
        fingerprint, kinds = _parameterize_part(sql, literals)
        return Parameterized(fingerprint, literals, kinds)
    except QserverError:
        _refuse(sql)


def parameterize_plain_rows(sql: str) -> Parameterized | None:
    """Do the same quickly for a long text that is little but plain rows; None for any other."""
    _check_text(sql)
    rows = find_plain_rows(sql)
    try:
        return None if rows is None else _around(rows, sql)
    except QserverError:
        return None


def _check_text(sql: str) -> None:
    if len(sql) > _SAFE_LENGTH or MARK in sql or not sql.isascii():
        lexer.check_text(sql)


def _around(rows: ValuesList, sql: str) -> Parameterized:
    """Parameterize a text with rows of VALUES."""
    literals: list[Any] = []
    head, kinds = _parameterize_part(sql[: rows.start], literals)
    literals.append(rows.values)
    tail, kinds_after = _parameterize_part(sql[rows.end :], literals)
    return Parameterized(head + ROWS_MARK + tail, literals, f"{kinds}({rows.kinds}){kinds_after}")


def _parameterize_part(sql: str, literals: list[Any]) -> tuple[str, str]:
    """Return fingerprint and kinds of a part of the text and append its literals to the list."""
    texts: Sequence[str] | None = None
    fingerprint = kinds = ""
    if (
        '"' not in sql
        and "$" not in sql
        and "--" not in sql
        and "/*" not in sql
        and ".." not in sql
    ):
        pieces = _SIMPLE.split(sql)
        fingerprint = MARK.join(pieces[0::2])
        if "'" not in fingerprint:
            texts = pieces[1::2]
    if texts is None:
        others, texts, _ = zip(*_SCAN.findall(sql + MARK), strict=True)
        if texts[-1] != MARK:
            raise SqlSyntaxError("something was not closed")
        fingerprint, texts = MARK.join(others), texts[:-1]
    if len(texts) > STATEMENT_TOKENS_MAX:
        raise lexer.too_many_tokens()
    for text in texts:
        if len(text) < 10 and text.isdigit():
            literals.append(int(text))
            kinds += "i"
        elif text[0] == "'" and "'" not in (body := text[1:-1]):
            literals.append(body)
            kinds += "s"
        else:
            kind, value = read_literal(text, 0)
            literals.append(value)
            kinds += kind
    return fingerprint, kinds


def _refuse(sql: str) -> NoReturn:
    """Raise the lexer's error, with its wording and position."""
    for token in lexer.tokenize(sql):
        if token.kind in LITERAL_TOKENS:
            read_literal(token.text, token.start)
    raise AssertionError("the lexer takes what parameterize does not")
