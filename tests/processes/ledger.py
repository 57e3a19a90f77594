"""What was sent, what was answered, and what the databases must hold because of that.

A write has a number, and all its rows bear it. The tables have no key, so what is applied twice has
twice the rows. Writes with an Idempotency-Key are sent until they are answered, and each adds one
to the counter of its client: so the counters tell, too, how often they were applied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.torture.model import Presence

SETUP: Final = (
    "CREATE TABLE entry (number bigint NOT NULL, item integer NOT NULL)",
    "CREATE INDEX entry_number ON entry (number)",
    "CREATE TABLE counter (client integer PRIMARY KEY, n bigint NOT NULL)",
    "INSERT INTO counter SELECT n, 0 FROM generate_series(0, 99) AS n",
)
ENTRIES: Final = "SELECT number, count(*) AS n FROM entry GROUP BY number"
COUNTERS: Final = "SELECT client, n FROM counter WHERE n > 0"


@dataclass(slots=True)
class Write:
    database: str
    rows: int
    presence: Presence = Presence.OPEN


@dataclass(slots=True)
class Ledger:
    writes: dict[int, Write] = field(default_factory=dict)
    counted: Counter[tuple[str, int]] = field(default_factory=Counter)
    """What the counters must be, by database and client."""
    answers: Counter[str] = field(default_factory=Counter)
    """Requests that were answered, by database."""
    problems: list[str] = field(default_factory=list)
    acknowledged: int = 0
    repeated: int = 0
    """Requests that were sent again because no answer had come."""
    replayed: int = 0
    """Answers that were stored ones."""
    half_answers: int = 0
    found_applied: int = 0
    found_not_applied: int = 0
    pipelined: int = 0
    branches: int = 0
    is_over: bool = False
    """Clients end with their next answer."""

    def begin(self, database: str, rows: int) -> int:
        number = len(self.writes) + 1
        self.writes[number] = Write(database, rows)
        return number

    def acknowledge(self, number: int, client: int | None = None) -> None:
        """It was answered; with a client: as one that counts."""
        write = self.writes[number]
        write.presence = Presence.THERE
        self.acknowledged += 1
        if client is not None:
            self.counted[write.database, client] += 1

    def refuse(self, number: int) -> None:
        self.writes[number].presence = Presence.ABSENT

    def see(self, number: int, rows: int) -> None:
        """A read has found so many rows of a write that was acknowledged before it."""
        write = self.writes[number]
        if rows != write.rows:
            self._note(write, number, f"was acknowledged with {write.rows} rows, and has {rows}")

    def compare(
        self, database: str, entries: Mapping[int, int], counters: Mapping[int, int]
    ) -> None:
        """Compare all that a database holds, while nobody writes."""
        for number, rows in entries.items():
            write = self.writes.get(number)
            if write is None or write.database != database:
                self.problems.append(f"{database} has a write {number} that nobody made there")
            elif rows != write.rows:
                self._note(write, number, f"has {rows} rows, not {write.rows}")
            elif write.presence is Presence.ABSENT:
                self._note(write, number, "was not applied, and is there")
        for number, write in self.writes.items():
            if write.database != database or write.presence is Presence.ABSENT:
                continue
            is_there = number in entries
            if write.presence is Presence.OPEN:
                self.found_applied += is_there
                self.found_not_applied += not is_there
                write.presence = Presence.THERE if is_there else Presence.ABSENT
            elif not is_there:
                self._note(write, number, "was acknowledged and is gone")
        expected = {client: n for (of, client), n in self.counted.items() if of == database}
        if dict(counters) != expected:
            self.problems.append(f"{database} counts {dict(counters)}, not {expected}")

    def _note(self, write: Write, number: int, what: str) -> None:
        self.problems.append(f"write {number} in {write.database} {what}")


class Followed:
    """What a reader of changes has seen of the entries of a database."""

    def __init__(self, database: str, version: int) -> None:
        self.database = database
        self.version = version
        self.rows: defaultdict[int, int] = defaultdict(int)
        self.problems: list[str] = []

    def take(self, version: int, inserted: list[int]) -> None:
        if version <= self.version:
            self.problems.append(f"the feed of {self.database} has {version} behind {self.version}")
        self.version = version
        for number in inserted:
            self.rows[number] += 1

    def has_come_to(self, version: int, rows: int) -> bool:
        """Versions in which there is nothing to be read may not be told."""
        return self.version >= version or sum(self.rows.values()) >= rows

    def compare(self, entries: Mapping[int, int]) -> list[str]:
        wrong = [
            f"the feed of {self.database} had {self.rows.get(number, 0)} rows of {number}, not"
            f" {entries.get(number, 0)}"
            for number in sorted(self.rows.keys() | entries.keys())
            if self.rows.get(number, 0) != entries.get(number, 0)
        ]
        return self.problems + wrong[:3]
