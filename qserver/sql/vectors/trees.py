"""The planned form of a vector tree: joins, groups and projections of whole tables; no numpy here.

    GroupPart                    adds up what comes, and gives its groups as columns
      JoinPart ── JoinPart ── ScanPart lineitem        read by batches of some ten thousand rows
        │           └──── ScanPart part                a right side: a table of keys, and columns
        └────── JoinPart ── ScanPart orders            also what is itself a tree
                  └──── ScanPart customer

No part goes back to rows. A tree gives all its rows or none: if a part is refused (a column without
a vector, a sum that may be too long), nothing has been given yet, and row code computes the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from qserver.sql.execution import Chunk
from qserver.sql.expressions import Expression
from qserver.sql.join_conditions import KeyPair
from qserver.sql.vectors.plans import Check, ConstantKind
from qserver.sql.vectors.program import JoinedColumn, Program
from qserver.values.keys import Row
from qserver.values.vector_families import ColumnVector

Scanned: TypeAlias = Callable[[], Iterable[Chunk | list[Row]]]
Finish: TypeAlias = Callable[[Any, Any], Any]
"""Returns an average, given the sum and the number of values, as row code does."""


@dataclass(frozen=True, slots=True, eq=False)
class ScanPart:
    """A whole table, with the rows that satisfy a condition."""

    source: int
    number: int
    """Of the scan, among those of the tree."""
    check: Check | None
    condition: Expression | None
    """What is checked; this and the like in other parts are for EXPLAIN."""


@dataclass(frozen=True, slots=True, eq=False)
class FilterPart:
    """`is_slow`: the condition reads averages, which are divided one by one."""

    input: Part
    check: Check
    condition: Expression
    is_slow: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class JoinPart:
    """kind: "inner", "left", "semi", "anti"; "not_in", where NULL is neither in nor out; "one",
    whose right side is one row for all.

    `checks` are of pairs. A semi- or anti-join asks whether a pair of a row passes them.
    """

    kind: str
    left: Part
    right: Part
    left_program: Program
    left_keys: tuple[int, ...]
    right_program: Program
    right_keys: tuple[int, ...]
    right_sources: tuple[int, ...]
    checks: tuple[Check, ...] = ()
    pairs: tuple[KeyPair, ...] = ()
    rest: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ProjectPart:
    """Computes the columns of a source; None for one that nobody reads."""

    input: Part
    source: int
    program: Program
    steps: tuple[int | None, ...]


class GroupCall(NamedTuple):
    """An aggregate call: `argument` and `filter` are steps of the program."""

    name: str
    family: str
    argument: int | None
    filter: int | None
    distinct: bool
    finish: int
    """The number of the function that makes an average, or -1."""
    is_mixed: bool = False
    """Its values have digits after the point of their own: see `operations.mixed_case`."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupPart:
    input: Part
    source: int
    program: Program
    keys: tuple[int, ...]
    calls: tuple[GroupCall, ...]
    families: tuple[str, ...]
    """Of its columns, as those above name them: keys, then calls. A sum may have another family
    than its argument."""
    by: tuple[Expression, ...]


Part: TypeAlias = ScanPart | FilterPart | JoinPart | ProjectPart | GroupPart


def inputs_of_part(part: Part) -> tuple[Part, ...]:
    """Return the parts whose rows a part reads."""
    match part:
        case ScanPart():
            return ()
        case JoinPart():
            return part.left, part.right
    return (part.input,)


class TreeWatch(Protocol):
    """Told of each part's rows, by EXPLAIN ANALYZE: see `codegen.measured`."""

    def batches(self, part: Part, batches: Iterator[Any]) -> Iterator[Any]:
        """Return the same batches."""

    def looked_at(self, part: Part, rows: int) -> None:
        """A scan has read so many rows."""


class Output(NamedTuple):
    """The rows of a source that a tree gives: their width, and the columns that are read."""

    source: int
    width: int
    columns: tuple[JoinedColumn, ...]


class TreeKey(NamedTuple):
    """A key of an ORDER BY, as a step of a program."""

    step: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, eq=False)
class FirstOfTree:
    """An ORDER BY whose first rows are wanted; `is_whole` if these are all of its keys."""

    program: Program
    keys: tuple[TreeKey, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    root: Part
    outputs: tuple[Output, ...]
    read: frozenset[JoinedColumn]
    """The columns of all sources that a program or an output reads."""
    constants: tuple[ConstantKind, ...]
    scans: int
    joins: int
    groups: int
    rows: float
    """The rows of all tables that are read."""
    watch: TreeWatch | None = None
    first: FirstOfTree | None = None

    def columns_of(self, source: int) -> tuple[ColumnVector, ...]:
        return tuple([each.vector for each in sorted(self.read) if each.source == source])

    def giving(self, sources: tuple[int, ...]) -> Tree:
        """Return the tree with its outputs in this order: that of row code, whose joins have been
        ordered since."""
        by_source = {output.source: output for output in self.outputs}
        return replace(self, outputs=tuple([by_source[source] for source in sources]))

    @property
    def told(self) -> str:
        """What EXPLAIN says of the tree."""
        parts = [f"{self.scans} scans", f"{self.joins} joins", f"{self.groups} groupings"]
        if self.first is not None:
            parts.append("first rows")
        return ", ".join([each for each in parts if not each.startswith("0 ")])
