"""A Move: what another database has, as statements and rows that qserver takes.

    before   schemas, types, tables          one or a few transactions
    tables   rows of texts                   in bulk
    after    defaults, checks, indexes, foreign keys, views, numbers of sequences, one by one

What is `after` may fail alone: it is listed, and the rest goes on. Rows come before foreign keys,
so tables may refer to each other in any way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from qserver.cli.transfer.batches import TextRow
from qserver.values.identifiers import qualified, quoted


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table of the source; `rows` reads it from its beginning."""

    schema: str
    name: str
    columns: tuple[str, ...]
    row_count: int
    """How many rows it has, about."""
    rows: Callable[[], Iterator[TextRow]]

    @property
    def sql_name(self) -> str:
        return qualified(self.schema, self.name)

    @property
    def route_name(self) -> str:
        """The name in the path of a request."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Definition:
    """A statement, and what it makes, for people."""

    what: str
    statement: str


@dataclass(slots=True)
class Move:
    source: str
    """How messages call it."""
    state: str
    """Differs when the source has changed: a second run goes on with the same state only."""
    is_live: bool = False
    """Do others write to it, so that a second run finds another state?"""
    before: list[str] = field(default_factory=list)
    tables: list[MovedTable] = field(default_factory=list)
    after: list[Definition] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What cannot be taken, with the reason."""
    remarks: list[str] = field(default_factory=list)
    """What is taken, but otherwise than declared."""

    def script(self) -> str:
        """The definitions as SQL text."""
        lines = [*self.before, *(each.statement for each in self.after)]
        return "".join(f"{line};\n" for line in lines)
