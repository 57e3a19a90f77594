"""Extensions: what CREATE EXTENSION may name, and the definition that it leaves.

What an extension of `AVAILABLE` offers here is there without it, too. So one that was created is
only a line of pg_extension, which tools ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from qserver.values.identifiers import PUBLIC


class AvailableExtension(NamedTuple):
    version: str
    comment: str


PLPGSQL: Final = "plpgsql"
"""It is there from the beginning."""
AVAILABLE: Final[Mapping[str, AvailableExtension]] = {
    "pgcrypto": AvailableExtension("1.3", "cryptographic functions"),
    PLPGSQL: AvailableExtension("1.0", "PL/pgSQL procedural language"),
    "uuid-ossp": AvailableExtension("1.1", "generate universally unique identifiers (UUIDs)"),
}


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension that was created. Its name is one of its own: a table may have the same."""

    name: str
    schema: str = PUBLIC
    comments: tuple[tuple[str, str], ...] = ()
    oid: int = field(default=0, compare=False)

    @staticmethod
    def key_of(name: str) -> str:
        return f"\0extension\0{name}"

    @property
    def key(self) -> str:
        return self.key_of(self.name)

    def to_plain(self) -> list[Any]:
        return [self.name, self.schema, [list(each) for each in self.comments], self.oid]

    @staticmethod
    def from_plain(plain: Any) -> Extension:
        name, schema, comments, oid = plain
        return Extension(name, schema, tuple((about, text) for about, text in comments), oid)
