"""Those who write while the server dies: each request is noted before it is sent.

    transfer   two balances and a row of the ledger, in one transaction
    batch      a few rows with one number, in one statement, in a table without a key
    ticket     a number of a sequence, stored and answered
    number     a number of a sequence, only answered
    table      CREATE TABLE and its rows in one transaction; later DROP TABLE
    database   made in the control plane; later deleted
    key        made in the control plane; later revoked
    look       reads what others are just writing: what is seen once must stay

A client ends when its connection does. An error of the server says whether the request was applied;
one that says "internal error" is a finding of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Final

from qserver.client import ConnectionFailed, ConnectionLost, Statement, TrioClient
from qserver.errors import Applied, QserverError
from tests.torture.model import Model, Presence, Rows

ACCOUNTS: Final = 8
KEPT: Final = 4
"""Tables, databases and keys that a client lets live before it removes one."""
INTERNAL_ERROR: Final = "XX000"

SETUP: Final = (
    "CREATE TABLE account (id integer PRIMARY KEY, balance bigint NOT NULL)",
    f"INSERT INTO account SELECT n, 0 FROM generate_series(0, {ACCOUNTS - 1}) AS n",
    "CREATE TABLE ledger (id bigint PRIMARY KEY, source integer NOT NULL REFERENCES account,"
    " target integer NOT NULL REFERENCES account, amount bigint NOT NULL)",
    "CREATE INDEX ledger_source ON ledger (source, amount)",
    "CREATE TABLE batch (id bigint NOT NULL, item integer NOT NULL, payload text)",
    "CREATE SEQUENCE counter",
    "CREATE TABLE ticket (id bigint PRIMARY KEY, number bigint NOT NULL)",
)
_WAYS: Final = {
    "transfer": 40,
    "batch": 20,
    "ticket": 10,
    "number": 5,
    "look": 15,
    "table": 4,
    "database": 1,
    "key": 2,
}


class BusyClient:
    """One of several; it makes its next request when it has the answer to its last."""

    ways: Mapping[str, int]
    """What it does, and how often."""
    goes_on_in_doubt = True
    """Whether it has more to do when it cannot know whether a request was applied."""
    _client: TrioClient

    def __init__(self, model: Model, chance: Random) -> None:
        self._model = model
        self._chance = chance

    async def run(self, client: TrioClient) -> None:
        """Until the server is gone."""
        self._client = client
        names, weights = list(self.ways), list(self.ways.values())
        while True:
            (name,) = self._chance.choices(names, weights)
            try:
                await getattr(self, f"_{name}")()
            except (ConnectionLost, ConnectionFailed):
                return
            except QserverError as error:
                if error.code == INTERNAL_ERROR:
                    self._model.problems.append(f"{name} met an internal error: {error}")
                if error.applied is Applied.UNKNOWN and not self.goes_on_in_doubt:
                    return


class TorturedClient(BusyClient):
    """It writes the tables of `main`, and makes and removes tables, databases and keys."""

    ways = _WAYS

    def __init__(self, model: Model, chance: Random) -> None:
        super().__init__(model, chance)
        self._mine: dict[str, list[int]] = {"table": [], "database": [], "key": []}
        self._key_ids: dict[int, str] = {}

    # --- data ---

    async def _transfer(self) -> None:
        source, target = self._chance.sample(range(ACCOUNTS), 2)
        amount = self._chance.randint(1, 1000)
        number = self._model.begin("transfer", ((source, target, amount),))
        self._model.transfers[number] = (source, target, amount)
        add = "UPDATE account SET balance = balance + $1 WHERE id = $2"
        statements = [
            Statement(add, [-amount, source]),
            Statement(add, [amount, target]),
            Statement(
                "INSERT INTO ledger VALUES ($1, $2, $3, $4)", [number, source, target, amount]
            ),
        ]
        self._chance.shuffle(statements)
        await self._write(number, lambda: self._client.transaction(statements))

    async def _batch(self) -> None:
        size = self._chance.randint(2, 6)
        rows: Rows = tuple((item, "x" * self._chance.randint(0, 300)) for item in range(size))
        number = self._model.begin("batch", rows)
        values = ", ".join(f"({number}, {item}, '{text}')" for item, text in rows)
        await self._write(number, lambda: self._client.query(f"INSERT INTO batch VALUES {values}"))

    async def _ticket(self) -> None:
        number = self._model.begin("ticket", (("ticket",),))
        sql = "INSERT INTO ticket VALUES ($1, nextval('counter')) RETURNING number"
        result = await self._write(number, lambda: self._client.query(sql, [number]))
        ticket = result.rows[0][0]
        self._model.give(ticket)
        self._model.tickets[number] = ticket

    async def _number(self) -> None:
        result = await self._client.query("SELECT nextval('counter') AS number")
        self._model.give(result.rows[0][0])

    async def _look(self) -> None:
        last = self._model.last
        numbers = list(range(max(1, last - 8), last + 2))
        seen = await self._client.query("SELECT id FROM ledger WHERE id = ANY($1)", [numbers])
        for (number,) in seen.rows:
            self._model.see(number)

    async def _table(self) -> None:
        old = self._old("table")
        if old is not None:
            await self._remove(old, lambda: self._client.query(f"DROP TABLE made_{old}"))
            return
        rows: Rows = tuple((n,) for n in range(self._chance.randint(1, 5)))
        number = self._model.begin("table", rows)
        values = ", ".join(f"({n})" for (n,) in rows)
        statements = [
            f"CREATE TABLE made_{number} (n integer PRIMARY KEY)",
            f"INSERT INTO made_{number} VALUES {values}",
        ]
        await self._write(number, lambda: self._client.transaction(statements))
        self._mine["table"].append(number)

    # --- control plane ---

    async def _database(self) -> None:
        old = self._old("database")
        if old is not None:
            await self._remove(old, lambda: self._client.delete_database(f"made-{old}"))
            return
        number = self._model.begin("database", (("database",),))
        await self._write(number, lambda: self._client.create_database(f"made-{number}"))
        self._mine["database"].append(number)

    async def _key(self) -> None:
        old = self._old("key")
        if old is not None:
            await self._remove(old, lambda: self._client.revoke_key(self._key_ids[old]))
            return
        number = self._model.begin("key", (("key",),))
        made = await self._write(number, lambda: self._client.create_key(f"made-{number}"))
        self._key_ids[number] = made["id"]
        self._mine["key"].append(number)

    # --- how a request ends ---

    def _old(self, kind: str) -> int | None:
        mine = self._mine[kind]
        return mine.pop(0) if len(mine) > self._chance.randint(0, KEPT) else None

    async def _write(self, number: int, send: Callable[[], Awaitable[Any]]) -> Any:
        try:
            answer = await send()
        except QserverError as error:
            if error.applied is not Applied.UNKNOWN:
                self._model.refuse(number)
            raise
        self._model.acknowledge(number)
        return answer

    async def _remove(self, number: int, send: Callable[[], Awaitable[Any]]) -> None:
        self._model.begin_removal(number)
        try:
            await send()
        except QserverError as error:
            if error.applied is not Applied.UNKNOWN:
                self._model.refuse(number, Presence.THERE)
            raise
        self._model.acknowledge(number, Presence.ABSENT)
