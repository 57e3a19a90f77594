"""Plain dumps of PostgreSQL: which statements mean nothing here, and which table one is about.

Owners, privileges and settings of the session that loads the dump have no effect on what it makes.
"""

from __future__ import annotations

import re
from typing import Final

from qserver.cli.splitting import Statement

_MARK: Final = b"-- PostgreSQL database"
_HARMLESS: Final = (
    ("set",),
    ("reset",),
    ("begin",),
    ("commit",),
    ("start", "transaction"),
    ("grant",),
    ("revoke",),
    ("alter", "default", "privileges"),
    ("security", "label"),
    ("lock",),
    ("create", "extension", "if", "not", "exists", "plpgsql"),
    ("comment", "on", "extension", "plpgsql"),
    ("select", "pg_catalog", ".", "set_config"),
    ("\\", "restrict"),
    ("\\", "unrestrict"),
)
_OWNER: Final = re.compile(r'\sOWNER\s+TO\s+("(?:[^"]|"")+"|\w+)\s*\Z', re.IGNORECASE)
_SEARCH_PATH: Final = re.compile(
    r"\s*SET\s+(?:SESSION\s+)?search_path\s*(?:=|\bTO\b)\s*(.+)\Z", re.IGNORECASE | re.DOTALL
)
_BEGINNINGS: Final = (
    ("create", "table", "if", "not", "exists"),
    ("create", "table"),
    ("create", "unlogged", "table"),
    ("create", "sequence"),
    ("alter", "sequence"),
    ("alter", "table", "only"),
    ("alter", "table"),
    ("insert", "into"),
    ("copy",),
)
_TOKENS: Final = 10


def is_dump(beginning: bytes) -> bool:
    """Does a file that begins so come from PostgreSQL?"""
    return _MARK in beginning


def is_harmless(statement: Statement) -> bool:
    tokens = tuple(statement.tokens(_TOKENS))
    if any(tokens[: len(each)] == each for each in _HARMLESS):
        return True
    return tokens[:1] == ("alter",) and _OWNER.search(statement.text) is not None


def search_path_of(statement: Statement) -> str | None:
    """The search_path that a statement sets; older releases of PostgreSQL's dump rely on it."""
    found = _SEARCH_PATH.match(statement.text)
    return None if found is None else found[1].strip()


def relation_of(statement: Statement) -> str | None:
    """The table or sequence that a statement makes, changes or fills."""
    tokens = statement.tokens(_TOKENS)
    for words in _BEGINNINGS:
        if tuple(tokens[: len(words)]) == words:
            rest = tokens[len(words) :]
            name = rest[:3] if rest[1:2] == ["."] else rest[:1]
            return "".join(name)
    return None


def makes_a_relation(statement: Statement) -> bool:
    return statement.words(1) == ("create",) and relation_of(statement) is not None


def sets_a_sequence(statement: Statement) -> bool:
    return statement.tokens(4) == ["select", "pg_catalog", ".", "setval"]
