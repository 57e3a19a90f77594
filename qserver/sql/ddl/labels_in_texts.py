"""Renames a label of an enum in stored texts, as PostgreSQL does, which stores labels by number.

    … m state DEFAULT 'new', CHECK (m <> 'new')        becomes    … DEFAULT 'fresh', …

Which of the literals in a text are labels only the types of their places tell. So each is tried: a
literal is a label of the enum if another text in its place is refused as one.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from qserver.errors import FeatureNotSupported, QserverError
from qserver.sql.ddl.create_table import check_definition
from qserver.sql.ddl.named_in_texts import STRING, with_texts
from qserver.sql.ddl.port import DdlPort
from qserver.sql.ddl.view_texts import columns_now
from qserver.values.enumeration import Enumeration
from qserver.values.relations import View
from qserver.values.schema import Table

_ELEMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^{},"\s][^{},"]*')
Trying = Generator[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of one text of a definition: which text, and where in it."""

    text: int
    start: int
    end: int


def users_of_label(work: DdlPort, old: str) -> list[Table | View]:
    """The tables and views whose texts may have the label in a literal."""
    return [
        each
        for each in work.transaction.catalog.definitions()
        if isinstance(each, Table | View) and list(_literals(each, old))
    ]


def labels_in(work: DdlPort, user: Table | View, enumeration: Enumeration, old: str) -> Trying:
    """Return the literals that are the label; `work` still has the old definitions."""
    none = old
    while none in enumeration.labels:
        none += "?"
    found = []
    for literal in list(_literals(user, old)):
        work.transaction.define(user.key, _written(user, [literal], old, none))
        error = yield from _error_of(work, work.find(user.key))
        work.transaction.define(user.key, user)
        if error is not None and f'enum {enumeration}: "{none}"' in error.message:
            found.append(literal)
    return found


def with_label(
    work: DdlPort, key: str, literals: list[Literal], old: str, new: str
) -> Generator[Any, Any, None]:
    """Write a label that is renamed already; refuse what then would not work."""
    user = work.find(key)
    assert isinstance(user, Table | View)
    changed = _written(user, literals, old, new)
    if changed != user:
        work.transaction.define(key, changed)
    error = yield from _error_of(work, changed)
    if error is not None:
        raise FeatureNotSupported(
            f'cannot rename label "{old}" because "{user.name}" uses it', detail=error.message
        )


def _error_of(work: DdlPort, user: object) -> Trying:
    """Return the error that each use of a table or view meets."""
    try:
        if isinstance(user, View):
            yield from columns_now(work, user)
        else:
            assert isinstance(user, Table)
            yield from check_definition(work, user)
    except QserverError as error:
        return error
    return None


def _texts(user: Table | View) -> list[str]:
    """All texts of a definition, in the order in which `with_texts` changes them."""
    found: list[str] = []

    def noted(text: str) -> str:
        found.append(text)
        return text

    with_texts(user, noted, noted)
    return found


def _literals(user: Table | View, label: str) -> Iterator[Literal]:
    for number, text in enumerate(_texts(user)):
        if label.replace("'", "''") not in text:
            continue
        for token in _strings(text):
            if _with_other(_content(token[0]), label, label + "?") != _content(token[0]):
                yield Literal(number, *token.span())


def _strings(text: str) -> Iterator[re.Match[str]]:
    """The literals in a text, not those in comments or in names."""
    return (each for each in _TOKEN.finditer(text) if each[0].startswith("'"))


_TOKEN: Final = re.compile(
    rf"""{STRING.pattern} | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | [eE]'(?:[^'\\]|''|\\.)*'
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$""",
    re.VERBOSE | re.DOTALL,
)


def _written(user: Table | View, literals: list[Literal], old: str, new: str) -> Table | View:
    numbers = iter(range(len(_texts(user))))

    def changed(text: str) -> str:
        number = next(numbers)
        for each in sorted(literals, key=lambda each: -each.start):
            if each.text == number:
                content = _with_other(_content(text[each.start : each.end]), old, new)
                quoted = content.replace("'", "''")
                text = f"{text[: each.start]}'{quoted}'{text[each.end :]}"
        return text

    return with_texts(user, changed, changed)


def _content(literal: str) -> str:
    return literal[1:-1].replace("''", "'")


def _with_other(content: str, old: str, new: str) -> str:
    """Return the text with another label: the text itself, or elements of an array."""
    if content == old:
        return new
    if not content.lstrip().startswith("{"):
        return content

    def element(found: re.Match[str]) -> str:
        plain = found[0].strip()
        if plain.startswith('"'):
            plain = re.sub(r"\\(.)", r"\1", plain[1:-1])
        if plain != old:
            return found[0]
        escaped = re.sub(r'(["\\])', r"\\\1", new)
        return f'"{escaped}"'

    return _ELEMENT.sub(element, content)
