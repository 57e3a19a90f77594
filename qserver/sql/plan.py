"""Logical plans: what a statement does with rows.

A plan node passes rows to its parent. A row consists of the current rows of one or more sources: a
Scan produces one source, a Join the sources of both sides; Filter, Sort and Limit pass on their
input. Project, Aggregate, Values and SetOperation produce a new source, and the topmost node of a
query always does: its columns are the query's.

The binder creates plans; optimizer rules push predicates down, order joins, and select access paths
and join methods (`Scan.access`, `Join.method`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from qserver.functions.registry import TableFunction
from qserver.sql.expressions import AggregateCall, Expression, InQuery, SortKey, WindowCall
from qserver.values.schema import Index, Table
from qserver.values.types import SqlType


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys that a scan reads from a tree: equal leading elements, then choices or bounds.

    `equal` has one expression per leading key element. `choices` are several values of the next
    element, for IN; `low` and `high` bound it, each with whether the bound is included. Expressions
    name no source of the scan itself.

    The only choice may be an InQuery. Its rows are known when the scan begins: no more than `few`
    are looked up, for more of them the scan reads all that `equal` leaves.
    """

    equal: tuple[Expression, ...] = ()
    low: tuple[Expression, bool] | None = None
    high: tuple[Expression, bool] | None = None
    choices: tuple[Expression, ...] = ()
    not_null: bool = False
    """The element after `equal` is not NULL."""
    few: int = 0

    @property
    def query(self) -> InQuery | None:
        """The query whose rows are the choices."""
        first = self.choices[0] if self.choices else None
        return first if isinstance(first, InQuery) else None


@dataclass(frozen=True, slots=True)
class Access:
    """The access path of a scan: the table's tree (index None) or an index, perhaps backward."""

    index: Index | None = None
    range: KeyRange = KeyRange()
    backward: bool = False
    partial: bool = False
    """The scan probably ends early: it reads page by page, and only those pages count as read."""
    wanted: Expression | None = None
    """An estimate of the rows taken before the scan ends early, if known."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of a table that satisfy `condition`, the predicates pushed down."""

    source: int
    table: Table
    condition: Expression | None = None
    access: Access = Access()
    alias: str = ""
    rows: float = 0.0  # estimate
    vectors: bool = False
    """The condition is computed over vectors: see `vectorization`. Likewise below."""
    hashed: bool = False
    """Rows are looked up by what the condition compares with other sources: see `scan_hashing`."""


@dataclass(frozen=True, slots=True)
class Count:
    """The number of rows of a scan without a condition, as an Aggregate has it."""

    input: Scan
    source: int
    rows: float = 1.0


@dataclass(frozen=True, slots=True)
class OneRow:
    """SELECT without FROM: one row with no source."""

    rows: float = 1.0


@dataclass(frozen=True, slots=True)
class Values:
    """Rows of expressions. With `repeated`, one row of expressions stands for all rows of the
    execution's literals, and a Slot's index is a position in such a row."""

    source: int
    items: tuple[tuple[Expression, ...], ...]
    columns: tuple[OutputColumn, ...]
    repeated: bool = False
    rows: float = 1.0
    slot: int | range | None = None
    """The index of the literal with those rows, or the numbers of the parameters in them."""


@dataclass(frozen=True, slots=True)
class FunctionScan:
    """Rows of a table function (generate_series, unnest …); may name sources to its left."""

    source: int
    function: TableFunction
    arguments: tuple[Expression, ...]
    columns: tuple[OutputColumn, ...]
    ordinality: bool = False
    rows: float = 100.0


@dataclass(frozen=True, slots=True)
class Join:
    """kind: "inner", "left", "right", "full", "semi", "anti"; `lateral`: right names left's rows.

    The optimizer sets `method`: "loop", "hash" or "index"; None means a loop. `condition` is the
    whole condition of a pair of rows, whatever the method: `join_conditions` says which part a hash
    table looks up.
    """

    kind: str
    left: Plan
    right: Plan
    condition: Expression | None = None
    lateral: bool = False
    method: str | None = None
    rows: float = 0.0
    vectors: bool = False


@dataclass(frozen=True, slots=True)
class Vectors:
    """The rows of `input`, which a vector tree computes if it can: see `vector_trees`."""

    input: Plan
    planned: Any
    """A `Planned` of `vectors.tree_planning`."""
    by_rows: int = 0
    """The rows that row code would visit."""
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class Filter:
    input: Plan
    condition: Expression
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class Project:
    """Computes the columns of a new source. Those that are `unread` are NULL: see
    `projection_pruning`."""

    input: Plan
    source: int
    expressions: tuple[Expression, ...]
    columns: tuple[OutputColumn, ...]
    rows: float = 0.0
    unread: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Groups by `keys`; the source's columns are the keys, then the calls.

    `grouping_sets` has, for each set, the positions of its keys; keys outside of the set are NULL.
    Without keys, an empty input produces one row. GROUPING(…) is a last column: the bit mask of
    keys outside of the set.
    """

    input: Plan
    source: int
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    rows: float = 0.0
    vectors: bool = False
    in_order: bool = False
    """The rows of a group come one after the other: a group is given as soon as the next begins."""


@dataclass(frozen=True, slots=True)
class Window:
    """Adds a source whose columns are the calls' values; the input's sources stay."""

    input: Plan
    source: int
    calls: tuple[WindowCall, ...]
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class Sort:
    input: Plan
    keys: tuple[SortKey, ...]
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class TopN:
    """Sort and Limit in one: keeps only `limit` + `offset` rows."""

    input: Plan
    keys: tuple[SortKey, ...]
    limit: Expression
    offset: Expression | None = None
    rows: float = 0.0
    vectors: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    input: Plan
    limit: Expression | None
    offset: Expression | None = None
    with_ties: tuple[SortKey, ...] = ()
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each distinct row of a source once; with `on`, the first row for each value of `on`."""

    input: Plan
    source: int
    on: tuple[Expression, ...] = ()
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class SetOperation:
    """kind: "union", "intersect", "except"; columns of both sides agree in number and types."""

    kind: str
    is_all: bool
    left: Plan
    right: Plan
    source: int
    columns: tuple[OutputColumn, ...]
    left_source: int
    right_source: int
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class CommonTableScan:
    """Rows of a CTE that is computed once; `number` is its number in the statement."""

    source: int
    number: int
    columns: tuple[OutputColumn, ...]
    rows: float = 100.0


@dataclass(frozen=True, slots=True)
class WithTables:
    """Computes CTEs in order, then `input`."""

    tables: tuple[CommonTable, ...]
    input: Plan
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A CTE. `recursive` runs on the rows that the last iteration added, which a CommonTableScan of
    the same number reads; `every` distinguishes UNION ALL from UNION."""

    number: int
    name: str
    plan: Plan | Change
    source: int
    recursive: Plan | None = None
    recursive_source: int = 0
    is_all: bool = True


Plan: TypeAlias = (
    Scan
    | Count
    | OneRow
    | Values
    | FunctionScan
    | Join
    | Vectors
    | Filter
    | Project
    | Aggregate
    | Window
    | Sort
    | TopN
    | Limit
    | Distinct
    | SetOperation
    | CommonTableScan
    | WithTables
)

# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Select:
    """A query: `plan` produces rows of `source`."""

    plan: Plan
    source: int
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """A CHECK of a table, over the new row (source `new_source`), or the CHECK OPTION of a view."""

    name: str
    expression: Expression
    of_view: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """Inserts a row for each row of `plan`: `values` in order of the table's columns.

    `values` are over the plan's sources; `new_source` names the new row in checks, RETURNING and ON
    CONFLICT; `ConflictAction.old_source` names the conflicting row.
    """

    table: Table
    plan: Plan
    values: tuple[Expression, ...]
    new_source: int
    checks: tuple[CheckedExpression, ...] = ()
    on_conflict: ConflictAction | None = None
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class ConflictAction:
    """ON CONFLICT. `arbiters`: the unique indexes that count (None is the primary key); empty: any.
    Without `values`: DO NOTHING."""

    arbiters: tuple[Index | None, ...]
    old_source: int
    values: tuple[Expression, ...] = ()
    condition: Expression | None = None
    new_source: int = 0
    """The updated row, in checks and RETURNING."""
    checks: tuple[CheckedExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """`plan` produces rows with `old_source`, the table's row; `values` is the whole new row."""

    table: Table
    plan: Plan
    old_source: int
    values: tuple[Expression, ...]
    new_source: int
    changed: frozenset[int] = frozenset()
    checks: tuple[CheckedExpression, ...] = ()
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    table: Table
    plan: Plan
    old_source: int
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE. `plan` is a left join to the table, whose row is `old_source`, all NULL if unmatched.

    Each row takes the first action whose condition holds, among those for matched or for unmatched
    rows.
    """

    table: Table
    plan: Plan
    old_source: int
    new_source: int
    actions: tuple[MergeAction, ...]
    returning: None = None


@dataclass(frozen=True, slots=True)
class MergeAction:
    """kind: "update", "insert", "delete", "nothing"; `values`: the whole written row."""

    matched: bool
    kind: str
    condition: Expression | None = None
    values: tuple[Expression, ...] = ()
    checks: tuple[CheckedExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Returning:
    """Expressions over the new row (Insert, Update) or the old one (Delete), and other sources."""

    expressions: tuple[Expression, ...]
    columns: tuple[OutputColumn, ...]


Change: TypeAlias = Insert | Update | Delete | Merge
