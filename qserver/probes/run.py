"""Runs a probe in a scratch database: its claims in order, until the first failure.

    Probe ── steps: claims, or a function ──► Run ──► Step, Step, Step ✗ ──► ProbeResult "fail"

A probe never raises: if the database answers wrongly, restarts, hangs or fails in any other way,
the probe fails, and its last step says how.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec
import trio

from qserver.durability.port import Log
from qserver.engine.world import World
from qserver.errors import QserverError
from qserver.limits import PROBE_SECONDS_MAX
from qserver.probes.open_transaction import OpenTransaction
from qserver.probes.steps import AnyStep, SqlStep, Step, TransactionStep, judge
from qserver.query.scratch import scratch_database
from qserver.query.sql_database import Result, SqlDatabase, Statement


class ProbeResult(msgspec.Struct, frozen=True):
    """The outcome of a probe."""

    name: str
    status: Literal["pass", "fail"]
    duration_us: int
    steps: list[Step]


class OpensScratch(Protocol):
    """Opens a database for a probe: `scratch_database`, or a test's replacement."""

    def __call__(
        self, world: World, *, log: Log | None = None
    ) -> AbstractAsyncContextManager[SqlDatabase]: ...


class StepFailed(Exception):  # ends the probe; the steps hold the failure
    """A claim does not hold."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One feature and its proof: claims to run in order, or a function that makes them."""

    name: str
    category: str
    description: str
    steps: tuple[AnyStep, ...] | Callable[[Run], Awaitable[None]]


class Run:
    """One run of a probe, with its own database."""

    def __init__(self, database: SqlDatabase, world: World, opens: OpensScratch) -> None:
        self.database = database
        self.world = world
        self.steps: list[Step] = []
        self._opens = opens

    async def perform(self, *steps: AnyStep) -> None:
        """Run each step as a request of its own."""
        for step in steps:
            if isinstance(step, TransactionStep):
                await self._perform_together(step.steps)
            else:
                self.note(judge(step, await self._outcome(step)))

    async def _outcome(self, step: SqlStep) -> Result | QserverError:
        try:
            return await self.database.execute(
                step.sql, step.parameters, timeout_ms=step.timeout_ms, max_rows=step.max_rows
            )
        except QserverError as error:
            return error

    async def _perform_together(self, steps: tuple[SqlStep, ...]) -> None:
        statements = [Statement(step.sql, step.parameters) for step in steps]
        try:
            outcome = await self.database.transaction(statements)
        except QserverError as error:
            failed = error.statement or 0
            for step in steps[:failed]:
                self.note(Step(step.sql, True, "undone with the transaction"))
            self.note(judge(steps[failed], error))
            return
        for step, result in zip(steps, outcome.results, strict=True):
            self.note(judge(step, result))

    def check(self, what: str, ok: bool, found: str) -> None:
        """Note a claim that is not a statement, with the finding."""
        self.note(Step(what, ok, found if ok else f"expected otherwise, found {found}"))

    def note(self, step: Step) -> None:
        self.steps.append(step)
        if not step.ok:
            raise StepFailed(step.detail)

    @asynccontextmanager
    async def overlapping(
        self, *names: str, max_retries: int = 0
    ) -> AsyncIterator[list[OpenTransaction]]:
        """Begin transactions; the end of the block drops those still open."""
        async with trio.open_nursery() as nursery:
            opened = []
            for name in names:
                transaction = OpenTransaction(
                    name, self.database, self.world, self.note, max_retries
                )
                nursery.start_soon(transaction.run)
                await transaction.begun.wait()
                opened.append(transaction)
            yield opened
            nursery.cancel_scope.cancel()

    @asynccontextmanager
    async def reopened(self, log: Log) -> AsyncIterator[None]:
        """Use a database on this log instead of the run's own, during the block."""
        own = self.database
        async with self._opens(self.world, log=log) as database:
            self.database = database
            try:
                yield
            finally:
                self.database = own


async def run_one(
    probe: Probe,
    world: World,
    *,
    clock: Callable[[], float] = trio.current_time,
    opens: OpensScratch = scratch_database,
) -> ProbeResult:
    """Run a probe in a scratch database. `clock` counts seconds."""
    began = clock()
    steps: list[Step] = []
    with trio.move_on_after(PROBE_SECONDS_MAX) as scope:
        try:
            async with opens(world) as database:
                run = Run(database, world, opens)
                steps = run.steps
                if callable(probe.steps):
                    await probe.steps(run)
                else:
                    await run.perform(*probe.steps)
        except Exception as error:
            if all(step.ok for step in steps):
                steps.append(Step(probe.name, False, f"expected no exception, found {error!r}"))
    if scope.cancelled_caught:
        steps.append(Step(probe.name, False, f"did not end within {PROBE_SECONDS_MAX:g} seconds"))
    passed = bool(steps) and all(step.ok for step in steps)
    duration_us = round((clock() - began) * 1_000_000)
    return ProbeResult(probe.name, "pass" if passed else "fail", duration_us, steps)
