"""What was revoked over one connection is refused on all others from its answer on.

Each process has a connection that rests with it, at a database of its own. A round changes
something over another connection; when that is answered each of them is asked at once:

    key          revoked                                    401
    session      ended                                      401
    its key      revoked, while a session of it is asked    401
    scopes       one is taken away                          403
    statements   the text of one is changed                 the new one answers
    renamed      a database                                 404 for the old name
    deleted      a database                                 404

A change without an answer promises nothing: it is sent again until one comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import trio

from tests.processes.machine import Machine
from tests.processes.wire import Answer, JsonObject, Lost, Request, Wire, posted

PAUSE_SECONDS: Final = 0.02
KINDS: Final = ("key", "session", "its_key", "scopes", "statements", "renamed", "deleted")


class Again(Exception):
    """It is not known what a change has done: another round."""


@dataclass(slots=True)
class Report:
    tries: Counter[str] = field(default_factory=Counter)
    """Requests that had to be refused, by kind of change."""
    kills: int = 0
    unknown: int = 0
    """Rounds without an answer to the change."""
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.tries.items())
        lines = [
            f"refused from the answer on: {self.tries.total():,} ({kinds})",
            f"processes killed: {self.kills}; changes without an answer: {self.unknown}",
        ]
        return "\n".join([*lines, *(f"PROBLEM: {each}" for each in self.problems[:5])])


class Revocations:
    """Rounds over all processes; `kill_every` of them one is killed."""

    def __init__(self, machine: Machine, seed: int, kill_every: int | None = None) -> None:
        self._machine = machine
        self._chance = Random(seed)
        self._kill_every = kill_every
        self._homes: dict[int, str] = {}
        self._resting: dict[int, Wire] = {}
        self._number = 0
        self.report = Report()

    async def run(self, tries: int, tell: Callable[[str], None] = lambda line: None) -> Report:
        owners = await self._machine.make_databases(6, "home")
        self._homes = {owner: name for name, owner in owners.items()}
        self._resting = {each: self._machine.connected() for each in self._homes}
        async with self._machine.connected() as self._wire:
            while self.report.tries.total() < tries and not self.report.problems:
                await self._round()
                tell(f"{self.report.tries.total():,} refused")
        for wire in self._resting.values():
            wire.close()
        return self.report

    async def _round(self) -> None:
        self._number += 1
        kind = KINDS[self._number % len(KINDS)]
        try:
            async with trio.open_nursery() as nursery:
                if self._kill_every and self._number % self._kill_every == 0:
                    self.report.kills += 1
                    nursery.start_soon(self._kill)
                await getattr(self, f"_{kind}")()
        except* Again:
            self.report.unknown += 1

    async def _kill(self) -> None:
        await trio.sleep(self._chance.uniform(0, 0.05))
        await self._machine.kill_process(self._chance.randrange(self._machine.count))

    # --- rounds ---

    async def _key(self) -> None:
        record = await self._new_key(scopes=["data:read"])
        await self._expect_all(record["key"], 200)
        await self._revoke(record["id"])
        await self._expect_all(record["key"], 401, "key")

    async def _session(self) -> None:
        token, key_id = await self._new_session()
        await self._change(Request("DELETE", "/v1/session"), 204, token)
        await self._expect_all(token, 401, "session")
        await self._revoke(key_id)  # there may be so many

    async def _its_key(self) -> None:
        token, key_id = await self._new_session()
        await self._revoke(key_id)
        await self._expect_all(token, 401, "its key")

    async def _scopes(self) -> None:
        record = await self._new_key(scopes=["data:read", "data:write", "schema"])
        key, sql = record["key"], "CREATE TABLE IF NOT EXISTS t (a int)"
        await self._expect_all(key, 200, sql=sql)
        narrowed = {"scopes": ["data:read"]}
        await self._change(_patched(f"/v1/keys/{record['id']}", narrowed), 200)
        await self._expect_all(key, 403, "scopes", sql=sql)
        await self._revoke(record["id"])

    async def _statements(self) -> None:
        databases = list(self._homes.values())
        record = await self._new_key(databases=databases, statements={"one": "SELECT 1 AS n"})
        await self._expect_all(record["key"], 200, statement="one")
        renewed = {"statements": {"one": "SELECT 2 AS n"}}
        await self._change(_patched(f"/v1/keys/{record['id']}", renewed), 200)
        answers = await self._expect_all(record["key"], 200, "statements", statement="one")
        if any(answer.rows != [[2]] for answer in answers):
            self.report.problems.append(f"an old statement was run: {answers}")
        await self._revoke(record["id"])

    async def _renamed(self) -> None:
        before = await self._new_database()
        after = f"{before}-renamed"
        await self._change(_patched(f"/v1/databases/{before}", {"name": after}), 200)
        await self._expect_all(None, 404, "renamed", database=before)
        await self._expect_all(None, 200, database=after)
        await self._expect_all(None, 200)  # connections go home again
        await self._change(Request("DELETE", f"/v1/databases/{after}"), 204)

    async def _deleted(self) -> None:
        name = await self._new_database()
        await self._expect_all(None, 200)
        await self._change(Request("DELETE", f"/v1/databases/{name}"), 204)
        await self._expect_all(None, 404, "deleted", database=name)

    # --- requests ---

    async def _new_key(self, **fields: Any) -> JsonObject:
        answer = await self._change(posted("/v1/keys", {"name": "made", **fields}), 201)
        return answer.json

    async def _revoke(self, key_id: str) -> None:
        await self._change(Request("DELETE", f"/v1/keys/{key_id}"), 204)

    async def _new_session(self) -> tuple[str, str]:
        record = await self._new_key(scopes=["data:read"])
        answer = await self._change(posted("/v1/session", {}), 201, record["key"])
        token: str = answer.json["session"]["token"]
        await self._expect_all(token, 200)
        return token, record["id"]

    async def _new_database(self) -> str:
        name = f"made{self._number}"
        await self._change(posted("/v1/databases", {"name": name}), 201)
        await self._expect_all(None, 200, database=name)
        await self._expect_all(None, 200)
        return name

    async def _change(self, request: Request, status: int, key: str | None = None) -> Answer:
        """Send a change until it is answered as it should be."""
        is_repeated = False
        while True:
            answer = await _sent(self._wire, key, request)
            if answer is not None and answer.status == status and answer.is_good:
                return answer
            if answer is not None:
                if not is_repeated:  # else it may have been done when no answer came
                    self.report.problems.append(f"{request.path} was answered: {answer.body!r}")
                raise Again
            is_repeated = True
            await trio.sleep(PAUSE_SECONDS)

    async def _expect_all(
        self, key: str | None, status: int, kind: str | None = None, **fields: Any
    ) -> list[Answer]:
        """Ask every process at once; all must answer with this status."""
        answers: list[Answer] = []

        async def ask(process: int, wire: Wire) -> None:
            body = {"database": self._homes[process], **fields}
            if "statement" not in body:
                body.setdefault("sql", "SELECT 1 AS n")
            answer = await self._insist(wire, key, posted("/v1/query", body))
            answers.append(answer)
            if answer.status != status or (answer.is_good != (status == 200)):
                self.report.problems.append(
                    f"{kind or 'before'}: process {process} answered {answer.body!r}"
                )

        async with trio.open_nursery() as nursery:
            for process, wire in self._resting.items():
                nursery.start_soon(ask, process, wire)
        if kind is not None:
            self.report.tries[kind] += len(answers)
        return answers

    async def _insist(self, wire: Wire, key: str | None, request: Request) -> Answer:
        while True:
            answer = await _sent(wire, key, request)
            if answer is not None:
                return answer
            await trio.sleep(PAUSE_SECONDS)


async def _sent(wire: Wire, key: str | None, request: Request) -> Answer | None:
    """Send a request with a key; None: no answer came, or one that says to try again."""
    own = wire.key
    wire.key = key or own
    try:
        answer = await wire.send(request)
    except Lost:
        return None
    finally:
        wire.key = own
    return None if answer.is_unknown else answer


def _patched(path: str, body: JsonObject) -> Request:
    made = posted(path, body)
    return made._replace(method="PATCH")
