"""What the SQL room needs from the database.

The binder resolves relations through `CatalogPort`. Names come in parts and already folded
(`("t",)`, `("public", "t")`): the catalog decides what a schema means.
"""

from __future__ import annotations

from typing import Protocol

from qserver.sql.statistics import Statistics
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.types import SqlType


class CatalogPort(Protocol):
    """The definitions of one version of the database."""

    def find_table(self, name: tuple[str, ...]) -> Table | None: ...

    def find_view(self, name: tuple[str, ...]) -> View | None: ...

    def sequence_as_view(self, name: tuple[str, ...]) -> View | None: ...

    def find_type(self, name: tuple[str, ...]) -> SqlType | None:
        """Return a user-defined type; built-in types never get here."""
        ...

    @property
    def stored(self) -> CatalogPort:
        """The same for texts of definitions, which no session's search_path changes."""
        ...

    @property
    def has_path(self) -> bool:
        """Whether a session's search_path changes what names mean."""
        ...

    @property
    def in_utc(self) -> bool:
        """Whether the session's time zone is UTC."""
        ...

    def has_schema(self, name: str) -> bool: ...

    def check_database(self, name: tuple[str, ...]) -> None:
        """Raise unless a name of three parts begins with that of this database."""

    def read_definitions(self) -> None:
        """Note that the statement's result depends on the definitions of the catalog."""

    @property
    def statistics(self) -> Statistics:
        """What is known of the rows, for planning."""
        ...
