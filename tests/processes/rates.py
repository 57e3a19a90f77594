"""The rate limit of an organization whose requests go to all processes at once.

A request counts at some moment between its sending and its answer. So these are certain:

    too many   more than the limit were accepted that were sent and answered within one window
    too few    one was refused, though fewer than the limit may have counted in its window
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

import trio

from qserver.limits import RATE_WINDOW_SECONDS, REQUESTS_PER_WINDOW_FREE
from tests.processes.machine import Machine, until
from tests.processes.wire import Lost, Wire, query

CONNECTIONS: Final = 6
SETTINGS: Final = {"QSERVER_OPEN_SIGNUP": "1", "QSERVER_SIGNUPS_PER_ADDRESS": "1000"}
STRICTER_SECONDS: Final = 0.5
"""Processes count together by quarters of a second."""


@dataclass(frozen=True, slots=True)
class Asked:
    sent: float
    answered: float
    status: int | None
    """None: no answer came, or that a process has died; it may count, and twice if it moved."""


@dataclass(slots=True)
class Report:
    asked: list[Asked] = field(default_factory=list)
    kills: int = 0

    def problems(self, limit: int = REQUESTS_PER_WINDOW_FREE) -> list[str]:
        accepted = [each for each in self.asked if each.status not in (None, 429)]
        counted = [each for each in self.asked if each.status != 429]
        found = []
        for first in accepted:
            end = first.sent + RATE_WINDOW_SECONDS
            within = sum(first.sent <= each.sent and each.answered < end for each in accepted)
            if within > limit:
                found.append(f"{within} requests were accepted within a window")
        window = RATE_WINDOW_SECONDS + STRICTER_SECONDS
        for refused in self.asked:
            if refused.status == 429:
                begin = refused.sent - window
                may_count = sum(
                    2 if each.status is None else 1
                    for each in counted
                    if each.answered >= begin and each.sent <= refused.answered
                )
                if may_count < limit:
                    found.append(f"one was refused when {may_count} could count")
        return found

    def __str__(self) -> str:
        kinds = [each.status for each in self.asked]
        found = self.problems()
        lines = [
            f"requests of a free organization: {kinds.count(200)} accepted,"
            f" {kinds.count(429)} refused, {kinds.count(None)} lost; {self.kills} kills",
            *(f"PROBLEM: {each}" for each in found[:5]),
        ]
        return "\n".join(lines)


class Spender:
    """Sends as much as it can from many connections, which go to all processes."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self._machine = machine
        self._chance = Random(seed)
        self._databases: list[str] = []
        self.report = Report()

    async def run(self, requests: int, kills: int = 0, seconds: float = 0.0) -> Report:
        """Send at least so many requests, for at least so long."""
        async with self._machine.connected() as wire:
            made = await wire.made("/v1/signup", organization=f"free{self._chance.getrandbits(40)}")
            wire.key = made["key"]
            for number in range(self._machine.count):
                began = trio.current_time()
                record = await wire.made("/v1/databases", name=f"d{number}")
                self.report.asked.append(Asked(began, trio.current_time(), 201))
                self._databases.append(record["name"])
            end = trio.current_time() + seconds
            async with trio.open_nursery() as nursery:
                for _ in range(CONNECTIONS):
                    nursery.start_soon(self._spend, wire.key, requests, end)
                for part in range(kills):
                    share = requests * (part + 1) // (kills + 2)
                    await until(partial(self._has_asked, share), "nothing is answered")
                    await self._machine.kill_process(part % self._machine.count)
                    self.report.kills += 1
        return self.report

    def _has_asked(self, requests: int) -> bool:
        return len(self.report.asked) >= requests

    async def _spend(self, key: str, requests: int, end: float) -> None:
        async with self._machine.connected(key) as wire:
            while not self._has_asked(requests) or trio.current_time() < end:
                await self._ask(wire)

    async def _ask(self, wire: Wire) -> None:
        began = trio.current_time()
        status: int | None = None
        try:
            database = self._chance.choice(self._databases)
            answer = await wire.send(query("SELECT 1 AS n", database=database))
            status = None if answer.is_unknown else answer.status
        except Lost:
            await trio.sleep(0.01)
        self.report.asked.append(Asked(began, trio.current_time(), status))
