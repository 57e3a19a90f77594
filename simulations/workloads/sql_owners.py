"""Owners that share a table: each has a session of a key that can only run named statements.

The session binds the owner. Whatever an owner sends, at the same time as others and with the same
statements, it sees rows of its own, and changes them alone. Some requests ask for more: another
owner, SQL text, a name that the key does not have, by each route. All of them are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from qserver.engine.gateway import Outcome
from qserver.errors import Forbidden, InvalidRequest, ProtocolViolation, QserverError
from qserver.query.sql_database import TransactionResult
from qserver.sql.described import Described
from simulations.service import Service
from simulations.web.front import Front
from simulations.web.keys import owner_session
from simulations.workloads.sql_workload import SqlWorkload

OWNERS = 3
ATTACKS: Final = 0.3
LONG: Final = "x" * 70_000
"""Makes a request so long that it is decoded in steps."""

STATEMENTS: Final[Mapping[str, Described]] = {
    "mine": Described(
        "SELECT number, owner, amount FROM things WHERE owner = :owner ORDER BY number",
        ("owner",),
        False,
    ),
    "add": Described(
        "INSERT INTO things VALUES (:number, :owner, 0) RETURNING number, owner, amount",
        ("number", "owner"),
        True,
    ),
    "raise": Described(
        "UPDATE things SET amount = amount + 1 WHERE owner = :owner AND number = :number"
        " AND length(:note) >= 0 RETURNING number, owner, amount",
        ("owner", "number", "note"),
        True,
    ),
}


class SqlOwners(SqlWorkload):
    name = "sql_owners"
    tables = (
        "CREATE TABLE things (number integer PRIMARY KEY, owner integer NOT NULL, amount integer)",
    )

    async def setup(self, service: Service) -> None:
        self.owners: dict[int, int] = {}
        """Who added what, or tried to."""
        self.raised: dict[int, list[int]] = {}
        """For each row, how often its owner was told that it was raised, and may have been."""
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        owner = self.chance.randrange(OWNERS)
        if self.chance.random() < ATTACKS:
            await self._attack(service, owner)
            return
        kind = self.chance.random()
        if kind < 0.4 or not self.owners:
            self.owners[number] = owner
            await self._run(service, owner, number, ("add", {"number": number}), ("mine", {}))
        elif kind < 0.7:
            await self._raise(service, owner)
        else:
            await self._run(service, owner, None, ("mine", {}))

    async def _raise(self, service: Service, owner: int) -> None:
        """Raise some row; that of another owner stays as it is."""
        wanted = self.chance.choice(list(self.owners))
        note = LONG if self.chance.random() < 0.2 else "-"
        told = self.raised.setdefault(wanted, [0, 0])
        done = await self._run(
            service, owner, None, ("raise", {"number": wanted, "note": note}), ("mine", {})
        )
        if self.owners[wanted] != owner:
            changed = isinstance(done, TransactionResult) and done.results[0].affected_rows
            self.expect(not changed, f"owner {owner} raised {wanted}, of {self.owners[wanted]}")
        elif isinstance(done, TransactionResult):
            told[0] += done.results[0].affected_rows
            told[1] += done.results[0].affected_rows
        else:
            told[1] += 1

    async def _run(
        self,
        service: Service,
        owner: int,
        number: int | None,
        *statements: tuple[str, dict[str, Any]],
    ) -> TransactionResult | QserverError:
        named: list[dict[str, Any]] = [
            {"statement": name, "params": params} for name, params in statements
        ]
        path, fields = "/v1/query", named[0]
        if len(named) > 1 and self.chance.random() < 0.5:
            path, fields = "/v1/transaction", {"statements": named}
        done = await self._send(service, owner, path, fields, number, ())
        if isinstance(done, TransactionResult):
            self._judge(owner, done)
        return done

    def _judge(self, owner: int, done: TransactionResult) -> None:
        rows = [row for result in done.results for row in result.rows]
        for number, belongs_to, _ in rows:
            right = belongs_to == owner == self.owners.get(number)
            self.expect(right, f"owner {owner} was shown row {number}, of {belongs_to}")

    async def _send(
        self,
        service: Service,
        owner: int,
        path: str,
        fields: dict[str, Any],
        number: int | None,
        may: tuple[type[QserverError], ...],
    ) -> TransactionResult | QserverError:
        async def post(front: Front) -> Outcome:
            front.keys.statements = STATEMENTS
            result = await self.http.ask_as(front, owner_session(owner), path, fields)
            return Outcome(result, result.version, result.retries)

        done: TransactionResult | QserverError = await self._sent(
            service.ask_front(post), service, number, may
        )
        return done

    async def _attack(self, service: Service, owner: int) -> None:
        other = (owner + 1) % OWNERS
        sql = STATEMENTS["mine"].sql
        wanted = self.chance.choice(list(self.owners) or [0])
        mine = {"statement": "mine"}
        values = {"number": wanted, "note": "-", "owner": other}
        raises = {"statement": "raise", "params": values}
        attacks: tuple[tuple[str, dict[str, Any]], ...] = (
            ("/v1/query", {**mine, "params": {"owner": other}}),
            ("/v1/query", {**mine, "sql": f"{sql.partition(' ORDER')[0]} OR :owner < 9"}),
            ("/v1/query", {"sql": sql, "params": {"owner": other}}),
            ("/v1/query", {"statement": sql, "params": {"owner": other}}),
            ("/v1/query", {**mine, "params": [other]}),
            ("/v1/query", {**raises, "params": {**values, "note": LONG}}),
            ("/v1/query", {**mine, "dry_run": True}),
            ("/query", {"sql": "SELECT number, owner, amount FROM things"}),
            ("/v1/transaction", {"statements": [mine, raises]}),
            ("/v1/transaction", {"statements": [mine, {"sql": "DELETE FROM things"}]}),
            ("/v1/transaction", {"statements": ["SELECT number, owner, amount FROM things"]}),
        )
        path, fields = self.chance.choice(attacks)
        may = (Forbidden, InvalidRequest, ProtocolViolation)
        done = await self._send(service, owner, path, fields, None, may)
        if isinstance(done, TransactionResult):
            shown = {key: str(value)[:80] for key, value in fields.items()}
            self.problems.append(f"owner {owner} was let do {path} {shown}")
        elif isinstance(done, Forbidden):
            service.world.reach("a session was refused what is none of its statements")

    async def check_rows(self, service: Service) -> None:
        found = await self.must(service, "SELECT number, owner, amount FROM things")
        for number, owner, amount in found.rows:
            self.expect(
                self.owners.get(number) == owner,
                f"row {number} is of {owner}, and {self.owners.get(number)} added it",
            )
            least, most = self.raised.get(number, [0, 0])
            self.expect(
                least <= amount <= most, f"row {number} was raised {amount}, not {least} to {most}"
            )
        self.problems += self.book.compare([row[0] for row in found.rows], service)
