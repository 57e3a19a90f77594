"""What one request brings along from outside: time, chance, a deadline, numbers of sequences.

All of it is taken once, however often the request's transaction is run: the time and the seed are
fixed, and numbers that were drawn are remembered, so that a run after a conflict draws the same
again. So a transaction stays a pure function of view and request.

Numbers need a word with the log, and a transaction's body cannot wait. It draws what is in hand;
when that is not enough it ends with `NeedsNumbers`; the gateway reserves more and runs it again:

    body ── draws ──► in hand        none left ──► NeedsNumbers ──► refill ──► body, from the start
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from qserver.engine.permissions import EVERYTHING, Allowed
from qserver.engine.sequence_values import SequenceValues
from qserver.engine.sequences import Sequences
from qserver.errors import (
    NotInPrerequisiteState,
    QueryCanceled,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from qserver.limits import ROW_ID_BLOCK, STATEMENT_MEMORY_BYTES_MAX
from qserver.sql.execution import Context
from qserver.storage.transaction import Transaction
from qserver.storage.view import View
from qserver.values.relations import Sequence
from qserver.values.schema import PUBLIC, catalog_key

if TYPE_CHECKING:
    from random import Random

ROW_IDS = 0
"""The engine's own sequence that row ids come from; those that users create count from 1."""

FOREVER = float("inf")


class NeedsNumbers(Exception):  # news for the gateway, not for users
    """The body cannot go on before something outside of the transaction was done."""

    def __init__(self, supply: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.supply = supply


@dataclass(frozen=True, slots=True)
class Supplies:
    """Where requests get from what they bring along."""

    now: Callable[[], float]
    """Seconds since 1970."""
    clock: Callable[[], float]
    """By which deadlines are told."""
    chance: Random
    row_ids: Sequences
    values: SequenceValues


class Request:
    """One request, for as many runs as it takes."""

    # One is made for every statement, so what most of them leave alone is not set for each.
    _seed: int | None = None
    _row_ids = ROW_ID_BLOCK
    drawn: dict[int, list[int]] | None = None
    sets_done = 0

    def __init__(
        self, supplies: Supplies, deadline: float = FOREVER, allowed: Allowed = EVERYTHING
    ) -> None:
        self.supplies = supplies
        self.deadline = deadline
        self.allowed = allowed
        self._time = supplies.now()

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._time, UTC)

    def random(self) -> Random:
        """Chance that is the same in every run of the request."""
        chance = self.supplies.chance
        if self._seed is None:
            self._seed = chance.getrandbits(64)
        return type(chance)(self._seed)

    def check(self) -> None:
        """Called between pages: has the deadline passed?"""
        if self.supplies.clock() >= self.deadline:
            raise QueryCanceled("canceling statement due to statement timeout")

    def next_row_id(self) -> int:
        """Row ids are not remembered: nobody can tell one from another.

        So each run needs all of its own, and has twice as many in hand as the one before it.
        """
        row_ids = self.supplies.row_ids
        number = row_ids.take_nowait(ROW_IDS)
        if number is None:
            count = self._row_ids
            self._row_ids = 2 * count
            raise NeedsNumbers(lambda: row_ids.refill(ROW_IDS, count, ROW_ID_BLOCK))
        return number


class RequestContext(Context):
    """The context of one run. What is rarely asked for is made when it is."""

    _now: datetime | None = None
    _random: Random | None = None
    _sequences: SequencesOfRun | None = None
    memory_bytes_most = STATEMENT_MEMORY_BYTES_MAX
    user = "qserver"

    def __init__(self, request: Request, transaction: Transaction | View) -> None:
        self._request = request
        self._transaction = transaction
        self.check = _no_deadline if request.deadline == FOREVER else request.check

    def next_row_id(self) -> int:
        return self._request.next_row_id()

    @property
    def now(self) -> datetime:  # type: ignore[override]
        if self._now is None:
            self._now = self._request.now
        return self._now

    @property
    def random(self) -> Random:  # type: ignore[override]
        if self._random is None:
            self._random = self._request.random()
        return self._random

    @property
    def sequences(self) -> SequencesOfRun:  # type: ignore[override]
        if self._sequences is None:
            self._sequences = SequencesOfRun(self._request, self._transaction)
        return self._sequences


def _no_deadline() -> None:
    """There is time."""


class SequencesOfRun:
    """nextval and its like during one run: first what earlier runs drew, then new numbers."""

    __slots__ = ("_at", "_current", "_drawn", "_last", "_request", "_sets", "_transaction")

    def __init__(self, request: Request, transaction: Transaction | View) -> None:
        if request.drawn is None:
            request.drawn = {}
        self._drawn = request.drawn
        self._request = request
        self._transaction = transaction
        self._at: dict[int, int] = {}
        self._current: dict[int, int] = {}
        self._last: int | None = None
        self._sets = 0

    def next(self, name: str) -> int:
        self._request.allowed.check_write()
        sequence = find_sequence(self._transaction, name)
        values = self._request.supplies.values
        drawn = self._drawn.setdefault(sequence.id, [])
        at = self._at.get(sequence.id, 0)
        if at == len(drawn):
            value = values.take_nowait(sequence)
            if value is None:
                count = 2 * at + 1  # twice as many each time, so that few runs do for any number
                raise NeedsNumbers(lambda: values.refill(sequence, count))
            drawn.append(value)
        self._at[sequence.id] = at + 1
        self._current[sequence.id] = self._last = drawn[at]
        return drawn[at]

    def current(self, name: str) -> int:
        """What nextval gave last: in this request, or else to anyone, as there are no sessions."""
        sequence = find_sequence(self._transaction, name)
        given = self._request.supplies.values.last
        value = self._current.get(sequence.id, given.get(sequence.id))
        if value is None:
            raise NotInPrerequisiteState(
                f'currval of sequence "{sequence.name}" is not yet defined in this session'
            )
        return value

    def last(self) -> int:
        value = self._last
        if value is None:
            value = self._request.supplies.values.last_of_all
        if value is None:
            raise NotInPrerequisiteState("lastval is not yet defined in this session")
        return value

    def set(self, name: str, value: int, called: bool) -> int:
        return self.set_to(find_sequence(self._transaction, name), value, called)

    def set_to(self, sequence: Sequence, value: int, called: bool) -> int:
        """Done between two runs: the second one finds it done and goes past."""
        self._request.allowed.check_write()
        self._sets += 1
        if self._sets > self._request.sets_done:
            raise NeedsNumbers(lambda: self._set(sequence, value, called))
        if called:
            self._current[sequence.id] = value
        return value

    async def _set(self, sequence: Sequence, value: int, called: bool) -> None:
        await self._request.supplies.values.set(sequence, value, called)
        self._request.sets_done += 1


def find_sequence(transaction: Transaction | View, name: str) -> Sequence:
    """The sequence that a text names: as it is, or folded as an identifier would be."""
    exactly = transaction.find_definition(name)
    if isinstance(exactly, Sequence):
        return exactly
    parts = _identifier(name)
    key = catalog_key(parts[-2] if len(parts) > 1 else PUBLIC, parts[-1])
    definition = transaction.find_definition(key)
    if "\0" in key and transaction.find_definition(catalog_key(parts[-2], "")) is None:
        raise UndefinedSchema(f'schema "{parts[-2]}" does not exist')
    if definition is None:
        raise UndefinedTable(f'relation "{name}" does not exist', table=parts[-1])
    if not isinstance(definition, Sequence):
        raise WrongObjectType(f'"{parts[-1]}" is not a sequence')
    return definition


def _identifier(text: str) -> list[str]:
    """The parts of a possibly quoted, possibly qualified name."""
    parts: list[str] = []
    rest = text.strip()
    while rest:
        if rest.startswith('"'):
            part, _, rest = rest[1:].partition('"')
            while rest.startswith('"'):
                more, _, rest = rest[1:].partition('"')
                part += '"' + more
            rest = rest.strip().removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
            part = part.strip().lower()
        parts.append(part)
    return parts or [""]
