"""Bound expressions: names resolved, types known, casts explicit.

The binder creates them, optimizer rules rewrite them, codegen prints them. All are frozen.

A column is a *source* and a position in its row. Each table in FROM, derived table, grouping and
projection of the statement is a source with its own number. So an expression means the same
wherever a rule moves it, and a subquery is correlated if and only if it names a source that it does
not produce.

`nullable` says whether the value can be NULL. False is a guarantee: generated code then omits the
NULL check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from qserver.functions.registry import Aggregate, Function
from qserver.values.types import BOOLEAN, SqlType

if TYPE_CHECKING:
    from qserver.sql.plan import Plan


class RunRefused(Exception):  # a signal to the planner's caller, not to users
    """The items of a run are not alike in this place: the statement is parsed again without it."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known at planning time: TRUE, NULL, a folded literal, or one in the fingerprint."""

    value: Any
    type: SqlType
    quoted: bool = field(default=False, compare=False)
    """Whether it was written as a text: that changes how it is printed, and nothing else."""

    @property
    def nullable(self) -> bool:
        return self.value is None


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that comes with each execution: a literal or a parameter.

    `name`: an int is the index of a literal; a str such as "$1" or ":id" is a parameter. `convert`
    turns the given value into one of `type`, once per execution; None: no conversion. It never gets
    NULL, and may raise a QserverError.
    """

    name: int | str
    type: SqlType
    convert: Callable[[Any], Any] | None = None
    nullable: bool = False  # parameters may be NULL, literals are not
    reader: Callable[[Any], Any] | None = field(default=None, compare=False)
    """Reads a quoted literal as the first type that it has: `convert`, before any cast."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Consecutive slots of one type among the items of an InList or Array: a run of them.

    `name` is the first one's; all else is as in Slot.
    """

    name: int | str
    count: int
    type: SqlType
    convert: Callable[[Any], Any] | None = None
    nullable: bool = False
    reader: Callable[[Any], Any] | None = field(default=None, compare=False)

    @property
    def names(self) -> Iterable[int | str]:
        if isinstance(self.name, int):
            return range(self.name, self.name + self.count)
        first = int(self.name[1:])
        return [f"${number}" for number in range(first, first + self.count)]


@dataclass(frozen=True, slots=True)
class Column:
    """The value at a position of a source's current row."""

    source: int
    position: int
    type: SqlType
    nullable: bool
    name: str = ""  # for people: EXPLAIN, error texts


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or operator. Arguments have exactly the function's parameter types."""

    function: Function
    arguments: tuple[Expression, ...]
    type: SqlType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Cast:
    """A type conversion. `function` never gets NULL and never returns it."""

    operand: Expression
    function: Callable[[Any], Any]
    type: SqlType

    @property
    def nullable(self) -> bool:
        return self.operand.nullable


@dataclass(frozen=True, slots=True)
class _Joined:
    """At least two operands, none of them joined by the same word."""

    operands: tuple[Expression, ...]
    type: SqlType = BOOLEAN

    @property
    def nullable(self) -> bool:
        return any(operand.nullable for operand in self.operands)


class And(_Joined):
    __slots__ = ()


class Or(_Joined):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    type: SqlType = BOOLEAN

    @property
    def nullable(self) -> bool:
        return self.operand.nullable


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    negated: bool = False
    type: SqlType = BOOLEAN
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class IsTruth:
    """`operand IS [NOT] TRUE|FALSE`; IS UNKNOWN is IsNull."""

    operand: Expression
    truth: bool
    negated: bool = False
    type: SqlType = BOOLEAN
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct:
    """`left IS [NOT] DISTINCT FROM right`; both have one type. `equal` is the type's `=`."""

    left: Expression
    right: Expression
    equal: Function
    negated: bool = False
    type: SqlType = BOOLEAN
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """The first result whose condition is true; a simple CASE is bound to comparisons."""

    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression  # a NULL Constant without ELSE
    type: SqlType

    @property
    def nullable(self) -> bool:
        return self.otherwise.nullable or any(result.nullable for _, result in self.whens)


@dataclass(frozen=True, slots=True)
class Coalesce:
    operands: tuple[Expression, ...]
    type: SqlType

    @property
    def nullable(self) -> bool:
        return all(operand.nullable for operand in self.operands)


@dataclass(frozen=True, slots=True)
class InList:
    """`operand [NOT] IN (items)`: all of one type, compared with `equal`."""

    operand: Expression
    items: tuple[Expression, ...]
    equal: Function
    negated: bool = False
    type: SqlType = BOOLEAN

    @property
    def nullable(self) -> bool:
        return self.operand.nullable or any(item.nullable for item in self.items)


@dataclass(frozen=True, slots=True)
class ScalarQuery:
    """The one value of a query with one column; NULL for no row, 21000 for more than one."""

    plan: Plan
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Exists:
    plan: Plan
    negated: bool = False
    type: SqlType = BOOLEAN
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class InQuery:
    """`(operands) [NOT] IN (query)`: the query has as many columns, of the operands' types."""

    operands: tuple[Expression, ...]
    plan: Plan
    equals: tuple[Function, ...]
    negated: bool = False
    type: SqlType = BOOLEAN
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Quantified:
    """`operand comparison ANY|ALL (query)`; = ANY is an InQuery, <> ALL a negated one."""

    operand: Expression
    comparison: Function
    is_all: bool
    plan: Plan
    type: SqlType = BOOLEAN
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class ArrayQuery:
    """`ARRAY(query)`"""

    plan: Plan
    type: SqlType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """`ARRAY[…]`, and the items of ANY (array)"""

    items: tuple[Expression, ...]
    type: SqlType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of an array as items of IN: `= ANY (array)`. The array depends on no row."""

    array: Expression
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Folded:
    """A part without columns, computed once for each execution, before any row is read.

    It is not computed if one of `guards` does not hold: behind `false AND`. It is NULL then, and
    decides nothing, since what stands before it does: a rule may have moved the two apart.
    """

    expression: Expression
    guards: tuple[Guard, ...] = ()

    @property
    def type(self) -> SqlType:
        return self.expression.type

    @property
    def nullable(self) -> bool:
        return self.expression.nullable or bool(self.guards)


@dataclass(frozen=True, slots=True)
class Direct:
    """An argument before WITHIN GROUP: of a group, not of a row. Only the binder sees it."""

    expression: Expression

    @property
    def type(self) -> SqlType:
        return self.expression.type

    @property
    def nullable(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key within a call of an Aggregate: NULL in the grouping sets that lack it."""

    position: int
    key: Expression
    nullable: bool = True

    @property
    def type(self) -> SqlType:
        return self.key.type


@dataclass(frozen=True, slots=True)
class Guard:
    """A constant that stands before others and may decide alone; `test` is Python source."""

    expression: Expression
    test: str


Expression: TypeAlias = (
    Constant
    | Slot
    | Slots
    | Column
    | Apply
    | Cast
    | And
    | Or
    | Not
    | IsNull
    | IsTruth
    | IsDistinct
    | Case
    | Coalesce
    | InList
    | ScalarQuery
    | Exists
    | InQuery
    | Quantified
    | ArrayQuery
    | Array
    | Elements
    | Folded
    | Direct
    | GroupKey
)


@dataclass(frozen=True, slots=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of a grouping; its value is a Column of the grouping's source."""

    aggregate: Aggregate
    arguments: tuple[Expression, ...]
    type: SqlType
    nullable: bool
    distinct: bool = False
    filter: Expression | None = None
    order_by: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function or an aggregate over a window; its value is a Column of the Window."""

    name: str
    """row_number, rank, … for a window function; the aggregate's name otherwise."""
    aggregate: Aggregate | None
    arguments: tuple[Expression, ...]
    partition_by: tuple[Expression, ...]
    order_by: tuple[SortKey, ...]
    frame: WindowFrame
    type: SqlType
    nullable: bool
    filter: Expression | None = None


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """Bounds as in `ast.Frame`, with bound expressions as offsets."""

    mode: str = "range"
    start: tuple[str, Expression | None] = ("unbounded preceding", None)
    end: tuple[str, Expression | None] = ("current row", None)
    exclude: str = "no others"
