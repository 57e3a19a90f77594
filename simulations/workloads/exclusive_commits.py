"""Exclusive commits: long work on one hot row that gets one, where things go wrong.

A request that has conflicted too often gets an exclusive commit, and no other commits until it is
returned. Meanwhile work raises, its deadline passes, or its client leaves; the same happens to
short work when the coordinator reruns it. In every case the exclusive commit must be returned, work
that reported failure must leave nothing, and the others must go on. The clock goes on while work
runs.
"""

from __future__ import annotations

from typing import Final

import trio

from qserver.errors import CheckViolation, QserverError, QueryCanceled
from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table
from simulations.world import ACTOR

LONG: Final = 1.0
STEP_SECONDS: Final = 0.01
"""How long a step of long work takes."""


class ExclusiveCommits(Workload):
    name = "exclusive_commits"

    async def setup(self, service: Service) -> None:
        def work(transaction: Transaction) -> None:
            counters = create_table(transaction, "counters", "id", "count")
            create_table(transaction, "marks", "number", "count")
            transaction.insert(counters, (0, 0))

        await service.transact(work)

    async def transaction(self, service: Service, number: int) -> None:
        world = service.world
        steps = self.chance.choice((0, 0, 1, 2, 4))
        fails = self.chance.choice(
            ("never", "never", "in an exclusive commit", "in an exclusive commit", "again")
        )
        patience = self.chance.choice((None, None, 0.02, 0.1, LONG))
        leaves_after = self.chance.choice((None, None, None, 0.05, 0.2, LONG))
        deadline = float("inf") if patience is None else trio.current_time() + patience

        impatient = LONG in (patience, leaves_after)

        def work(transaction: Transaction) -> Body:
            """Count up, and leave a mark; raise where planned, after the writes."""
            again = ACTOR.get() == "coordinator"
            counters, marks = transaction.table("counters"), transaction.table("marks")
            row = transaction.get(counters, (0,))
            assert row is not None
            transaction.put(counters, (0, row[1] + 1))
            for _ in range(steps):
                # A patient client loses its patience only in the exclusive commit that it waited
                # for.
                world.spend(LONG if world.has_exclusive_commit() and impatient else STEP_SECONDS)
                yield
            transaction.insert(marks, (number, row[1] + 1))
            if fails == "in an exclusive commit" and world.has_exclusive_commit():
                world.reach("work raised in an exclusive commit")
                raise CheckViolation("this work fails in an exclusive commit")
            if fails == "again" and again:
                world.reach("work raised where the coordinator ran it again")
                raise CheckViolation("this work fails where it is run again")
            if again and trio.current_time() >= deadline:
                world.reach("a deadline passed where the coordinator ran the work again")
                raise QueryCanceled("canceling statement due to statement timeout")

        with trio.move_on_after(float("inf") if leaves_after is None else leaves_after) as scope:
            try:
                retries = self.chance.choice((0, 1, 1, 1, 2))
                await service.transact(work, deadline=deadline, max_retries=retries)
            except QserverError as error:
                self._judge(service, error, number, fails, patience)
                self.book.note(number, error)
            else:
                self.book.note(number, None)
        if scope.cancelled_caught:
            if world.broke_off_exclusive_commit():
                world.reach("a client left in an exclusive commit")
            self.book.unknown[number] = None

    def _judge(
        self,
        service: Service,
        error: QserverError,
        number: int,
        fails: str,
        patience: float | None,
    ) -> None:
        expected = service.world.explains(error)
        if isinstance(error, QueryCanceled):
            expected = patience is not None
            if service.world.broke_off_exclusive_commit():
                service.world.reach("a deadline passed in an exclusive commit")
        elif isinstance(error, CheckViolation):
            expected = fails != "never"
        self.expect(expected, f"an error of {number} that nothing explains: {error!r}")

    async def check(self, service: Service) -> None:
        count, marks = (await service.read(everything)).result
        numbers = [number for number, _ in marks]
        self.expect(
            sorted(each for _, each in marks) == list(range(1, count + 1)),
            f"the counter is {count}, the marks are {marks}",
        )
        self.problems += self.book.compare(numbers, service)


def everything(transaction: Transaction) -> tuple[int, list[tuple[int, ...]]]:
    row = transaction.get(transaction.table("counters"), (0,))
    assert row is not None
    return row[1], transaction.rows(transaction.table("marks"))
