"""Counts how often statements run, how long they take and what they cost, by normal form.

    CachedPlan ── counter ──► StatementCounter ── samples: (seconds, rows, bytes) of each run
                                    ▲                      │ folded when they are many, or asked for
    DatabaseStatements ─────────────┘                      ▼
    by number of the normal form                     calls, seconds, squares, least, most …

A run appends one tuple to the list that its plan leads to, and does nothing else: no look-up, no
lock, no arithmetic.

A normal form has neither literals nor comments, so it shows no value that anybody has sent. Its
number is a digest of it, the same in every process and after every restart.

Memory is bounded twice. An organization has `STATEMENTS_COUNTED_MAX` counters at most, in all of
its databases; past it those with the fewest calls go. All organizations of a process have
`STATEMENTS_COUNTED_BYTES_MAX`; past it counters go of the one that has the most. So whoever has
less than an even part loses nothing to others.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b
from math import inf, sqrt
from operator import mul
from typing import Any, Final, Protocol

import msgspec

from qserver.lexing import lexer
from qserver.lexing.fingerprint import MARK, ROWS_MARK, parameterize
from qserver.limits import (
    STATEMENT_TEXT_COUNTED_LENGTH_MAX,
    STATEMENTS_COUNTED_MAX,
)

STATEMENTS_COUNTED_BYTES_MAX: Final = 64 * 1024 * 1024
SAMPLES_ROOM: Final = 32
"""So many runs wait until they are folded."""
TEXTS_KNOWN: Final = 32
DROPPED_SHARE: Final = 20
"""One of so many counters goes when there are too many: to sort them takes a while."""
COUNTER_BYTES: Final = 4000
"""Approximate memory of a counter beside its text."""

_COMMENT: Final = re.compile(
    rf"{lexer.LINE_COMMENT}|{lexer.BLOCK_COMMENT}|/\*.*|({lexer.QUOTED})", re.DOTALL
)
"""Comments, the last of which may be cut, and quoted names, in which there are none."""
_SET: Final = re.compile(
    r"((?:alter (?:database|role|user|system)\b.*? )?set [^=]*?(?:=|\bto\b)).+",
    re.IGNORECASE | re.DOTALL,
)
_LIST: Final = re.compile(
    rf"(\b(?:in\s*\(|array\s*\[)\s*){MARK}(?:\s*,\s*{MARK})+(\s*[)\]])", re.IGNORECASE
)
_PARAMETER: Final = re.compile(r"\$(\d+)")

Sample = tuple[float, int, int]
"""Seconds, rows, bytes."""


class Ran(Protocol):
    """A cursor that has come to its end."""

    waited: float
    context: Any

    @property
    def plan(self) -> Any: ...


class SlowRun(msgspec.Struct, frozen=True):
    """A run that took at least as long as is to be reported."""

    organization: str
    database: str
    """Its id."""
    number: int
    text: str
    """The normal form, without values."""
    seconds: float
    waited: float
    rows: int
    cursor: Ran


ReportSlow = Callable[[SlowRun], None]


def normal_form(fingerprint: str) -> str:
    """Return a statement as it is shown: with numbers for literals, without comments.

    `a IN (1, 2, 3)` is shown as `a IN ($1, ...)`, so lists of any length are one statement. What a
    setting is set to is a value, also if it is written as a word.
    """
    text = fingerprint[: 4 * STATEMENT_TEXT_COUNTED_LENGTH_MAX]
    text = _COMMENT.sub(lambda found: found[1] or " ", text)
    text = " ".join(text.split()).rstrip("; ")
    setting = _SET.fullmatch(text)
    if setting is not None:
        text = f"{setting[1]} {MARK}"
    text = text.replace(ROWS_MARK, f"({MARK}), ...")
    text = _LIST.sub(rf"\1{MARK}, ...\2", text)
    number = max(map(int, _PARAMETER.findall(text)), default=0)
    first, *others = text.split(MARK)
    for at, other in enumerate(others, number + 1):
        first += f"${at}{other}"
    if len(first) > STATEMENT_TEXT_COUNTED_LENGTH_MAX:
        return first[: STATEMENT_TEXT_COUNTED_LENGTH_MAX - 1] + "…"
    return first


def number_of(fingerprint: str, text: str) -> int:
    """Return the number of a normal form, which is its digest; never 0, which means all."""
    whole = text if not text.endswith("…") else fingerprint
    digest = blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


class StatementNumbers(msgspec.Struct, array_like=True):
    """What is known of one statement; several of them can be added."""

    number: int
    text: str
    plans: int = 0
    calls: int = 0
    rows: int = 0
    seconds: float = 0.0
    squares: float = 0.0
    least: float = inf
    most: float = 0.0
    waited: float = 0.0
    """Seconds in which it stood aside for others."""
    retries: int = 0
    conflicts: int = 0
    bytes_most: int = 0

    @property
    def cpu_seconds(self) -> float:
        return max(0.0, self.seconds - self.waited)

    @property
    def mean(self) -> float:
        return self.seconds / self.calls if self.calls else 0.0

    @property
    def deviation(self) -> float:
        if not self.calls:
            return 0.0
        return sqrt(max(0.0, self.squares / self.calls - self.mean**2))

    def add(self, other: StatementNumbers) -> None:
        self.plans += other.plans
        self.calls += other.calls
        self.rows += other.rows
        self.seconds += other.seconds
        self.squares += other.squares
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.waited += other.waited
        self.retries += other.retries
        self.conflicts += other.conflicts
        self.bytes_most = max(self.bytes_most, other.bytes_most)


AskAll = Callable[[str], Awaitable[list[StatementNumbers]]]
ResetAll = Callable[[str, int], Awaitable[None]]


class StatementCounter:
    """Counts one statement of one database, in this process; see `Cursor.count`."""

    __slots__ = ("_owner", "numbers", "room", "samples")

    def __init__(self, numbers: StatementNumbers, owner: DatabaseStatements) -> None:
        self.numbers = numbers
        self.samples: list[Sample] = []
        """Runs that are not in the numbers yet."""
        self.room = owner.room
        """With more samples than this, `settle` is called."""
        self._owner = owner

    def settle(self, cursor: Ran, seconds: float, rows: int) -> None:
        """Do what not every run needs."""
        if self.room < 0:  # it was dropped, and a plan still leads to it
            self._owner.keep_again(self)
        self.numbers.waited += cursor.waited
        if len(self.samples) > SAMPLES_ROOM:
            self.fold()
        self._owner.look_at(self.numbers, cursor, seconds, rows)

    def fold(self) -> StatementNumbers:
        """Compute with the samples, and forget them."""
        samples, numbers = self.samples, self.numbers
        if samples:
            times, rows, held = zip(*samples, strict=True)
            samples.clear()
            numbers.calls += len(times)
            numbers.rows += sum(rows)
            numbers.seconds += sum(times)
            numbers.squares += sum(map(mul, times, times))
            numbers.least = min(numbers.least, *times)
            numbers.most = max(numbers.most, *times)
            numbers.bytes_most = max(numbers.bytes_most, *held)
        return numbers

    def reset(self) -> None:
        self.samples.clear()
        self.numbers = StatementNumbers(self.numbers.number, self.numbers.text)


class DatabaseStatements:
    """The counters of one database."""

    def __init__(self, owner: OwnerStatements, database: str) -> None:
        self._owner = owner
        self._database = database
        self._counters: dict[int, StatementCounter] = {}
        self._of_texts: dict[str, StatementCounter] = {}
        """Counters of statements that have no plan and come again and again, as BEGIN does."""

    def count(self, text: str, seconds: float) -> None:
        """Count a run of a statement that controls a transaction: it has no cursor."""
        counter = self._of_texts.get(text)
        if counter is None:
            if len(self._of_texts) >= TEXTS_KNOWN:
                self._of_texts.clear()
            counter = self._of_texts[text] = self.counter_of(parameterize(text).fingerprint)
        counter.samples.append((seconds, 0, 0))
        if len(counter.samples) > counter.room:
            if counter.room < 0:
                self.keep_again(counter)
            counter.fold()

    @property
    def room(self) -> int:
        """With a bound for slow statements, each run is looked at."""
        return SAMPLES_ROOM if self._owner.every.slow_seconds is None else 0

    def counter_of(self, fingerprint: str) -> StatementCounter:
        """Return the counter of a statement, which is made if it is new."""
        text = normal_form(fingerprint)
        number = number_of(fingerprint, text)
        counter = self._counters.get(number)
        if counter is None:
            counter = StatementCounter(StatementNumbers(number, text), self)
            self._keep(counter)
        return counter

    def planned(self, fingerprint: str) -> StatementCounter:
        """Return the counter of a statement that has been planned."""
        counter = self.counter_of(fingerprint)
        counter.numbers.plans += 1
        return counter

    def _keep(self, counter: StatementCounter) -> None:
        self._owner.make_room(counter)
        self._counters[counter.numbers.number] = counter

    def keep_again(self, counter: StatementCounter) -> None:
        counter.room = self.room
        if counter.numbers.number not in self._counters:
            self._keep(counter)

    def look_at(self, numbers: StatementNumbers, cursor: Ran, seconds: float, rows: int) -> None:
        """Report a run that was slow."""
        every = self._owner.every
        if every.slow_seconds is not None and seconds >= every.slow_seconds:
            of = self._owner.organization, self._database, numbers.number, numbers.text
            every.report_slow(SlowRun(*of, seconds, cursor.waited, rows, cursor))

    def counters(self) -> Iterable[StatementCounter]:
        return self._counters.values()

    def drop(self, counter: StatementCounter) -> None:
        """Forget a counter; the next run by a plan that still leads to it brings it back."""
        del self._counters[counter.numbers.number]
        self._owner.count(counter, -1)
        counter.reset()
        counter.room = -1

    def forget(self) -> None:
        for counter in [*self._counters.values()]:
            self.drop(counter)

    async def rows_of_all(self) -> list[StatementNumbers]:
        """Return what all processes know of each statement."""
        return await self._owner.every.ask_all(self._database)

    async def reset_all(self, number: int = 0) -> None:
        """Begin anew in all processes."""
        await self._owner.every.reset_all(self._database, number)

    def rows(self) -> list[StatementNumbers]:
        """Return what is known of each statement that has run."""
        found = [counter.fold() for counter in self._counters.values()]
        return [each for each in found if each.calls or each.conflicts]

    def reset(self, number: int = 0) -> None:
        """Begin anew; 0: all statements."""
        for at, counter in self._counters.items():
            if number in (0, at):
                counter.reset()

    def __repr__(self) -> str:
        return f"counters of {len(self._counters)} statements"


class OwnerStatements:
    """The counters of all databases of one organization."""

    def __init__(self, every: StatementStatistics, organization: str) -> None:
        self.every = every
        self.organization = organization
        self.databases: dict[str, DatabaseStatements] = {}
        self.entries = self.bytes = 0

    def make_room(self, counter: StatementCounter) -> None:
        """Count a new one, and drop others if they are too many now."""
        if self.entries >= STATEMENTS_COUNTED_MAX:
            self.drop_least_used()
        self.count(counter, 1)
        self.every.make_room()

    def count(self, counter: StatementCounter, sign: int) -> None:
        size = sign * (COUNTER_BYTES + len(counter.numbers.text))
        self.entries += sign
        self.bytes += size
        self.every.bytes += size

    def drop_least_used(self) -> None:
        every = [
            (each.fold().calls, at, each, database)
            for database in self.databases.values()
            for at, each in enumerate(database.counters())
        ]
        every.sort(key=lambda each: each[:2])
        for _, _, counter, database in every[: max(1, len(every) // DROPPED_SHARE)]:
            database.drop(counter)


class StatementStatistics:
    """The counters of a process."""

    def __init__(
        self, slow_seconds: float | None = None, report_slow: ReportSlow | None = None
    ) -> None:
        """From `slow_seconds` on a run is reported; None: never."""
        self.slow_seconds = slow_seconds
        self.report_slow: ReportSlow = report_slow or _report_nothing
        self.bytes = 0
        self.ask_all: AskAll = self.rows_here
        """Returns what all processes know of a database; this one alone, unless it is replaced."""
        self.reset_all: ResetAll = self.reset_here
        self._owners: dict[str, OwnerStatements] = {}
        self._databases: dict[str, DatabaseStatements] = {}

    def of(self, owner: str, database: str) -> DatabaseStatements:
        """Return the counters of a database, which outlive its closing."""
        found = self._databases.get(database)
        if found is None:
            of_owner = self._owners.get(owner)
            if of_owner is None:
                of_owner = self._owners[owner] = OwnerStatements(self, owner)
            found = DatabaseStatements(of_owner, database)
            self._databases[database] = of_owner.databases[database] = found
        return found

    def find(self, database: str) -> DatabaseStatements | None:
        return self._databases.get(database)

    async def rows_here(self, database: str) -> list[StatementNumbers]:
        found = self._databases.get(database)
        return [] if found is None else found.rows()

    async def reset_here(self, database: str, number: int = 0) -> None:
        found = self._databases.get(database)
        if found is not None:
            found.reset(number)

    def forget(self, database: str) -> None:
        """Forget a database that is deleted."""
        found = self._databases.pop(database, None)
        if found is not None:
            found.forget()
            for owner in self._owners.values():
                owner.databases.pop(database, None)

    def make_room(self) -> None:
        while self.bytes > STATEMENTS_COUNTED_BYTES_MAX:
            max(self._owners.values(), key=lambda each: each.bytes).drop_least_used()


def _report_nothing(_: SlowRun) -> None:
    return


def added(parts: Iterable[Iterable[StatementNumbers]]) -> list[StatementNumbers]:
    """Return the numbers of several processes as one."""
    found: dict[int, StatementNumbers] = {}
    for part in parts:
        for each in part:
            known = found.get(each.number)
            if known is None:
                found[each.number] = msgspec.structs.replace(each)
            else:
                known.add(each)
    return list(found.values())
