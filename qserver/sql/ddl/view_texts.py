"""Rewrites the texts of views when their relations or columns are renamed.

    ALTER TABLE t RENAME TO u       … FROM t …    becomes    … FROM "u" AS "t" …
    ALTER TABLE t RENAME a TO b     … FROM t …    becomes    … FROM (SELECT "b" AS "a", … FROM "t")
                                                                 AS "t" …

    ALTER TABLE t DROP a            … FROM t AS x (p, q) …   becomes   … FROM t AS x ("q") …

A view that has nothing to do with either name of a column is left alone, and one that can be
changed gets the new name itself (`view_columns`), so that rows can still be written through it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from qserver.errors import FeatureNotSupported
from qserver.sql import ast
from qserver.sql.binder.star_texts import quoted
from qserver.sql.ddl.names import known_key
from qserver.sql.ddl.port import Work
from qserver.sql.ddl.view_columns import PART, Renaming, rewritten, unquoted
from qserver.sql.ddl.views import is_unharmed
from qserver.values.relations import View
from qserver.values.schema import Table

_WORD: Final = re.compile(PART)
_PATH: Final = rf"{PART}(?:\s*\.\s*{PART})*"
_NAME: Final = re.compile(_PATH)
_ALIASES: Final = re.compile(
    rf"{_PATH}\s+(?:as\s+)?{PART}\s*(?P<list>\((?:\s*{PART}\s*,)*\s*{PART}\s*\))", re.IGNORECASE
)


def views_using(work: Work, key: str) -> list[View]:
    return [
        each
        for each in work.transaction.catalog.definitions()
        if isinstance(each, View) and key in each.uses
    ]


def follow_relation(
    work: Work, views: Sequence[View], old: Table | View, new: Table | View
) -> Generator[Any, Any, None]:
    changed = []
    for view in views:
        uses = tuple(new.key if each == old.key else each for each in view.uses)
        text = _with_source(work, view, old, _path(new))
        changed.append(replace(view, text=text, uses=uses))
    yield from _redefine(work, changed, f'relation "{old.name}"')


def follow_column(
    work: Work, relation: Table | View, old: str, new: str
) -> Generator[Any, Any, None]:
    """Make a renamed column visible to views under its old name; `relation` has the new one."""
    names = _column_names(relation)
    columns = ", ".join(
        f"{quoted(name)} AS {quoted(old)}" if name == new else quoted(name) for name in names
    )
    source = f"(SELECT {columns} FROM {_path(relation)})"

    def columns_of(key: str) -> tuple[str, ...] | None:
        found = work.transaction.catalog.find(key)
        return _column_names(found) if isinstance(found, Table | View) else None

    renaming = Renaming(relation.key, relation.name, old, new, names, columns_of)
    changed = []
    for view in views_using(work, relation.key):
        if not _may_mention(view.text, (old, new)):
            continue
        query = work.statements.parse_query(view.text)
        simple = rewritten(view.text, query, view.output, renaming)
        if simple is None:
            changed.append(replace(view, text=_with_source(work, view, relation, source)))
        else:
            changed.append(replace(view, text=simple[0], output=simple[1]))
    yield from _redefine(work, changed, f'column "{old}" of table "{relation.name}"')


def without_alias(work: Work, view: View, table: Table, column: str, name: str | None) -> View:
    """The view with another name for a column in `table AS x (a, b)`, or with none for it."""
    at = list(table.positions).index(column)
    text = view.text
    found = _references(work.statements.parse_query(text), table.key)
    for each in sorted(found, key=lambda each: each.position, reverse=True):
        if at >= len(each.column_aliases):
            continue
        match = _ALIASES.match(text, each.position)
        if match is None:
            raise FeatureNotSupported(
                f'cannot change column "{column}" of table "{table.name}" because view'
                f' "{view.name}" uses it',
                hint="Drop the view and create it anew.",
            )
        aliases = list(map(quoted, each.column_aliases))
        aliases[at : at + 1] = [] if name is None else [quoted(name)]
        now = f"({', '.join(aliases)})" if aliases else ""
        text = f"{text[: match.start('list')]}{now}{text[match.end('list') :]}"
    return view if text == view.text else replace(view, text=text)


def _column_names(relation: Table | View) -> tuple[str, ...]:
    if isinstance(relation, Table):
        return tuple(relation.positions)
    return tuple(name for name, _ in relation.columns)


def _may_mention(text: str, names: tuple[str, ...]) -> bool:
    """Tell whether a text could mean one of the columns: by name, by a star, or by NATURAL."""
    words = {unquoted(part) for part in _WORD.findall(text)}
    return "*" in text or "natural" in words or not words.isdisjoint(names)


def _path(relation: Table | View) -> str:
    return ".".join(map(quoted, relation.path))


def _redefine(work: Work, views: Sequence[View], what: str) -> Generator[Any, Any, None]:
    for view in views:
        work.transaction.define(view.key, view)
    for view in views:
        if not (yield from is_unharmed(work, view)):
            raise FeatureNotSupported(
                f'cannot rename {what} because view "{view.name}" uses it',
                hint="Drop the view and create it anew.",
            )


def _with_source(work: Work, view: View, relation: Table | View, source: str) -> str:
    """Replace the relation's name by another source in the view's text."""
    text, name = view.text, relation.name
    places = sorted(
        [
            (each.position, each.alias is not None)
            for each in _references(work.statements.parse_query(text), relation.key)
        ],
        reverse=True,
    )
    for position, has_alias in places:
        found = _NAME.match(text, position)
        assert found is not None, "a relation's place is where its name is"
        alias = "" if has_alias else f" AS {quoted(name)}"
        text = f"{text[:position]}{source}{alias}{text[found.end() :]}"
    return text


def _references(node: object, key: str) -> list[ast.TableRef]:
    """Where a relation is named in FROM."""
    if isinstance(node, ast.TableRef):
        return [node] if known_key(node.name) == key else []
    if isinstance(node, ast.Query) and any(each.name == key for each in node.common_tables):
        return []  # inside, the name means something else
    found: list[ast.TableRef] = []
    if isinstance(node, tuple):
        for part in node:
            found += _references(part, key)
    elif is_dataclass(node):
        for field in fields(node):
            found += _references(getattr(node, field.name), key)
    return found
