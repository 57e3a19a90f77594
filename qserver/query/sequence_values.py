"""nextval and the like during one request, for as many runs as it takes.

The request remembers the values that a run has drawn, so that a rerun draws the same. Reserving
values appends to the log, which a transaction body cannot await. So the body draws reserved values;
when they run out it raises `NeedsSequenceValues`, the request reserves more, and the body runs
again:

    body ── draws ──► reserved    none left ──► NeedsSequenceValues ──► take ──► body, again

Values taken so belong to the request: no other can draw them first. A request that has drawn few
values takes one and finds the rest of the block reserved; one that has drawn many takes twice as
many again, so that any number of values needs few runs. Values left at the end go back.

A state that the transaction itself has made is drawn from in its own writes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from qserver.engine.sequence_states import (
    SequenceState,
    definition_now,
    drop_state,
    leave_position,
    next_inside,
    put_state,
    require_within,
    state_of,
)
from qserver.engine.sequences import Sequences
from qserver.errors import (
    FeatureNotSupported,
    NotInPrerequisiteState,
    ReadOnlyTransaction,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from qserver.limits import SEQUENCE_BLOCK
from qserver.query.permissions import READING
from qserver.sql import refuse_other_database
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.identifiers import PUBLIC, catalog_key, identifiers
from qserver.values.relations import Sequence
from qserver.values.temporary import TEMPORARY_FIRST

if TYPE_CHECKING:
    from qserver.query.request import Request

WRITES_BACK_MAX = 3
"""How often a request has a sequence that it redefines written back.

While other requests draw from the sequence there is no end to that; without it there is a gap.
"""


class NeedsSequenceValues(Exception):  # for the caller of the body, not for users
    """The body needs an effect outside of the transaction before it can go on."""

    statement: int | None = None
    """The index of the statement that needs it."""

    def __init__(self, supply: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.supply = supply


class DrawnValues:
    """The values that a request has drawn from a sequence, as each run sees them."""

    __slots__ = ("_sequence", "_since", "at", "numbers", "state")

    def __init__(self, sequence: int) -> None:
        self._sequence = sequence
        self.state = -1
        """The state of the newest values."""
        self._since = 0
        """The index of the first value of that state."""
        self.numbers: list[int] = []
        self.at = 0
        """How many of them the current run has used."""

    def begin_state(self, state: int) -> None:
        """Mark values that are added from now on as of this state."""
        if state != self.state:
            self.state, self._since = state, len(self.numbers)

    def give_back(self, sequences: Sequences) -> None:
        """Give back the values that the last run has not used."""
        first = max(self.at, self._since)
        if first < len(self.numbers):
            unused = self.numbers[first:]
            del self.numbers[first:]
            before = self.numbers[-1] if first > self._since else None
            sequences.give_back(self._sequence, self.state, unused, before)


class SequenceValues:
    """One run: first the values that earlier runs drew, then new ones."""

    # One is made for every run that draws, so fields that most runs leave alone are class
    # attributes.
    _last: int | None = None
    _sets = 0
    _newest: Catalog | None = None
    _now: Mapping[int, Sequence] = {}
    """Sequences as that catalog defines them, by id."""

    def __init__(self, request: Request, transaction: Transaction | Snapshot) -> None:
        sequences = request.environment.sequences
        if sequences is None:
            raise ReadOnlyTransaction(
                "sequences cannot be used where the database can only be read",
                hint="Leave out as_of, or send it to the server that writes this database.",
            )
        if request.drawn is None:
            request.drawn = {}
        else:
            for drawn in request.drawn.values():
                drawn.at = 0
        self._drawn = request.drawn
        self._request = request
        self._sequences = sequences
        self._transaction = transaction
        snapshot = transaction.snapshot if isinstance(transaction, Transaction) else transaction
        self._catalog = snapshot.catalog
        """The definitions of other transactions, as this run sees them."""
        self._current: dict[int, int] = {}

    # --- by name, as a statement gives it ---

    @property
    def _path(self) -> tuple[str, ...]:
        session = self._request.session
        return (PUBLIC,) if session is None else session.path

    def _named(self, name: str) -> Sequence:
        """Return the sequence that a text names: as an identifier, or else as it is."""
        parts = identifiers(name)
        refuse_other_database(tuple(parts), self._request.environment.server.database)
        return find_sequence(self._transaction, name, self._path)

    def _check_write(self) -> None:
        """The key may, and so may the transaction: it, or a setting, may say that it only reads."""
        self._request.allowed.check_write()
        session = self._request.session
        if session is not None and session.settings.read_only:
            READING.check_write()

    def next(self, name: str) -> int:
        self._check_write()
        sequence = self._named(name)
        number = self.draw(sequence)
        self._current[sequence.id] = self._last = number
        if sequence.id < TEMPORARY_FIRST:
            sequences = self._sequences
            sequences.last[sequence.id] = sequences.last_of_all = number
        return number

    def current(self, name: str) -> int:
        """Return nextval's last value: in this request, or else in any; there are no sessions."""
        sequence = self._named(name)
        if sequence.id >= TEMPORARY_FIRST:
            value, called = state_of(self._transaction, sequence)
            number = value if called else None
        else:
            number = self._current.get(sequence.id, self._sequences.last.get(sequence.id))
        if number is None:
            raise NotInPrerequisiteState(
                f'currval of sequence "{sequence.name}" is not yet defined in this session'
            )
        return number

    def last(self) -> int:
        number = self._sequences.last_of_all if self._last is None else self._last
        if number is None:
            raise NotInPrerequisiteState("lastval is not yet defined in this session")
        return number

    def set(self, name: str, value: int, called: bool) -> int:
        """Do setval, which a rollback does not undo, unless the transaction made the state."""
        self._check_write()
        sequence = self._named(name)
        require_within(sequence, value)
        if self._is_own(sequence) and not (self._request.dry_run and _is_at_once(sequence)):
            self.put_state(sequence, (value, called))
        elif self._request.dry_run:
            raise FeatureNotSupported(
                "setval takes effect at once, so a dry run cannot undo it",
                hint="Leave setval out of the dry run.",
            )
        else:  # done between two runs: the second skips it
            self._sets += 1
            if self._sets > self._request.sets_done:
                raise NeedsSequenceValues(lambda: self._set(sequence, value, called))
        if called:
            self._current[sequence.id] = value
        return value

    async def _set(self, sequence: Sequence, value: int, called: bool) -> None:
        await self._sequences.set(sequence, value, called)
        self._request.sets_done += 1
        drawn = self._drawn.get(sequence.state)
        if drawn is not None:
            del drawn.numbers[drawn.at :]  # taken ahead, from before the setval

    # --- by definition ---

    def draw(self, sequence: Sequence) -> int:
        """Return the next value, the same in every run."""
        state = sequence.state
        if state > self._catalog.trees_used:
            return next_inside(self._transaction, sequence)
        drawn = self._drawn.get(state)
        if drawn is None:
            drawn = self._drawn[state] = DrawnValues(sequence.id)
        at, numbers = drawn.at, drawn.numbers
        if at == len(numbers):
            numbers.append(self._take_nowait(drawn, sequence))
        drawn.at = at + 1
        return numbers[at]

    def _take_nowait(self, drawn: DrawnValues, sequence: Sequence) -> int:
        """Return a value by the newest definition, which this run need not see."""
        sequences = self._sequences
        newest = sequences.newest_catalog()
        now: Sequence | None = sequence
        if newest is not self._catalog:
            now = None if newest is None else self._defined_in(newest, sequence)
        number = None if now is None else sequences.take_nowait(now)
        if now is None or number is None:
            had = len(drawn.numbers)
            count = 1 if had < SEQUENCE_BLOCK else 2 * had
            raise NeedsSequenceValues(lambda: self._take(drawn, sequence, count))
        if now.state != drawn.state:
            drawn.begin_state(now.state)
        return number

    def _defined_in(self, newest: Catalog, sequence: Sequence) -> Sequence:
        if newest is not self._newest:
            self._newest, self._now = newest, {}
        now = self._now.get(sequence.id)
        if now is None:
            now = definition_now(newest, sequence)
            self._now = {**self._now, sequence.id: now}
        return now

    async def _take(self, drawn: DrawnValues, sequence: Sequence, count: int) -> None:
        state, numbers = await self._sequences.take_of_state(sequence, count)
        drawn.begin_state(state)
        drawn.numbers += numbers
        siblings = self._siblings(sequence)
        if any(each.state in self._drawn for each in siblings):
            await self._sequences.fill_caches(
                [each for each in siblings if each.state not in self._drawn]
            )

    def _siblings(self, sequence: Sequence) -> list[Sequence]:
        """Return the other sequences that were made for columns of the same table.

        A row that draws from two of them draws from most: without this, each would cost one more
        run.
        """
        if sequence.owner is None:
            return []
        return [
            each
            for each in self._catalog.others.values()
            if isinstance(each, Sequence)
            and each.owner is not None
            and each.owner[0] == sequence.owner[0]
            and each.id != sequence.id
        ]

    # --- for definitions ---

    def state_of(self, sequence: Sequence) -> SequenceState:
        """Return the value that was given last; a redefined sequence goes on from there."""
        request, sequences = self._request, self._sequences
        if not self._is_own(sequence) and request.writes_back_done < WRITES_BACK_MAX:
            drawn = self._drawn.get(sequence.state)
            if drawn is not None:
                drawn.give_back(sequences)
            if sequences.has_cached(sequence):
                raise NeedsSequenceValues(lambda: self._write_back(sequence))
        return state_of(self._transaction, sequence)

    async def _write_back(self, sequence: Sequence) -> None:
        self._request.writes_back_done += 1
        await self._sequences.write_back(sequence)

    def put_state(self, sequence: Sequence, state: SequenceState) -> None:
        """Let a sequence begin at a state that the transaction itself made."""
        assert self._is_own(sequence)
        put_state(self._transaction, sequence, state)

    def drop_state(self, sequence: Sequence) -> None:
        assert isinstance(self._transaction, Transaction)
        drop_state(self._transaction, sequence)

    def leave_position(self, sequence: Sequence) -> None:
        assert isinstance(self._transaction, Transaction)
        leave_position(self._transaction, sequence)

    def _is_own(self, sequence: Sequence) -> bool:
        """Return whether nobody else sees the state: this transaction made it, or its session.

        State numbers only grow.
        """
        return sequence.state > self._catalog.trees_used


def find_sequence(
    transaction: Transaction | Snapshot, name: str, path: tuple[str, ...] = (PUBLIC,)
) -> Sequence:
    """Return the sequence that a text names: as an identifier, or else as it is."""
    parts = identifiers(name)
    schemas = (parts[-2],) if len(parts) > 1 else path
    keys = [*(catalog_key(schema, parts[-1]) for schema in schemas), name]
    definition = next(filter(None, map(transaction.find_definition, keys)), None)
    if definition is None:
        if len(parts) > 1 and not _has_schema(transaction, parts[-2]):
            raise UndefinedSchema(f'schema "{parts[-2]}" does not exist')
        raise UndefinedTable(f'relation "{name}" does not exist', table=parts[-1])
    if not isinstance(definition, Sequence):
        raise WrongObjectType(f'"{parts[-1]}" is not a sequence')
    return definition


def _is_at_once(sequence: Sequence) -> bool:
    """Return whether the state changes at once, although it is the session's own."""
    return sequence.state >= TEMPORARY_FIRST


def _has_schema(transaction: Transaction | Snapshot, name: str) -> bool:
    return name == PUBLIC or transaction.find_definition(catalog_key(name, "")) is not None
