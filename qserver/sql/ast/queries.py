"""Queries: SELECT, VALUES, set operations, and the items of FROM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from qserver.sql.ast.expressions import Node

if TYPE_CHECKING:
    from qserver.sql.ast import Statement
    from qserver.sql.ast.expressions import Call, Expression, OrderItem, Run, TypeName, Window


@dataclass(frozen=True, slots=True)
class TableSample(Node):
    """`TABLESAMPLE method (arguments) REPEATABLE (seed)`"""

    method: tuple[str, ...]
    arguments: tuple[Expression, ...]
    seed: Expression | None = None


@dataclass(frozen=True, slots=True)
class TableRef(Node):
    name: tuple[str, ...]
    alias: str | None = None
    column_aliases: tuple[str, ...] = ()
    sample: TableSample | None = None
    locking: tuple[Locking, ...] = ()  # of the outer query, for the query of a view


@dataclass(frozen=True, slots=True)
class SubqueryRef(Node):
    query: Query
    alias: str | None
    column_aliases: tuple[str, ...] = ()
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class FunctionRef(Node):
    """`generate_series(1, 3) [WITH ORDINALITY] AS t(a)`"""

    call: Call
    alias: str | None
    column_aliases: tuple[str, ...] = ()
    ordinality: bool = False
    lateral: bool = False
    column_types: tuple[TypeName, ...] = ()  # AS t(a int, b text), one for each alias


@dataclass(frozen=True, slots=True)
class RowsFrom(Node):
    """`ROWS FROM (f(1), g(2)) [WITH ORDINALITY] AS t(a, b)`: their rows side by side."""

    functions: tuple[FunctionRef, ...]
    alias: str | None
    column_aliases: tuple[str, ...] = ()
    ordinality: bool = False


@dataclass(frozen=True, slots=True)
class Join(Node):
    """kind: "inner", "left", "right", "full", "cross"."""

    kind: str
    left: FromItem
    right: FromItem
    condition: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False
    alias: str | None = None
    column_aliases: tuple[str, ...] = ()
    using_alias: str | None = None  # USING (a) AS alias


FromItem: TypeAlias = TableRef | SubqueryRef | FunctionRef | RowsFrom | Join


@dataclass(frozen=True, slots=True)
class Target(Node):
    """One item of a SELECT list or RETURNING."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GroupingSets(Node):
    """kind: "rollup", "cube", "sets"; each set is a tuple of expressions, or nested sets."""

    kind: str
    sets: tuple[tuple[Expression, ...] | GroupingSets, ...]


@dataclass(frozen=True, slots=True)
class Select(Node):
    targets: tuple[Target, ...]
    sources: tuple[FromItem, ...] = ()
    where: Expression | None = None
    group_by: tuple[Expression | GroupingSets, ...] = ()
    having: Expression | None = None
    windows: tuple[tuple[str, Window], ...] = ()
    distinct: bool = False
    distinct_on: tuple[Expression, ...] = ()
    group_by_distinct: bool = False


@dataclass(frozen=True, slots=True)
class Values(Node):
    """VALUES lists. `repeated`: the one row stands for all rows of the statement, whose literals
    come as a list of tuples, the literal with the index `slot`; see `parameterize`. Or its items
    are parameters, the first ones of the run `slot`, which has those of all rows."""

    rows: tuple[tuple[Expression, ...], ...]
    repeated: bool = False
    slot: int | Run | None = None


@dataclass(frozen=True, slots=True)
class SetOperation(Node):
    """kind: "union", "intersect", "except"."""

    kind: str
    is_all: bool
    left: QueryBody
    right: QueryBody


@dataclass(frozen=True, slots=True)
class Search(Node):
    """`SEARCH DEPTH|BREADTH FIRST BY columns SET name`"""

    breadth: bool
    columns: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Cycle(Node):
    """`CYCLE columns SET mark [TO value DEFAULT otherwise] USING path`"""

    columns: tuple[str, ...]
    mark: str
    path: str
    value: Expression | None = None
    otherwise: Expression | None = None


@dataclass(frozen=True, slots=True)
class Locking(Node):
    """`FOR UPDATE OF a, b NOWAIT`; strength and wait in lower case, `tables` as written.

    `inherited` clauses come from the outer query: a lock also applies to subqueries.
    """

    strength: str
    tables: tuple[tuple[str, ...], ...] = ()
    wait: str = ""
    inherited: bool = False

    @property
    def words(self) -> str:
        return f"FOR {self.strength.upper()}"


@dataclass(frozen=True, slots=True)
class CommonTable(Node):
    name: str
    column_aliases: tuple[str, ...]
    statement: Statement
    materialized: bool | None = None
    search: Search | None = None
    cycle: Cycle | None = None


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A body with WITH, ORDER BY, LIMIT and locking; also a query in parentheses inside a body."""

    body: QueryBody
    order_by: tuple[OrderItem, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    with_ties: bool = False
    common_tables: tuple[CommonTable, ...] = ()
    recursive: bool = False
    locking: tuple[Locking, ...] = ()


QueryBody: TypeAlias = Select | Values | SetOperation | Query
