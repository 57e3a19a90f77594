"""Texts of definitions, written so that they mean the same without the session's search_path.

SET search_path TO shop
CREATE VIEW v AS SELECT a FROM t          is stored as    SELECT a FROM shop.t
… DEFAULT 'new'::state                    is stored as    'new'::shop.state
… DEFAULT nextval('s')                    is stored as    nextval('shop.s')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder.expressions.parsed import sequence_literals
from qserver.sql.binder.names.type_names import is_built_in
from qserver.sql.parser import parse_expression
from qserver.sql.ports import CatalogPort
from qserver.values.identifiers import PUBLIC, identifiers, quote_identifier, stored_name

_STRING: Final = re.compile(r"'(?:[^']|'')*'")


def with_schemas(text: str, places: Mapping[int, str]) -> str:
    """Write schemas before names, by the positions of the names."""
    for position in sorted(places, reverse=True):
        if places[position] != PUBLIC:
            text = f"{text[:position]}{quote_identifier(places[position])}.{text[position:]}"
    return text


def type_schemas(node: Any, catalog: CatalogPort) -> dict[int, str]:
    """Return the schemas of types that are named without one, by the positions of the names."""
    found: dict[int, str] = {}
    for each in nodes_of(node):
        if isinstance(each, ast.TypeName) and not each.schemas and not is_built_in(each.name):
            sql_type = catalog.find_type(each.parts)
            if sql_type is not None and sql_type.enum is not None:
                found[each.position] = sql_type.enum.schema
    return found


def stored_expression(
    text: str, catalog: CatalogPort, key_of: Callable[[tuple[str, ...]], str]
) -> str:
    """Return the text of a DEFAULT, CHECK or other expression as it is stored."""
    if not catalog.has_path:
        return text
    parsed = parse_expression(text)
    places = type_schemas(parsed.expression, catalog)
    names: dict[int, str] = {}
    sequences = set(sequence_literals(parsed.expression))
    for node in nodes_of(parsed.expression):
        if isinstance(node, ast.Literal) and node.index in sequences:
            parts = tuple(identifiers(str(parsed.literals[node.index])))
            names[node.position] = stored_name(key_of(parts)) if len(parts) == 1 else ""
    for position in sorted({*places, *names}, reverse=True):
        if names.get(position):
            literal = _STRING.match(text, position)
            if literal is not None:
                quoted = names[position].replace("'", "''")
                text = f"{text[:position]}'{quoted}'{text[literal.end() :]}"
        elif position in places:
            text = with_schemas(text, {position: places[position]})
    return text
