"""Answers that are stored by the commit that they are about, and their sweeper."""

from __future__ import annotations

from functools import partial
from typing import Any

import trio

from qserver.durability.check_snapshot import problems_of
from qserver.engine.answer_sweeper import SweepPolicy, sweep_answers
from qserver.engine.stored_answers import StoredAnswer, find_answer, store_answer
from qserver.storage.transaction import Transaction
from qserver.storage.writes import ANSWERS_TREE
from tests.engine.fakes import HeldLog, Laboratory, opened

NAME = b"name"


def answer(expires: float = 2000.0, fingerprint: bytes = b"request") -> StoredAnswer:
    return StoredAnswer(fingerprint, expires, b'{"version":', b"}")


def storing(
    transaction: Transaction, name: bytes = NAME, expires: float = 2000.0
) -> StoredAnswer | None:
    """Store an answer under a name, or return the one that is there."""
    found = find_answer(transaction, name, 1000.0)
    if found is None:
        store_answer(transaction, name, answer(expires))
    return found


async def test_an_answer_has_the_version_of_its_commit_also_when_it_was_tried_before() -> None:
    async with opened() as database:
        outcomes = []
        snapshot = await database.wait_durable_snapshot()
        for number in range(3):
            name = b"%d" % number
            outcomes.append(await database.transact(partial(storing, name=name)))
            snapshot = await database.wait_durable_snapshot()
            found = find_answer(snapshot, name, 1000.0)
            assert found is not None and found.version == outcomes[-1].version
            assert found.text == b'{"version":%d}' % outcomes[-1].version
        assert [each.version for each in outcomes] == sorted({each.version for each in outcomes})
        assert [*filter(None, problems_of(snapshot))] == []


async def test_of_two_under_one_name_the_second_finds_the_first() -> None:
    async with opened() as database:
        results: list[Any] = []

        def slow(transaction: Transaction) -> Any:
            yield
            return storing(transaction)

        async def one() -> None:
            results.append((await database.transact(slow)).result)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(one)
        assert results.count(None) == 1
        (version,) = {each.version for each in results if each is not None}
        assert version > 0


async def test_an_answer_expires_and_its_name_is_free_again() -> None:
    async with opened() as database:
        await database.transact(storing)
        snapshot = await database.wait_durable_snapshot()
        assert find_answer(snapshot, NAME, 1999.9) is not None
        assert find_answer(snapshot, NAME, 2000.0) is None


async def test_answers_survive_a_restart_with_and_without_a_checkpoint(
    autojump_clock: trio.abc.Clock,
) -> None:
    log = HeldLog()
    async with opened(log) as database:
        await database.transact(partial(storing, name=b"saved"))
        await database.checkpoint()
        await database.transact(partial(storing, name=b"logged"))
        before = await database.wait_durable_snapshot()
        known = {name: find_answer(before, name, 1000.0) for name in (b"saved", b"logged")}
    async with opened(log) as database:
        snapshot = await database.wait_durable_snapshot()
        for name, found in known.items():
            assert found is not None and find_answer(snapshot, name, 1000.0) == found


async def test_the_sweeper_deletes_what_has_expired_and_nothing_else(
    autojump_clock: trio.abc.Clock,
) -> None:
    world = Laboratory()
    async with opened(world=world) as database, trio.open_nursery() as nursery:
        for number in range(10):
            name, expires = b"%d" % number, 1500.0 if number % 3 else 2500.0
            await database.transact(partial(storing, name=name, expires=expires))
        nursery.start_soon(sweep_answers, database, world, SweepPolicy(10.0, 3, 0.1))
        await trio.sleep(15)
        assert (await database.wait_durable_snapshot()).count(ANSWERS_TREE) == 10
        world.time = 2000.0
        await trio.sleep(15)
        snapshot = await database.wait_durable_snapshot()
        keys, _ = snapshot.first_entries(ANSWERS_TREE, None, None, False, 100)
        assert keys == [(b"0",), (b"3",), (b"6",), (b"9",)]
        assert world.reports == []
        nursery.cancel_scope.cancel()
