"""Tab completion: keywords, tables, columns and commands, those that fit the place first.

SELECT u.<Tab>   FROM users u       columns of users
SELECT <Tab>     FROM users         columns of users, then tables, then keywords
FROM <Tab>                          tables
\\<Tab>                              commands of the shell
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from qserver.cli.shell.commands import COMMANDS
from qserver.lexing.keywords import HEADS, KEYWORDS

_WORD: Final = re.compile(r'[\w$"]*\Z')
_QUALIFIER: Final = re.compile(r'([\w$"]+)\.\Z')
_BEFORE_TABLE: Final = re.compile(
    r"\b(from|join|into|update|table|references|truncate)\s+\Z", re.IGNORECASE
)
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_$]*")
_KEYWORDS: Final = tuple(sorted({*KEYWORDS, *HEADS}))


class SqlCompleter(Completer):
    """Completes names of one database, as of the last call of `know`."""

    def __init__(self) -> None:
        self._columns: dict[str, list[str]] = {}

    def know(self, tables: Sequence[Mapping[str, Any]]) -> None:
        self._columns = {
            each["name"]: [column["name"] for column in each["columns"]] for each in tables
        }

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith("\\"):
            yield from self._commands(before.lstrip())
            return
        found = _WORD.search(before)
        assert found is not None, "a word may be empty"
        word, left = found.group(), before[: found.start()]
        offered: set[str] = set()
        for text, kind in self._candidates(word, left, document.text):
            if text not in offered and text.lower().startswith(word.lower().lstrip('"')):
                offered.add(text)
                yield Completion(_written(text, kind, word), -len(word), text, display_meta=kind)

    def _commands(self, line: str) -> Iterator[Completion]:
        name, blank, argument = line.partition(" ")
        if not blank:
            for each in COMMANDS.values():
                if each.name.startswith(name):
                    yield Completion(each.name, -len(name), display_meta=each.meaning)
        elif name.startswith(("\\d", "\\sv")):
            for table in self._columns:
                if table.startswith(argument):
                    yield Completion(table, -len(argument), display_meta="table")

    def _candidates(self, word: str, left: str, text: str) -> Iterator[tuple[str, str]]:
        qualifier = _QUALIFIER.search(left)
        if qualifier is not None:
            table = self._table_called(qualifier.group(1).strip('"'), text)
            yield from ((name, "column") for name in self._columns.get(table, ()))
            return
        only_tables = _BEFORE_TABLE.search(left) is not None
        if not only_tables:
            yield from ((name, "column") for name in self._columns_named(text))
        yield from ((name, "table") for name in self._columns)
        if word and not only_tables and not word.startswith('"'):
            yield from ((name, "keyword") for name in _KEYWORDS)

    def _columns_named(self, text: str) -> Iterable[str]:
        """The columns of the tables that the statement mentions, else of all tables."""
        words = set(re.findall(r"[\w$]+", text.lower()))
        mentioned = [table for table in self._columns if table.lower() in words]
        for table in mentioned or self._columns:
            yield from self._columns[table]

    def _table_called(self, name: str, text: str) -> str:
        """The table with this name or alias."""
        if name in self._columns:
            return name
        pattern = rf'([\w$]+)"?\s+(?:as\s+)?"?{re.escape(name)}\b'
        for found in re.finditer(pattern, text, re.IGNORECASE):
            if found.group(1).lower() in self._columns:
                return found.group(1).lower()
        return name.lower()


def _written(text: str, kind: str, word: str) -> str:
    """Keywords in the case that the user began; names quoted where SQL needs it."""
    if kind == "keyword":
        return text if word.islower() else text.upper()
    if word.startswith('"') or not _PLAIN_NAME.fullmatch(text) or text in KEYWORDS:
        return '"' + text.replace('"', '""') + '"'
    return text
