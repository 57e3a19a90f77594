"""Reads DROP of objects of the kinds that nobody can make here: functions, triggers, domains …

Tools send it with IF EXISTS before they make something, and then nothing has to be there. It is
read word by word, like the statements of `administration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qserver.sql.ast import Administer
from qserver.sql.word_reader import Head, WordReader

ROUTINES: Final = frozenset({"function", "procedure", "routine", "aggregate"})
OF_TABLES: Final = frozenset({"trigger", "rule", "policy"})
"""Kinds whose objects belong to a table: DROP TRIGGER t ON users."""
_KINDS: Final[Mapping[Head, str]] = {
    **{(word,): word for word in sorted(ROUTINES | OF_TABLES)},
    ("domain",): "domain",
    ("collation",): "collation",
    ("conversion",): "conversion",
    ("statistics",): "statistics object",
    ("text", "search", "configuration"): "text search configuration",
    ("text", "search", "dictionary"): "text search dictionary",
    ("text", "search", "parser"): "text search parser",
    ("text", "search", "template"): "text search template",
    ("materialized", "view"): "materialized view",
    ("foreign", "table"): "foreign table",
    ("foreign", "data", "wrapper"): "foreign-data wrapper",
    ("server",): "server",
    ("publication",): "publication",
    ("subscription",): "subscription",
    ("event", "trigger"): "event trigger",
    ("language",): "language",
    ("procedural", "language"): "language",
    ("access", "method"): "access method",
    ("tablespace",): "tablespace",
}
HEADS: Final[Mapping[Head, str]] = {("drop", *words): kind for words, kind in _KINDS.items()}


def read_drop(words: WordReader, head: Head) -> Administer:
    """Read the statement; a function's name stands with its arguments: `area(real, real)`."""
    what = HEADS[head]
    missing_ok = words.take("if", "exists")
    names = [_object(words, what)]
    table: tuple[str, ...] = ()
    if what in OF_TABLES:
        words.expect("on")
        table = tuple(_path(words))
    while what not in OF_TABLES and words.take(","):
        names.append(_object(words, what))
    if not words.has_ended:
        words.take_one(("cascade", "restrict"))
    words.end()
    at = words.position
    return Administer("drop", what, tuple(names), (), table, missing_ok, position=at)


def _path(words: WordReader) -> list[str]:
    path = [words.name()]
    while words.take("."):
        path.append(words.name())
    return path


def _object(words: WordReader, what: str) -> str:
    name = ".".join(_path(words))
    if what not in ROUTINES or not words.take("("):
        return name
    arguments: list[str] = []
    while not words.take(")"):
        arguments.append(words.name())
    return f"{name}({' '.join(arguments).replace(' ,', ',')})"
