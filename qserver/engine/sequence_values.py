"""The numbers of SQL sequences: handed out outside of transactions, each at most once.

A sequence's state is a row of the engine's own tree: the last value that was reserved, and whether
it counts as used. Values are reserved in blocks, each by an ordinary transaction, and handed out
from memory. What a crash finds in hand is a gap.

    CREATE SEQUENCE      defines how it counts; transactional, see `values.relations.Sequence`
    nextval              takes a value that is in hand, or says that there is none
    refill               reserves more, durably
    setval               writes the state and forgets what is in hand
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.errors import NumericValueOutOfRange, OutcomeUnknown, SequenceLimitExceeded
from qserver.limits import SEQUENCE_BLOCK
from qserver.storage.partition import SEQUENCES_TREE
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence


class SequenceValues:
    def __init__(self, transact: Callable[[Work], Awaitable[Outcome]]) -> None:
        self._transact = transact
        self._in_hand: dict[int, deque[int]] = {}
        self._counted: dict[int, Sequence] = {}
        """By which definition the values in hand were counted."""
        self._changing: dict[int, trio.Lock] = {}
        self.last: dict[int, int] = {}
        """The value that each sequence has given last, to anyone."""
        self.last_of_all: int | None = None

    def take_nowait(self, sequence: Sequence) -> int | None:
        """The next value, or None if none is in hand."""
        in_hand = self._in_hand.get(sequence.id)
        if not in_hand or self._counted[sequence.id] is not sequence:
            return None
        value = self.last[sequence.id] = self.last_of_all = in_hand.popleft()
        return value

    def give_back(self, drawn: Mapping[int, list[int]]) -> None:
        """Values that were taken just now, and not used, are the next ones again."""
        for number, values in drawn.items():
            if values:
                self._in_hand[number].extendleft(reversed(values))

    async def refill(self, sequence: Sequence, count: int) -> None:
        """Have at least `count` values in hand, if there are so many, and one in any case."""
        async with self._changing.setdefault(sequence.id, trio.Lock()):
            in_hand = self._in_hand.setdefault(sequence.id, deque())
            if self._counted.get(sequence.id, sequence) != sequence:
                await self._put_back(sequence)
                in_hand = self._in_hand[sequence.id]
            self._counted[sequence.id] = sequence
            if len(in_hand) < count:
                wanted = max(count - len(in_hand), SEQUENCE_BLOCK)
                try:
                    outcome = await self._transact(
                        lambda transaction: reserve(transaction, sequence, wanted)
                    )
                except OutcomeUnknown:
                    return  # it left a gap at most: whoever needs the values asks again
                self._in_hand[sequence.id].extend(outcome.result)

    async def _put_back(self, sequence: Sequence) -> None:
        """The sequence counts otherwise now: go on from the value that was given last."""
        in_hand = self._in_hand[sequence.id]
        last = self.last.get(sequence.id)
        if last is None and not in_hand:
            return
        value, called = (last, True) if last is not None else (in_hand[0], False)
        await self._transact(lambda transaction: put_state(transaction, sequence, value, called))
        self._in_hand[sequence.id] = deque()

    async def set(self, sequence: Sequence, value: int, called: bool) -> None:
        """Let the sequence go on after `value`, or with it if it does not count as `called`."""
        if not sequence.minimum <= value <= sequence.maximum:
            raise NumericValueOutOfRange(
                f'setval: value {value} is out of bounds for sequence "{sequence.name}"'
                f" ({sequence.minimum}..{sequence.maximum})"
            )
        async with self._changing.setdefault(sequence.id, trio.Lock()):
            await self._transact(
                lambda transaction: put_state(transaction, sequence, value, called)
            )
            self._in_hand[sequence.id] = deque()
            self._counted[sequence.id] = sequence
            self.last.pop(sequence.id, None)
            if called:
                self.last[sequence.id] = value

    def __repr__(self) -> str:
        in_hand = sum(map(len, self._in_hand.values()))
        return f"{in_hand} values in hand of {len(self._in_hand)} sequences"


def put_state(transaction: Transaction, sequence: Sequence, value: int, called: bool) -> None:
    transaction.put_entry(SEQUENCES_TREE, (sequence.id,), (value, called))


def reserve(transaction: Transaction, sequence: Sequence, count: int) -> list[int]:
    """The work that reserves the next values: `count` of them, or as many as there are."""
    state = transaction.get_entry(SEQUENCES_TREE, (sequence.id,))
    value: int | None
    value, called = (sequence.start, False) if state is None else (state[0], state[1])
    if called:
        value = following(sequence, value)
    if value is None:
        end, bound = (
            ("maximum", sequence.maximum)
            if sequence.increment > 0
            else (
                "minimum",
                sequence.minimum,
            )
        )
        raise SequenceLimitExceeded(
            f'nextval: reached {end} value of sequence "{sequence.name}" ({bound})'
        )
    values: list[int] = []
    while value is not None and len(values) < count:
        values.append(value)
        value = following(sequence, value)
    put_state(transaction, sequence, values[-1], True)
    return values


def following(sequence: Sequence, value: int) -> int | None:
    """The value after this one; None at the end of a sequence that does not begin anew."""
    after = value + sequence.increment
    if sequence.minimum <= after <= sequence.maximum:
        return after
    if not sequence.cycle:
        return None
    return sequence.minimum if sequence.increment > 0 else sequence.maximum
