"""Reads statements about extensions, roles and the database, which are words and no expressions.

    ALTER DEFAULT PRIVILEGES FOR ROLE r IN SCHEMA s GRANT SELECT ON TABLES TO PUBLIC

They are read here word by word, from the terminals, because the grammar of SQL would have to
reserve their words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import Administer, Literal
from qserver.sql.terminals import Source, Terminal

_ROLES: Final = frozenset({"role", "user", "group"})
_COMMENTED: Final = _ROLES | {"database", "extension"}
_ENDS: Final = frozenset({"cascade", "restrict"})


def read_administration(source: Source) -> Administer | None:
    """Return the statement, if it is one of these."""
    words = tuple(str(each.value) for each in source.terminals[:3] if each.type != "STRING")
    for head, read in _READERS.items():
        if words[: len(head)] == head:
            return read(_Words(source, len(head)), head)
    return None


class _Words:
    """The words of a statement, from one of them on."""

    def __init__(self, source: Source, at: int) -> None:
        self._source = source
        self._at = at

    @property
    def position(self) -> int:
        return self._source.terminals[0].start

    @property
    def next(self) -> str | None:
        """The next word, or None at the end; a text is no word."""
        if self._at >= len(self._source.terminals):
            return None
        terminal = self._source.terminals[self._at]
        return None if isinstance(terminal.value, Literal) else str(terminal.value)

    @property
    def has_ended(self) -> bool:
        return self._at >= len(self._source.terminals)

    def unexpected(self) -> SqlSyntaxError:
        if self.has_ended:
            end = len(self._source.text)
            return SqlSyntaxError("syntax error at end of input", position=end + 1)
        terminal = self._source.terminals[self._at]
        shown = self._source.text[terminal.start : terminal.end]
        return SqlSyntaxError(f'syntax error at or near "{shown}"', position=terminal.start + 1)

    def take(self, *phrase: str) -> bool:
        """Take these words, if they are next."""
        end = self._at + len(phrase)
        found = self._source.terminals[self._at : end]
        if [str(each.value) for each in found] != list(phrase):
            return False
        self._at = end
        return True

    def expect(self, *phrase: str) -> None:
        for word in phrase:
            if not self.take(word):
                raise self.unexpected()

    def take_one(self, wanted: Collection[str]) -> str:
        """Take one of these words."""
        found = self.next
        if found is None or found not in wanted:
            raise self.unexpected()
        self._at += 1
        return found

    def name(self) -> str:
        found = self.next
        if found is None or not found:
            raise self.unexpected()
        self._at += 1
        return found

    def names(self) -> tuple[str, ...]:
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        return tuple(found)

    def text(self) -> str | None:
        """Take a text, or NULL."""
        if self.take("null"):
            return None
        if not self.has_ended:
            terminal = self._source.terminals[self._at]
            if terminal.type == "STRING":
                self._at += 1
                return self._value(terminal)
            if terminal.value is None:
                self._at += 1
                return None
        raise self.unexpected()

    def rest(self) -> tuple[str, ...]:
        """Take all words that are left."""
        found = tuple([self._value(each) for each in self._source.terminals[self._at :]])
        self._at = len(self._source.terminals)
        return found

    def end(self) -> None:
        if not self.has_ended:
            raise self.unexpected()

    def _value(self, terminal: Terminal) -> str:
        value = terminal.value
        if isinstance(value, Literal):
            return str(self._source.literals[value.index])
        return str(value)


Head = tuple[str, ...]


# --- extensions -----------------------------------------------------------------------------------


def _create_extension(words: _Words, head: Head) -> Administer:
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


def _drop(words: _Words, head: Head) -> Administer:
    what = "role" if head[1] in _ROLES else head[1]
    missing_ok = words.take("if", "exists")
    names = words.names()
    if what == "extension" and not words.has_ended:
        words.take_one(_ENDS)
    words.end()
    return Administer("drop", what, names, missing_ok=missing_ok, position=words.position)


# --- roles, the database, the server --------------------------------------------------------------


def _create_role(words: _Words, head: Head) -> Administer:
    names = (words.name(),)
    words.take("with")
    return Administer("create", "role", names, (), words.rest(), position=words.position)


def _alter(words: _Words, head: Head) -> Administer:
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


def _alter_defaults(words: _Words, head: Head) -> Administer:
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


def _reassign(words: _Words, head: Head) -> Administer:
    roles = words.names()
    words.expect("to")
    roles += (words.name(),)
    words.end()
    return Administer("reassign", "owned", (), roles, position=words.position)


def _drop_owned(words: _Words, head: Head) -> Administer:
    roles = words.names()
    if not words.has_ended:
        words.take_one(_ENDS)
    words.end()
    return Administer("drop", "owned", (), roles, position=words.position)


def _label(words: _Words, head: Head) -> Administer:
    words.rest()
    return Administer("label", "security", position=words.position)


def _comment(words: _Words, head: Head) -> Administer:
    what = "role" if head[2] in _ROLES else head[2]
    names = (words.name(),)
    words.expect("is")
    text = words.text()
    words.end()
    return Administer("comment", what, names, text=text, position=words.position)


_READERS: Final[Mapping[Head, Callable[[_Words, Head], Administer]]] = {
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
}
"""By their first words."""
