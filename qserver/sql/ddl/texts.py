"""Renames columns in stored texts (CHECK, GENERATED).

Definitions store the text of their author. When a column is renamed, the texts of its own table
must follow; there every name is a column's unless a parenthesis makes it a function's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from qserver.values.schema import Table

_TOKENS = re.compile(
    r"""
      [eE]?'(?:[^'\\]|''|\\.)*'            # a text
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$      # one in dollars
    | --[^\n]* | /\*.*?\*/                 # comments
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<plain>[^\W\d]\w*)(?!\s*\()       # a word that is no function
    """,
    re.VERBOSE | re.DOTALL,
)


def mentions(text: str, name: str) -> bool:
    return any(found == name for found, _ in _names(text))


def renamed_in(text: str, old: str, new: str) -> str:
    quoted = '"' + new.replace('"', '""') + '"'
    places = [span for found, span in _names(text) if found == old]
    for start, end in reversed(places):
        text = text[:start] + quoted + text[end:]
    return text


def _names(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for token in _TOKENS.finditer(text):
        if token["quoted"] is not None:
            yield token["quoted"][1:-1].replace('""', '"'), token.span()
        elif token["plain"] is not None:
            yield token["plain"].lower(), token.span()


def rename_column_in(table: Table, old: str, new: str) -> Table:
    """Rename a column in all texts and column lists of its table's definition."""
    columns = tuple(
        column
        if column.generated is None
        else replace(column, generated=renamed_in(column.generated, old, new))
        for column in table.columns
    )
    checks = tuple(
        replace(
            check,
            text=renamed_in(check.text, old, new),
            columns=_renamed(check.columns, old, new),
        )
        if old in check.columns
        else check
        for check in table.checks
    )
    keys = tuple(
        replace(
            key,
            columns=_renamed(key.columns, old, new),
            on_delete_columns=_renamed(key.on_delete_columns, old, new),
        )
        for key in table.foreign_keys
    )
    comments = tuple(
        (f"column {new}" if what == f"column {old}" else what, text)
        for what, text in table.comments
    )
    return replace(table, columns=columns, checks=checks, foreign_keys=keys, comments=comments)


def _renamed(names: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if name == old else name for name in names)
