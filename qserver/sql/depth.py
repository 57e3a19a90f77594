"""Limits the depth of ASTs, because later stages recurse into them."""

from __future__ import annotations

from typing import Any

from qserver.errors import StatementTooComplex
from qserver.limits import SYNTAX_DEPTH_MAX
from qserver.sql.ast import Node


def check_depth(tree: Node) -> None:
    """Refuse a tree with a leaf too far from the root. Visits each node once."""
    pending: list[tuple[Any, int]] = [(tree, 1)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, tuple):
            pending.extend([(each, depth) for each in value])
        elif isinstance(value, Node):
            if depth > SYNTAX_DEPTH_MAX:
                raise StatementTooComplex(
                    "the statement is nested too deeply",
                    detail=f"The limit is {SYNTAX_DEPTH_MAX} levels.",
                    position=value.position + 1,
                )
            parts = (getattr(value, name) for name in type(value).__dataclass_fields__)
            pending.extend([(part, depth + 1) for part in parts if isinstance(part, Node | tuple)])
