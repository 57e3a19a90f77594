"""Renames types in stored texts: those of defaults, checks, generated columns, indexes and views.

Definitions store the text of their author. A name of a type in it is one that the parser has taken
for a type, so a column, a label or a function of the same name stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder.names.type_names import is_built_in
from qserver.sql.ddl.port import Statements
from qserver.sql.ddl.view_columns import PART
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, quote_identifier
from qserver.values.relations import View
from qserver.values.schema import Table

_NAME: Final = re.compile(rf"{PART}(?:\s*\.\s*{PART})*")


def follow_type(
    statements: Statements, definition: Table | View, old: Enumeration, new: Enumeration
) -> Table | View:
    """Return the definition with the new name of the type in all of its texts."""

    def expression(text: str) -> str:
        if not _may_name(text, old):
            return text
        return _renamed(text, statements.parse_expression(text), old, new)

    def optional(text: str | None) -> str | None:
        return None if text is None else expression(text)

    if isinstance(definition, View):
        return _view(statements, definition, old, new, expression)
    columns = tuple(
        replace(each, default=optional(each.default), generated=optional(each.generated))
        for each in definition.columns
    )
    checks = tuple(replace(each, text=expression(each.text)) for each in definition.checks)
    return replace(definition, columns=columns, checks=checks)


def _view(
    statements: Statements,
    view: View,
    old: Enumeration,
    new: Enumeration,
    expression: Callable[[str], str],
) -> View:
    text = view.text
    if _may_name(text, old):
        text = _renamed(text, statements.parse_query(text), old, new)
    defaults = tuple((name, expression(each), owner) for name, each, owner in view.defaults)
    uses = tuple(new.key if each == old.key else each for each in view.uses)
    return replace(view, text=text, uses=uses, defaults=defaults)


def _may_name(text: str, old: Enumeration) -> bool:
    return old.name.replace('"', '""').lower() in text.lower()


def _renamed(text: str, parsed: Any, old: Enumeration, new: Enumeration) -> str:
    name = f"{quote_identifier(new.schema)}.{quote_identifier(new.name)}"
    places = {each.position for each in nodes_of(parsed) if _means(each, old)}
    for position in sorted(places, reverse=True):
        found = _NAME.match(text, position)
        assert found is not None, "a type has a name"
        text = f"{text[:position]}{name}{text[found.end() :]}"
    return text


def _means(node: Any, old: Enumeration) -> bool:
    """Tell whether a node names the type; a stored name without a schema is in `public`."""
    if not isinstance(node, ast.TypeName) or node.name != old.name:
        return False
    if node.schemas:
        return node.schemas[-1] == old.schema
    return old.schema == PUBLIC and (node.quoted or not is_built_in(node.name))
