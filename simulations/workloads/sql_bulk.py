"""Bulk rows by HTTP: clients send each load again and again, and some loads have a bad row.

    parts   the rows of all loads; it has no key that could refuse a second
    places  one row for each place; loads that name the same place write over each other

A load is applied as a whole or not at all. A load with an Idempotency-Key is applied once, however
often it is sent, also twice at the same time and after crashes, and all of its answers are the same
bytes. A load without one is applied as often as it was answered, or more where an outcome is
unknown. Of a load with a bad row nothing is applied, and the error names the row.
"""

from __future__ import annotations

from typing import Final

import msgspec
import trio

from qserver.engine.gateway import Outcome
from qserver.errors import (
    Applied,
    IdempotencyMismatch,
    InvalidTextRepresentation,
    QserverError,
    RequestInProgress,
    SerializationFailure,
)
from qserver.query.results import Answered
from simulations.faults import Profile
from simulations.service import Service
from simulations.web.front import Front
from simulations.workloads.sql_workload import SqlWorkload

ROWS: Final = 6
PLACES: Final = 3
TRIES: Final = 4
TWICE_AT_ONCE: Final = 0.3
ONCE_MORE: Final = 0.5
ANOTHER_BODY: Final = 0.1
KEYED: Final = 0.7
WRONG: Final = 0.2
PLACED: Final = 0.3

PARTS: Final = "SELECT load, part FROM parts"

encode_lines: Final = msgspec.json.Encoder().encode_lines


class SqlBulk(SqlWorkload):
    name = "sql_bulk"
    tables = (
        "CREATE TABLE parts (load integer, part integer)",
        "CREATE TABLE places (place integer PRIMARY KEY, load integer NOT NULL)",
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self.loads: list[Load] = []

    async def transaction(self, service: Service, number: int) -> None:
        load = Load(self, number)
        self.loads.append(load)
        for _ in range(TRIES):
            if self.chance.random() < TWICE_AT_ONCE:
                async with trio.open_nursery() as nursery:
                    for _ in range(2):
                        nursery.start_soon(self._send, service, load)
            else:
                await self._send(service, load)
            if load.answer is not None and self.chance.random() >= ONCE_MORE:
                break
            await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 10)

    async def _send(self, service: Service, load: Load) -> None:
        """Send a load; or, if its answer is stored, sometimes another body under its key."""
        known = load.answer is not None
        other = known and load.key is not None and self.chance.random() < ANOTHER_BODY
        who = f"load {load.number}"
        try:
            outcome = await service.repeat(lambda front: self._post(front, load, other))
        except IdempotencyMismatch:
            self.expect(other, f"{who} was taken for another")
            return
        except RequestInProgress:
            self.expect(load.key is not None, f"{who} has no key, and was refused for it")
            return
        except InvalidTextRepresentation as error:
            self.expect(error.row == load.wrong, f"the wrong row of {who} was told as {error.row}")
            service.world.reach("rows in bulk were refused because of one")
            return
        except QserverError as error:
            load.unknown += error.applied is Applied.UNKNOWN
            self._judge_error(service, error, (SerializationFailure,))
            return
        answered: Answered = outcome.result
        self.expect(not other and load.wrong is None, f"{who} was taken, and is wrong")
        if load.key is None:
            load.answer, load.applied = answered.text, load.applied + 1
            return
        same = load.answer is None or load.answer == answered.text
        self.expect(same, f"{who} was answered {load.answer!r}, then {answered.text!r}")
        self.expect(answered.replayed or not known, f"{who} was applied again")
        load.answer, load.applied = answered.text, 1
        if answered.replayed:
            service.world.reach("rows in bulk were answered with the stored answer")

    async def _post(self, front: Front, load: Load, other: bool) -> Outcome:
        table, query = ("places", b"on_conflict=update") if load.place else ("parts", b"")
        body = encode_lines(load.rows(other))
        answered, version = await self.http.send_rows(front, table, query, body, load.key)
        return Outcome(answered, version)

    async def check_rows(self, service: Service) -> None:
        found: dict[int, list[int]] = {}
        for number, part in (await self.must(service, PARTS)).rows:
            found.setdefault(number, []).append(part)
        for load in self.loads:
            if load.place:
                continue
            parts = found.pop(load.number, [])
            counts = {parts.count(part) for part in range(load.size)}
            self.expect(len(counts) == 1, f"load {load.number} is there in part: {sorted(parts)}")
            times, most = max(counts), load.applied + load.unknown
            if load.key is not None:
                most = min(1, most)
            self.expect(
                load.applied <= times <= most,
                f"load {load.number} is there {times} times, and should be"
                f" {load.applied} to {most}",
            )
        self.expect(not found, f"rows of loads that nobody sent: {sorted(found)}")


class Load:
    """The rows of one request, always the same."""

    def __init__(self, workload: SqlBulk, number: int) -> None:
        chance = workload.chance
        self.number = number
        self.size = chance.randint(1, ROWS)
        self.key = f"load {number}" if chance.random() < KEYED else None
        self.place = chance.randint(1, PLACES) if chance.random() < PLACED else 0
        self.wrong = chance.randint(1, self.size) if chance.random() < WRONG else None
        """The row that is wrong, from 1."""
        self.answer: bytes | None = None
        self.applied = self.unknown = 0

    def rows(self, other: bool) -> list[dict[str, int | str]]:
        number = -self.number if other else self.number
        if self.place:
            rows: list[dict[str, int | str]] = [
                {"place": self.place, "load": number} for _ in range(self.size)
            ]
        else:
            rows = [{"load": number, "part": part} for part in range(self.size)]
        if self.wrong is not None:
            rows[self.wrong - 1]["load"] = "x"
        return rows
