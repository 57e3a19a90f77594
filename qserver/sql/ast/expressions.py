"""Expressions: of SELECT lists, conditions, DEFAULTs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from qserver.sql.ast.queries import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    position: int = 0


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """The `index`-th literal. `kind`: "integer", "bigint", "numeric", "text"; "bits", "bytes".

    In the row of a repeated VALUES the index is the column, the value may be NULL (`nullable`), and
    there are the kinds "boolean" and "null" (every value is NULL).
    """

    index: int
    kind: str
    nullable: bool = False
    negative: bool = False  # only in NUMERIC(5, -2): elsewhere a minus is an Operator


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """TRUE, FALSE or NULL, which are part of the fingerprint."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`?` and `$1` by number from 1, `:name` by name."""

    name: int | str


@dataclass(frozen=True, slots=True)
class Run(Node):
    """`count` items of a list from `first` on: literals of one kind, or parameters; see `runs`.

    Their indexes or numbers are consecutive. Only IN lists and ARRAY[…] have runs among their
    items, and only if `parse` was asked for them.
    """

    first: Literal | Parameter
    count: int


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column or alias: `a`, `t.a`, `public.t.a`; parts are folded to lower case unless quoted."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star(Node):
    """`*` or `t.*`"""

    table: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator(Node):
    """`left operator right`; a prefix operator has no left. Comparison, arithmetic, ||, ->, ~ ….

    The position of infix nodes, and of `x::type`, is that of the symbol.

    Also "and", "or", "not", "is distinct from", "is not distinct from", "like", "not like",
    "ilike", "not ilike", "similar to", "not similar to" (an ESCAPE is the third operand of Like).
    """

    symbol: str
    left: Expression | None
    right: Expression


@dataclass(frozen=True, slots=True)
class Like(Node):
    """`operand [NOT] LIKE|ILIKE|SIMILAR TO pattern [ESCAPE escape]`"""

    kind: str  # "like", "ilike", "similar"
    operand: Expression
    pattern: Expression
    escape: Expression | None
    negated: bool


@dataclass(frozen=True, slots=True)
class Is(Node):
    """`operand IS [NOT] NULL|TRUE|FALSE|UNKNOWN`"""

    operand: Expression
    what: str  # "null", "true", "false", "unknown"
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    symmetric: bool = False


@dataclass(frozen=True, slots=True)
class InList(Node):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class InQuery(Node):
    operand: Expression
    query: Query
    negated: bool


@dataclass(frozen=True, slots=True)
class Exists(Node):
    query: Query


@dataclass(frozen=True, slots=True)
class ScalarQuery(Node):
    query: Query


@dataclass(frozen=True, slots=True)
class Quantified(Node):
    """`operand symbol ANY|ALL (query or array)`"""

    operand: Expression
    symbol: str
    is_all: bool
    source: Query | Expression


@dataclass(frozen=True, slots=True)
class ArrayQuery(Node):
    """`ARRAY(query)`"""

    query: Query


@dataclass(frozen=True, slots=True)
class Case(Node):
    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """`NUMERIC(10,2)`, `TIMESTAMP WITH TIME ZONE` (words joined by one blank), `INT[]`."""

    name: str
    arguments: tuple[Literal, ...] = ()
    array_dimensions: int = 0
    schemas: tuple[str, ...] = ()
    """What is written before the name, without the dots."""
    quoted: bool = False
    """Whether it is written in quotes, so that a word of the grammar is only a name."""

    @property
    def parts(self) -> tuple[str, ...]:
        return (*self.schemas, self.name)


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """`CAST(x AS t)`, `x::t`, and typed literals such as `DATE '2024-01-01'`."""

    operand: Expression
    type: TypeName


@dataclass(frozen=True, slots=True)
class Transform(Node):
    """What USING of ALTER COLUMN makes of one row: it has no aggregates, subqueries or sets."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Frame(Node):
    """A bound is (kind, expression): "unbounded preceding", "preceding", "current row", …"""

    mode: str  # "rows", "range", "groups"
    start: tuple[str, Expression | None]
    end: tuple[str, Expression | None]
    exclude: str = "no others"


@dataclass(frozen=True, slots=True)
class Window(Node):
    name: str | None  # the window that this one refers to or extends
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: Frame | None = None
    copied: bool = True  # False: OVER w is the window itself, where OVER (w) copies it


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function call. Special forms become ordinary calls with PostgreSQL's own names.

        EXTRACT(year FROM x)         extract('year', x), the field as Word
        SUBSTRING(x FROM a FOR b)    substring(x, a, b)
        POSITION(a IN b)             position(a, b)
        TRIM(BOTH a FROM b)          btrim(b, a), also ltrim, rtrim
        x AT TIME ZONE z             timezone(z, x)

    OVERLAY, COALESCE, NULLIF, GREATEST and LEAST are calls of that name; CURRENT_DATE,
    CURRENT_TIMESTAMP, … calls without arguments.
    """

    name: tuple[str, ...]
    arguments: tuple[Expression, ...]
    star: bool = False  # count(*)
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    filter: Expression | None = None
    within_group: tuple[OrderItem, ...] = ()
    over: Window | None = None
    variadic: bool = False  # the last argument is an array of arguments


@dataclass(frozen=True, slots=True)
class Word(Node):
    """A bare word that the grammar requires: the field of EXTRACT."""

    text: str


@dataclass(frozen=True, slots=True)
class NamedArgument(Node):
    """`name => value` or `name := value` among the arguments of a call."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Row(Node):
    """`(a, b)` or, `explicit`, `ROW(a, b)`"""

    items: tuple[Expression, ...]
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class ArrayItems(Node):
    """`ARRAY[a, b]`"""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """`a[i]`, `a[i:j]`. A `grouped` subscript applies to parentheses, like the 1 of `(a[2:3])[1]`:
    it selects from their value, and is not the next dimension of `a`."""

    operand: Expression
    low: Expression | None
    high: Expression | None
    is_slice: bool
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`(row).name`; the name "*" means all fields."""

    operand: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Default(Node):
    """DEFAULT in VALUES or SET. The parser accepts it as any expression, the binder does not."""


@dataclass(frozen=True, slots=True)
class KeyColumn(Node):
    """A column of the key of the only table in FROM, by its place in the key: of cursors."""

    at: int


@dataclass(frozen=True, slots=True)
class Collate(Node):
    operand: Expression
    collation: str


Expression: TypeAlias = (
    Literal
    | Constant
    | Transform
    | Parameter
    | Run
    | Name
    | Star
    | Operator
    | Like
    | Is
    | Between
    | InList
    | InQuery
    | Exists
    | ScalarQuery
    | Quantified
    | ArrayQuery
    | Case
    | Cast
    | Call
    | Word
    | NamedArgument
    | Row
    | ArrayItems
    | Subscript
    | Field
    | Default
    | Collate
    | KeyColumn
)
