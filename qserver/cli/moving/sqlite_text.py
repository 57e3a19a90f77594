"""Reads CREATE TABLE, CREATE INDEX and CREATE VIEW of SQLite for what its pragmas do not tell.

    CREATE TABLE Users (id INTEGER PRIMARY KEY, `e mail` TEXT CHECK (length("e mail") > 3))
                 ─ folded ─                     ─ kept ─       ─ rewritten for PostgreSQL ─

SQLite does not mind the case of names, PostgreSQL folds those without quotes. So a name gets the
case that PostgreSQL would give it in the same statement: kept in quotes, else lower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from qserver.values.identifiers import quote_identifier

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>'(?:[^']|'')*')
      | (?P<blob>[xX]'[0-9a-fA-F]*')
      | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
      | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))
      | (?P<word>[^\W\d][\w$]*)
      | (?P<sign>==|<>|!=|<=|>=|\|\||<<|>>|->>|->|.)""",
    re.VERBOSE | re.DOTALL,
)
_OF_TABLE: Final = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    is_apart: bool = False
    """Does a blank stand before it?"""

    @property
    def word(self) -> str:
        """The keyword in capitals; nothing in quotes is one."""
        return self.text.upper() if self.kind in ("word", "sign") else ""

    @property
    def name(self) -> str:
        """The identifier."""
        if self.kind != "quoted":
            return self.text
        end = self.text[-1]
        return self.text[1:-1].replace(end * 2, end) if end != "]" else self.text[1:-1]


@dataclass(frozen=True, slots=True)
class TableText:
    """What the text of a CREATE TABLE says beyond the pragmas."""

    quoted_names: frozenset[str]
    checks: tuple[tuple[str | None, tuple[Token, ...]], ...]
    """The name, if any, and the condition of each CHECK."""
    generated: Mapping[str, tuple[Token, ...]]
    """The expressions of generated columns, by the names of columns in lower case."""
    collated: Mapping[str, str]
    """COLLATE of columns, likewise."""
    deferred: tuple[bool, ...]
    """Which of the foreign keys are INITIALLY DEFERRED, in the order of the text."""
    has_autoincrement: bool

    def folded(self, name: str) -> str:
        """The name as PostgreSQL would read it in this statement."""
        return name if name in self.quoted_names else name.lower()


def tokens_of(sql: str) -> list[Token]:
    found, is_apart = [], False
    for each in _TOKEN.finditer(sql):
        if each.lastgroup != "blank":
            found.append(Token(str(each.lastgroup), each.group(), is_apart))
        is_apart = each.lastgroup == "blank"
    return found


def read_table(sql: str) -> TableText:
    tokens = tokens_of(sql)
    names = frozenset(token.name for token in tokens if token.kind == "quoted")
    checks: list[tuple[str | None, tuple[Token, ...]]] = []
    generated: dict[str, tuple[Token, ...]] = {}
    collated: dict[str, str] = {}
    deferred: list[bool] = []
    for item in _items(tokens):
        column = None if item[0].word in _OF_TABLE else item[0].name.lower()
        for at, token in enumerate(item):
            if token.word == "CHECK":
                named = at >= 2 and item[at - 2].word == "CONSTRAINT"
                checks.append((item[at - 1].name if named else None, _group(item, at + 1)))
            elif token.word == "AS" and column is not None:
                generated[column] = _group(item, at + 1)
            elif token.word == "COLLATE" and column is not None and at + 1 < len(item):
                collated[column] = item[at + 1].name.upper()
            elif token.word == "REFERENCES":
                deferred.append(_is_deferred(item[at + 1 :]))
    counting = any(token.word == "AUTOINCREMENT" for token in tokens)
    checks_found = tuple(checks)
    return TableText(names, checks_found, generated, collated, tuple(deferred), counting)


def rendered(tokens: Sequence[Token], columns: Mapping[str, str]) -> str:
    """The tokens as PostgreSQL writes them; `columns` are new names by those in lower case."""
    texts = zip(tokens, _rendered(tokens, columns), strict=True)
    return "".join(f" {text}" if token.is_apart else text for token, text in texts).strip()


def _rendered(tokens: Sequence[Token], columns: Mapping[str, str]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        is_call = at + 1 < len(tokens) and tokens[at + 1].text == "("
        known = columns.get(token.name.lower()) if token.kind in ("word", "quoted") else None
        if known is not None and not (token.kind == "word" and is_call):
            yield quote_identifier(known)
        elif token.kind == "quoted":
            # In double quotes, what names no column is a text for SQLite.
            is_text = token.text[0] == '"' and bool(columns)
            yield text_literal(token.name) if is_text else quote_identifier(token.name)
        elif token.kind == "blob":
            yield f"'\\x{token.text[2:-1]}'::bytea"
        else:
            yield "=" if token.text == "==" else token.text


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """What stands between the commas of the outermost parentheses."""
    depth, item = 0, list[Token]()
    for token in tokens:
        if token.text == ")" and token.kind == "sign":
            depth -= 1
            if depth == 0:
                break
        if depth == 1 and token.text == ",":
            yield item
            item = []
        elif depth:
            item.append(token)
        depth += token.text == "(" and token.kind == "sign"
    if item:
        yield item


def _group(tokens: Sequence[Token], start: int) -> tuple[Token, ...]:
    """The tokens inside the parentheses that open at `start`."""
    depth = 0
    for at in range(start, len(tokens)):
        depth += (tokens[at].word == "(") - (tokens[at].word == ")")
        if depth == 0:
            return tuple(tokens[start + 1 : at])
    return tuple(tokens[start + 1 :])


def _is_deferred(rest: Sequence[Token]) -> bool:
    """Does the clause behind REFERENCES say INITIALLY DEFERRED, before another one begins?"""
    words = [token.word for token in rest]
    if "REFERENCES" in words:
        words = words[: words.index("REFERENCES")]
    if "DEFERRABLE" not in words or "DEFERRED" not in words:
        return False
    at = words.index("DEFERRABLE")
    return at == 0 or words[at - 1] != "NOT"
