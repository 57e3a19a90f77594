"""Finds types and sequences in stored texts: those of defaults, checks, columns, indexes, views.

Definitions store the text of their author. A name of a type in it is one that the parser has taken
for a type, so a column, a label or a function of the same name is none. A sequence is named by the
literal that a function of sequences gets: `nextval('s')`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder.expressions.parsed import sequence_literals
from qserver.sql.binder.names.type_names import is_built_in
from qserver.sql.ddl.port import Statements
from qserver.sql.ddl.view_columns import PART
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, catalog_key, identifiers
from qserver.values.relations import Sequence, View
from qserver.values.schema import Table

Span = tuple[int, int]

STRING: Final = re.compile(r"'(?:[^']|'')*'")
_NAME: Final = re.compile(rf"{PART}(?:\s*\.\s*{PART})*")


def names(statements: Statements, text: str, named: Enumeration | Sequence) -> bool:
    """Tell whether the text of an expression names a type or a sequence."""
    return bool(places_in_expression(statements, text, named))


def places_in_expression(
    statements: Statements, text: str, named: Enumeration | Sequence
) -> list[Span]:
    if not _may_name(text, named):
        return []
    return list(_places(text, statements.parse_expression(text)[0], named))


def places_in_query(statements: Statements, text: str, named: Enumeration | Sequence) -> list[Span]:
    if not _may_name(text, named):
        return []
    return list(_places(text, statements.parse_query(text), named))


def with_texts(
    definition: Table | View, expression: Callable[[str], str], query: Callable[[str], str]
) -> Table | View:
    """Return a definition with all of its texts changed."""

    def optional(text: str | None) -> str | None:
        return None if text is None else expression(text)

    if isinstance(definition, View):
        defaults = tuple(
            (name, expression(each), owner) for name, each, owner in definition.defaults
        )
        return replace(definition, text=query(definition.text), defaults=defaults)
    columns = tuple(
        replace(each, default=optional(each.default), generated=optional(each.generated))
        for each in definition.columns
    )
    checks = tuple(replace(each, text=expression(each.text)) for each in definition.checks)
    return replace(definition, columns=columns, checks=checks)


def with_other_name(
    statements: Statements, definition: Table | View, named: Enumeration | Sequence, written: str
) -> Table | View:
    """Return a definition in whose texts a type or sequence is written otherwise."""

    def expression(text: str) -> str:
        return _written(text, places_in_expression(statements, text, named), written)

    def query(text: str) -> str:
        return _written(text, places_in_query(statements, text, named), written)

    return with_texts(definition, expression, query)


def _written(text: str, places: list[Span], written: str) -> str:
    for start, end in sorted(places, reverse=True):
        text = f"{text[:start]}{written}{text[end:]}"
    return text


def _may_name(text: str, named: Enumeration | Sequence) -> bool:
    within = named.name.replace('"', '""').replace("'", "''")
    return named.name.replace('"', '""').lower() in text.lower() or within.lower() in text.lower()


def _places(text: str, parsed: Any, named: Enumeration | Sequence) -> Iterator[Span]:
    if isinstance(named, Enumeration):
        for position in {each.position for each in nodes_of(parsed) if _means(each, named)}:
            found = _NAME.match(text, position)
            assert found is not None, "a type has a name"
            yield found.span()
        return
    indexes = set(sequence_literals(parsed))
    for each in nodes_of(parsed):
        if isinstance(each, ast.Literal) and each.index in indexes:
            literal = STRING.match(text, each.position)
            if literal is not None and _key(literal[0]) == named.key:
                yield literal.span()


def _key(literal: str) -> str:
    """Return the key of a stored name: one without a schema is in `public`."""
    parts = identifiers(literal[1:-1].replace("''", "'"))
    return catalog_key(parts[-2] if len(parts) > 1 else PUBLIC, parts[-1])


def _means(node: Any, named: Enumeration) -> bool:
    """Tell whether a node names the type; a stored name without a schema is in `public`."""
    if not isinstance(node, ast.TypeName) or node.name != named.name:
        return False
    if node.schemas:
        return node.schemas[-1] == named.schema
    return named.schema == PUBLIC and (node.quoted or not is_built_in(node.name))
