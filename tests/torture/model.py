"""What must be there, what must not, and what may: the whole memory of the torture.

    begin ─► OPEN ─┬─ acknowledged ─► THERE ──┐
                   ├─ refused ──────► ABSENT  ├─► at each look after a restart: compare
                   └─ no answer ────► OPEN ───┘   OPEN becomes what is found, once and for all

Each write has a number of its own, and everything that it writes bears that number. So a look at
the database gives the rows of each number, and there are three answers: all of them, none, or
damage. Removing something is the same with both ends exchanged.

Two things are true for all numbers together: balances are what the transfers that are there make
of them, and a sequence gives no number twice, whoever was told of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import trio

Rows = tuple[tuple[object, ...], ...]


class Presence(Enum):
    OPEN = "may be there"
    THERE = "must be there"
    ABSENT = "must not be there"


@dataclass(slots=True)
class Write:
    """What one request writes, and what is known of it."""

    kind: str
    rows: Rows
    presence: Presence = Presence.OPEN


@dataclass(frozen=True, slots=True)
class Look:
    """What is in the database: the rows that bear each number, and what has no number."""

    rows: Mapping[int, Rows]
    balances: Mapping[int, int]
    tickets: Mapping[int, int]
    """The number of the sequence that each write of a ticket has got."""


@dataclass(slots=True)
class Model:
    accounts: int
    writes: dict[int, Write] = field(default_factory=dict)
    transfers: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Source, target and amount of every transfer, by its number."""
    folded: dict[int, int] = field(default_factory=dict)
    """What transfers that were swept out of the ledger had made of the balances."""
    given: set[int] = field(default_factory=set)
    """Numbers of the sequence that anybody was ever told."""
    tickets: dict[int, int] = field(default_factory=dict)
    """Those that are in the table, by the write that put them there."""
    problems: list[str] = field(default_factory=list)
    acknowledged: int = 0
    found_applied: int = 0
    found_not_applied: int = 0
    last: int = 0
    unanswered_sweep: tuple[Look, frozenset[str]] | None = None
    _on_answer: Callable[[], None] | None = None
    _answers_left: int = 0

    # --- what clients report ---

    def begin(self, kind: str, rows: Rows, number: int | None = None) -> int:
        number = number or self.next_number()
        self.writes[number] = Write(kind, rows)
        return number

    def next_number(self) -> int:
        self.last += 1
        return self.last

    def begin_removal(self, number: int) -> None:
        self.writes[number].presence = Presence.OPEN

    def acknowledge(self, number: int, presence: Presence = Presence.THERE) -> None:
        self.writes[number].presence = presence
        self.count_answer()

    def count_answer(self) -> None:
        """A client was told that what it wrote is there."""
        self.acknowledged += 1
        self._answers_left -= 1
        if self._on_answer is not None and self._answers_left == 0:
            self._on_answer()

    def refuse(self, number: int, presence: Presence = Presence.ABSENT) -> None:
        self.writes[number].presence = presence

    def see(self, number: int) -> None:
        """A read has shown it to somebody: from then on it must stay."""
        write = self.writes[number]
        if write.presence is Presence.ABSENT:
            self.problems.append(f"{write.kind} {number} was refused, and a read has shown it")
        write.presence = Presence.THERE

    def give(self, ticket: int) -> None:
        if ticket in self.given:
            self.problems.append(f"the sequence has given {ticket} twice")
        self.given.add(ticket)

    async def wait_for_answers(self, count: int, then: Callable[[], None]) -> None:
        """Call it at the very moment when so many more writes were acknowledged."""
        reached = trio.Event()

        def at_last() -> None:
            then()
            reached.set()

        self._on_answer, self._answers_left = at_last, count
        await reached.wait()
        self._on_answer = None

    # --- what a look after a restart must show ---

    def compare(self, look: Look) -> None:
        """Note every difference, and settle what was open."""
        self._settle_sweep(look)
        for number in look.rows.keys() - self.writes.keys():
            self.problems.append(f"there is a write {number} that nobody has made")
        for number, write in self.writes.items():
            self._compare(number, write, look.rows.get(number, ()))
        self._compare_balances(look)
        self._compare_tickets(look)

    def _compare(self, number: int, write: Write, found: Rows) -> None:
        is_whole = Counter(found) == Counter(write.rows)
        if found and not is_whole:
            self.problems.append(
                f"{write.kind} {number} is damaged: {found} is there, not {write.rows}"
            )
        elif not found and write.presence is Presence.THERE:
            self.problems.append(f"{write.kind} {number} was acknowledged and is gone")
        elif found and write.presence is Presence.ABSENT:
            self.problems.append(f"{write.kind} {number} is there, but was refused or removed")
        elif write.presence is Presence.OPEN:
            self.found_applied += is_whole
            self.found_not_applied += not is_whole
        write.presence = Presence.THERE if found else Presence.ABSENT

    def _compare_balances(self, look: Look) -> None:
        expected = Counter(dict.fromkeys(range(self.accounts), 0))
        expected.update(self.folded)
        for number in look.rows.keys() & self.transfers.keys():
            source, target, amount = self.transfers[number]
            expected[source] -= amount
            expected[target] += amount
        if dict(expected) != dict(look.balances):
            self.problems.append(
                f"balances are {dict(look.balances)}, the ledger makes them {dict(expected)}"
            )

    def _compare_tickets(self, look: Look) -> None:
        for number, ticket in look.tickets.items():
            if number not in self.tickets:  # its answer was lost, so nobody knew of it
                self.give(ticket)
                self.tickets[number] = ticket
            elif self.tickets[number] != ticket:
                self.problems.append(
                    f"ticket {number} is {ticket}, its client was told {self.tickets[number]}"
                )

    def _settle_sweep(self, look: Look) -> None:
        """A sweep without an answer is there if nothing is left of what it was to remove."""
        sweep, self.unanswered_sweep = self.unanswered_sweep, None
        if sweep is not None:
            kinds = {self.writes[number].kind for number in look.rows if number in self.writes}
            if not kinds & sweep[1]:
                self.sweep(*sweep)

    def sweep(self, look: Look, swept: frozenset[str]) -> None:
        """All rows of some kinds of writes were removed, by a request that was acknowledged."""
        self.folded = dict(look.balances)
        for write in self.writes.values():
            if write.kind in swept:
                write.presence = Presence.ABSENT
        self.transfers.clear()
