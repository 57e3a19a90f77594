"""Rewrites the texts of views when their relations or columns change, so that they mean the same.

    ALTER TABLE t RENAME TO u       … FROM t …    becomes    … FROM "u" AS "t" …
    ALTER TABLE t RENAME a TO b     … FROM t …    becomes    … FROM (SELECT "b" AS "a", … FROM "t")
                                                                 AS "t" …
    ALTER TABLE t ADD c             … FROM t …    becomes    … FROM (SELECT "a", "b" FROM "t")
                                                                 AS "t" …
    ALTER TABLE t DROP a            … FROM t AS x (p, q) …   becomes   … FROM t AS x ("q") …

A view that has nothing to do with the name of a column is left alone, and one that can be
changed gets the new name itself (`view_columns`), so that rows can still be written through it.
A new column would be meant where a name alone, NATURAL or a star meant others until then.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from qserver.errors import FeatureNotSupported, StatementError
from qserver.sql import ast
from qserver.sql.ddl.names import known_key
from qserver.sql.ddl.port import DdlPort
from qserver.sql.ddl.view_columns import (
    PART,
    Renaming,
    everything_in,
    only_source,
    rewritten,
    unquoted,
)
from qserver.sql.plan import OutputColumn
from qserver.values.identifiers import quoted
from qserver.values.relations import View
from qserver.values.schema import Table

_WORD: Final = re.compile(PART)
_PATH: Final = rf"{PART}(?:\s*\.\s*{PART})*"
_NAME: Final = re.compile(_PATH)
_ALIASES: Final = re.compile(
    rf"{_PATH}\s+(?:as\s+)?{PART}\s*(?P<list>\((?:\s*{PART}\s*,)*\s*{PART}\s*\))", re.IGNORECASE
)


def views_using(work: DdlPort, key: str) -> list[View]:
    return [
        each
        for each in work.transaction.catalog.definitions()
        if isinstance(each, View) and key in each.uses
    ]


def follow_relation(
    work: DdlPort, views: Sequence[View], old: Table | View, new: Table | View
) -> Generator[Any, Any, None]:
    changed = []
    for view in views:
        uses = tuple(new.key if each == old.key else each for each in view.uses)
        places = _references(work.statements.parse_query(view.text), old.key)
        text = _with_source(view.text, old, _path(new), places)
        changed.append(replace(view, text=text, uses=uses))
    yield from _redefine(work, changed, f'rename relation "{old.name}"')


def follow_column(
    work: DdlPort, relation: Table | View, old: str, new: str
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
            places = _references(query, relation.key)
            changed.append(replace(view, text=_with_source(view.text, relation, source, places)))
        else:
            changed.append(replace(view, text=simple[0], output=simple[1]))
    yield from _redefine(work, changed, f'rename column "{old}" of table "{relation.name}"')


def follow_added(
    work: DdlPort, relation: Table | View, known: Sequence[str], new: str
) -> Generator[Any, Any, None]:
    """Hide a new column from views that were made when the relation had the `known` columns."""
    source = f"(SELECT {', '.join(map(quoted, known))} FROM {_path(relation)})"
    changed = []
    for view in views_using(work, relation.key):
        if not _may_mention(view.text, (new,)):
            continue
        query = work.statements.parse_query(view.text)
        places = [
            each
            for each, around in _references_within(query, relation.key, query)
            if _could_mean(around, new)
        ]
        only = only_source(query, relation.key)
        if only is not None and not _is_in_its_way(view, query, only, new):
            places = [each for each in places if each is not only]
        if places:
            changed.append(replace(view, text=_with_source(view.text, relation, source, places)))
    yield from _redefine(work, changed, f'add column "{new}" to relation "{relation.name}"')


def without_alias(work: DdlPort, view: View, table: Table, column: str, name: str | None) -> View:
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
    return "*" in text or not words.isdisjoint(("natural", "table", *names))


def _could_mean(query: object, name: str) -> bool:
    """Tell whether a part of a query could mean a new column of this name."""
    if isinstance(query, ast.Query) and isinstance(query.body, ast.Select):
        given = {(target.alias,) for target in query.body.targets}
        order = [
            each
            for each in query.order_by
            if not (isinstance(each.expression, ast.Name) and each.expression.parts in given)
        ]  # ORDER BY prefers what the query itself has named
        query = replace(query, order_by=tuple(order))
    for node in everything_in(query):
        match node:
            case ast.Name():
                found = name in node.parts
            case ast.Join():
                found = node.natural or name in node.using
            case ast.Star():
                found = True
            case ast.Field():
                found = node.name in ("*", name)
            case _:
                found = False
        if found:
            return True
    return False


def _is_in_its_way(view: View, query: ast.Query, source: ast.TableRef, name: str) -> bool:
    """Tell whether a view of one relation has the name of a new column for something else."""
    assert isinstance(query.body, ast.Select)
    has_star = any(isinstance(target.expression, ast.Star) for target in query.body.targets)
    aliased = (source.alias or source.name[-1], *source.column_aliases)
    return name in aliased or (has_star and name in view.output)


def _path(relation: Table | View) -> str:
    return ".".join(map(quoted, relation.path))


def _redefine(work: DdlPort, views: Sequence[View], what: str) -> Generator[Any, Any, None]:
    for view in views:
        work.transaction.define(view.key, view)
    for view in views:
        if not (yield from is_unharmed(work, view)):
            raise FeatureNotSupported(
                f'cannot {what} because view "{view.name}" uses it',
                hint="Drop the view and create it anew.",
            )


def is_unharmed(work: DdlPort, view: View) -> Generator[Any, Any, bool]:
    """Tell whether a view still has the columns that it was created with."""
    try:
        found = yield from columns_now(work, view)
    except StatementError:  # a name, a function, or a column of the view is gone
        return False
    return tuple((column.name, column.type) for column in found) == view.columns


def columns_now(work: DdlPort, view: View) -> Generator[Any, Any, tuple[OutputColumn, ...]]:
    """Return the columns that a view has by its text."""
    query = ast.Query(ast.Select((ast.Target(ast.Star()),), (ast.TableRef(view.path),)))
    return (yield from work.statements.columns_of(query, ()))


def _with_source(
    text: str, relation: Table | View, source: str, references: Sequence[ast.TableRef]
) -> str:
    """Replace the relation's name by another source at some places in a view's text."""
    places = sorted([(each.position, each.alias is not None) for each in references], reverse=True)
    for position, has_alias in places:
        found = _NAME.match(text, position)
        assert found is not None, "a relation's place is where its name is"
        alias = "" if has_alias else f" AS {quoted(relation.name)}"
        before = text[:position]
        if before.rstrip().lower().endswith("table"):
            before = f"{before.rstrip()[: -len('table')]}SELECT * FROM "
        text = f"{before}{source}{alias}{text[found.end() :]}"
    return text


def _references(query: ast.Query, key: str) -> list[ast.TableRef]:
    """Where a relation is named in FROM."""
    return [each for each, _ in _references_within(query, key, query)]


def _references_within(
    node: object, key: str, around: object
) -> Iterator[tuple[ast.TableRef, object]]:
    """Where a relation is named in FROM, each with the query whose names may mean its columns."""
    if isinstance(node, ast.TableRef):
        if known_key(node.name) == key:
            yield node, around
        return
    if isinstance(node, ast.Query):
        if any(each.name == key for each in node.common_tables):
            return  # inside, the name means something else
        around = node
    elif isinstance(node, ast.Select) and not (
        isinstance(around, ast.Query) and around.body is node
    ):
        around = node
    if isinstance(node, tuple):
        for part in node:
            yield from _references_within(part, key, around)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _references_within(getattr(node, field.name), key, around)
