"""A commit that is alone is decided where it is submitted, by the same round as any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from qserver.engine.database import Database
from qserver.engine.mailbox import Reply
from qserver.engine.messages import Answer, Commit, Committed
from qserver.engine.shard import Shard
from qserver.engine.world import OrdinaryWorld
from qserver.errors import OutcomeUnknown
from qserver.storage import writes
from tests.engine import counters, fakes


class Steps(trio.abc.Instrument):
    """Which tasks have run, and how often."""

    def __init__(self) -> None:
        self.of_task: Counter[str] = Counter()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.of_task[task.name.rpartition(".")[2]] += 1


@asynccontextmanager
async def opened_ordinarily(reports: list[str] | None = None) -> AsyncIterator[Database]:
    def report(text: str, error: Exception) -> None:
        if reports is not None:
            reports.append(repr(error))

    world = OrdinaryWorld(lambda: 1000.0, Random(1), report)
    async with fakes.opened(None, world, counters=4) as database:
        await trio.testing.wait_all_tasks_blocked()
        yield database


def rounds(database: Database) -> int:
    generation = database.statistics().generation
    assert generation is not None
    return generation.coordinator.rounds


async def test_a_lone_commit_wakes_no_task_but_the_log_writers_and_its_own() -> None:
    async with opened_ordinarily() as database:
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        await database.transact(counters.increment(1))
        trio.lowlevel.remove_instrument(steps)
        assert "_act" in steps.of_task, "the actors' tasks are seen by that name"
        assert steps.of_task["_act"] <= 2, "the log writer takes the round, and waits again"


async def test_commits_that_come_together_share_a_round() -> None:
    async with opened_ordinarily() as database:
        before = rounds(database)
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(database.transact, counters.increment(number))
        assert await counters.total(database) == 4
        assert rounds(database) - before == 2, "the first is alone, the others are not"


async def test_who_is_answered_may_submit_the_next_commit_from_there() -> None:
    """Work that writes nothing is answered before its round has ended."""
    async with opened_ordinarily() as database:
        generation = database._generation
        assert generation is not None
        answers: list[Any] = []

        class Again(Reply[Answer]):
            def put(self, content: Answer) -> None:
                answers.append(content)
                if len(answers) < 3:
                    send(counters.look(0) if len(answers) < 2 else counters.increment(0))

        def send(work: Any) -> None:
            generation.submit(Commit(len(answers) + 1000, None, work, Again()))

        send(counters.look(0))
        assert len(answers) == 1, "the second waits until the first round is over"
        await trio.testing.wait_all_tasks_blocked()
        assert len(answers) == 3 and all(isinstance(each, Committed) for each in answers)
        assert await counters.total(database) == 1


async def test_a_round_that_fails_ends_its_generation_and_not_who_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[str] = []
    async with opened_ordinarily(reports) as database:

        def broken(self: Shard, message: object, *, is_long: bool) -> None:
            raise ZeroDivisionError("a bug")

        with monkeypatch.context() as patch:
            patch.setattr(Shard, "prepare", broken)
            with pytest.raises(OutcomeUnknown):
                await database.transact(counters.increment(1))
        outcome = await database.transact(counters.increment(1))
        assert outcome.result == [1], "nothing of the first was applied"
        assert any("a bug" in report for report in reports)


async def test_a_large_round_is_begun_where_it_is_submitted_and_ended_by_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qserver.storage.find_conflict.CHANGES_AT_ONCE", 2)
    assert writes.CHANGES_AT_ONCE > 2
    async with opened_ordinarily() as database:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.transact, counters.increment(0, 1, 2, 3))
            nursery.start_soon(database.transact, counters.increment(3))
        assert await counters.total(database) == 5
