"""What the room of SQL asks of the database around it, declared by the one who asks.

`CatalogPort` is the binder's: which relations there are. A name comes as the statement has it, in
parts and already folded (`("t",)`, `("public", "t")`): what a schema means is the catalog's to say.
"""

from __future__ import annotations

from typing import Protocol

from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.types import SqlType


class CatalogPort(Protocol):
    """The definitions of one version of the database."""

    def find_table(self, name: tuple[str, ...]) -> Table | None: ...

    def find_view(self, name: tuple[str, ...]) -> View | None: ...

    def find_type(self, name: str) -> SqlType | None:
        """A type that somebody created; the built-in ones are not asked for."""
        ...

    def row_count(self, table: Table) -> int:
        """About how many rows the table has, for planning."""
        ...
