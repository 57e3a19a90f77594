"""Whatever is done to a sequence, in whatever order, its numbers come once each, and upward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.engine.sequence_states import drop_state, put_state, state_of
from qserver.engine.sequences import Sequences
from qserver.errors import OutcomeUnknown
from qserver.limits import SEQUENCE_BLOCK
from qserver.storage.routing import written
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence
from qserver.values.steps import at_once
from tests.sampling import examples

Step = tuple[str, int]


class Store:
    """A log and its newest snapshot, in one: it commits at once, or leaves unknown whether it
    did."""

    def __init__(self) -> None:
        self.snapshot = empty_snapshot(2)
        self.unknown: bool | None = None
        """Whether the next commit that nobody knows of is made; None if it is an ordinary one."""

    async def transact(self, work: Work) -> Outcome:
        await trio.lowlevel.checkpoint()
        unknown, self.unknown = self.unknown, None
        if unknown is not None:
            if unknown:
                self.commit(work)
            raise OutcomeUnknown("the log does not answer")
        return Outcome(self.commit(work), self.snapshot.version)

    def commit(self, work: Callable[[Transaction], Any]) -> Any:
        transaction = Transaction(self.snapshot)
        result = work(transaction)
        trees = at_once(written(self.snapshot, transaction.catalog, transaction.writes))
        self.snapshot = Snapshot(self.snapshot.version + 1, 0.0, transaction.catalog, trees, 2)
        return result


class Model:
    """A client that draws, and knows what must not come."""

    def __init__(self) -> None:
        self.store = Store()
        self.start()
        self.store.commit(create)
        self.given: set[int] = set()
        self.highest = 0

    def start(self) -> None:
        """A process begins: nothing is cached."""
        self.sequences = Sequences(self.store.transact, lambda: self.store.snapshot.catalog)

    @property
    def sequence(self) -> Sequence:
        found = self.store.snapshot.catalog.find("s")
        assert isinstance(found, Sequence)
        return found

    def see(self, numbers: list[int]) -> None:
        for number in numbers:
            assert number not in self.given, f"{number} comes twice"
            assert number > self.highest, f"{number} comes after {self.highest}"
            self.given.add(number)
            self.highest = number

    async def do(self, step: Step) -> None:
        what, amount = step
        await getattr(self, f"do_{what}")(amount)

    async def do_draw(self, amount: int) -> None:
        number = self.sequences.take_nowait(self.sequence)
        numbers = await self.sequences.take(self.sequence, amount) if number is None else [number]
        self.see(numbers)

    async def do_use_some(self, amount: int) -> None:
        """A statement takes more than it needs, while others may draw, and gives the rest back."""
        sequence = self.sequence
        state, taken = await self.sequences.take_of_state(sequence, amount)
        used = taken[: amount // 2]
        self.see(used)
        if amount % 3 == 0:
            await self.do_draw(1)
        if amount % 5 == 0:
            await self.do_redefine(amount)
        rest = taken[len(used) :]
        self.sequences.give_back(sequence.id, state, rest, used[-1] if used else None)

    async def do_redefine(self, amount: int) -> None:
        if amount % 2:
            await self.sequences.write_back(self.sequence)
        self.store.commit(lambda transaction: count_by(transaction, 1 + amount % 4))

    async def do_restart(self, amount: int) -> None:
        """Numbers may come again, but none that is still cached may be the next."""
        first = self.highest + 10_000
        self.store.commit(lambda transaction: renew(transaction, (first, False)))
        (number,) = await self.sequences.take(self.sequence)
        assert number >= first
        self.see([number])

    async def do_set(self, amount: int) -> None:
        value = self.highest + amount
        self.store.unknown = None
        await self.sequences.set(self.sequence, value, called=True)
        self.highest = value

    async def do_write_back(self, amount: int) -> None:
        await self.sequences.write_back(self.sequence)

    async def do_crash(self, amount: int) -> None:
        self.start()

    async def do_lose_sight(self, amount: int) -> None:
        """Nobody will know of the next commit whether it was made."""
        self.store.unknown = bool(amount % 2)


def create(transaction: Transaction) -> None:
    made = Sequence(transaction.next_tree(), "s")
    put_state(transaction, made, (1, False))
    transaction.define("s", made)


def defined(transaction: Transaction) -> Sequence:
    found = transaction.find_definition("s")
    assert isinstance(found, Sequence)
    return found


def renew(transaction: Transaction, state: tuple[int, bool], increment: int | None = None) -> None:
    old = defined(transaction)
    drop_state(transaction, old)
    increment = increment or old.increment
    new = replace(old, state=transaction.next_tree(), increment=increment)
    put_state(transaction, new, state)
    transaction.define("s", new)


def count_by(transaction: Transaction, increment: int) -> None:
    renew(transaction, state_of(transaction, defined(transaction)), increment)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "draw",
                "draw",
                "use_some",
                "redefine",
                "restart",
                "set",
                "write_back",
                "crash",
                "lose_sight",
            )
        ),
        st.integers(1, 2 * SEQUENCE_BLOCK),
    ),
    max_size=30,
)


@given(STEPS)
@settings(max_examples=examples(150), deadline=None)
def test_numbers_come_once_each_and_upward(steps: list[Step]) -> None:
    async def run() -> None:
        model = Model()
        for step in steps:
            await model.do(step)
        await model.do_draw(1)

    trio.run(run)
