"""Foreign and unique keys that are checked at the end of the transaction, and which ones these are.

A key is DEFERRABLE or not, and INITIALLY DEFERRED or IMMEDIATE; SET CONSTRAINTS changes the latter
for a transaction. Only checks wait: ON DELETE CASCADE and the like act with the statement, and
RESTRICT never waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from qserver.storage.transaction import Journal
from qserver.values.constraints import ForeignKey
from qserver.values.schema import Index

Modes: TypeAlias = Mapping[tuple[str, str] | None, bool]
"""Whether a key waits, by its table's key and its name; None: all that may wait."""

NO_MODES: Final[Modes] = {}


class DeferredKeys:
    """What a transaction still has to check."""

    __slots__ = ("changes", "modes")

    def __init__(self) -> None:
        self.changes: Journal = []
        self.modes: Modes = NO_MODES

    def waits(self, table: str, key: ForeignKey | Index) -> bool:
        """Return whether the key of a table is checked at the end."""
        if not key.deferral:
            return False
        by_default = self.modes.get(None, key.deferral == "deferred")
        return self.modes.get((table, key.name), by_default)

    def set_all(self, deferred: bool) -> None:
        self.modes = {None: deferred}

    def set_one(self, table: str, name: str, deferred: bool) -> None:
        self.modes = {**self.modes, (table, name): deferred}
