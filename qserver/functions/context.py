"""The environment of one execution of a statement: time, randomness, limits, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from qserver.errors import FeatureNotSupported, OutOfMemory, UndefinedObject
from qserver.functions.costs import BYTES_SMALL, Cost, refuse_size, refuse_steps
from qserver.limits import (
    STEPS_AT_ONCE_MAX,
    TRANSACTION_LONG_BYTES_MAX,
    TRANSACTION_MEMORY_BYTES_MAX,
    VALUE_BYTES_MAX,
)
from qserver.values.object_names import ObjectName
from qserver.values.sizes import size_of
from qserver.values.types import Kind, SqlType

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from qserver.values.notices import Notice

WRITTEN_ROW_BYTES = 256
"""What a row that was written takes beside its values, until its transaction has ended."""
BYTES_UNNOTICED_MAX = 16 * 1024
"""Bytes that a statement may hold before it reports them to the memory pool."""

STEPS_BETWEEN_PAUSES = 1024
"""Steps (rows visited in any loop, or the cost of functions) between two yield checks."""


class SequencePort(Protocol):
    """Sequences, by the name in the statement; see `sequences`."""

    def next(self, name: str) -> int: ...
    def current(self, name: str) -> int: ...
    def last(self) -> int: ...
    def set(self, name: str, value: int, called: bool) -> int: ...


class ObjectsPort(Protocol):
    """The objects of the statement's catalog: what functions and types of the catalog ask for."""

    def find(self, kind: Kind, text: str) -> ObjectName | None:
        """Return the object that a text names, as the type's input does; None if there is none."""

    def read(self, kind: Kind, text: str) -> ObjectName:
        """The same, but raise the error of the type if there is none."""

    def named(self, kind: Kind, oid: int) -> ObjectName:
        """Return an oid with the name that the type shows; the number itself if nothing has it."""

    def type_named(self, text: str) -> SqlType:
        """Return the type that a text names, with its length or precision; raise if none has it."""

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the result of a function of the catalog."""


class MemoryPort(Protocol):
    def take(self, count: int) -> None: ...
    def give_back(self, count: int) -> None: ...


class PagePort(Protocol):
    worker: Any
    """The context of the statement that is running: a load adds to its `work`."""
    loads: int
    """Pages loaded so far, by all statements."""
    vectors: Any
    """Bounds the vectors that pages keep: chunks get it."""


class Context:
    """The environment of one execution: time, randomness, and limits.

    `now` is one value per transaction. `check` is called at each yield and raises after the
    deadline. `memory_bytes_most` limits the bytes of rows that a statement holds at once.
    """

    held = 0
    """Bytes that the statement holds."""
    made = 0
    """Bytes of long values that functions produced since the last yield."""
    written = 0
    """Bytes of the rows that the transaction has written."""
    long_written = 0
    """Those of long values, in rows and in indexes."""
    work = 0
    """Steps, mostly rows, since the last yield."""
    value_bytes_most = VALUE_BYTES_MAX
    pool: MemoryPort | None = None
    """Counts the held memory together with that of other statements."""
    pages: PagePort | None = None
    """Charges the pages that it loads to the statement that is running."""
    transaction_bytes_most = TRANSACTION_MEMORY_BYTES_MAX
    large: dict[int, Any] | None = None
    """The lists, sets and dictionaries of more than a page, by identity: see `let_go`."""
    _pooled = 0
    """Bytes reported to the pool."""
    _noticed_from = BYTES_UNNOTICED_MAX
    _written_pooled = 0
    _written_noticed_from = BYTES_UNNOTICED_MAX

    def __init__(
        self,
        now: datetime,
        random: Random,
        check: Callable[[], None],
        memory_bytes_most: int,
        next_row_id: Callable[[], int],
        user: str = "qserver",
        sequences: SequencePort | None = None,
        objects: ObjectsPort | None = None,
    ) -> None:
        self.now = now
        self.random = random
        self.check = check
        self.memory_bytes_most = memory_bytes_most
        self.next_row_id = next_row_id
        self.user = user
        self.sequences = sequences
        self.objects = objects

    def setting(self, name: str, missing_ok: bool = False) -> str | None:
        """Return a setting as SHOW prints it; None if it may be missing, and is."""
        if missing_ok:
            return None
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')

    def set_setting(self, name: str, value: str | None, is_local: bool) -> str | None:
        """Change a setting, or with None reset it; return what SHOW prints then."""
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')

    def notify(self, channel: str, payload: str) -> None:
        """Tell those who listen to a channel, if the transaction commits."""
        raise FeatureNotSupported("there is nobody to tell")

    def listening(self) -> frozenset[str]:
        """Return the channels that the session listens to."""
        return frozenset()

    def lock(self, key: Any, *, shared: bool, of_transaction: bool, waits: bool) -> bool:
        """Take an advisory lock; return whether that was possible."""
        raise FeatureNotSupported("there are no locks here")

    def unlock(self, key: Any, *, shared: bool) -> bool:
        """Give up an advisory lock of the session; return whether it had one."""
        return False

    def unlock_all(self) -> None:
        """Give up all advisory locks of the session."""

    def give_notice(self, notice: Notice) -> None:
        """Tell the client something beside the answer."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        raise FeatureNotSupported("nothing can wait here")

    def cancel_session(self, number: int) -> bool:
        """Cancel the statement of another connection; return whether there is such a one."""
        return False

    def terminate_session(self, number: int) -> bool:
        """End a connection; return whether there is such a one."""
        return False

    def transaction_number(self, *, draws: bool) -> int | None:
        """Return the number of the transaction; None if it has none, and does not draw it now."""
        return None

    client_address: str | None = None
    """The address of the client, where it is known."""

    def blockers_of(self, number: int) -> tuple[int, ...]:
        """Return the connections that one waits for."""
        return ()

    statement_text: str | None = None
    """The text that the client has sent, where it is known."""

    database = "main"
    """The name of the database."""

    @property
    def started(self) -> datetime:
        """When the server began."""
        return self.now

    session_number = 0
    """By which others know the session; 0 if there is none."""

    def notification_usage(self) -> float:
        """Return how full the queue of the slowest listener is, from 0 to 1."""
        return 0.0

    def statement_rows(self, show_text: bool) -> Iterable[tuple[Any, ...]]:
        """Return what is known of the statements of the database."""
        return ()

    def reset_statements(self, number: int) -> None:
        """Forget what is known of a statement, or (0) of all."""

    def schemas(self) -> tuple[str, ...]:
        """Return the schemas of search_path that exist."""
        return ("public",)

    def charge_memory(self, rows: int, width: int, holder: Any = None) -> None:
        """Charge rows of `width` columns that are held at once; refuse too many.

        `hold_bytes` counts long values in addition. `holder` is the container that they are in.
        """
        if holder is not None:
            self.note_large(holder)
        self.hold_bytes(rows * row_bytes(width))

    def note_large(self, holder: Any) -> None:
        """Note a container that takes long to free; it lives until the statement has ended."""
        if self.large is None:
            self.large = {}
        self.large[id(holder)] = holder

    def let_go(self, container: Any) -> None:
        """Free a container that may be large and is not used any more.

        Where other tasks wait, it is freed in pieces, as all are that `large` has at the end.
        """

    def hold_bytes(self, count: int) -> None:
        """Charge bytes that are held until the statement ends."""
        self.held += count
        if self.held > self._noticed_from:
            self._notice()

    def _notice(self) -> None:
        """Refuse too much memory, and report to the pool now and then, for large statements."""
        if self.held > self.memory_bytes_most:
            raise out_of_memory(self.memory_bytes_most)
        if self.pool is not None:
            self.pool.take(self.held - self._pooled)
            self._pooled = self.held
        self._noticed_from = min(self.held + BYTES_UNNOTICED_MAX, self.memory_bytes_most)

    def free_bytes(self, count: int) -> None:
        """Return bytes that are no longer held."""
        self.held -= count
        if self.pool is not None and self._pooled > self.held:
            self.pool.give_back(self._pooled - self.held)
            self._pooled = self.held
            self._noticed_from = min(self.held + BYTES_UNNOTICED_MAX, self.memory_bytes_most)

    def release(self) -> None:
        """Return all memory to the pool when the statement ends."""
        if self.large is not None:
            self.free_large()
        pooled = self._pooled + self._written_pooled
        if pooled and self.pool is not None:
            self._pooled = self._written_pooled = 0
            self.pool.give_back(pooled)

    def free_large(self) -> None:
        """Free the large containers."""
        self.large = None

    def write_rows(self, rows: int, width: int, long_bytes: int = 0) -> None:
        """Charge rows that the transaction holds until it commits.

        Each has its key and its place in the writes, beside its values.
        """
        self.written += rows * (WRITTEN_ROW_BYTES + 32 * width) + long_bytes
        self.long_written += long_bytes
        if self.written > self._written_noticed_from:
            self._notice_written()

    def _notice_written(self) -> None:
        most = self.transaction_bytes_most
        if self.written > most:
            raise _writes_too_much(f"The limit is {most} bytes of rows.")
        if self.long_written > TRANSACTION_LONG_BYTES_MAX:
            raise _writes_too_much(
                f"The limit is {TRANSACTION_LONG_BYTES_MAX} bytes of long values, in rows and in"
                " indexes."
            )
        if self.pool is not None:
            self.pool.take(self.written - self._written_pooled)
            self._written_pooled = self.written
        self._written_noticed_from = min(self.written + BYTES_UNNOTICED_MAX, most)

    # --- costly calls ---

    def costly(self, each: CostlyCall, *arguments: Any) -> Generator[None, None, Any]:
        """Call a function that may be expensive. Yields first if a yield is due now or would be
        after the call: an expensive call is a step of its own."""
        steps = each.cost(*arguments)
        if self.work + steps > STEPS_BETWEEN_PAUSES and steps <= STEPS_AT_ONCE_MAX:
            self.work = 0
            self.check()
            yield None
        return self._call(each, steps, arguments)

    def compute(self, each: CostlyCall, *arguments: Any) -> Any:
        """`costly` where code cannot yield."""
        return self._call(each, each.cost(*arguments), arguments)

    def _call(self, each: CostlyCall, steps: int, arguments: tuple[Any, ...]) -> Any:
        if steps > STEPS_AT_ONCE_MAX:
            raise refuse_steps(each.name, steps)
        self.work += steps
        if steps > STEPS_BETWEEN_PAUSES:
            self.check_deadline()
        result = each.call(self, *arguments) if each.needs_context else each.call(*arguments)
        return self.weigh(result) if each.makes_long else result

    def charge(self, name: str, steps: int) -> None:
        """Charge work that is done at once, without a call through `costly`; refuse too much."""
        if steps > STEPS_AT_ONCE_MAX:
            raise refuse_steps(name, steps)
        self.work += steps

    def check_deadline(self) -> None:
        """Check the deadline before a long step; `check` itself is called at yields."""
        self.check()

    def weigh(self, value: Any) -> Any:
        """Return a new value; refuse it if it is too long, or if there are too many."""
        size = size_of(value)
        if size > BYTES_SMALL:
            if size > self.value_bytes_most:
                raise refuse_size(size, self.value_bytes_most)
            self.work += size // 4000
            self.made += size
            if self.held + self.made > self.memory_bytes_most:
                raise out_of_memory(self.memory_bytes_most)
        return value


def row_bytes(width: int) -> int:
    """Return what a row of `width` small values counts: close to CPython's need."""
    return 64 + 32 * width


def out_of_memory(most: int) -> OutOfMemory:
    """Return the error for a statement beyond its memory limit."""
    return OutOfMemory(
        "the statement needs more memory than one statement may have",
        detail=f"The limit is {most} bytes of intermediate rows.",
        hint="Select fewer rows or columns, or add an index that avoids sorting.",
    )


def _writes_too_much(limit: str) -> OutOfMemory:
    return OutOfMemory(
        "the transaction writes more than one transaction may",
        detail=limit,
        hint="Write the rows in several transactions.",
    )


@dataclass(frozen=True, slots=True, eq=False)
class CostlyCall:
    """A function with its cost, for `Context.costly`. `makes_long`: the result may be long."""

    name: str
    call: Callable[..., Any]
    cost: Cost
    makes_long: bool = True
    needs_context: bool = False
