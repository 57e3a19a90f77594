"""Scopes: which names are visible at a place, and which query an aggregate there belongs to.

Two chains, both from the inside out:

    Scope    which relations are visible. ON sees the two sides of its join, a LATERAL subquery
             the relations to its left, WHERE everything in FROM; a name that is not found is
             looked up in the outer scope
    Level    one query each, however many scopes it has. A level knows the sources of its FROM and
             collects the aggregates and window functions of its expressions: an aggregate
             belongs to the innermost query whose columns it names, which may be an outer one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qserver.errors import StatementError
from qserver.sql import ast
from qserver.sql.binder.binding import Binding, QuotedLiteral
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.binder.expressions.operands import Operand
from qserver.sql.binder.expressions.same import Alike
from qserver.sql.binder.names.relations import AnyRelation
from qserver.sql.expressions import AggregateCall, Expression, WindowCall

if TYPE_CHECKING:
    from qserver.sql.binder.tables.common_tables import CommonTables
    from qserver.sql.plan import FunctionScan


class Level:
    """One query, and the aggregates and window functions that it computes.

    They get columns of provisional sources, `call_source` and `window_source` (0: none); the number
    of keys before an aggregate is known only when everything is bound.
    """

    __slots__ = (
        "alike_calls",
        "alike_outputs",
        "alike_windows",
        "call_source",
        "calls",
        "clause",
        "directs",
        "entries",
        "grouping_source",
        "groupings",
        "in_aggregate",
        "in_window",
        "parent",
        "quoted_in_windows",
        "row_functions",
        "sources",
        "used_windows",
        "window_definitions",
        "window_error",
        "window_source",
        "windows",
    )

    def __init__(self, parent: Level | None) -> None:
        self.parent = parent
        self.clause = Clause.TARGETS
        self.sources: set[int] = set()
        self.entries: list[AnyRelation] = []
        self.calls: list[AggregateCall] = []
        self.directs: list[Expression] = []
        """The arguments before WITHIN GROUP, which are computed for a group, not for its rows."""
        self.alike_calls = Alike()
        self.alike_outputs = Alike()
        self.call_source = 0
        self.grouping_source = 0
        self.groupings: list[tuple[tuple[Expression, int], ...]] = []
        self.windows: list[WindowCall] = []
        self.alike_windows = Alike()
        self.window_source = 0
        self.quoted_in_windows: list[QuotedLiteral] = []
        self.window_definitions: dict[str, ast.Window] = {}
        self.window_error: StatementError | None = None
        """The first mistake in the windows of calls: those of other clauses come before it."""
        self.used_windows: set[str] = set()
        self.row_functions: list[FunctionScan] = []
        self.in_aggregate = False
        self.in_window = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The relations that are visible at a place. `parent` is searched next."""

    binding: Binding
    level: Level
    literals: Literals
    parent: Scope | None = None
    relations: tuple[AnyRelation, ...] = ()
    common_tables: CommonTables | None = None

    def bind(self, node: ast.Expression) -> Operand:
        """Bind an expression, which may still lack a type."""
        binding = self.binding
        binding.enter()
        operand = binding.expression_binders[type(node)](self, node)
        binding.leave()
        return operand

    def bind_in(self, clause: Clause, node: ast.Expression) -> Operand:
        level = self.level
        outer, level.clause = level.clause, clause
        operand = self.bind(node)
        level.clause = outer
        return operand

    def with_relations(self, relations: tuple[AnyRelation, ...]) -> Scope:
        """Return the scope of another place in the same query."""
        return Scope(
            self.binding, self.level, self.literals, self.parent, relations, self.common_tables
        )

    def inside(self, common_tables: CommonTables | None = None) -> Scope:
        """Return the scope of a nested query, before its FROM."""
        return Scope(
            self.binding,
            Level(self.level),
            self.literals,
            self,
            (),
            common_tables or self.common_tables,
        )


def outermost(binding: Binding, literals: Literals) -> Scope:
    return Scope(binding, Level(None), literals, None, (), None)


def leftmost(node: ast.Node) -> int:
    """Return where an expression begins: an operator's own position is that of its symbol."""
    while True:
        at = _LEFT.get(type(node))
        left = None if at is None else at(node)
        if left is None:
            return node.position
        node = left


_LEFT: dict[type, Callable[..., ast.Node | None]] = {
    ast.Operator: lambda node: node.left,
    ast.Like: lambda node: node.operand,
    ast.Is: lambda node: node.operand,
    ast.Between: lambda node: node.operand,
    ast.InList: lambda node: node.operand,
    ast.InQuery: lambda node: node.operand,
    ast.Quantified: lambda node: node.operand,
    ast.Subscript: lambda node: node.operand,
    ast.Field: lambda node: node.operand,
    ast.Collate: lambda node: node.operand,
    ast.Cast: lambda node: node.operand if _is_first(node) else None,
}


def _is_first(node: ast.Cast) -> bool:
    """Tell whether errors point at the operand: in DATE '…' they do, in CAST(a AS t) not."""
    operand = node.operand
    is_text = isinstance(operand, ast.Literal) and operand.kind == "text"
    return is_text or operand.position < node.position
