"""What is stored with a row must follow from the row: no clock, no chance, no sequence.

PostgreSQL also refuses functions that depend on settings of the session, such as to_char. There are
no such settings here, so those may stand in a generated column or an index.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from qserver.functions.all_functions import FUNCTIONS
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic, parameters_for
from qserver.sql import ast


def is_immutable(expression: object) -> bool:
    """Tell whether an expression gives the same value for the same row whenever it is computed."""
    waiting: list[Any] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
        elif isinstance(node, ast.Node):
            if isinstance(node, ast.Call) and _changes(node):
                return False
            waiting.extend([getattr(node, field.name) for field in fields(node)])
    return True


def _changes(call: ast.Call) -> bool:
    """Tell whether all functions that the call may mean depend on more than their arguments."""
    count = len(call.arguments)
    possible = [
        each for each in FUNCTIONS.get(call.name[-1], ()) if parameters_for(each, count) is not None
    ]
    return bool(possible) and all(map(_depends_on_more, possible))


def _depends_on_more(function: Function | Generic) -> bool:
    return isinstance(function, Function) and (function.volatile or function.needs_context)
