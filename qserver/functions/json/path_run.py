"""One run of an SQL/JSON path: what it is on, how far it may go, and how it fails.

A step is compiled to a function `step(run, item, found)`. It calls the function of the next step
for each item that it makes, and the last one appends to `found`. `found` is None where only the
existence of an item is asked for: then the first item ends the run. A step returns whether there
was one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias

from qserver.errors import QserverError
from qserver.functions.costs import refuse_steps
from qserver.limits import STEPS_AT_ONCE_MAX
from qserver.values.jsonb import Structure
from qserver.values.zoned_time import ZonedTime

Item: TypeAlias = Any
"""A structure of JSON, or a date or time that `.datetime()` has made."""

Found: TypeAlias = list[Item]
Walk: TypeAlias = Callable[["Run", Item, "Found | None"], bool]
Sequence: TypeAlias = Callable[["Run", Item], Found]
Test: TypeAlias = Callable[["Run", Item], "bool | None"]
"""A predicate: true, false or unknown."""

OBJECT_NUMBERS: Final = 10_000_000_000
"""What `.keyvalue()` multiplies the number of a document by, to number the objects in it."""


class Failure(Exception):
    """An error that a predicate makes unknown, and that `silent` suppresses."""

    def __init__(self, error: QserverError) -> None:
        super().__init__(error)
        self.error = error


class Base:
    """The document of the objects that `.keyvalue()` numbers."""

    __slots__ = ("document", "number", "places")

    def __init__(self, document: Structure, number: int) -> None:
        self.document = document
        self.number = number
        self.places: dict[int, int] | None = None
        """Where its objects are in PostgreSQL's binary form, when somebody has asked."""


class Run:
    """The state of one run."""

    size = 0
    """The length of the innermost array that is asked for an element."""
    work = 0
    base: Base | None = None
    """Set for paths with `.keyvalue()`."""
    numbered = 0
    """Documents that `.keyvalue()` has made."""

    def __init__(
        self, root: Structure, variables: dict[str, Structure] | None, uses_zone: bool, throws: bool
    ) -> None:
        self.root = root
        self.variables = variables
        self.uses_zone = uses_zone
        self.throws = throws
        """Whether an error here ends the run; in predicates it does not."""
        self.current: Item = root
        """What `@` is."""

    def spend(self, steps: int) -> None:
        """Count steps; refuse what takes too long."""
        self.work += steps
        if self.work > STEPS_AT_ONCE_MAX:
            raise refuse_steps("a path", self.work)

    def state(self) -> tuple[Any, ...]:
        return self.throws, self.size, self.current, self.base

    def restore(self, state: tuple[Any, ...]) -> None:
        self.throws, self.size, self.current, self.base = state


def last_step(run: Run, item: Item, found: Found | None) -> bool:
    """What is behind the last step."""
    if found is not None:
        found.append(item)
    return True


TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    Decimal: "number",
    str: "string",
    list: "array",
    dict: "object",
    date: "date",
    time: "time without time zone",
    ZonedTime: "time with time zone",
}


def type_name(item: Item) -> str:
    if type(item) is datetime:
        return f"timestamp {'without' if item.tzinfo is None else 'with'} time zone"
    return TYPE_NAMES[type(item)]


def is_number(item: Item) -> bool:
    return type(item) is int or type(item) is Decimal
