"""Planted bugs in the values of sequences."""

from __future__ import annotations

from typing import Any, Final

from qserver.engine import sequences
from qserver.engine.gateway import Outcome
from qserver.engine.sequence_states import Reserved, put_state, state_of, write_back
from qserver.engine.sequences import CachedValues, Sequences
from qserver.errors import OutcomeUnknown
from qserver.query import sequence_values
from qserver.query.sequence_values import DrawnValues, NeedsSequenceValues
from qserver.query.statements import StatementRun
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import SEQUENCES_TREE
from qserver.values.relations import Sequence
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import CROWDED


def _reserve_in_memory_only(original: Any) -> Any:
    def reserve(transaction: Transaction, *arguments: Any) -> Reserved:
        reserved: Reserved = original(transaction, *arguments)
        if reserved.before[1]:
            transaction.writes.clear()  # only the first block ever reaches the log
        return reserved

    return reserve


def _reserve_too_little(original: Any) -> Any:
    def reserve(transaction: Transaction, *arguments: Any) -> Reserved:
        reserved: Reserved = original(transaction, *arguments)
        last = reserved.runs[-1]
        runs = [*reserved.runs[:-1], range(last.start, last.stop + last.step, last.step)]
        return Reserved(reserved.sequence, reserved.before, runs)

    return reserve


def _take_whatever_is_cached(original: Any) -> Any:
    def take_nowait(self: Sequences, sequence: Sequence) -> int | None:
        cache = self._caches.get(sequence.id)
        return None if cache is None else cache.take()

    return take_nowait


def _write_back_what_can_be_taken(original: Any) -> Any:
    async def written(self: Sequences, sequence: Sequence) -> None:
        cache = self._caches.get(sequence.id)
        if cache is None or cache.state != sequence.state or not cache.length:
            return
        state, last = cache.state_before(sequence), cache.end
        async with cache.changing:
            await self._transact(lambda work: write_back(work, sequence, last, state))
            cache.drop()  # now that the log knows, no request needs them

    return written


def _give_back_late(original: Any) -> Any:
    def give_back(self: CachedValues, numbers: Any, before: int | None) -> None:
        if self.taken is not None:
            self.taken = numbers[-1]
        original(self, numbers, before)

    return give_back


def _give_back_one_too_many(original: Any) -> Any:
    def give_back(self: DrawnValues, to: Sequences) -> None:
        unused = len(self.numbers) - self.at
        if unused > 1:  # the current one is not used yet, either
            self.at -= 1
        original(self, to)

    return give_back


def _redefine_without_footprint(original: Any) -> Any:
    def state_of(reader: Transaction | Snapshot, sequence: Sequence) -> Any:
        if isinstance(reader, Transaction) and sequence.state <= reader.snapshot.catalog.trees_used:
            return original(reader.snapshot, sequence)
        return original(reader, sequence)

    return state_of


def _restart_at_once(original: Any) -> Any:
    def begin_sequence(
        self: StatementRun, sequence: Sequence, value: int, called: bool = True
    ) -> None:
        request = self.context._request

        async def set_now() -> None:
            assert request.environment.sequences is not None
            await request.environment.sequences.set(sequence, value, called=False)
            request.sets_done += 1

        if sequence.state != sequence.id and not called and not request.sets_done:
            raise NeedsSequenceValues(set_now)
        original(self, sequence, value, called)

    return begin_sequence


def _keep_own_state_one_behind(original: Any) -> Any:
    def next_inside(transaction: Transaction, sequence: Sequence) -> int:
        value, called = state_of(transaction, sequence)
        number: int = original(transaction, sequence)
        if called and number != value + sequence.increment:
            return number
        if number > 3:  # the row is written when the next one is drawn
            put_state(transaction, sequence, (number - sequence.increment, True))
            drawn = transaction.__dict__.setdefault("drawn", {})
            number += drawn.get(sequence.state, 0) * sequence.increment
            drawn[sequence.state] = drawn.get(sequence.state, 0) + 1
        return number

    return next_inside


def _trust_a_reservation_that_is_unknown(original: Any) -> Any:
    def init(self: Sequences, transact: Any, newest_catalog: Any) -> None:
        async def trusting(work: Any) -> Outcome:
            results: list[Any] = []

            def noted(transaction: Transaction) -> Any:
                results.append(work(transaction))
                return results[-1]

            try:
                return await transact(noted)  # type: ignore[no-any-return]
            except OutcomeUnknown:
                if isinstance(results[-1], Reserved):
                    return Outcome(results[-1], 0)
                raise

        original(self, trusting, newest_catalog)

    return init


def _reserve_the_first_alone(original: Any) -> Any:
    def reserve_all(transaction: Transaction, wanted: Any) -> list[Reserved]:
        found: list[Reserved] = original(transaction, wanted)
        states = transaction.writes.get(SEQUENCES_TREE, {})
        for each in found[1:]:
            if each.before[1]:  # the first block of each reaches the log
                states.pop((each.sequence.state,), None)
        return found

    return reserve_all


SEQUENCES: Final = ("sql_sequences",)

MUTANTS: Final = (
    Mutant(
        "reserve_in_memory_only",
        "a sequence's later blocks are not logged, so a crash gives them out again",
        ("numbers",),
        ((sequences, "reserve", _reserve_in_memory_only),),
    ),
    Mutant(
        "reserve_too_little",
        "a block of numbers is one longer than what was reserved",
        ("numbers",),
        ((sequences, "reserve", _reserve_too_little),),
    ),
    Mutant(
        "reserve_serial_in_memory_only",
        "later blocks of a SERIAL column are not logged, so a crash gives them out again",
        ("sql_bank",),
        ((sequences, "reserve", _reserve_in_memory_only),),
    ),
    Mutant(
        "take_whatever_is_cached",
        "cached numbers are given although their sequence has another state by now",
        SEQUENCES,
        ((Sequences, "take_nowait", _take_whatever_is_cached),),
    ),
    Mutant(
        "write_back_what_can_be_taken",
        "numbers can be taken from the cache until the log knows that they were written back",
        SEQUENCES,
        ((Sequences, "write_back", _write_back_what_can_be_taken),),
    ),
    Mutant(
        "give_back_late",
        "numbers that were not used come next again, although others were given since",
        SEQUENCES,
        ((CachedValues, "give_back", _give_back_late),),
    ),
    Mutant(
        "give_back_one_too_many",
        "a statement that gives back several numbers gives back the last that it used, too",
        SEQUENCES,
        ((DrawnValues, "give_back", _give_back_one_too_many),),
    ),
    Mutant(
        "redefine_without_footprint",
        "ALTER SEQUENCE does not mind numbers that were reserved while it ran",
        SEQUENCES,
        ((sequence_values, "state_of", _redefine_without_footprint),),
        shape=CROWDED,
    ),
    Mutant(
        "restart_at_once",
        "RESTART takes effect before its transaction commits, and if it does not",
        SEQUENCES,
        ((StatementRun, "begin_sequence", _restart_at_once),),
    ),
    Mutant(
        "keep_own_state_one_behind",
        "a transaction that draws from a sequence of its own making leaves its state behind",
        SEQUENCES,
        ((sequence_values, "next_inside", _keep_own_state_one_behind),),
    ),
    Mutant(
        "trust_a_reservation_that_is_unknown",
        "numbers are given although nobody knows whether the log has their reservation",
        SEQUENCES,
        ((Sequences, "__init__", _trust_a_reservation_that_is_unknown),),
    ),
    Mutant(
        "reserve_the_first_alone",
        "of sequences that are reserved together, only the first has its later blocks logged",
        SEQUENCES,
        ((sequences, "_reserve_all", _reserve_the_first_alone),),
    ),
)
