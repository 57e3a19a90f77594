"""What kind of statement a text is, and the tag that says so when it has run.

The first words tell. Only a statement that begins with WITH has to be planned for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

import msgspec

from qserver.lexing.pieces import first_words
from qserver.sql import ast, parse

WORDS_MAX: Final = 6


class Sort(Enum):
    """Who runs a statement."""

    SQL = "the engine"
    CONTROL = "the transaction of the session"
    COPY = "COPY"
    DECLARE = "the engine, within a transaction"


class Kind(msgspec.Struct, frozen=True):
    sort: Sort
    tag: str
    """The words of the tag; empty if only a plan tells."""


_CONTROL: Final = frozenset({"begin", "start", "commit", "end", "rollback", "abort"})
_CHANGES: Final = frozenset({"insert", "update", "delete", "merge"})
_QUERIES: Final = frozenset({"select", "values", "table"})
_PASSED_OVER: Final = frozenset(
    {"or", "replace", "unique", "temp", "temporary", "global", "local", "unlogged", "recursive"}
)
_KNOWN: Final[Mapping[str, Kind]] = {
    **{word: Kind(Sort.CONTROL, "") for word in _CONTROL},
    **{word: Kind(Sort.SQL, word.upper()) for word in _CHANGES},
    **{word: Kind(Sort.SQL, "SELECT") for word in _QUERIES},
    "copy": Kind(Sort.COPY, "COPY"),
    "declare": Kind(Sort.DECLARE, "DECLARE CURSOR"),
    "lock": Kind(Sort.SQL, "LOCK TABLE"),
    "analyse": Kind(Sort.SQL, "ANALYZE"),
    "truncate": Kind(Sort.SQL, "TRUNCATE TABLE"),
    "with": Kind(Sort.SQL, ""),
}

_LONG: Final[Mapping[tuple[str, ...], int]] = {
    **dict.fromkeys((("materialized", "view"), ("event", "trigger"), ("access", "method")), 2),
    **dict.fromkeys((("procedural", "language"), ("foreign", "table")), 2),
    **dict.fromkeys((("text", "search"), ("foreign", "data")), 3),
}
"""How many words name a kind of objects to drop, where they are several."""
_BY_FIRST_WORD: Final[Mapping[tuple[str, ...], Kind]] = {
    (word,): _KNOWN[word] for word in _CHANGES | _QUERIES
}


@lru_cache(maxsize=1024)
def kind_of_words(words: tuple[str, ...]) -> Kind:
    """Return the kind of a statement with these first words, in lower case."""
    if not words:
        return Kind(Sort.SQL, "SELECT")  # (SELECT …), or an error
    first, *rest = words
    known = _KNOWN.get(first)
    if first in ("begin", "start") or known is None:
        if first == "savepoint" or first == "release":
            return Kind(Sort.CONTROL, first.upper())
        if words[:2] == ("prepare", "transaction"):
            return Kind(Sort.CONTROL, "")
    if known is not None:
        return known
    if first in ("close", "deallocate", "discard"):
        return Kind(Sort.SQL, _tag_of_closing(first, words[-1]))
    if words[:2] == ("set", "constraints"):
        return Kind(Sort.SQL, "SET CONSTRAINTS")
    if first in ("reassign", "security") or words[:2] == ("alter", "default"):
        return Kind(Sort.SQL, " ".join(words[: 3 if first == "alter" else 2]).upper())
    if first in ("grant", "revoke") and "on" not in rest and {"to", "from"}.intersection(rest):
        return Kind(Sort.SQL, f"{first.upper()} ROLE")
    if first in ("create", "alter", "drop"):
        return Kind(Sort.SQL, _tag_of_definition(first, rest))
    return Kind(Sort.SQL, first.upper())


def _tag_of_definition(first: str, rest: list[str]) -> str:
    named = [each for each in rest if each not in _PASSED_OVER]
    if named[:1] in (["user"], ["group"]):
        named = ["role"]
    if first == "drop" and tuple(named[:2]) in _LONG:
        named = [" ".join(named[: _LONG[named[0], named[1]]]).removeprefix("procedural ")]
    return " ".join([first, *named[:1]]).upper()


def _tag_of_closing(first: str, last: str) -> str:
    word = "CLOSE CURSOR" if first == "close" else first.upper()
    if first == "discard":
        return f"{word} {last}".upper().replace("TEMPORARY", "TEMP")
    return f"{word} ALL" if last == "all" else word


def kind_of(text: str) -> Kind:
    known = _BY_FIRST_WORD.get(first_words(text, 1))
    return kind_of_words(first_words(text, WORDS_MAX)) if known is None else known


def finished(tag: str, rows: int, affected: int) -> str:
    """Return the whole tag of a statement that has given so many rows, or changed so many."""
    if tag == "SELECT":
        return f"SELECT {rows}"
    if tag == "SELECT INTO":
        return f"SELECT {affected}"
    if tag == "INSERT":
        return f"INSERT 0 {affected}"
    return f"{tag} {affected}" if tag in ("UPDATE", "DELETE", "MERGE", "COPY") else tag


@lru_cache(maxsize=256)
def control_of(text: str) -> ast.TransactionControl | None:
    """Return a statement that controls transactions; None if it is another after all."""
    statement = parse(text).statement
    return statement if isinstance(statement, ast.TransactionControl) else None
