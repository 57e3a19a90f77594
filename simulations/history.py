"""The history: what the clients of a run asked for, and the answers they got.

A workload notes every attempt at a transaction twice: when it begins and when its outcome is known.
The checkers read nothing else, so they judge the database by its answers alone.

    position      0        1        2        3        4
    T0  client 0  invoked-----------completed                      OK
    T1  client 1           invoked-----------completed             FAILED
    T2  client 0                             invoked---- - - - ->  UNKNOWN

Positions count the events of the whole history in one order. They stand in for a clock: if one
attempt was completed before another was invoked, the client of the second may know of the first.

Invariant: an attempt has a completion unless it is UNKNOWN. An UNKNOWN attempt may take effect at
any time after it was invoked, long after its client has given up, so nothing is ordered behind it.
Its answers are worth nothing either: it keeps only what it meant to write.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum

Key = Hashable
Value = Hashable


class Status(Enum):
    """What the client knows about the effects of an attempt."""

    OK = "ok"
    FAILED = "failed"  # surely not applied
    UNKNOWN = "unknown"  # may have been applied, or may be applied yet


@dataclass(frozen=True, slots=True)
class Append:
    """Add a value to the end of the list under a key; no two appends to a key are alike."""

    key: Key
    value: Value


@dataclass(frozen=True, slots=True)
class Read:
    """The list under a key as the transaction saw it then, its own earlier appends included."""

    key: Key
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """Replace the value of a register; no two writes to a key are alike."""

    key: Key
    value: Value


@dataclass(frozen=True, slots=True)
class Get:
    """The value of a register as the transaction saw it then; None if it was never written."""

    key: Key
    value: Value


Operation = Append | Read | Write | Get


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one transaction; a retry by the client is another attempt, with new values."""

    number: int
    client: str
    operations: tuple[Operation, ...]
    invoked: int
    completed: int | None
    status: Status
    version: int | None

    def __post_init__(self) -> None:
        assert (self.completed is None) == (self.status is Status.UNKNOWN), self
        assert self.completed is None or self.invoked < self.completed, self


class History:
    def __init__(self) -> None:
        self._attempts: list[Attempt] = []
        self._open: set[int] = set()
        self._position = 0

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts in the order they were begun; those still under way are UNKNOWN."""
        return tuple(self._attempts)

    def begin(self, client: str, intended: Iterable[Operation] = ()) -> int:
        """Note that a client begins an attempt, and return its number.

        `intended` matters for an attempt that never ends, because its client died: without it the
        values that it wrote would come from nowhere.
        """
        number = len(self._attempts)
        writes = _writes(intended)
        invoked = self._next_position()
        self._attempts.append(Attempt(number, client, writes, invoked, None, Status.UNKNOWN, None))
        self._open.add(number)
        return number

    def end(
        self,
        number: int,
        status: Status,
        operations: Iterable[Operation] = (),
        version: int | None = None,
    ) -> None:
        """Note an attempt's outcome: what it did, or meant to do, and the version it reported."""
        assert number in self._open, f"T{number} was not begun, or has already ended"
        self._open.remove(number)
        begun = self._attempts[number]
        if status is Status.UNKNOWN:
            completed, version = None, None
            done = _writes(operations) or begun.operations
        else:
            completed, done = self._next_position(), tuple(operations)
        self._attempts[number] = Attempt(
            number, begun.client, done, begun.invoked, completed, status, version
        )

    def _next_position(self) -> int:
        position = self._position
        self._position += 1
        return position


def _writes(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    return tuple(each for each in operations if isinstance(each, Append | Write))
