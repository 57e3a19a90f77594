"""Renames columns in the texts of updatable views.

    ALTER TABLE t RENAME a TO b     SELECT a FROM t WHERE a > 0
                            becomes SELECT "b" FROM t WHERE "b" > 0

The view's own columns keep their names. In subqueries `t.a` is replaced, and `a` alone if no table
of the subquery has a column of either name; where one of them could mean the column otherwise, this
is not tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Final

from qserver.sql import ast
from qserver.sql.binder.names.column_names import column_name
from qserver.sql.binder.tables.updatable_views import why_not_updatable
from qserver.sql.ddl.names import known_key
from qserver.values.identifiers import quoted

PART: Final = r'(?:"(?:[^"]|"")*"|[^\W\d][\w$]*)'
_LAST: Final = re.compile(rf"(?:{PART}\s*\.\s*)*(?P<last>{PART})")


@dataclass(frozen=True, slots=True)
class Renaming:
    """A relation's column that was `old` and is `new`; `names` are those of all its columns now.

    `columns_of` tells the columns of any table or view by its key.
    """

    key: str
    relation: str
    old: str
    new: str
    names: tuple[str, ...]
    columns_of: Callable[[str], tuple[str, ...] | None]

    def is_foreign_to(self, node: object) -> bool:
        """Can neither name be that of a column which a part of a subquery brings along?"""
        both = {self.old, self.new}
        match node:
            case ast.TableRef():
                columns = self.columns_of(known_key(node.name))
                return columns is not None and both.isdisjoint((*columns, *node.column_aliases))
            case ast.SubqueryRef() | ast.FunctionRef() | ast.RowsFrom():
                return False
            case ast.Query():
                return not node.common_tables
            case ast.Target():
                return node.alias not in both
        return True


def rewritten(
    text: str, query: ast.Query, output: tuple[str, ...], renaming: Renaming
) -> tuple[str, tuple[str, ...]] | None:
    """Return a view's query and its output with the new name, or None if that is not safe."""
    source = only_source(query, renaming.key)
    if source is None:
        return None
    if renaming.names.index(renaming.new) < len(source.column_aliases):
        return text, output  # the view has its own alias for the column
    names = _names_in(query, source.alias or renaming.relation, renaming)
    if names is None or _new_name_is_ordered_by(query, renaming):
        return None
    outputs = _outputs(query, renaming)
    picked = _picked(outputs, output)
    now = [new for _, new in outputs]
    if picked is None or _picked(outputs, tuple(now[at] for at in picked), new=True) != picked:
        return None
    places = {name.position for name in names if name.parts[-1] == renaming.old}
    for position in sorted(places, reverse=True):
        found = _LAST.match(text, position)
        if found is None or unquoted(found["last"]) != renaming.old:
            return None  # written with escapes
        text = f"{text[: found.start('last')]}{quoted(renaming.new)}{text[found.end() :]}"
    return text, tuple(now[at] for at in picked)


def _names_in(query: ast.Query, visible: str, renaming: Renaming) -> list[ast.Name] | None:
    """Return the names in a query on one relation; None if it is not certain what they mean."""
    outer = [*_outside_of_queries(query.body), *_ordered_by(query)]
    names = [each for each in outer if isinstance(each, ast.Name)]
    if any(name.parts == (visible,) and visible not in renaming.names for name in names):
        return None  # the whole row, which contains the names of its columns
    for each in outer:
        if isinstance(each, ast.Query):
            inside = list(everything_in(each))
            foreign = all(map(renaming.is_foreign_to, inside))
            if any(_could_mean(part, visible, renaming, foreign) for part in inside):
                return None
            names += [part for part in inside if isinstance(part, ast.Name)]
    return names


def unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()


def only_source(query: ast.Query, key: str) -> ast.TableRef | None:
    """Return the place of a relation that is all that an updatable query reads from."""
    if why_not_updatable(query) is not None:
        return None
    assert isinstance(query.body, ast.Select)
    (source,) = query.body.sources
    assert isinstance(source, ast.TableRef)
    return source if known_key(source.name) == key else None


def everything_in(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        for part in node:
            yield from everything_in(part)
    elif is_dataclass(node):
        yield node
        for field in fields(node):
            yield from everything_in(getattr(node, field.name))


def _outside_of_queries(node: object) -> Iterator[object]:
    """Yield everything in a node; of nested queries only the query itself."""
    if isinstance(node, tuple):
        for part in node:
            yield from _outside_of_queries(part)
    elif is_dataclass(node):
        yield node
        if not isinstance(node, ast.Query):
            for field in fields(node):
                yield from _outside_of_queries(getattr(node, field.name))


def _ordered_by(query: ast.Query) -> Iterator[object]:
    """Yield what ORDER BY names, except aliases of the select list."""
    assert isinstance(query.body, ast.Select)
    given = {target.alias for target in query.body.targets}
    for item in query.order_by:
        node = item.expression
        if not (isinstance(node, ast.Name) and len(node.parts) == 1 and node.parts[0] in given):
            yield from _outside_of_queries(node)


def _new_name_is_ordered_by(query: ast.Query, renaming: Renaming) -> bool:
    """Tell whether ORDER BY would take the new name for an alias of the select list."""
    assert isinstance(query.body, ast.Select)
    given = {target.alias for target in query.body.targets}
    return bool(query.order_by) and renaming.new in given


def _could_mean(node: object, visible: str, renaming: Renaming, foreign: bool) -> bool:
    """Could a part of a subquery be about the column, other than by the relation's name?

    `foreign`: the subquery has no such column, so a name alone means that of the view's relation.
    """
    both = {renaming.old, renaming.new}
    match node:
        case ast.Name():
            is_plain = len(node.parts) == 2 and node.parts[0] == visible
            is_plain = is_plain or (foreign and node.parts == (renaming.old,))
            return not is_plain and not both.isdisjoint(node.parts)
        case ast.Star():
            return not foreign
        case ast.TableRef():
            return visible in (node.alias, node.name[-1])
        case ast.SubqueryRef() | ast.FunctionRef() | ast.RowsFrom():
            return node.alias in (visible, None)
        case ast.Join():
            return node.natural or node.alias == visible or not both.isdisjoint(node.using)
    return False


def _outputs(query: ast.Query, renaming: Renaming) -> list[tuple[str, str]]:
    """Return the old and the new names of the query's columns."""
    assert isinstance(query.body, ast.Select)
    outputs: list[tuple[str, str]] = []
    for target in query.body.targets:
        node = target.expression
        if isinstance(node, ast.Star):
            (source,) = query.body.sources
            assert isinstance(source, ast.TableRef)
            given = source.column_aliases
            outputs += [
                (renaming.old if name == renaming.new else name, name)
                for name in (*given, *renaming.names[len(given) :])
            ]
        elif target.alias is not None:
            outputs.append((target.alias, target.alias))
        else:
            outputs.append((column_name(node), _name_now(node, renaming)))
    return outputs


def _name_now(node: ast.Expression, renaming: Renaming) -> str:
    """Return the new name of an output; a function that has the column's name keeps it."""
    named = column_name(node)
    columns = [each for each in _outside_of_queries(node) if isinstance(each, ast.Name)]
    calls = [each for each in _outside_of_queries(node) if isinstance(each, ast.Call)]
    is_column = any(each.parts[-1] == named for each in columns)
    is_call = any(each.name[-1] == named for each in calls)
    return renaming.new if named == renaming.old and is_column and not is_call else named


def _picked(
    outputs: list[tuple[str, str]], wanted: tuple[str, ...], *, new: bool = False
) -> list[int] | None:
    """Return the positions of the view's columns in the query: by name, each once, in order."""
    picked: list[int] = []
    for name in wanted:
        at = next(
            (n for n, each in enumerate(outputs) if each[new] == name and n not in picked), None
        )
        if at is None:
            return None
        picked.append(at)
    return picked
