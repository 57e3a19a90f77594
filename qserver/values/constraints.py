"""What a table demands of its rows beyond their types: CHECK and FOREIGN KEY.

Both are definitions, not code. A CHECK is kept as the text that its author wrote: the compiler
reads it again when a statement needs it, as it does with DEFAULT, so that a definition in the log
outlives every release of the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """`CHECK (text)`; `columns` are the names of those that it mentions.

    `valid`: all rows pass it. One that was added NOT VALID holds for each row that is written, also
    if other columns are.
    """

    name: str
    text: str
    columns: tuple[str, ...] = ()
    valid: bool = True

    def to_plain(self) -> list[Any]:
        plain = [self.name, self.text, list(self.columns)]
        return plain if self.valid else [*plain, False]

    @staticmethod
    def from_plain(plain: Any) -> Check:
        name, text, columns, *valid = plain
        return Check(name, text, tuple(columns), *valid)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`FOREIGN KEY (columns) REFERENCES table (referenced)`, all by name.

    Actions: "no action", "restrict", "cascade", "set null", "set default". `match`: "simple" lets a
    row pass when any of its columns is NULL, "full" only when all are.
    """

    name: str
    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]
    on_delete: str = "no action"
    on_update: str = "no action"
    match: str = "simple"

    def to_plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "columns": list(self.columns),
            "table": self.table,
            "referenced": list(self.referenced),
            "on_delete": self.on_delete,
            "on_update": self.on_update,
            "match": self.match,
        }

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> ForeignKey:
        return ForeignKey(
            plain["name"],
            tuple(plain["columns"]),
            plain["table"],
            tuple(plain["referenced"]),
            plain["on_delete"],
            plain["on_update"],
            plain["match"],
        )
