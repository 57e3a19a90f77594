"""CHECK and FOREIGN KEY constraints, as definitions.

A CHECK keeps its source text, like DEFAULT: the compiler reads the text when a statement needs it,
so that a definition in the log outlives every release of the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """`CHECK (text)`; `columns` are the names of the columns that it mentions.

    `valid`: all rows satisfy it. A constraint added NOT VALID is checked for each row that is
    written, even if only other columns change.
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

    Actions: "no action", "restrict", "cascade", "set null", "set default". `match`: "simple"
    accepts a row if any of its columns is NULL, "full" only if all are. `on_delete_columns`: what
    SET NULL and SET DEFAULT set at a deletion, if not all columns.
    """

    name: str
    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]
    on_delete: str = "no action"
    on_update: str = "no action"
    match: str = "simple"
    on_delete_columns: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "columns": list(self.columns),
            "table": self.table,
            "referenced": list(self.referenced),
            "on_delete": self.on_delete,
            "on_update": self.on_update,
            "match": self.match,
            "on_delete_columns": list(self.on_delete_columns),
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
            tuple(plain.get("on_delete_columns", ())),
        )
