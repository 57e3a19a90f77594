"""Reads statements about extensions, roles and the database, which are words and no expressions.

    ALTER DEFAULT PRIVILEGES FOR ROLE r IN SCHEMA s GRANT SELECT ON TABLES TO PUBLIC

They are read here word by word, from the terminals, because the grammar of SQL would have to
reserve their words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from qserver.sql.absent_kinds import HEADS, read_drop
from qserver.sql.ast import Administer
from qserver.sql.terminals import Source
from qserver.sql.word_reader import Head, WordReader

_ROLES: Final = frozenset({"role", "user", "group"})
_COMMENTED: Final = _ROLES | {"database", "extension"}
_ENDS: Final = frozenset({"cascade", "restrict"})


def read_administration(source: Source) -> Administer | None:
    """Return the statement, if it is one of these."""
    words = tuple(str(each.value) for each in source.terminals[:4] if each.type != "STRING")
    for head, read in _READERS.items():
        if words[: len(head)] == head:
            return read(WordReader(source, len(head)), head)
    return None


# --- extensions -----------------------------------------------------------------------------------


def _create_extension(words: WordReader, head: Head) -> Administer:
    """Read CREATE EXTENSION; its words are pairs: schema, version."""
    missing_ok = words.take("if", "not", "exists")
    names = (words.name(),)
    words.take("with")
    options: list[str] = []
    while not words.has_ended:
        if words.take("cascade"):
            continue
        option = words.take_one(("schema", "version"))
        is_text = words.next is None
        options += [option, (words.text() or "") if is_text else words.name()]
    at = words.position
    return Administer("create", "extension", names, (), tuple(options), missing_ok, position=at)


def _drop(words: WordReader, head: Head) -> Administer:
    what = "role" if head[1] in _ROLES else head[1]
    missing_ok = words.take("if", "exists")
    names = words.names()
    if what == "extension" and not words.has_ended:
        words.take_one(_ENDS)
    words.end()
    return Administer("drop", what, names, missing_ok=missing_ok, position=words.position)


# --- roles, the database, the server --------------------------------------------------------------


def _create_role(words: WordReader, head: Head) -> Administer:
    names = (words.name(),)
    words.take("with")
    return Administer("create", "role", names, (), words.rest(), position=words.position)


def _alter(words: WordReader, head: Head) -> Administer:
    what = "role" if head[1] in _ROLES else head[1]
    missing_ok = words.take("if", "exists")
    names = () if what == "system" else (words.name(),)
    if what == "role" and words.take("in", "database"):
        words.name()
    words.take("with")
    if words.has_ended and what != "role":
        raise words.unexpected()
    rest, at = words.rest(), words.position
    return Administer("alter", what, names, (), rest, missing_ok, position=at)


def _alter_defaults(words: WordReader, head: Head) -> Administer:
    roles: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    while True:
        if words.take("for", "role") or words.take("for", "user"):
            roles += words.names()
        elif words.take("in", "schema"):
            names += words.names()
        else:
            break
    action = words.take_one(("grant", "revoke"))
    privileges = []
    while words.next not in (None, "on"):
        privileges.append(words.name())
    words.expect("on")
    words.take_one(("tables", "sequences", "functions", "routines", "types", "schemas"))
    words.expect("to" if action == "grant" else "from")
    words.take("group")
    roles += words.names()
    if not words.take("with", "grant", "option") and not words.has_ended:
        words.take_one(_ENDS)
    words.end()
    what, at = "default privileges", words.position
    return Administer("alter", what, names, roles, tuple(privileges), position=at)


def _reassign(words: WordReader, head: Head) -> Administer:
    roles = words.names()
    words.expect("to")
    roles += (words.name(),)
    words.end()
    return Administer("reassign", "owned", (), roles, position=words.position)


def _drop_owned(words: WordReader, head: Head) -> Administer:
    roles = words.names()
    if not words.has_ended:
        words.take_one(_ENDS)
    words.end()
    return Administer("drop", "owned", (), roles, position=words.position)


def _label(words: WordReader, head: Head) -> Administer:
    words.rest()
    return Administer("label", "security", position=words.position)


def _comment(words: WordReader, head: Head) -> Administer:
    what = "role" if head[2] in _ROLES else head[2]
    names = (words.name(),)
    words.expect("is")
    text = words.text()
    words.end()
    return Administer("comment", what, names, text=text, position=words.position)


_READERS: Final[Mapping[Head, Callable[[WordReader, Head], Administer]]] = {
    ("create", "extension"): _create_extension,
    ("drop", "extension"): _drop,
    ("alter", "default", "privileges"): _alter_defaults,
    **{("create", word): _create_role for word in ("role", "user", "group")},
    **{("drop", word): _drop for word in ("role", "user", "group")},
    **{
        ("alter", word): _alter
        for word in ("role", "user", "group", "database", "system", "extension")
    },
    ("reassign", "owned", "by"): _reassign,
    ("drop", "owned", "by"): _drop_owned,
    ("security", "label"): _label,
    **{("comment", "on", word): _comment for word in sorted(_COMMENTED)},
    **dict.fromkeys(HEADS, read_drop),
}
"""By their first words."""
