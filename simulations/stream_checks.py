"""What must hold of a family's stream, and of the files that are copies of it.

It reads the stream by its own lights: parts count with the last of them, a claim voids those before
it, and nobody writes after another one's claim.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from qserver.durability.records import decode_record, writes_of
from qserver.replication.messages import (
    Branch,
    Claim,
    Group,
    Part,
    Records,
    Removed,
    checksum_of,
    decode,
    decode_body,
)
from qserver.values.steps import at_once
from simulations.stream import Told


@dataclass
class ReadStream:
    """All that a stream has ever held, read up to here."""

    problems: list[str] = field(default_factory=list)
    records: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """By database and version."""
    parents: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    claims: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    """By whose link, with the last version of each database then."""
    _claim: str = ""
    _checksum: int = 0
    _parts: list[bytes] = field(default_factory=list)
    _written: dict[tuple[str, object], int] = field(default_factory=dict)
    _read: int = 0

    def read_on(self, told: list[Told]) -> None:
        for each in told[self._read :]:
            self._add(each)
        self._read = len(told)

    def _add(self, told: Told) -> None:
        where = f"message {told.message.sequence}"
        entry = decode(told.message.data, where)
        if entry.previous != self._checksum:
            self.problems.append(f"{where} does not follow the one before it")
        self._checksum = checksum_of(told.message.data)
        body = entry.body
        if isinstance(body, Claim):
            self._claim, self._parts = entry.claim, []
            self.claims.append((told.link, {name: max(of) for name, of in self.records.items()}))
        elif entry.claim != self._claim:
            self.problems.append(f"{where} was written by {entry.claim} after another's claim")
        if isinstance(body, Part):
            self._parts.append(body.data)
            if body.is_last:
                body, self._parts = decode_body(b"".join(self._parts), where), []
        if isinstance(body, Branch):
            self.parents[body.database] = body.parent
            self.records[body.database] = {body.version: b""}
        if isinstance(body, Removed):
            self.removed.add(body.database)
        if isinstance(body, Records):
            for group in body.groups:
                self._add_records(group, where)

    def _add_records(self, group: Group, where: str) -> None:
        records = self.records.setdefault(group.database, {})
        last = max(records, default=None)
        for version, data in group.records:
            if last is not None and version != last + 1:
                self.problems.append(f"{where}: {group.database} has {version} after {last}")
            records[version] = data
            last = version
            self._look_for_repeats(group.database, version, data)

    def _look_for_repeats(self, database: str, version: int, data: bytes) -> None:
        """Each value is written once, so it is in one record."""
        for tree, changes in at_once(writes_of(decode_record(data))).items():
            for key, row in changes.items():
                if tree > 0 and isinstance(row, tuple) and len(row) == 2 and row[1]:
                    before = self._written.setdefault((database, row), version)
                    if before != version:
                        self.problems.append(
                            f"{database} has {row} under {key} in versions {before} and {version}"
                        )

    def last_version(self, database: str) -> int:
        return max(self.records.get(database, ()), default=0)

    def version_at_claim(self, link: str, database: str) -> int | None:
        """Return how far a database was when a process took it over last; None if it never did.

        An own claim after an own one proves less: what it found may be shown a little later.
        """
        found = None
        for claimer, versions in reversed(self.claims):
            if claimer == link:
                found = versions.get(database, 0)
            elif found is not None:
                break
        return found

    def owner(self) -> str | None:
        return self.claims[-1][0] if self.claims else None

    def foreign(self, database: str, records: Iterable[tuple[int, bytes]]) -> list[str]:
        """Return what is wrong with records of a file: the stream has others, or none."""
        return [
            f"a file of {database} has a version {version} that no stream has"
            for version, data in records
            if not self._has(database, version, data)
        ]

    def _has(self, database: str | None, version: int, data: bytes) -> bool:
        while database is not None:
            if self.records.get(database, {}).get(version) == data:
                return True
            database = self.parents.get(database)
        return False
