"""The interface of compiled statements: how they read and write, and what they return.

SQL does not import storage: it declares `Reader` and `Writer`, which a storage transaction
satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from qserver.functions.context import Context
from qserver.sql.expressions import Slot, Slots
from qserver.sql.plan import OutputColumn
from qserver.values.keys import Bound, Key, Predicate, Row
from qserver.values.schema import Table
from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.values.vectors import Vector

Page: TypeAlias = tuple[list[Key], list[Row]]
Rows: TypeAlias = list[tuple[Any, ...]]


class Reader(Protocol):
    """Reads by key, by range in order, or a whole range in any order."""

    def get_entry(self, tree: int, key: Key) -> Row | None: ...

    def scan(
        self,
        tree: int,
        low: Bound = None,
        high: Bound = None,
        predicate: Predicate | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]: ...

    def first_rows(
        self, tree: int, low: Bound, high: Bound, backward: bool, most: int
    ) -> list[Row]: ...

    def scan_values(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[list[Row]]: ...

    def count(self, tree: int, low: Bound = None, high: Bound = None) -> int: ...

    def scan_chunks(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[Chunk | list[Row]]: ...


class Chunk(Protocol):
    """Some thousand rows of a table, with their columns as vectors; see `sql.vectors`."""

    length: int
    filled: int
    """Values that became vectors for this chunk, rather than being kept from an earlier scan."""

    is_ready: bool
    """Whether all columns that were prepared have vectors."""

    @property
    def is_unpacked(self) -> bool:
        """Whether its rows can be read as they are."""

    def prepare(
        self, columns: tuple[ColumnVector, ...], vectors: Any, is_eager: bool
    ) -> Iterator[None]:
        """Find vectors, or fill them and have the cache of vectors count them."""

    def load(self, columns: tuple[ColumnVector, ...], vectors: Any) -> Iterator[None]:
        """Load vectors that are saved."""

    def has(self, wanted: ColumnVector) -> bool: ...
    def column(self, wanted: ColumnVector) -> Vector: ...
    def forget_rows(self) -> None: ...
    def runs(self, places: list[int] | None = None) -> Iterator[list[Row]]: ...


class Writer(Reader, Protocol):
    def before(self) -> Reader: ...
    def insert(self, table: Table, row: Row) -> None: ...
    def insert_many(self, table: Table, rows: list[Row]) -> None: ...
    def put(self, table: Table, row: Row) -> None: ...
    def delete(self, table: Table, key: Key) -> Row | None: ...


Run: TypeAlias = Generator[Rows | None, None, int]
"""A running statement: yields pages of rows, or None; returns the number of affected rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A statement as a Python function: `run(transaction, slots, context)`.

    `slots` holds the literals by index and the parameters by name, unconverted; the function
    converts them.
    """

    columns: tuple[OutputColumn, ...]
    run: Callable[[Any, Mapping[int | str, Any] | Sequence[Any], Context], Run]
    writes: bool
    source: str
    tables: tuple[Table, ...]
    long_columns: tuple[int, ...] = ()
    """Columns of computed values that may be long: callers that hold rows measure them."""
    literals: tuple[Slot | Slots, ...] = ()
    """Literals that are converted first, even if the plan no longer uses them."""
