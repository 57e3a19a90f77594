"""What each database of a family must hold, see `branches`; and the rows that it begins with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from qserver.storage.changes import Change
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence
from simulations.workloads.workload import create_table

KEYS: Final = 24


@dataclass
class Member:
    """A database: its record, and its expected contents."""

    parent: str | None = None
    state: str = "creating"
    values: dict[int, list[int]] = field(default_factory=dict)
    """By key: the value, and before it what may be there instead."""
    seen: dict[int, dict[int, int]] = field(default_factory=dict)
    """By version: what was found in it."""
    times: dict[int, float] = field(default_factory=dict)
    """When they were made."""
    base: int = 0
    """The version of the parent at which it was made."""
    kept_from: int = 0
    """Versions before this one need not be kept: history was cut."""
    numbers: set[int] = field(default_factory=set)
    """What its sequence has given, also before it was a branch."""

    def branch(self, own: str, version: int, values: dict[int, int]) -> Member:
        """Return a branch of this member, under the given name, with the same past."""
        return Member(
            own,
            values={key: [value] for key, value in values.items()},
            seen={each: found for each, found in self.seen.items() if each <= version},
            times={each: time for each, time in self.times.items() if each <= version},
            base=version,
        )

    def wrote(self, key: int, value: int, known: bool) -> None:
        self.values[key] = [value] if known else [*self.values[key], value]

    def problems(self, name: str, found: dict[int, int]) -> list[str]:
        """Compare with what was found.

        Unknown commits prove nothing: while a log cannot be read they may still appear.
        """
        wrong = [
            f"{name} has {found.get(key)} under {key}, not one of {values}"
            for key, values in self.values.items()
            if found.get(key) not in values
        ]
        wrong += [f"{name} has a key {key}" for key in found if key not in self.values]
        return wrong


def create(transaction: Transaction) -> None:
    if transaction.find_definition("t") is None:
        number = transaction.next_tree()
        transaction.define("numbers", Sequence(number, "numbers", state=number))
        table = create_table(transaction, "t", "id", "value")
        for key in range(KEYS):
            transaction.put(table, (key, 0))


def entries(snapshot: Snapshot) -> dict[int, int]:
    table = snapshot.catalog.tables["t"]
    return {
        key[0]: row[1]
        for keys, rows in snapshot.pages(table.id)
        for key, row in zip(keys, rows, strict=True)
    }


def changed(found: dict[int, int], changes: Iterable[Change]) -> dict[int, int]:
    """Return the contents of a version, from those of the one before it and its changes."""
    after = dict(found)
    for each in changes:
        if each.after is not None:
            after[each.after[0]] = each.after[1]
    return after
