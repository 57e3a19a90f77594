"""Texts of definitions as a session reads them: names have a schema where its search_path needs it.

    stored                     SELECT a FROM shop.t JOIN u ON …
    search_path = shop         SELECT a FROM t JOIN public.u ON …
    search_path = ''           SELECT a FROM shop.t JOIN public.u ON …

Everything else stays as it was written. A name without a schema is `public`'s in a stored text, see
`stored_texts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from qserver.errors import QserverError
from qserver.sql import ast
from qserver.sql.binder.expressions.parsed import sequence_literals
from qserver.sql.binder.names.type_names import is_built_in
from qserver.sql.ddl.view_columns import PART
from qserver.sql.parser import Parsed, parse, parse_expression
from qserver.values.identifiers import identifiers, quote_identifier
from qserver.values.types import SqlType

_PATH: Final = re.compile(rf"{PART}(?:\s*\.\s*{PART})*")
_STRING: Final = re.compile(r"'(?:[^']|'')*'")
TEXTS_KEPT: Final = 4096


class NamesPort(Protocol):
    """How a session writes names: with a schema unless its search_path finds them."""

    def relation_text(self, name: tuple[str, ...]) -> str:
        """Return a relation's name; without a schema in a stored text it is `public`'s."""
        ...

    def type_text(self, sql_type: SqlType) -> str: ...

    def type_name(self, name: tuple[str, ...]) -> str:
        """Return the name of a type that somebody has defined."""
        ...


class Place(NamedTuple):
    """Where a text has a name."""

    start: int
    end: int
    name: tuple[str, ...]
    is_type: bool = False
    in_quotes: bool = False
    """It is a literal: `nextval('s')`."""


def shown_query(
    text: str, names: NamesPort, output: tuple[str, ...] = (), columns: tuple[str, ...] = ()
) -> str:
    """Return a stored query with the names that a session needs, and under a view's own columns.

    `output` are the names that the query itself gives to `columns`.
    """
    shown = _with_names(text, _places_of_query(text), names)
    if output == columns:
        return shown
    listed = ", ".join(map(quote_identifier, columns))
    return f"SELECT {listed} FROM ({shown}) AS {quote_identifier('query')} ({listed})"


def shown_expression(text: str, names: NamesPort) -> str:
    """The same for a DEFAULT, a CHECK or another expression."""
    return _with_names(text, _places_of_expression(text), names)


def _with_names(text: str, places: tuple[Place, ...], names: NamesPort) -> str:
    for place in reversed(places):
        write = names.type_name if place.is_type else names.relation_text
        name = write(place.name)
        if place.in_quotes:
            name = "'" + name.replace("'", "''") + "'"
        text = f"{text[: place.start]}{name}{text[place.end :]}"
    return text


@lru_cache(maxsize=TEXTS_KEPT)
def _places_of_query(text: str) -> tuple[Place, ...]:
    try:
        parsed = parse(text, repeat=False)
    except QserverError:  # a query of PostgreSQL's own views, which it has printed itself
        return ()
    return _places(text, parsed.statement, parsed)


@lru_cache(maxsize=TEXTS_KEPT)
def _places_of_expression(text: str) -> tuple[Place, ...]:
    parsed = parse_expression(text)
    return _places(text, parsed.expression, parsed)


def _places(text: str, root: Any, parsed: Parsed | Any) -> tuple[Place, ...]:
    sequences = set(sequence_literals(root))
    found: list[Place] = []
    for node in _nodes(root, frozenset()):
        match node:
            case ast.TableRef():
                found.append(_place(text, node.position, node.name))
            case ast.TypeName() if node.schemas or not is_built_in(node.name):
                if node.schemas[-1:] != ("pg_catalog",):
                    found.append(_place(text, node.position, node.parts)._replace(is_type=True))
            case ast.Literal() if node.index in sequences:
                literal = _STRING.match(text, node.position)
                if literal is not None:
                    name = tuple(identifiers(str(parsed.literals[node.index])))
                    found.append(Place(*literal.span(), name, in_quotes=True))
    return tuple(sorted(set(found)))


def _place(text: str, position: int, name: tuple[str, ...]) -> Place:
    match = _PATH.match(text, position)
    assert match is not None, "a name is at its place"
    return Place(*match.span(), name)


def _nodes(node: Any, common: frozenset[str]) -> Iterator[Any]:
    """Yield the nodes of an AST; not the names in FROM that mean common tables."""
    if isinstance(node, tuple):
        for part in node:
            yield from _nodes(part, common)
        return
    if not is_dataclass(node):
        return
    if isinstance(node, ast.TableRef) and len(node.name) == 1 and node.name[0] in common:
        return
    yield node
    if isinstance(node, ast.Query):
        everywhere = frozenset(each.name for each in node.common_tables) if node.recursive else ()
        common = common.union(everywhere)
        for table in node.common_tables:
            yield from _nodes(table, common)
            common |= {table.name}
    for each in fields(node):
        if not (isinstance(node, ast.Query) and each.name == "common_tables"):
            yield from _nodes(getattr(node, each.name), common)
