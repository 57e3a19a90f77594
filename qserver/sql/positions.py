"""Finds the place in a statement's text that an error is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.errors import QserverError
from qserver.lexing.fingerprint import parameterize
from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder.expressions.parsed import parsed_expression
from qserver.sql.parser import parse


def locate(error: QserverError, sql: str) -> None:
    """Set the position of an error in the text.

    A kept plan knows only the number of a literal, and the parser of a DEFAULT or CHECK text knows
    only the place in that text.
    """
    if error.position is not None:
        return
    if error.definition is not None:
        text, place = error.definition
        for node in nodes_of(parse(sql).statement):
            if isinstance(node, ast.Constraint | ast.AlterAction) and node.text == text:
                assert node.expression is not None, "the text is its"
                alone, _ = parsed_expression(text)
                error.position = node.expression.position - alone.position + place
                return
    elif error.literal is not None:
        index = _index_of_literal(error.literal, error.item, parameterize(sql).literals)
        for node in nodes_of(parse(sql, repeat=False).statement):
            if isinstance(node, ast.Literal) and node.index == index:
                error.position = node.position + 1
                return


def _index_of_literal(number: int, item: int, literals: Sequence[Any]) -> int:
    """Return the index of a literal in a text where no row of VALUES stands for others.

    NULL, TRUE and FALSE are values of a row, but no literals.
    """
    slot = next((at for at, each in enumerate(literals) if isinstance(each, list)), None)
    if slot is None or number < slot:
        return number
    values = [value for row in literals[slot] for value in row]
    before = values[:item] if number == slot else values
    count = sum(1 for value in before if value is not None and not isinstance(value, bool))
    return slot + count if number == slot else number - 1 + count
