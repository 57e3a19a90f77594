"""CHECK and FOREIGN KEY constraints, as definitions.

A CHECK keeps its source text, like DEFAULT: the compiler reads the text when a statement needs it,
so that a definition in the log outlives every release of the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qserver.values.plain import PlainFields


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
    oid: int = field(default=0, compare=False)

    def to_plain(self) -> list[Any]:
        return [self.name, self.text, list(self.columns), self.valid, self.oid]

    @staticmethod
    def from_plain(plain: Any) -> Check:
        name, text, columns, *rest = plain
        return Check(name, text, tuple(columns), *rest)


@dataclass(frozen=True, slots=True)
class ForeignKey(PlainFields):
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
    deferral: str = ""
    """"deferrable", or "deferred" if it is so initially; otherwise it never waits."""
    oid: int = field(default=0, compare=False)
