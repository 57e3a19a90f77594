"""What a compiled statement needs to run, and what it is.

The room of SQL knows nothing of storage: it reads and writes through `Reader` and `Writer`, which
it declares here and a storage transaction happens to satisfy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from qserver.errors import OutOfMemory
from qserver.limits import STEPS_AT_ONCE_MAX, TRANSACTION_MEMORY_BYTES_MAX, VALUE_BYTES_MAX
from qserver.sql.functions.costs import BYTES_SMALL, Cost, refuse_size, refuse_steps
from qserver.sql.plan import OutputColumn
from qserver.values.keys import Key, Row
from qserver.values.schema import Table
from qserver.values.sizes import size_of

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

Page: TypeAlias = tuple[list[Key], list[Row]]
Rows: TypeAlias = list[tuple[Any, ...]]

BYTES_UNNOTICED_MAX = 16 * 1024
"""What a statement may hold more than the memory pool knows of."""

STEPS_BETWEEN_PAUSES = 2048
"""Steps, rows that are looked at in whatever loop or what functions cost, before others may run."""


class Reader(Protocol):
    """How compiled code reads: by key, by range in order, or a whole range in any order."""

    def get_entry(self, tree: int, key: Key) -> Row | None: ...

    def scan(
        self,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        predicate: Callable[[Row], Any] | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]: ...

    def first_rows(
        self, tree: int, low: Key | None, high: Key | None, backward: bool, most: int
    ) -> list[Row]: ...

    def scan_values(
        self,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        predicate: Callable[[Row], Any] | None = None,
    ) -> Iterator[list[Row]]: ...


class Writer(Reader, Protocol):
    def before(self) -> Reader: ...
    def insert(self, table: Table, row: Row) -> None: ...
    def insert_many(self, table: Table, rows: list[Row]) -> None: ...
    def put(self, table: Table, row: Row) -> None: ...
    def delete(self, table: Table, key: Key) -> Row | None: ...


class SequencePort(Protocol):
    """Sequences by the name that a statement gives them; see `functions.sequences`."""

    def next(self, name: str) -> int: ...
    def current(self, name: str) -> int: ...
    def last(self) -> int: ...
    def set(self, name: str, value: int, called: bool) -> int: ...


class MemoryPort(Protocol):
    """Memory that is shared with other statements."""

    def take(self, count: int) -> None: ...
    def give_back(self, count: int) -> None: ...


class Context:
    """What one execution brings along: time, chance, and its bounds.

    `now` is one value in a transaction. `check` is called between pages; it raises when the
    deadline is over. `memory_rows_most` bounds the rows that a statement may hold at once.
    """

    held = 0
    """Bytes that the statement keeps."""
    made = 0
    """Bytes of long values that functions made since the loop was last given back."""
    written = 0
    """Bytes of the rows that the transaction has written."""
    work = 0
    """Steps, rows mostly, since others last had a chance to run."""
    value_bytes_most = VALUE_BYTES_MAX
    pool: MemoryPort | None = None
    """Where the memory that is held is counted together with that of others."""
    _pooled = 0
    """How much of it the pool knows of."""
    _noticed_from = BYTES_UNNOTICED_MAX

    def __init__(
        self,
        now: datetime,
        random: Random,
        check: Callable[[], None],
        memory_bytes_most: int,
        next_row_id: Callable[[], int],
        user: str = "qserver",
        sequences: SequencePort | None = None,
    ) -> None:
        self.now = now
        self.random = random
        self.check = check
        self.memory_bytes_most = memory_bytes_most
        self.next_row_id = next_row_id
        self.user = user
        self.sequences = sequences

    def charge_memory(self, rows: int, width: int) -> None:
        """Count rows of so many columns that are kept at once; refuse when they are too many.

        A row is taken for 64 bytes and 32 for each of its columns, which is near what CPython
        needs for small values. Long ones are counted beside, by `hold_bytes`.
        """
        self.hold_bytes(rows * (64 + 32 * width))

    def hold_bytes(self, count: int) -> None:
        """Count bytes that are kept until the statement ends."""
        self.held += count
        if self.held > self._noticed_from:
            self._notice()

    def _notice(self) -> None:
        """Refuse what is too much; the pool is told now and then, small statements never tell."""
        if self.held > self.memory_bytes_most:
            raise out_of_memory(self.memory_bytes_most)
        if self.pool is not None:
            self.pool.take(self.held - self._pooled)
            self._pooled = self.held
        self._noticed_from = min(self.held + BYTES_UNNOTICED_MAX, self.memory_bytes_most)

    def free_bytes(self, count: int) -> None:
        """Bytes that were held are not any more."""
        self.held -= count
        if self.pool is not None and self._pooled > self.held:
            self.pool.give_back(self._pooled - self.held)
            self._pooled = self.held
            self._noticed_from = min(self.held + BYTES_UNNOTICED_MAX, self.memory_bytes_most)

    def release(self) -> None:
        """The statement has ended: what it held is free."""
        if self._pooled and self.pool is not None:
            self.pool.give_back(self._pooled)
            self._pooled = 0

    def write_rows(self, rows: int, width: int, long_bytes: int = 0) -> None:
        """Count rows that the transaction keeps until it commits."""
        self.written += rows * (64 + 32 * width) + long_bytes
        if self.written > TRANSACTION_MEMORY_BYTES_MAX:
            raise OutOfMemory(
                "the transaction writes more than one transaction may",
                detail=f"The limit is {TRANSACTION_MEMORY_BYTES_MAX} bytes of rows.",
                hint="Write the rows in several transactions.",
            )

    def hold_page(self, page: Rows, width: int, long: tuple[int, ...]) -> None:
        """Count a page of results that is kept."""
        count = len(page) * (64 + 32 * width)
        for at in long:
            count += sum([size_of(row[at]) for row in page])
        self.held += count
        if self.held > self._noticed_from:
            self._notice()

    # --- calls that may take long ---

    def costly(self, each: CostlyCall, *arguments: Any) -> Generator[None, None, Any]:
        """The result of a call that may take long. The loop is given back first, if it is due, or
        would be after the call: a long call is a step of its own."""
        steps = each.cost(*arguments)
        if self.work + steps > STEPS_BETWEEN_PAUSES and steps <= STEPS_AT_ONCE_MAX:
            self.work = 0
            self.check()
            yield None
        return self._call(each, steps, arguments)

    def compute(self, each: CostlyCall, *arguments: Any) -> Any:
        """The same where the loop cannot be given back."""
        return self._call(each, each.cost(*arguments), arguments)

    def _call(self, each: CostlyCall, steps: int, arguments: tuple[Any, ...]) -> Any:
        if steps > STEPS_AT_ONCE_MAX:
            raise refuse_steps(each.name, steps)
        self.work += steps
        if steps > STEPS_BETWEEN_PAUSES:
            self.check_deadline()
        result = each.call(self, *arguments) if each.needs_context else each.call(*arguments)
        return self.weigh(result) if each.makes_long else result

    def check_deadline(self) -> None:
        """Called before a long step; `check` is called where the loop is given back."""
        self.check()

    def weigh(self, value: Any) -> Any:
        """A value that was made just now, unless it is too long, or too many are."""
        size = size_of(value)
        if size > BYTES_SMALL:
            if size > self.value_bytes_most:
                raise refuse_size(size, self.value_bytes_most)
            self.work += size // 4000
            self.made += size
            if self.held + self.made > self.memory_bytes_most:
                raise out_of_memory(self.memory_bytes_most)
        return value


def out_of_memory(most: int) -> OutOfMemory:
    """The error for a statement that needs more memory than it may have."""
    return OutOfMemory(
        "the statement needs more memory than one statement may have",
        detail=f"The limit is {most} bytes of intermediate rows.",
        hint="Select fewer rows or columns, or add an index that avoids sorting.",
    )


@dataclass(frozen=True, slots=True, eq=False)
class CostlyCall:
    """A function as `Context.costly` calls it. `makes_long`: its result may be long."""

    name: str
    call: Callable[..., Any]
    cost: Cost
    makes_long: bool = True
    needs_context: bool = False


Run: TypeAlias = Generator[Rows | None, None, int]
"""A running statement: yields pages of result rows, or None to yield; returns how many rows
were inserted, updated or deleted."""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A statement as a Python function: `run(transaction, slots, context)`.

    `slots` holds the literals by index and the parameters by name, as they came; conversions are
    part of the function. `repeated` is the list of rows of a parameterized multi-row VALUES.
    """

    columns: tuple[OutputColumn, ...]
    run: Callable[[Any, Mapping[int | str, Any] | Sequence[Any], Context], Run]
    writes: bool
    source: str
    tables: tuple[Table, ...]
    long_columns: tuple[int, ...] = ()
    """Columns whose values the statement makes and may be long: who keeps rows measures them."""
