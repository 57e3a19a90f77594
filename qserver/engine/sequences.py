"""Sequences hand out numbers outside of transactions: gaps are fine, duplicates never.

Numbers are reserved in blocks, each by an ordinary transaction on a tree of the engine's own, so
a reservation is as durable as any commit before the first number of its block is given away.
What a crash finds in hand is lost, which makes a gap and nothing worse.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.errors import OutcomeUnknown
from qserver.limits import SEQUENCE_BLOCK
from qserver.storage.partition import SEQUENCES_TREE
from qserver.storage.transaction import Transaction


class Sequences:
    """Numbers in hand, by the number of the sequence."""

    def __init__(self, transact: Callable[[Work], Awaitable[Outcome]]) -> None:
        self._transact = transact
        self._in_hand: dict[int, range] = {}
        self._refilling: dict[int, trio.Lock] = {}

    def take_nowait(self, sequence: int) -> int | None:
        """The next number, or None if none is in hand."""
        in_hand = self._in_hand.get(sequence)
        if not in_hand:
            return None
        self._in_hand[sequence] = in_hand[1:]
        return in_hand[0]

    async def take(self, sequence: int, count: int = 1) -> range:
        """The next `count` numbers, in a row; the first of all is 1."""
        assert count >= 1
        while True:
            in_hand = self._in_hand.get(sequence, range(0))
            if len(in_hand) >= count:
                self._in_hand[sequence] = in_hand[count:]
                return in_hand[:count]
            await self.refill(sequence, count)

    async def refill(self, sequence: int, count: int, block: int = SEQUENCE_BLOCK) -> None:
        """Have at least `count` numbers in hand; what has to be reserved is so many at once."""
        async with self._refilling.setdefault(sequence, trio.Lock()):
            in_hand = self._in_hand.get(sequence, range(0))
            if len(in_hand) >= count:
                return  # somebody else has done it while this one waited
            size = max(block, count)
            try:
                outcome = await self._transact(
                    lambda transaction: reserve(transaction, sequence, size)
                )
            except OutcomeUnknown:
                return  # whichever way it went, it left a gap at most: `take` tries again
            reserved: range = outcome.result
            left = self._in_hand.get(sequence, range(0))
            joined = range(left.start, reserved.stop) if left.stop == reserved.start else reserved
            self._in_hand[sequence] = joined


def reserve(transaction: Transaction, sequence: int, count: int) -> range:
    """The work that reserves the next `count` numbers."""
    row = transaction.get_entry(SEQUENCES_TREE, (sequence,))
    first = 1 if row is None else row[0] + 1
    transaction.put_entry(SEQUENCES_TREE, (sequence,), (first + count - 1,))
    return range(first, first + count)
