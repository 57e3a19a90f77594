"""What a compiled statement needs to run, and what it is.

The room of SQL knows nothing of storage: it reads and writes through `Reader` and `Writer`, which
it declares here and a storage transaction happens to satisfy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from qserver.errors import OutOfMemory
from qserver.sql.plan import OutputColumn
from qserver.values.keys import Key, Row
from qserver.values.schema import Table

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

Page: TypeAlias = tuple[list[Key], list[Row]]
Rows: TypeAlias = list[tuple[Any, ...]]


class Reader(Protocol):
    """How compiled code reads: by key, by range in order, or a whole range in any order."""

    def get_entry(self, tree: int, key: Key, hashed: int | None = None) -> Row | None: ...

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

    def scan_in_any_order(
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


class Context:
    """What one execution brings along: time, chance, and its bounds.

    `now` is one value in a transaction. `check` is called between pages; it raises when the
    deadline is over. `memory_rows_most` bounds the rows that a statement may hold at once.
    """

    held = 0
    work = 0
    """Rows that were looked at since others last had a chance to run."""

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

    def hold(self, rows: int, width: int) -> None:
        """Count rows of so many columns that are kept at once; refuse when they are too many.

        A row is taken for 64 bytes and 32 for each of its columns, which is near what CPython
        needs for small values.
        """
        self.held += rows * (64 + 32 * width)
        if self.held > self.memory_bytes_most:
            raise OutOfMemory(
                "the statement needs more memory than one statement may have",
                detail=f"The limit is {self.memory_bytes_most} bytes of intermediate rows.",
                hint="Select fewer rows or columns, or add an index that avoids sorting.",
            )


Run: TypeAlias = Generator[Rows | None, None, int]
"""A running statement: yields pages of result rows, or None to give way; returns how many rows
were inserted, updated or deleted."""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A statement as a Python function: `run(transaction, slots, context)`.

    `slots` holds the literals by index and the parameters by name, as they came; conversions are
    part of the function. `repeated` is the list of rows of a lifted multi-row VALUES.
    """

    columns: tuple[OutputColumn, ...]
    run: Callable[[Any, Mapping[int | str, Any] | Sequence[Any], Context], Run]
    writes: bool
    source: str
    tables: tuple[Table, ...]
