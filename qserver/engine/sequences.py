"""Gives out values of sequences, and never gives a used one again.

The promise, in one sentence: *no value of a sequence is given twice, and each is beyond those that
were answered before its request began, through reruns and failures of transactions, crashes and new
definitions, until a setval, a committed RESTART, or CYCLE lets the sequence start over.* There may
be gaps.

Row ids of tables without a primary key come from a sequence of the engine's own.

    the state      how far values are reserved, as a row in the log, see `sequence_states`
    the cache      values durably reserved and not given out yet: one block in memory
    a request      drawn values, the same in all of its runs, see `query.sequence_values`

    take_nowait    cache ─► request
    take           state ─► cache ─► request; an ordinary transaction reserves the values that the
                   cache lacks, and none is given before that reservation is durable
    fill_caches    state ─► cache, of many sequences at once
    give_back      request ─► cache, for values that no run has used, if none was drawn since
    write_back     cache ─► state, so that the state holds the value that was given last
    set            setval: a given state, and an empty cache

A crash loses the cache: a gap. The cache knows the state of its values, and gives none of them
after a commit that gave the sequence another state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from collections.abc import Sequence as Many
from contextlib import AsyncExitStack

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.engine.sequence_states import (
    Reserved,
    SequenceState,
    definition_now,
    reserve,
    set_state,
    write_back,
)
from qserver.errors import OutcomeUnknown, SequenceLimitExceeded, UndefinedTable
from qserver.limits import ROW_ID_BLOCK, SEQUENCE_BLOCK
from qserver.storage.catalog import Catalog
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence


class Sequences:
    """All sequences of a database. `newest_catalog` returns their definitions, if known."""

    def __init__(
        self,
        transact: Callable[[Work], Awaitable[Outcome]],
        newest_catalog: Callable[[], Catalog | None],
    ) -> None:
        self._transact = transact
        self.newest_catalog = newest_catalog
        self._caches: dict[int, CachedValues] = {}
        self.last: dict[int, int] = {}
        """The value that each sequence gave last, to any request; by the sequence's id."""
        self.last_of_all: int | None = None

    def take_nowait(self, sequence: Sequence) -> int | None:
        """Return the next value, or None if none is reserved. The definition must be the newest."""
        cache = self._caches.get(sequence.id)
        if cache is None or cache.state != sequence.state:
            return None
        return cache.take()

    async def take(self, sequence: Sequence, count: int = 1) -> list[int]:
        """Return the next values by the newest definition: `count`, or as many as there are."""
        return (await self.take_of_state(sequence, count))[1]

    async def take_of_state(self, sequence: Sequence, count: int) -> tuple[int, list[int]]:
        """Return the state's number and the next values."""
        assert count >= 1
        wanted = max(count, min(max(sequence.cache, SEQUENCE_BLOCK), ROW_ID_BLOCK))
        cache = self._cache_of(sequence)
        async with cache.changing:
            while cache.state != self._state_now(sequence) or cache.length < count:
                try:
                    outcome = await self._transact(
                        lambda transaction: reserve(transaction, sequence, wanted)
                    )
                except OutcomeUnknown:
                    continue  # whether or not it was applied, it left a gap at most
                except SequenceLimitExceeded:
                    if cache.state == self._state_now(sequence) and cache.length:
                        break
                    raise
                cache.add(outcome.result)
                if cache.length < count:  # the sequence ends here
                    break
            return cache.state, cache.take_many(count)

    async def fill_caches(self, sequences: Iterable[Sequence]) -> None:
        """Reserve a block for each of these sequences that has no cached value, in one transaction.

        An exhausted sequence is skipped: `take` raises its error.
        """
        async with AsyncExitStack() as changing:
            empty: list[Sequence] = []
            for each in sorted(sequences, key=lambda each: each.id):
                await changing.enter_async_context(self._cache_of(each).changing)
                if not self.has_cached(each):
                    empty.append(each)
            try:
                outcome = await self._transact(lambda transaction: _reserve_all(transaction, empty))
            except (OutcomeUnknown, UndefinedTable):
                return  # it left a gap at most
            for reserved in outcome.result:
                self._cache_of(reserved.sequence).add(reserved)

    def give_back(self, sequence: int, state: int, numbers: Many[int], before: int | None) -> None:
        """Take back values that were taken and not used; `before` is the value before them."""
        cache = self._caches.get(sequence)
        if cache is not None and cache.state == state:
            cache.give_back(numbers, before)

    def has_cached(self, sequence: Sequence) -> bool:
        cache = self._caches.get(sequence.id)
        return cache is not None and cache.state == sequence.state and cache.length > 0

    def state_given(self, sequence: Sequence) -> SequenceState | None:
        """Return the state that the values in the cache follow; None if there are none."""
        cache = self._caches.get(sequence.id)
        if cache is None or cache.state != sequence.state or not cache.length:
            return None
        return cache.state_before(sequence)

    async def write_back(self, sequence: Sequence) -> None:
        """Write the value that was given last to the state, and empty the cache."""
        cache = self._cache_of(sequence)
        async with cache.changing:
            if cache.state != sequence.state or not cache.length:
                return
            state, last = cache.state_before(sequence), cache.end
            cache.drop()  # none of them is given from here on, whatever the outcome
            try:
                await self._transact(
                    lambda transaction: write_back(transaction, sequence, last, state)
                )
            except OutcomeUnknown:
                pass  # it left a gap at most

    async def set(self, sequence: Sequence, value: int, called: bool) -> None:
        """Let the sequence go on after `value`, or with it if it does not count as `called`."""
        cache = self._cache_of(sequence)
        async with cache.changing:
            cache.drop()
            await self._transact(
                lambda transaction: set_state(transaction, sequence, (value, called))
            )
            if called:
                self.last[sequence.id] = value

    def _cache_of(self, sequence: Sequence) -> CachedValues:
        cache = self._caches.get(sequence.id)
        if cache is None:
            cache = self._caches[sequence.id] = CachedValues()
        return cache

    def _state_now(self, sequence: Sequence) -> int | None:
        """Return the number of the sequence's state; None if it is unknown now."""
        catalog = self.newest_catalog()
        return None if catalog is None else definition_now(catalog, sequence).state

    def __repr__(self) -> str:
        values = sum(cache.length for cache in self._caches.values())
        return f"{values} cached values of {len(self._caches)} sequences"


def _reserve_all(transaction: Transaction, sequences: Iterable[Sequence]) -> list[Reserved]:
    found = []
    for each in sequences:
        try:
            found.append(reserve(transaction, each, SEQUENCE_BLOCK))
        except SequenceLimitExceeded:
            pass
    return found


class CachedValues:
    """Values of one sequence that are reserved and not given out yet."""

    __slots__ = ("_fresh", "_left", "_more", "_next", "_step", "changing", "end", "state", "taken")

    def __init__(self) -> None:
        self.changing = trio.Lock()
        self.state = -1
        """The state of the sequence that the values belong to."""
        self.end = 0
        """The last value."""
        self.taken: int | None = None
        """The value that left the cache last, if it could come back."""
        self._next = self._left = 0
        self._step = 1
        self._more: deque[range] = deque()
        self._fresh: int | None = None
        """The value with which the state began, as long as that was in the cache."""

    @property
    def length(self) -> int:
        return self._left + sum(map(len, self._more))

    def take(self) -> int | None:
        if not self._left:
            if not self._more:
                return None
            self._begin(self._more.popleft())
        number = self.taken = self._next
        self._next = number + self._step
        self._left -= 1
        return number

    def take_many(self, count: int) -> list[int]:
        numbers: list[int] = []
        while len(numbers) < count:
            if not self._left:
                if not self._more:
                    break
                self._begin(self._more.popleft())
            length = min(self._left, count - len(numbers))
            following = self._next + length * self._step
            numbers += range(self._next, following, self._step)
            self._next = following
            self._left -= length
        self.taken = numbers[-1]
        return numbers

    def _begin(self, run: range) -> None:
        self._next, self._left, self._step = run.start, len(run), run.step

    def add(self, reserved: Reserved) -> None:
        """Append reserved values; drop the present ones first if they belong to an older state."""
        state = reserved.sequence.state
        if state != self.state:
            self.drop()
            self.state = state
        if not self.length:
            value, called = reserved.before
            self._fresh = None if called else value
        self._more.extend(reserved.runs)
        self.end = reserved.runs[-1][-1]

    def give_back(self, numbers: Many[int], before: int | None) -> None:
        """Make values the next ones again, unless others were taken since: values stay in order."""
        step = self._step
        in_a_row = numbers[-1] - numbers[0] == (len(numbers) - 1) * step
        if numbers[-1] != self.taken or not in_a_row:
            return
        if self._left and self._next == numbers[-1] + step:
            self._left += len(numbers)
        else:
            if self._left:  # the values wrap around: the sequence cycles
                self._more.appendleft(range(self._next, self._next + self._left * step, step))
            self._left = len(numbers)
        self._next = numbers[0]
        self.taken = before

    def state_before(self, sequence: Sequence) -> SequenceState:
        """Return the state that the values here follow."""
        first = self._next if self._left else self._more[0].start
        value = first - sequence.increment
        if first != self._fresh and sequence.minimum <= value <= sequence.maximum:
            return value, True
        return first, False

    def drop(self) -> None:
        """Forget the values; they are never given, and none comes back."""
        self._left = 0
        self._more.clear()
        self.taken = None
