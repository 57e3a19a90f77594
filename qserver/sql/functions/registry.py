"""What the compiler must know of a function, an aggregate, a table function.

An implementation is a plain Python function on values that are not NULL, or, where a call would
cost more than the work, a template of Python source. Templates are ours alone: what they are filled
with is generated code for the arguments, never a user's text.

In every template {v} and {w} are fresh names, which the compiler supplies: a template may bind
them with := and use them, as in "({v} if ({v} := {0} + {1}) <= 9 else overflow())". Templates may
raise `decimal.Overflow` beside a QserverError; whoever runs compiled code makes 22003 "value
overflows numeric format" of it (`numeric_math.overflow_error`). A name in `names` means the same
object in all templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qserver.sql.functions.costs import Cost
from qserver.values.types import SqlType


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A scalar function or operator for exact parameter types.

    `strict`: NULL for any NULL argument, without calling. Otherwise `call` is given None.
    `inline`: Python source with {0}, {1} … for the arguments, each used as often as it stands there
    (so an argument that is not a name or a subscript is put into a variable first), and with the
    names of `names`, which the compiler makes known. It must be an expression of the result.
    `condition`: the same for a place where only truth counts. `gives_null`: may return None for
    arguments that are not NULL. `volatile`: may differ each time; never folded or moved.
    `needs_context`: `call` gets the execution's context (now, random, …) before the arguments.
    `symbol`: for operators, what EXPLAIN prints between the arguments.
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
    """One of = <> < <= > >= when this is that comparison and plain Python values of both parameter
    types compare natively in SQL order (so it can use keys and indexes); NaN is the type's care."""
    sees_blanks: bool = False
    """Its arguments of type CHAR(n) come with the blanks that fill them up."""
    variadic: bool = False
    """The last parameter repeats."""
    cost: Cost | None = None
    """What a call costs, see `costs`; None: the default, for arguments that can be long."""
    explodes: bool = False
    """Does the cost depend on more than the lengths of the arguments?"""
    prepare: Callable[[Any], Callable[..., Any]] | None = None
    """Where the last argument is the same for all rows, `prepare(last)` once gives a function of
    the others with the same result: a pattern is then read once, not looked up for each row."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """An aggregate for exact parameter types, as source templates over its state.

    `initial`: one Python expression per state slot. `step`: one statement, in which {s0}, {s1} …
    are the state slots (assignable) and {0}, {1} … the arguments (names); it is run for rows whose
    arguments are not NULL if `strict`. `finish`: an expression over {s0} …. Example, avg:
    initial ("0", "0"), step "{s0} += {0}; {s1} += 1",
    finish "(None if {s1} == 0 else divide({s0}, {s1}))", names {"divide": …}.
    `ordered`: the result depends on the order of rows. `gives_null`: NULL for no rows. `keeps`: its
    state is all the values that it was given, which is counted as memory of the statement.
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


@dataclass(frozen=True, slots=True, eq=False)
class TableFunction:
    """Makes rows: `call(*arguments)` gives an iterable of tuples.

    NULL arguments: no rows if strict.
    """

    name: str
    parameters: tuple[SqlType, ...]
    columns: tuple[tuple[str, SqlType], ...]
    call: Callable[..., Iterable[tuple[Any, ...]]]
    strict: bool = True
    cost: Cost | None = None
    """What it costs before the first row is taken."""
