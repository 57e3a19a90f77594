"""Idempotent requests in SQL: clients send each again and again, and count the effects.

    orders   one row for each order that was applied; it has no key that could refuse a second
    stock    counts the orders of a thing, and gives each its number

An order has a name of its own. Its client sends it until it has an answer, through crashes, lost
connections and conflicts, sometimes twice at the same time, and sometimes once more after it has
the answer. All answers of an order are the same bytes, and each order is there once. So the count
of a thing is the number of its orders, and no two orders of a thing have the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import trio

from qserver.engine.gateway import Outcome
from qserver.errors import IdempotencyMismatch, QserverError, RequestInProgress
from qserver.query.results import Answered, Once, Result, Statement
from qserver.query.sql_database import SqlDatabase
from simulations.faults import Profile
from simulations.service import Service
from simulations.web.front import Front
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

THINGS: Final = 3
TRIES: Final = 4
TWICE_AT_ONCE: Final = 0.3
ONCE_MORE: Final = 0.5
ANOTHER_BODY: Final = 0.1
BY_HTTP: Final = 0.6
KEPT_SECONDS: Final = 100_000.0

ORDER: Final = "INSERT INTO orders VALUES ($1, $2)"
COUNT: Final = "UPDATE stock SET hits = hits + 1 WHERE thing = $1 RETURNING hits"
BOTH: Final = """WITH counted AS (UPDATE stock SET hits = hits + 1 WHERE thing = $1 RETURNING hits)
    INSERT INTO orders SELECT $1, $2 FROM counted RETURNING (SELECT hits FROM counted) AS hits"""
ORDERS: Final = "SELECT number, thing FROM orders"
STOCK: Final = "SELECT thing, hits FROM stock"


class SqlOnce(SqlWorkload):
    name = "sql_once"
    tables = (
        "CREATE TABLE orders (thing integer, number integer)",
        "CREATE TABLE stock (thing integer PRIMARY KEY, hits integer NOT NULL)",
        f"INSERT INTO stock SELECT thing, 0 FROM generate_series(1, {THINGS}) AS s(thing)",
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self.answers: dict[int, bytes] = {}
        """The answer of each order that has one."""
        self.told: dict[tuple[int, int], int] = {}
        """Which order was told that a thing has so many."""
        self.crashes_before: dict[int, int] = {}

    async def transaction(self, service: Service, number: int) -> None:
        thing = self.chance.randint(1, THINGS)
        order = Order(self, number, thing)
        for _ in range(TRIES):
            if self.chance.random() < TWICE_AT_ONCE:
                async with trio.open_nursery() as nursery:
                    for _ in range(2):
                        nursery.start_soon(self._send, service, order)
            else:
                await self._send(service, order)
            if number in self.answers and self.chance.random() >= ONCE_MORE:
                break
            await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 10)

    async def _send(self, service: Service, order: Order) -> None:
        """Send an order; or, if it was answered, sometimes another body under its name."""
        number, known = order.number, order.number in self.answers
        other = known and self.chance.random() < ANOTHER_BODY
        crashes = service.crashes
        try:
            outcome = await order.sent(service, other)
        except IdempotencyMismatch:
            self.expect(other, f"order {number} was taken for another")
            service.world.reach("another request had the name of a stored answer")
            return
        except RequestInProgress:
            service.world.reach("a request was refused because the same was running")
            return
        except QserverError as error:
            self._judge_error(service, error, ())
            return
        self.expect(not other, f"another body was taken for order {number}")
        answered: Answered = outcome.result
        first = self.answers.setdefault(number, answered.text)
        same = answered.text == first
        self.expect(same, f"order {number} was answered {first!r}, then {answered.text!r}")
        self.expect(answered.replayed or not known, f"order {number} was applied again")
        if answered.replayed:
            service.world.reach("a stored answer was given again")
            if self.crashes_before.get(number, crashes) < crashes:
                service.world.reach("a stored answer was given again after a crash")
        self.crashes_before.setdefault(number, crashes)
        told = order.thing, order.hits(answered.text)
        who = self.told.setdefault(told, number)
        self.expect(who == number, f"orders {who} and {number} were both told {told}")

    async def check_rows(self, service: Service) -> None:
        orders = (await self.must(service, ORDERS)).rows
        numbers = [number for number, _ in orders]
        twice = sorted({number for number in numbers if numbers.count(number) > 1})
        self.expect(not twice, f"orders were applied twice: {twice}")
        lost = sorted(self.answers.keys() - set(numbers))
        self.expect(not lost, f"orders were answered and are not there: {lost}")
        for thing, hits in (await self.must(service, STOCK)).rows:
            made = sum(each == thing for _, each in orders)
            self.expect(made == hits, f"{made} orders of {thing}, and it has {hits} hits")


class Order:
    """One order: always the same request, by HTTP or straight to the engine."""

    def __init__(self, workload: SqlOnce, number: int, thing: int) -> None:
        self._workload = workload
        self.number = number
        self.thing = thing
        chance = workload.chance
        self._by_http = chance.random() < BY_HTTP
        self._single = chance.random() < 0.4
        self._long = workload.is_long()

    def _statements(self, other: bool) -> list[Statement]:
        number = -self.number if other else self.number
        if self._single:
            return [Statement(BOTH, [self.thing, number])]
        pause = [PAUSE] if self._long else []
        ordered = Statement(ORDER, [self.thing, number])
        return [Statement(COUNT, [self.thing]), *pause, ordered]

    async def sent(self, service: Service, other: bool) -> Outcome:
        if self._by_http:
            return await service.repeat(lambda front: self._post(front, other))
        return await service.ask_sql(lambda database: self._run(database, other))

    async def _post(self, front: Front, other: bool) -> Outcome:
        statements = self._statements(other)
        self._workload._hint(front.sql)
        answered, version = await self._workload.http.write_once(
            front, statements, f"order {self.number}", single=self._single
        )
        return Outcome(answered, version)

    async def _run(self, database: SqlDatabase, other: bool) -> Outcome:
        self._workload._hint(database)
        name, fingerprint = b"order %d" % self.number, b"other" if other else b"same"
        once = Once(name, fingerprint, KEPT_SECONDS, _rendered)
        done = await database.transaction(
            self._statements(other), max_retries=self._workload.profile.max_retries, once=once
        )
        return Outcome(done.answered, done.version)

    def hits(self, text: bytes) -> int:
        """Return the number in the order's answer."""
        if self._by_http:
            answer: Any = msgspec.json.decode(text)
            result = answer if self._single else answer["results"][0]
            ((hits,),) = [tuple(row.values()) for row in result["rows"]]
        else:
            hits = text.split()[0]
        return int(hits)


def _rendered(results: Sequence[Result], retries: int) -> tuple[bytes, bytes]:
    ((hits,),) = results[0].rows
    return b"%d " % hits, b" %d" % retries
