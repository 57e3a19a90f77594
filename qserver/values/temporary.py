"""Names and numbers of temporary relations, which one session sees.

They are in the schema `pg_temp`. Their trees and oids count from TEMPORARY_FIRST on, where no
database comes to; so they leave those of the database alone.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

TEMPORARY: Final = "pg_temp"
"""The schema of temporary relations. Everybody else's schemas have no name that begins like it."""

TEMPORARY_FIRST: Final = 2_000_000_000
"""The first number of a temporary tree. Oids stay below 2**31 for 100 million more."""

TEMPORARY_ROW_IDS: Final = f"{TEMPORARY}\0"
"""Stands for the source of row ids in a hidden column of a temporary table."""

OnCommit: TypeAlias = Literal["drop", "delete rows"]


def is_temporary(key: str) -> bool:
    """Return whether a key of the catalog is that of a temporary relation, or of their schema."""
    return key.startswith(TEMPORARY_ROW_IDS)


class TemporaryNumbers:
    """What a session counts for its temporary relations; no rollback takes it back.

    As values of sequences in PostgreSQL. So a number stands for one tree, or one state of a
    sequence, for as long as the session lasts.
    """

    __slots__ = ("_row_id", "_used", "on_commit", "states")

    def __init__(self) -> None:
        self._used = TEMPORARY_FIRST
        self._row_id = 0
        self.states: dict[int, tuple[int, bool]] = {}
        """Where sequences have come to, by the numbers of their states."""
        self.on_commit: dict[int, OnCommit] = {}
        """What a commit does to tables, by their oids."""

    def take(self, count: int = 1) -> int:
        """Return the first of so many unused numbers."""
        first = self._used + 1
        self._used += count
        return first

    def next_row_id(self) -> int:
        self._row_id += 1
        return self._row_id

    def __repr__(self) -> str:
        return f"{self._used - TEMPORARY_FIRST} temporary numbers"
