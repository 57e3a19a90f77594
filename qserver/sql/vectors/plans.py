"""The planned form of vectorized scans, aggregates and joins; no numpy here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from qserver.sql.vectors.program import JoinedColumn, Program
from qserver.values.keys import Row


class Watch(Protocol):
    """Told of each batch of chunks, by EXPLAIN ANALYZE: see `codegen.measured`."""

    def before(self) -> None:
        """It is tried."""

    def after(self, lengths: list[int]) -> None:
        """It has been: the rows of the scan, then those after each join; none if it is refused."""


Constants: TypeAlias = Callable[[], tuple[Any, ...]]
"""Computes what names no column of the scan; may raise, as it would for a row."""


ROWS_OF_STEP: Final = 64
"""The rows that cost one step in each step of a program."""

VALUES_FILLED_OF_STEP: Final = 2
"""The values that are made vectors at the cost of one step."""


class ConstantKind(NamedTuple):
    """What a constant becomes: a value of a family, or the items of an IN."""

    family: str
    is_list: bool


class Call(NamedTuple):
    """An aggregate call: its argument and its FILTER are steps of the program."""

    name: str
    family: str
    argument: int | None
    filter: int | None
    state: int
    """The place of its first state in the list of a group."""


class Matched(list[Row]):
    """Rows for which the condition of the scan is known to hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """The condition of a scan as a program; `truth` is its last step, None without a condition."""

    program: Program
    truth: int | None
    constants: tuple[ConstantKind, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A condition over the rows of a join."""

    program: Program
    truth: int


@dataclass(frozen=True, slots=True, eq=False)
class JoinPlan:
    """A hash join of the rows so far with a right side: see `builds`."""

    kind: str
    program: Program
    keys: tuple[int, ...]
    """Steps of the program, over the left side."""
    right_keys: tuple[JoinedColumn, ...]
    sources: tuple[int, ...]
    """Of the right side."""
    checks: tuple[Check, ...]
    columns: tuple[JoinedColumn, ...] = ()
    """Of the right side: its keys, and what is read of it later."""

    @property
    def programs(self) -> list[Program]:
        return [self.program, *[check.program for check in self.checks]]


@dataclass(frozen=True, slots=True, eq=False)
class Aggregation:
    """Keys and calls as steps of one program."""

    program: Program
    keys: tuple[int, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The first key of an ORDER BY; `is_only` if there is no other."""

    program: Program
    key: int
    descending: bool
    nulls_first: bool
    is_only: bool
