"""What the compiler must know of a function, an aggregate, a table function.

An implementation is a plain Python function on values that are not NULL, or, if a call would cost
more than the work, a template of Python source. Templates are filled with generated code for the
arguments, never with a user's text.

In every template {v} and {w} are fresh names, which it may bind with :=, as in "({v} if ({v} := {0}
+ {1}) <= 9 else overflow())". Templates may raise `decimal.Overflow`; the caller of compiled code
turns it into 22003 (`numeric_math.overflow_error`). A name in `names` means the same object in all
templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qserver.functions.costs import Cost
from qserver.values.types import SqlType


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A scalar function or operator for exact parameter types.

    `strict`: NULL for any NULL argument, without a call. Otherwise `call` gets None. `inline`:
    Python source of the result with {0}, {1} … for the arguments, each evaluated as often as it
    occurs (so an argument that is not a name or a subscript goes into a variable first), and with
    the names of `names`, which the compiler adds. `gives_null`: may return None for arguments that
    are not NULL. `volatile`: may differ each time; never folded or moved. `needs_context`: `call`
    gets the execution's context (now, random, …) before the arguments. `symbol`: for operators,
    what EXPLAIN prints between the arguments.
    """

    name: str
    parameters: tuple[SqlType, ...]
    returns: SqlType
    call: Callable[..., Any]
    strict: bool = True
    inline: str | None = None
    names: Mapping[str, Any] = field(default_factory=dict)
    gives_null: bool = False
    volatile: bool = False
    needs_context: bool = False
    symbol: str | None = None
    comparison: str | None = None
    """One of = <> < <= > >= if this is that comparison and Python values of both parameter types
    compare natively in SQL order (so it can use keys and indexes); the type handles NaN."""
    reads_catalog: bool = False
    """It looks at definitions (`context.objects`): a change of any may change its result."""
    writes: bool = False
    """It leaves something to the commit: a query that calls it is a transaction that writes."""
    sees_blanks: bool = False
    """Its arguments of type CHAR(n) are padded with blanks."""
    variadic: bool = False
    """The last parameter repeats."""
    cost: Cost | None = None
    """The cost of a call, see `costs`; None: the default, for arguments that can be long."""
    explodes: bool = False
    """Whether the cost depends on more than the lengths of the arguments."""
    length: str | None = None
    """Of a function that explodes: Python source, as `inline`, of the length that it works on. A
    short one is as cheap as short arguments are elsewhere."""
    charges: bool = False
    """`call` gets the context, too, but only to charge it for work that the arguments do not
    tell: it is as immutable as one without."""
    prepare: Callable[[Any], Callable[..., Any]] | None = None
    """If the last argument is the same for all rows, `prepare(last)` returns a function of the
    others with the same result: a pattern is then compiled once, not looked up for each row."""
    prepare_all: Callable[[Any], Callable[[list[str]], list[bool]]] | None = None
    """The same for a function of two texts, to call it with many first ones at once."""

    @property
    def takes_context(self) -> bool:
        return self.needs_context or self.charges


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """An aggregate for exact parameter types, as source templates over its state.

    `initial`: one Python expression per state slot. `step`: one statement, in which {s0}, {s1} …
    are the state slots (assignable) and {0}, {1} … the arguments (names); if `strict`, it runs for
    rows whose arguments are not NULL. `finish`: an expression over {s0} …. Example, avg:

        initial ("0", "0"), step "{s0} += {0}; {s1} += 1",
        finish "(None if {s1} == 0 else divide({s0}, {s1}))", names {"divide": …}

    `ordered`: the result depends on the order of rows. `gives_null`: NULL for no rows. `keeps`: the
    state holds all values, which are charged as memory of the statement.
    """

    name: str
    parameters: tuple[SqlType, ...]
    returns: SqlType
    initial: tuple[str, ...]
    step: str
    finish: str
    names: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = True
    ordered: bool = False
    gives_null: bool = True
    hypothetical: bool = False
    keeps: bool = False
    subtracts: bool = False
    """A sum or a count: what it is for some rows is a difference of two subtotals, if they are
    exact."""


@dataclass(frozen=True, slots=True, eq=False)
class TableFunction:
    """A set-returning function: `call(*arguments)` returns an iterable of tuples.

    NULL arguments: no rows if strict.
    """

    name: str
    parameters: tuple[SqlType, ...]
    columns: tuple[tuple[str, SqlType], ...]
    call: Callable[..., Iterable[tuple[Any, ...]]]
    strict: bool = True
    cost: Cost | None = None
    """The cost before the first row."""
    needs_context: bool = False
    reads_catalog: bool = False
    charges: bool = False
    """As of a `Function`."""
    row_oid: int = 0
    """The oid of the type of its rows, if that has a name."""

    @property
    def takes_context(self) -> bool:
        return self.needs_context or self.charges
