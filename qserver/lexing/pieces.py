"""Cuts a text with several statements at the semicolons between them.

    SELECT ';'; -- a;b ⏎ SELECT 2 ─► (0, "SELECT ';'"), (11, "-- a;b ⏎ SELECT 2")

The expression is built from the lexer's parts, so that both agree where a string, a comment or a
quoted name ends. What is not terminated belongs to the last statement, whose parser refuses it.
"""

from __future__ import annotations

import re
from typing import Final

from qserver.lexing.lexer import BLOCK_COMMENT, LINE_COMMENT, OPEN, QUOTED, SPACE, STRING, WORD

_BLANK: Final = rf"{SPACE}++|{LINE_COMMENT}|{BLOCK_COMMENT}"
PIECE: Final = re.compile(
    rf"(?P<blank>{_BLANK})|(?P<literal>{STRING}|{QUOTED})|(?P<open>{OPEN})|(?P<end>;)"
    rf"|(?P<other>{WORD}|[(),=<>+*0-9]++|.)",
    re.DOTALL,
)
BLANKS: Final = re.compile(rf"(?>{_BLANK})*+", re.DOTALL)
_WORD: Final = re.compile(WORD)


def statements_of(text: str) -> list[tuple[int, str]]:
    """Return the statements of a text, each with its offset; those without a word are left out."""
    if ";" not in text:
        return [] if is_blank(text) else [(0, text)]
    found, start = [], 0
    for piece in PIECE.finditer(text):
        if piece.lastgroup == "end":
            found.append((start, text[start : piece.start()]))
            start = piece.end()
    found.append((start, text[start:]))
    return [each for each in found if not is_blank(each[1])]


def is_blank(text: str) -> bool:
    """Return whether a text has nothing but blanks and comments."""
    return after_blanks(text) == len(text)


def after_blanks(text: str, start: int = 0) -> int:
    found = BLANKS.match(text, start)
    assert found is not None, "no blanks are also a match"
    return found.end()


def first_words(text: str, count: int) -> tuple[str, ...]:
    """Return the first words of a statement in lower case, up to anything else."""
    words: list[str] = []
    position = 0
    while len(words) < count:
        position = after_blanks(text, position)
        word = _WORD.match(text, position)
        if word is None:
            break
        words.append(word.group().lower())
        position = word.end()
    return tuple(words)
