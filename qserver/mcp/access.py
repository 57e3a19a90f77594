"""What all tools share: the client, the default database, and the branches that were tried."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qserver.client import TransactionResult, TrioClient, requests
from qserver.limits import MCP_BRANCHES_MAX
from qserver.mcp.arguments import Change

JsonObject = dict[str, Any]

ONLY_READS: Final[Mapping[str, str]] = {"transaction_read_only": "on"}
"""Settings with which the server refuses every statement that writes, whatever the key may do."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Statements that have run on a branch, and where the branch began."""

    statements: tuple[str, ...]
    database: str
    version: int
    max_affected: int | None


@dataclass(slots=True)
class Access:
    """One server and one key."""

    client: TrioClient
    may_change: bool = False
    tried: OrderedDict[str, Tried] = field(default_factory=OrderedDict)
    _own: str | None = None

    async def name_of(self, database: str | None) -> str:
        """The name of the database that is meant: the one that is asked for, or the default."""
        named = database or self.client.database
        if named is not None:
            return named
        if self._own is None:
            asked = await self.client.query("SELECT current_database()", settings=ONLY_READS)
            self._own = str(asked.rows[0][0])
        return self._own

    async def transaction(
        self, asked: Change, database: str | None, *, max_rows: int, **how: bool
    ) -> TransactionResult:
        """Run the statements of a tool, in the way that is `how`."""
        return await self.client.transaction(
            asked.statements,
            database=database,
            max_rows=max_rows,
            max_affected=asked.max_affected,
            timeout_ms=asked.timeout_ms,
            **how,
        )

    async def tables(self, database: str | None) -> JsonObject:
        """`database`, `version` and `tables`, as GET /tables has them."""
        return await self.client.call(requests.tables(database or self.client.database))

    async def record(self, name: str) -> JsonObject:
        """The record of a database."""
        return await self.client.call(requests.record("GET", "databases", name))

    async def page(self, *path: str, **given: Any) -> JsonObject:
        """The first page of a list of the control plane."""
        return await self.client.call(requests.listing(*path, **given))

    def remember(self, branch: str, tried: Tried) -> None:
        self.tried[branch] = tried
        while len(self.tried) > MCP_BRANCHES_MAX:
            self.tried.popitem(last=False)
