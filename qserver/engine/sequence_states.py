"""The position of a sequence: a row of the engine's own tree, and how to count on from it.

    (value, called)     the next value is the one after `value`; `value` itself, if not `called`

The row's key is the number of the sequence's *state*, which the definition names. A redefinition
that changes how or from where the sequence counts names another state. So RESTART and ALTER take
effect exactly when their transaction commits, and cached values of the old state are recognizable.
A transaction that created a state draws from it in its own writes: no other transaction sees it.

A dropped sequence leaves its position under its id, so that a restore that recreates it (see
`version_restore`) repeats no value. `position_sweeper` deletes the position later.

The state of a temporary sequence is its session's (`TemporaryNumbers`), and changes at once.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from qserver.errors import NumericValueOutOfRange, SequenceLimitExceeded, UndefinedTable
from qserver.limits import ROW_ID_BLOCK
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import SEQUENCES_TREE
from qserver.values.relations import Sequence
from qserver.values.temporary import TEMPORARY_FIRST, TemporaryNumbers

SequenceState: TypeAlias = tuple[int, bool]

ROW_IDS: Final = Sequence(0, "row ids", cache=ROW_ID_BLOCK)
"""The sequence of row ids.

The engine's own sequences are in no catalog; their ids are not above 0, those of users' are.
"""


class Reserved(msgspec.Struct, frozen=True):
    """Runs of values reserved for one caller, in order, and the state before them."""

    sequence: Sequence
    """As defined where they were reserved."""
    before: SequenceState
    runs: list[range]


def state_of(reader: Transaction | Snapshot, sequence: Sequence) -> SequenceState:
    if sequence.state >= TEMPORARY_FIRST:
        return _numbers(reader).states.get(sequence.state, (sequence.start, False))
    row = reader.get_entry(SEQUENCES_TREE, (sequence.state,))
    if row is None:
        return sequence.start, False
    return row[0], len(row) == 1 or row[1]  # old rows of row ids hold their last value only


def _numbers(reader: Transaction | Snapshot) -> TemporaryNumbers:
    """Return where the states of temporary sequences are."""
    numbers = reader.catalog.temporary
    assert numbers is not None, "only its session sees a temporary sequence"
    return numbers


def put_state(
    transaction: Transaction | Snapshot, sequence: Sequence, state: SequenceState
) -> None:
    if sequence.state >= TEMPORARY_FIRST:
        _numbers(transaction).states[sequence.state] = state
        return
    assert isinstance(transaction, Transaction), "states are written by a transaction"
    transaction.put_entry(SEQUENCES_TREE, (sequence.state,), state)


def drop_state(transaction: Transaction, sequence: Sequence) -> None:
    """Delete the old state of a sequence that got another."""
    if sequence.state >= TEMPORARY_FIRST:
        return  # a rollback returns to it; see `query.temporary`
    transaction.put_entry(SEQUENCES_TREE, (sequence.state,), None)


def leave_position(transaction: Transaction, sequence: Sequence) -> None:
    """Delete the state of a dropped sequence, and keep its position."""
    if sequence.state >= TEMPORARY_FIRST:
        return
    value, called = state_of(transaction, sequence)
    drop_state(transaction, sequence)
    before = transaction.snapshot
    if sequence.id <= before.catalog.trees_used:  # nobody knows it otherwise
        transaction.put_entry(SEQUENCES_TREE, (sequence.id,), (value, called, before.version))


def position_left(transaction: Transaction, sequence: Sequence) -> SequenceState | None:
    """Return the position of a dropped sequence; None if it is unknown."""
    row = transaction.get_entry(SEQUENCES_TREE, (sequence.id,))
    return None if row is None else (row[0], row[1])


def furthest(sequence: Sequence, states: list[SequenceState]) -> SequenceState:
    """Return the state beyond which no other has given a value."""
    up = 1 if sequence.increment > 0 else -1
    return max(states, key=lambda state: (up * state[0], state[1]))


def reserve(transaction: Transaction, sequence: Sequence, count: int) -> Reserved:
    """Reserve the next values: `count` of them, or as many as there are."""
    now = _used(transaction, sequence)
    before = state_of(transaction, now)
    runs = numbers_after(now, before, count)
    put_state(transaction, now, (runs[-1][-1], True))
    return Reserved(now, before, runs)


def write_back(
    transaction: Transaction, sequence: Sequence, last: int, state: SequenceState
) -> None:
    """Undo a reservation up to `last`, if the state has not changed since."""
    now = _used(transaction, sequence)
    if now.state == sequence.state and state_of(transaction, now) == (last, True):
        put_state(transaction, now, state)


def set_state(transaction: Transaction, sequence: Sequence, state: SequenceState) -> None:
    now = _used(transaction, sequence)
    require_within(now, state[0])
    put_state(transaction, now, state)


def next_inside(transaction: Transaction | Snapshot, sequence: Sequence) -> int:
    """Return the next value of a state that the transaction itself made, or that is temporary."""
    ((number,),) = numbers_after(sequence, state_of(transaction, sequence), 1)
    put_state(transaction, sequence, (number, True))
    return number


def require_within(sequence: Sequence, value: int) -> None:
    if not sequence.minimum <= value <= sequence.maximum:
        raise NumericValueOutOfRange(
            f'setval: value {value} is out of bounds for sequence "{sequence.name}"'
            f" ({sequence.minimum}..{sequence.maximum})"
        )


def _used(transaction: Transaction, sequence: Sequence) -> Sequence:
    """Return the sequence as the transaction's catalog defines it; recorded as a read."""
    now = definition_now(transaction.catalog, sequence)
    if now.id > 0:
        transaction.find_definition(now.key)
    return now


def definition_now(catalog: Catalog, sequence: Sequence) -> Sequence:
    """Return the sequence as the catalog defines it now, under any name."""
    found = catalog.find(sequence.key)
    if isinstance(found, Sequence) and found.id == sequence.id:
        return found
    if sequence.id <= 0:
        return sequence
    for each in catalog.others.values():
        if isinstance(each, Sequence) and each.id == sequence.id:
            return each
    raise UndefinedTable(f'relation "{sequence.name}" does not exist', table=sequence.name)


def numbers_after(sequence: Sequence, state: SequenceState, count: int) -> list[range]:
    """Return the values that follow a state; fewer than `count` only if the sequence ends."""
    step = sequence.increment
    end = sequence.maximum if step > 0 else sequence.minimum
    runs: list[range] = []
    value, called = state
    first = following(sequence, value) if called else value
    while first is not None and count > 0:
        length = min(count, (end - first) // step + 1)
        runs.append(range(first, first + length * step, step))
        count -= length
        first = following(sequence, runs[-1][-1])
    if not runs:
        word = "maximum" if step > 0 else "minimum"
        raise SequenceLimitExceeded(
            f'nextval: reached {word} value of sequence "{sequence.name}" ({end})'
        )
    return runs


def following(sequence: Sequence, value: int) -> int | None:
    """Return the value after this one; None at the end of a sequence that does not cycle."""
    after = value + sequence.increment
    if sequence.minimum <= after <= sequence.maximum:
        return after
    if not sequence.cycle:
        return None
    return sequence.minimum if sequence.increment > 0 else sequence.maximum
