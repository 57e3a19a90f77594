"""How results look: what \\pset changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LINESTYLES: Final = ("ascii", "unicode")


@dataclass(frozen=True, slots=True)
class Printing:
    """The defaults are those of psql."""

    format: str = "aligned"
    expanded: str = "off"
    border: int = 1
    null: str = ""
    fieldsep: str = "|"
    recordsep: str = "\n"
    csv_fieldsep: str = ","
    tuples_only: bool = False
    footer: bool = True
    title: str | None = None
    tableattr: str = ""
    linestyle: str = "ascii"
    pager: str = "on"

    def footers(self, count: int, given: tuple[str, ...] | None) -> tuple[str, ...]:
        """The lines below a table: those that are given, else the number of rows."""
        if self.tuples_only:
            return ()
        if given is not None:
            return given
        return (counted(count),) if self.footer else ()


def counted(count: int) -> str:
    return f"({count} {'row' if count == 1 else 'rows'})"
