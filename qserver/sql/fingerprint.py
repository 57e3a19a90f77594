"""Parameterizing: a statement's text without its literals, and the literals.

    INSERT INTO t VALUES (1, 'a') RETURNING id + 1.5
    ──► fingerprint      INSERT INTO t VALUES (␀, ␀) RETURNING id + ␀
        literals   [1, 'a', Decimal('1.5')]
        kinds      "isn"

Statements of the same fingerprint and kinds mean the same but for the values in their slots, so
fingerprint and kinds together are the key of everything that is kept about statements. This runs
for each request, so it makes no tokens: one regular expression cuts the text into pieces that end
in a literal. It is made of the lexer's own patterns and must find what the lexer finds, in the same
order; a test compares them on anything that Hypothesis can glue together.

A NUL stands for a literal. No text may hold one, so no text can pretend to be another's
fingerprint.

Rows of VALUES
    INSERT INTO t VALUES (1, 'a'), (-2, NULL), (3, 'c') RETURNING id
    ──► fingerprint      INSERT INTO t VALUES ␀␀ RETURNING id
        literals   [[(1, 'a'), (-2, None), (3, 'c')]]
        kinds      "(is)"

Two rows or more that hold nothing but values become one slot, whose value is the list of the rows,
so a thousand rows have the fingerprint of two; see `value_rows`. Whoever runs the statement gets
`rows: list[tuple]`, with None for NULL in any column, and all values of a column of one kind. ␀␀
stands for the rows: two literals never touch in a statement that means anything, and the
parentheses in `kinds` tell them apart even then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import msgspec

from qserver.errors import QserverError, SqlSyntaxError
from qserver.limits import STATEMENT_BYTES_MAX, STATEMENT_TOKENS_MAX
from qserver.sql import lexer
from qserver.sql.literals import LITERAL_TOKENS, read_literal
from qserver.sql.value_rows import find_rows

MARK: Final = "\0"
ROWS_MARK: Final = "\0\0"
_SAFE_LENGTH = STATEMENT_BYTES_MAX // 4

# Each match is a piece without literals and what ends it: a literal, the NUL that is put behind the
# text, or something that was never closed.
_SCAN: Final = re.compile(
    rf"((?:{lexer.OTHER}|{lexer.LINE_COMMENT}|{lexer.BLOCK_COMMENT})*+)"
    rf"({lexer.NUMBER}|{lexer.STRING}|\x00|{lexer.OPEN})",
    re.DOTALL,
)


# Most texts have no quoted name, comment, parameter or special string. Then a literal can be told
# by its first character and the one before, and the search skips to such a character very fast.
_SIMPLE: Final = re.compile(
    r"(['0-9.](?:"
    rf"(?<=')(?<![eEbBnNxX&]'){lexer.PLAIN_REST}"
    rf"|(?<=[0-9])(?<![{lexer.PART}][0-9])[0-9]*+{lexer.NUMBER_REST}"
    rf"|(?<=\.)[0-9]++{lexer.EXPONENT}))"
)


class Parameterized(msgspec.Struct, frozen=True):
    """`kinds` has a letter for each literal (see `literals`), and a group in parentheses, with a
    letter for each column, where the literal is a list of rows."""

    fingerprint: str
    literals: list[Any]
    kinds: str


def parameterize(sql: str, *, repeat: bool = True) -> Parameterized:
    """Fingerprint and literals of a text; refuses one that cannot be cut into tokens.

    Without `repeat`, every row of VALUES stands for itself.
    """
    if len(sql) > _SAFE_LENGTH or MARK in sql or not sql.isascii():
        lexer.check_text(sql)
    rows = find_rows(sql) if repeat and "(" in sql else None
    literals: list[Any] = []
    kinds: list[str] = []
    try:
        if rows is None:
            fingerprint = _parameterize_part(sql, literals, kinds)
        else:
            head = _parameterize_part(sql[: rows.start], literals, kinds)
            literals.append(rows.values)
            kinds.append(f"({rows.kinds})")
            fingerprint = head + ROWS_MARK + _parameterize_part(sql[rows.end :], literals, kinds)
    except QserverError:
        _refuse(sql)
    return Parameterized(fingerprint, literals, "".join(kinds))


def _parameterize_part(sql: str, literals: list[Any], kinds: list[str]) -> str:
    """The fingerprint of a text; its literals are added to the lists."""
    texts: Sequence[str] | None = None
    fingerprint = ""
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
            kinds.append("i")
        elif text[0] == "'" and "'" not in (body := text[1:-1]):
            literals.append(body)
            kinds.append("s")
        else:
            kind, value = read_literal(text, 0)
            literals.append(value)
            kinds.append(kind)
    return fingerprint


def _refuse(sql: str) -> NoReturn:
    """Say with words and position what is wrong with a text: the lexer knows."""
    for token in lexer.tokenize(sql):
        if token.kind in LITERAL_TOKENS:
            read_literal(token.text, token.start)
    raise AssertionError("the lexer takes what parameterize does not")
