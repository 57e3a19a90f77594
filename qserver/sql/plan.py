"""Plans: what to do with rows, first as the statement says it, then as the rules optimize it.

A plan node hands rows to the one above it. Rows are kept by source: a Scan makes the current row
of one source, a Join has the sources of both sides, Filter, Sort and Limit pass on what they
get. Project, Aggregate, Values, SetOperation and their like make rows of a new source.
The topmost node of a query always makes a new source, whose columns are the query's.

The binder makes Scan, Join with a condition, Filter, Project, Aggregate, …; rules then push
conditions down, order joins, and choose access paths and methods (`Scan.access`, `Join.method`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from qserver.sql.expressions import AggregateCall, Expression, SortKey, WindowCall
from qserver.sql.functions.registry import TableFunction
from qserver.values.schema import Index, Table
from qserver.values.types import SqlType


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class KeyRange:
    """How a scan finds its rows in a tree: equal leading elements, then perhaps bounds.

    `equal` has one expression per leading key element; `low` and `high` bound the next one, each
    with whether it is included. Expressions name no source of the scan itself.
    `choices` replaces the last of `equal` by several values, for IN.
    """

    equal: tuple[Expression, ...] = ()
    low: tuple[Expression, bool] | None = None
    high: tuple[Expression, bool] | None = None
    choices: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """By which tree a scan goes: the table itself (index None) or an index, in the order of its
    keys or backward."""

    index: Index | None = None
    range: KeyRange = KeyRange()
    backward: bool = False
    partial: bool = False
    """The scan is probably left early: it goes page by page, and counts as a read of those only."""
    wanted: Expression | None = None
    """About how many rows will be taken before the scan is left, where that is known."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of a table. `condition` is what each must satisfy (conditions pushed down)."""

    source: int
    table: Table
    condition: Expression | None = None
    access: Access = Access()
    alias: str = ""
    rows: float = 0.0  # estimate


@dataclass(frozen=True, slots=True)
class OneRow:
    """SELECT without FROM: one row with no source."""

    rows: float = 1.0


@dataclass(frozen=True, slots=True)
class Values:
    """Rows of expressions. With `repeated`, one row of expressions stands for all rows whose
    literals come with the execution, and a Slot's index is the position in such a row."""

    source: int
    items: tuple[tuple[Expression, ...], ...]
    columns: tuple[OutputColumn, ...]
    repeated: bool = False
    rows: float = 1.0
    slot: int | None = None  # the literal that is the list of those rows


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

    A "null_aware_anti" is NOT IN. `method` is chosen by a rule: "loop", "hash", "index"; until
    then it is None, which means a loop. `condition` is all that a pair of rows must satisfy,
    whatever the method: `join_conditions` tells which part of it a hash table looks up.
    """

    kind: str
    left: Plan
    right: Plan
    condition: Expression | None = None
    lateral: bool = False
    method: str | None = None
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

    `grouping_sets` holds, for each set, the positions of the keys that it groups by; keys that are
    not in the set are NULL. `has_keys` False: one row even for no input.
    GROUPING(…) is a last column: the bit mask of keys that are not in the set.
    """

    input: Plan
    source: int
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    rows: float = 0.0


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
    """kind: "union", "intersect", "except"; both sides make as many columns of the same types."""

    kind: str
    every: bool
    left: Plan
    right: Plan
    source: int
    columns: tuple[OutputColumn, ...]
    left_source: int
    right_source: int
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class CommonTableScan:
    """Rows of a CTE that is computed once; `name` is its number in the statement."""

    source: int
    number: int
    columns: tuple[OutputColumn, ...]
    rows: float = 100.0


@dataclass(frozen=True, slots=True)
class WithTables:
    """Computes CTEs in order, then `input`. Each is (number, plan, its source)."""

    tables: tuple[CommonTable, ...]
    input: Plan
    rows: float = 0.0


@dataclass(frozen=True, slots=True)
class CommonTable:
    """`recursive` is the part that is run on the rows that the last turn added, by way of a
    CommonTableScan of the same number; `every` tells UNION ALL from UNION."""

    number: int
    name: str
    plan: Plan | Change
    source: int
    recursive: Plan | None = None
    recursive_source: int = 0
    every: bool = True


Plan: TypeAlias = (
    Scan
    | OneRow
    | Values
    | FunctionScan
    | Join
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
    """A query: `plan` makes rows of `source`."""

    plan: Plan
    source: int
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """A CHECK of a table over the new row (source `Change.new_source`), or that of a view."""

    name: str
    expression: Expression
    of_view: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """For each row of `plan` make a new row of the table: `values` in order of the table's columns.

    `values` are over the plan's sources; `new_source` names the new row in checks, RETURNING and
    ON CONFLICT; `old_source` names the row in the way, in ON CONFLICT.
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
    """What to do when the new row meets an old one. `arbiters`: the unique indexes that count
    (None in it is the primary key); empty: any. No `values`: DO NOTHING."""

    arbiters: tuple[Index | None, ...]
    old_source: int
    values: tuple[Expression, ...] = ()
    condition: Expression | None = None
    new_source: int = 0
    """The updated row, in checks and RETURNING."""
    checks: tuple[CheckedExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """`plan` makes rows that hold `old_source`, the table's row; `values` is the whole new row."""

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
    """`plan` is a left join to the table, whose row is `old_source`, all NULL where there is none.

    For each row the first action whose condition holds is taken, of those for a row that was
    matched or for one that was not.
    """

    table: Table
    plan: Plan
    old_source: int
    new_source: int
    actions: tuple[MergeAction, ...]
    returning: None = None


@dataclass(frozen=True, slots=True)
class MergeAction:
    """kind: "update", "insert", "delete", "nothing"; `values`: the whole row that is written."""

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
