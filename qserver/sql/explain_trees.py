"""What EXPLAIN ANALYZE shows of a vector tree that has run: its parts, as nodes of a plan.

They stand in the place of the nodes that row code would have run, whose joins have another order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qserver.sql import plan
from qserver.sql.expressions import Expression
from qserver.sql.vectors.trees import (
    FilterPart,
    GroupPart,
    JoinPart,
    Part,
    ProjectPart,
    ScanPart,
    inputs_of_part,
)

TextOf = Callable[[Any], str]

_JOINS: Final = {
    "inner": "Hash Join",
    "left": "Left Hash Join",
    "semi": "Semi Hash Join",
    "anti": "Anti Hash Join",
    "not_in": "Not In Hash Join",
    "one": "Single Row Join",
}


@dataclass(frozen=True, slots=True)
class TreeNode:
    part: Part
    scans: list[plan.Scan]
    """Those of the whole tree."""

    @property
    def inputs(self) -> list[TreeNode]:
        return [TreeNode(part, self.scans) for part in inputs_of_part(self.part)]

    @property
    def scan(self) -> plan.Scan | None:
        return self.scans[self.part.number] if isinstance(self.part, ScanPart) else None

    def described(self, name_of: TextOf, text_of: TextOf) -> tuple[str, list[str]]:
        """Return the title and its details, as other nodes have them."""
        part = self.part
        match part:
            case ScanPart():
                scan = self.scans[part.number]
                name = name_of(scan.table)
                if scan.alias not in ("", scan.table.name):
                    name = f"{name} {scan.alias}"
                return f"Scan on {name}", _condition("Filter", part.condition, text_of)
            case FilterPart():
                return "Filter", _condition("Condition", part.condition, text_of)
            case JoinPart():
                pairs = [f"{text_of(one)} = {text_of(other)}" for one, other in part.pairs]
                keys = [f"Hash Key: {' AND '.join(pairs)}"] if pairs else []
                return _JOINS[part.kind], [*keys, *_condition("Condition", part.rest, text_of)]
            case ProjectPart():
                return "Project", []
            case GroupPart():
                names = ", ".join(map(text_of, part.by))
                keys = [f"Group Key: {names}"] if names else []
                return ("GroupAggregate" if names else "Aggregate"), keys


def _condition(name: str, condition: Expression | None, text_of: TextOf) -> list[str]:
    return [] if condition is None else [f"{name}: {text_of(condition)}"]
