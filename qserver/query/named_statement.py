"""The prepared statements of a session; see `named_statements` for what makes and runs them.

They live as long as their session, and a text may have megabytes: so their memory is that of the
organization, like the rows of a cursor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from qserver.lexing.fingerprint import Parameterized
from qserver.query.memory_pool import MemoryPool
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Prepared
from qserver.values.types import SqlType

_COPIES: Final = 4
"""Of a text: as it was sent, the statement itself, its literals, and what the plan has of them."""


def held_by_text(text: str) -> int:
    """Estimate the memory of a statement that is kept, without its plan."""
    return _COPIES * sys.getsizeof(text)


class NamedStatement(msgspec.Struct, frozen=True, eq=False):
    name: str
    sql: str
    """As it was sent."""
    text: str
    """The statement itself."""
    parameterized: Parameterized | None
    found: CachedPlan | Prepared | None
    """What it was when it was prepared; None if the engine does not run it."""
    created: datetime
    from_sql: bool = True
    """Whether PREPARE has made it."""

    @property
    def parameters(self) -> tuple[SqlType, ...]:
        plan = self.found.inner if isinstance(self.found, Prepared) else self.found
        known = plan.parameters if isinstance(plan, CachedPlan) else None
        return () if known is None else known.types

    @property
    def size(self) -> int:
        """An estimate of its memory."""
        plan = self.found.plan if isinstance(self.found, Prepared) else self.found
        return held_by_text(self.sql) + (0 if plan is None else plan.size)


class NamedStatements:
    """Those of a session, by name."""

    __slots__ = ("_by_name", "_held")

    def __init__(self) -> None:
        self._by_name: dict[str, NamedStatement] = {}
        self._held: dict[str, tuple[MemoryPool, int]] = {}
        """Where the memory of a statement counts, and how much it is."""

    def keep(self, statement: NamedStatement, pool: MemoryPool | None) -> None:
        """Add a statement; raise OutOfMemory if the organization has no room for it."""
        self.hold(statement.name, statement.size, pool)
        self._by_name[statement.name] = statement

    def hold(self, name: str, size: int, pool: MemoryPool | None) -> None:
        """Count so many bytes for a name in place of what it had."""
        self._give_back(name)
        if pool is not None and size:
            pool.take(size)
            self._held[name] = pool, size

    def drop(self, name: str) -> None:
        if self._by_name.pop(name, None) is not None:
            self._give_back(name)

    def clear(self) -> None:
        for name in list(self._by_name):
            self.drop(name)

    def close(self) -> None:
        """Give back everything: the session has ended."""
        self.clear()
        self.hold("", 0, None)

    def return_to(self, statements: Iterable[NamedStatement], pool: MemoryPool | None) -> None:
        """Have these again, and no others."""
        self.clear()
        for each in statements:
            self.keep(each, pool)

    def _give_back(self, name: str) -> None:
        if name in self._held:
            pool, size = self._held.pop(name)
            pool.give_back(size)

    def get(self, name: str) -> NamedStatement | None:
        return self._by_name.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[NamedStatement]:
        return iter(self._by_name.values())
