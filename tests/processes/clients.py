"""Clients of several processes: each request is noted before it is sent.

    Writer     keyed       a transaction with an Idempotency-Key, sent until it is answered
               bulk        rows in bulk, likewise
               plain       an insert, sent once: without an answer it may be there or not
               opened      an open transaction; a commit is asked for until it is answered
               pipelined   several requests at once, to databases of several processes
               look        what was acknowledged is there
    Brancher   makes branches, compares them with their parents, writes them, deletes them
    follow     the feed of a database, through all ends
    watch      a live query, likewise

Some writers stay with the databases of one process, so that others go on while one is away; the
others change theirs with each request, and so does their connection.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, Final

import trio

from qserver.client import TrioClient
from qserver.errors import QserverError
from tests.patience import PATIENCE_SECONDS
from tests.processes.ledger import Followed, Ledger
from tests.processes.machine import KEY, Machine
from tests.processes.wire import Answer, Lost, Reached, Request, Wire, posted, query

PAUSE_SECONDS: Final = 0.02
BRANCHES_MAX: Final = 5
WAYS: Final = {"keyed": 30, "bulk": 12, "plain": 15, "opened": 12, "pipelined": 15, "look": 16}
INSERT: Final = "INSERT INTO entry SELECT $1::bigint, n FROM generate_series(1, $2::int) AS n"
COUNT: Final = "UPDATE counter SET n = n + 1 WHERE client = $1"
SUM: Final = "SELECT count(*) AS n, coalesce(sum(number), 0)::bigint AS s FROM entry"
GONE: Final = "QS030"
TOO_MANY: Final = "QS034"


class Insistent:
    """Sends over one connection, and again over the next."""

    def __init__(self, machine: Reached, ledger: Ledger, chance: Random) -> None:
        self._ledger = ledger
        self._chance = chance
        self._wire = machine.connected()

    async def try_once(self, request: Request) -> Answer | None:
        """Return the answer; None if it is not known what became of the request."""
        try:
            return self._judged(request, await self._wire.send(request))
        except Lost as lost:
            self._note(request, lost)
            return None

    async def insist(self, request: Request) -> Answer:
        """Send until it is answered."""
        while True:
            answer = await self.try_once(request)
            if answer is not None and not answer.is_unknown:
                self._ledger.replayed += "idempotency-replayed" in answer.headers
                return answer
            self._ledger.repeated += 1
            await trio.sleep(PAUSE_SECONDS)

    def _note(self, request: Request, lost: Lost) -> None:
        self._ledger.half_answers += lost.is_half
        if lost.is_silent:
            self._ledger.problems.append(f"nobody answers {request.method} {request.path}")

    def _judged(self, request: Request, answer: Answer) -> Answer:
        if answer.status == 500:
            self._ledger.problems.append(f"{request.path} was answered with {answer.body!r}")
        return answer

    async def run(self, step: Callable[[], Awaitable[None]]) -> None:
        async with self._wire:
            while not self._ledger.is_over:
                await step()

    def close(self) -> None:
        """After the last question that `run` did not ask."""
        self._wire.close()


class Writer(Insistent):
    def __init__(
        self,
        machine: Reached,
        ledger: Ledger,
        chance: Random,
        databases: Sequence[str],
        number: int,
    ) -> None:
        super().__init__(machine, ledger, chance)
        self._databases = databases
        self._number = number
        self._mine: list[int] = []

    async def write(self) -> None:
        (way,) = self._chance.choices(list(WAYS), list(WAYS.values()))
        database = self._chance.choice(self._databases)
        await getattr(self, f"_{way}")(database)
        self._ledger.answers[database] += 1

    async def _keyed(self, database: str) -> None:
        number, request = self._keyed_request(database)
        self._expect(number, await self.insist(request))

    def _keyed_request(self, database: str) -> tuple[int, Request]:
        rows = self._chance.randint(1, 4)
        number = self._ledger.begin(database, rows)
        statements = [
            {"sql": INSERT, "params": [number, rows]},
            {"sql": COUNT, "params": [self._number]},
        ]
        body = {"statements": statements, "database": database}
        return number, posted("/v1/transaction", body, f"write-{number}")

    async def _bulk(self, database: str) -> None:
        rows = self._chance.choice([2, 20, 400])
        number = self._ledger.begin(database, rows)
        lines = (json.dumps({"number": number, "item": item}) for item in range(rows))
        headers = (
            ("Content-Type", "application/x-ndjson"),
            ("Idempotency-Key", f"write-{number}"),
            ("X-Database", database),
        )
        request = Request("POST", "/v1/tables/entry/rows", "\n".join(lines).encode(), headers)
        self._expect(number, await self.insist(request), counts=False)

    async def _plain(self, database: str) -> None:
        rows = self._chance.randint(1, 3)
        number = self._ledger.begin(database, rows)
        answer = await self.try_once(query(INSERT, [number, rows], database=database))
        if answer is not None and not answer.is_unknown:
            self._expect(number, answer, counts=False)

    async def _opened(self, database: str) -> None:
        number = self._ledger.begin(database, 2)
        opened = await self.insist(
            posted("/v1/transaction/open", {"database": database, "idle_ms": 20_000})
        )
        if opened.code == TOO_MANY:
            self._ledger.refuse(number)
            return
        name = opened.json["transaction"]["id"]
        for _ in range(2):
            done = await self.try_once(query(INSERT, [number, 1], transaction=name))
            if done is None or not done.is_good:
                self._ledger.refuse(number)  # it is never committed
                return
        commit = Request("POST", f"/v1/transaction/{name}/commit")
        ended = await self.insist(commit)
        if ended.code == GONE:
            self._ledger.refuse(number)
        else:
            self._expect(number, ended, counts=False)

    async def _pipelined(self, _: str) -> None:
        some = [self._keyed_request(self._chance.choice(self._databases)) for _ in range(4)]
        waiting = dict(some)
        try:
            await self._wire.begin([request for _, request in some])
            for number, request in some:
                answer = self._judged(request, await self._wire.receive())
                if not answer.is_unknown:
                    del waiting[number]
                    self._expect(number, answer)
                    self._ledger.pipelined += 1
        except Lost as lost:
            self._note(some[0][1], lost)
        for number, request in waiting.items():
            self._expect(number, await self.insist(request))

    async def _look(self, database: str) -> None:
        if not self._mine:
            return
        number = self._chance.choice(self._mine[-50:])
        database = self._ledger.writes[number].database
        sql = "SELECT count(*) AS n FROM entry WHERE number = $1"
        answer = await self.try_once(query(sql, [number], database=database))
        if answer is not None and not answer.is_unknown:
            self._ledger.see(number, answer.rows[0][0])

    def _expect(self, number: int, answer: Answer, *, counts: bool = True) -> None:
        """What was sent until it was answered must have succeeded."""
        if answer.is_good:
            self._acknowledge(number, self._number if counts else None)
        elif answer.code == "40001":
            self._ledger.refuse(number)
        else:
            self._ledger.refuse(number)
            self._ledger.problems.append(f"write {number} was refused: {answer.body!r}")

    def _acknowledge(self, number: int, client: int | None = None) -> None:
        self._ledger.acknowledge(number, client)
        self._mine.append(number)


class Brancher(Insistent):
    """Makes branches. Of each it knows the rows and their sum."""

    def __init__(
        self, machine: Reached, ledger: Ledger, chance: Random, databases: Sequence[str]
    ) -> None:
        super().__init__(machine, ledger, chance)
        self._databases = databases
        self.held: dict[str, list[int]] = {}
        self._made = 0

    async def branch(self) -> None:
        if len(self.held) >= BRANCHES_MAX:
            await self._delete(next(iter(self.held)))
        elif self.held and self._chance.random() < 0.6:
            await self._grow(self._chance.choice(list(self.held)))
        else:
            await self._make(self._chance.choice(self._databases))

    async def _make(self, parent: str) -> None:
        self._made += 1
        name = f"branch{self._made}"
        answer = await self.insist(posted("/v1/databases", {"name": name, "branch_of": parent}))
        if answer.status == 409:  # made when no answer came
            answer = await self.insist(Request("GET", f"/v1/databases/{name}"))
            if answer.status == 404 or answer.json["state"] != "ready":
                return  # cut short, which is undone
        if not answer.is_good or "branch_version" not in answer.json:
            self._problem(f"{name} of {parent} was not made: {answer.body!r}")
            return
        version = answer.json["branch_version"]
        then = await self.insist(query(SUM, database=parent, as_of=version))
        self.held[name] = then.rows[0]
        self._ledger.branches += 1
        await self.look(name)

    async def _grow(self, name: str) -> None:
        number = self._chance.randint(1, 1000)
        body = query(INSERT, [number, 2], f"{name}-{self._chance.random()}", database=name)
        answer = await self.insist(body)
        if not answer.is_good:
            self._problem(f"{name} was not written: {answer.body!r}")
        n, total = self.held[name]
        self.held[name] = [n + 2, total + 2 * number]
        await self.look(name)

    async def look(self, name: str) -> None:
        answer = await self.insist(query(SUM, database=name))
        if not answer.is_good or answer.rows[0] != self.held[name]:
            self._problem(f"{name} holds {answer.body!r}, not {self.held[name]}")

    async def _delete(self, name: str) -> None:
        answer = await self.insist(Request("DELETE", f"/v1/databases/{name}"))
        if answer.status not in (204, 404):
            self._problem(f"{name} was not deleted: {answer.body!r}")
        answer = await self.insist(query("SELECT 1 AS one", database=name))
        if answer.status != 404:
            self._problem(f"{name} is deleted, and answers {answer.body!r}")
        del self.held[name]

    def _problem(self, what: str) -> None:
        self._ledger.problems.append(what)


async def follow(machine: Machine, followed: Followed) -> None:
    """Read the changes of a database until this is cancelled."""
    async with TrioClient(machine.url, KEY, retry_seconds=PATIENCE_SECONDS) as client:
        database, since = followed.database, followed.version
        async with client.changes(since, ["entry"], database) as feed:
            async for version in feed:
                rows = [each for each in version.changes if each["op"] != "schema"]
                inserted = [each["after"]["number"] for each in rows]
                followed.take(version.version, inserted)


async def watch(machine: Machine, database: str, seen: dict[str, list[Any]]) -> None:
    """Keep the sums of a database by a live query, until this is cancelled."""
    async with TrioClient(machine.url, KEY, retry_seconds=PATIENCE_SECONDS) as client:
        while True:
            try:
                async with client.live(SUM, database=database) as live:
                    seen[database] = [list(each) for each in live.rows]
                    async for _ in live:
                        seen[database] = [list(each) for each in live.rows]
            except QserverError:
                await trio.sleep(PAUSE_SECONDS)


async def settled(wire: Wire, request: Request) -> Answer:
    """The answer, as soon as there is one."""
    while True:
        try:
            answer = await wire.send(request)
        except Lost:
            await trio.sleep(PAUSE_SECONDS)
            continue
        if not answer.is_unknown:
            return answer
        await trio.sleep(PAUSE_SECONDS)
