"""The lexer: splits a text into PostgreSQL's tokens.

    SELECT "a""b", t.c1 - .5e3 /* why /* not */ */ || E'it\\'s' -- so
    word   quoted  word op number                  op string

`tokenize` uses one regular expression. `parameterize` is built from the same parts, so the two
cannot disagree about where a string ends.

Every character belongs to some match, even in an invalid text: an unterminated string or comment
matches to the end of the text as `open`. So a scan is linear in the length of any text, and errors
have PostgreSQL's positions.

Two differences from PostgreSQL: `?` never joins other operator characters, except in the JSON
operators ?| ?& and @?, so that `a=?` has a parameter; and the nesting of comments has a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from qserver.errors import (
    CharacterNotInRepertoire,
    ProgramLimitExceeded,
    SqlSyntaxError,
    StatementTooComplex,
)
from qserver.limits import COMMENT_DEPTH_MAX, STATEMENT_BYTES_MAX, STATEMENT_TOKENS_MAX

# --- patterns ------------------------------------------------------------------------------------
# Every repetition is possessive (`*+`): the expressions never backtrack.
#
# PostgreSQL treats all of Unicode as letters. The classes of words name the ASCII characters that
# are left out: `re` compiles a range to the end of Unicode character by character, which would take
# a tenth of a second of each start.

SPACE: Final = r"[ \t\n\r\f]"
START: Final = r"[^\x00-@\[-^`{-\x7f]"  # of a word: a letter or _
PART: Final = r"[^\x00-#%-/:-@\[-^`{-\x7f]"  # also a digit or $
_TAG_PART = r"[^\x00-/:-@\[-^`{-\x7f]"  # no $
LINE_COMMENT: Final = r"--[^\n\r\x00]*+"
WORD: Final = rf"{START}{PART}*+"

# Strings separated only by a line end are one string: 'foo' ⏎ 'bar'.
_BREAK = rf"(?>[ \t\f]|{LINE_COMMENT})*+[\n\r](?>{SPACE}|{LINE_COMMENT}[\n\r])*+"
QUOTE_INSIDE: Final = rf"'(?>{_BREAK})?+'"
PLAIN_REST: Final = rf"[^']*+(?>{QUOTE_INSIDE}[^']*+)*+'"
_PLAIN = f"'{PLAIN_REST}"
_ESCAPED = rf"'[^'\\]*+(?>(?:\\.|{QUOTE_INSIDE})[^'\\]*+)*+'"
_QUOTED = r'"[^"]*+(?>""[^"]*+)*+"'
_ESCAPE_CLAUSE = rf"(?>{SPACE}*+[uU][eE][sS][cC][aA][pP][eE]{SPACE}*+'[^']*+')?+"
TAG: Final = rf"(?>{START}{_TAG_PART}*+)?+"
STRING: Final = (
    rf"{_PLAIN}|[eE]{_ESCAPED}|[bBnNxX]{_PLAIN}|[uU]&{_PLAIN}{_ESCAPE_CLAUSE}"
    rf"|\$(?P<tag>{TAG})\$.*?\$(?P=tag)\$"
)
QUOTED: Final = rf"{_QUOTED}|[uU]&{_QUOTED}{_ESCAPE_CLAUSE}"
EXPONENT: Final = r"(?>[eE][+-]?+[0-9]++)?+"
NUMBER_REST: Final = rf"(?>\.(?!\.)[0-9]*+)?+{EXPONENT}"
NUMBER: Final = rf"[0-9]++{NUMBER_REST}|\.[0-9]++{EXPONENT}"


def _comment(depth: int) -> str:
    """Return the pattern of a block comment with nested comments, up to `depth` levels."""
    inner = f"|{_comment(depth - 1)}" if depth > 1 else ""
    return rf"/\*(?>[^*/]++|\*(?!/)|/(?!\*){inner})*+\*/"


BLOCK_COMMENT: Final = _comment(COMMENT_DEPTH_MAX)
# Neither literal nor comment, the most frequent first: space, commas and operators, which begin
# nothing else. The E of E'…' is not a word.
OTHER: Final = (
    rf"[\x01-!#%&(-,:-@\[-^`{{-\x7f]++|(?![eEbBnNxX]'|[uU]&['\"]){WORD}|{QUOTED}"
    rf"|-(?!-)|/(?!\*)|\.\.|\.(?![0-9])|\$(?!{TAG}\$)[0-9]*+"
)
# An unterminated string or comment takes the rest of the text.
OPEN: Final = rf"(?>[eEbBnNxX]|[uU]&)?+'.*+|(?>[uU]&)?+\".*+|/\*.*+|\${TAG}\$.*+"

_OPERATOR_CHARACTERS = r"~!@#%^&|`+\-*/<>="
_TOKEN: Final = re.compile(
    rf"""(?P<space>{SPACE}++|{LINE_COMMENT}|{BLOCK_COMMENT})
    |(?P<string>{STRING})
    |(?P<quoted>{QUOTED})
    |(?P<open>{OPEN})
    |(?P<word>{WORD})
    |(?P<number>{NUMBER})
    |(?P<parameter>\$[0-9]++|\?)
    |(?P<punctuation>::|:=|\.\.|[][(),;:.])
    |(?P<operator>@\?|(?>(?!--|/\*)[{_OPERATOR_CHARACTERS}])++)
    |(?P<stray>.)""".replace("\n    ", ""),
    re.DOTALL,
)
# The parameter group matches `?` first; `_careful` completes a JSON operator that starts with it.
_QUESTION_OPERATOR: Final = re.compile(r"\?\|(?!\|)|\?&(?!&)")
_JUNK: Final = re.compile(rf"{START}{PART}*+")
_NOT_TEXT: Final = re.compile(r"[\x00\ud800-\udfff]")
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")

# An operator may end in + or - only if it contains one of these: `a=-1` is `=` and `-`.
_MAY_END_IN_SIGN = frozenset("~!@#%^&|`?")
_NEAR_LENGTH_MAX = 200

_UNTERMINATED: Final = {
    "'": "unterminated quoted string",
    '"': "unterminated quoted identifier",
    "$": "unterminated dollar-quoted string",
    "/": "unterminated /* comment",
    "b": "unterminated bit string literal",
    "x": "unterminated hexadecimal string literal",
}


class Token(NamedTuple):
    """A token. `kind` is the name of a group above; `start` the offset of its first character."""

    kind: str
    text: str
    start: int


def tokenize(sql: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of a text that passed `check_text`, without blanks and comments."""
    count = 0
    position = start
    stop = len(sql) if end is None else end
    match = _TOKEN.match
    while position < stop:
        found = match(sql, position, stop)
        assert found is not None, "the last group takes any character"
        kind, text = str(found.lastgroup), found.group()
        if kind in _CAREFUL:
            text = _careful(kind, text, sql, position, stop)
            if text[0] == "?" and len(text) > 1:
                kind = "operator"
        if kind != "space":
            count += 1
            if count > STATEMENT_TOKENS_MAX:
                raise too_many_tokens(position)
            yield Token(kind, text, position)
        position += len(text)


def check_text(sql: str) -> None:
    """Refuse a text that is too long or is not valid Unicode text."""
    size = len(sql) if sql.isascii() else len(sql.encode("utf-8", "surrogatepass"))
    if size > STATEMENT_BYTES_MAX:
        raise ProgramLimitExceeded(
            "the statement is too long",
            detail=f"It has {size} bytes; the limit is {STATEMENT_BYTES_MAX}.",
        )
    found = _NOT_TEXT.search(sql)
    if found is not None:
        sequence = " ".join(
            f"0x{byte:02x}" for byte in found.group().encode("utf-8", "surrogatepass")
        )
        raise CharacterNotInRepertoire(
            f'invalid byte sequence for encoding "UTF8": {sequence}', position=found.start() + 1
        )


def too_many_tokens(start: int | None = None) -> ProgramLimitExceeded:
    return ProgramLimitExceeded(
        "the statement is too long",
        detail=f"The limit is {STATEMENT_TOKENS_MAX} words and signs.",
        position=None if start is None else start + 1,
    )


def syntax_error(problem: str, text: str, start: int) -> SqlSyntaxError:
    """Return the error `problem at or near "text"`, in PostgreSQL's wording."""
    near = text if len(text) <= _NEAR_LENGTH_MAX else text[:_NEAR_LENGTH_MAX] + "…"
    return SqlSyntaxError(f'{problem} at or near "{near}"', position=start + 1)


# --- tokens that need a second look --------------------------------------------------------------

_CAREFUL = frozenset({"open", "quoted", "number", "parameter", "operator"})


def _careful(kind: str, text: str, sql: str, start: int, stop: int) -> str:
    """Return the token's text, perhaps shortened or extended, or raise an error."""
    if kind == "operator":
        return _operator(text)
    if kind == "open":
        _refuse_open(text, start)
    if kind == "quoted":
        if text in ('""', 'U&""', 'u&""'):
            raise syntax_error("zero-length delimited identifier", text, start)
        return text
    if text == "?":
        longer = _QUESTION_OPERATOR.match(sql, start, stop)
        return longer.group() if longer else text
    junk = _JUNK.match(sql, start + len(text), stop)
    if junk:
        what = "parameter" if kind == "parameter" else "numeric literal"
        raise syntax_error(f"trailing junk after {what}", text + junk.group(), start)
    return text


def _operator(text: str) -> str:
    """Apply PostgreSQL's rule for + and - at the end of an operator."""
    while len(text) > 1 and text[-1] in "+-" and _MAY_END_IN_SIGN.isdisjoint(text):
        text = text[:-1]
    return text


def _refuse_open(text: str, start: int) -> NoReturn:
    if text[0] == "/" and _comment_ends(text):
        raise StatementTooComplex(
            "comments are nested too deeply",
            detail=f"The limit is {COMMENT_DEPTH_MAX} levels.",
            position=start + 1,
        )
    first = '"' if text[:3].lower() == 'u&"' else text[0].lower()
    raise syntax_error(_UNTERMINATED.get(first, _UNTERMINATED["'"]), text, start)


def _comment_ends(text: str) -> bool:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return True
    return False
