"""Walks an AST."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any


def nodes_of(statement: Any) -> Iterator[Any]:
    """Yield all nodes of an AST, in the order of the text."""
    waiting: list[Any] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(reversed(node))
        elif is_dataclass(node):
            yield node
            waiting.extend(getattr(node, each.name) for each in reversed(fields(node)))
