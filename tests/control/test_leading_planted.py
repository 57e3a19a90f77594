"""Bugs in what processes do together, planted: the tests of it are able to fail.

Each check is one that holds without the bug, too, or it would prove nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from qserver.control.barrier import Barrier
from qserver.control.database_records import DatabaseRecords
from qserver.control.records import DatabaseRecord
from qserver.control.store import OwnSource
from tests.control.machines import IDLE_SECONDS, create, grants, issue_key, machine

pytestmark = pytest.mark.trio

FAR = 1_000_000


async def no_revocation_is_answered_without_a_process_that_is_away() -> None:
    async with machine() as (made, _):
        key = await issue_key(made)
        await made.die(2)
        await key.check_that_revoking_waits()


async def a_new_leader_answers_nothing_before_all_follow_it() -> None:
    async with machine() as (made, start):
        key = await issue_key(made)
        await made.die(2)
        await made.die(0)
        await start(0)
        await key.check_that_revoking_waits()


async def files_stay_until_no_process_can_look_their_database_up() -> None:
    async with machine() as (made, _):
        every = await grants(made)
        records = [await create(made, 0, every[0], f"d{number}") for number in range(3)]
        (record,) = [each for each in records if made.owner(each.family) == 1]
        await made.die(2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made[1].records.delete, every[1], record.id)
            await trio.testing.wait_all_tasks_blocked(IDLE_SECONDS)
            assert record.id in made.logs.names()
            nursery.cancel_scope.cancel()


def forget_a_process(patch: pytest.MonkeyPatch) -> None:
    behind = Barrier.behind
    patch.setattr(Barrier, "behind", lambda self, version: behind(self, version)[1:])


def do_not_wait(patch: pytest.MonkeyPatch) -> None:
    async def write(self: OwnSource, statements: object) -> None:
        await self._sql.transaction(statements)  # type: ignore[arg-type]

    patch.setattr(OwnSource, "write", write)


def trust_all(patch: pytest.MonkeyPatch) -> None:
    """A leader takes those that it has not heard of for up to date."""
    init = Barrier.__init__

    def trusting(self: Barrier, processes: object) -> None:
        init(self, processes)  # type: ignore[arg-type]
        self._applied = dict.fromkeys(self._others(), FAR)

    patch.setattr(Barrier, "__init__", trusting)


def remove_first(patch: pytest.MonkeyPatch) -> None:
    """Files are removed before the record says so."""
    begin = DatabaseRecords._begin_deletion

    async def removed_first(self: DatabaseRecords, record: DatabaseRecord) -> DatabaseRecord:
        await self._databases.remove(record.id)
        return await begin(self, record)

    patch.setattr(DatabaseRecords, "_begin_deletion", removed_first)


PLANTED: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], Awaitable[None]]]] = [
    (forget_a_process, no_revocation_is_answered_without_a_process_that_is_away),
    (do_not_wait, no_revocation_is_answered_without_a_process_that_is_away),
    (trust_all, a_new_leader_answers_nothing_before_all_follow_it),
    (remove_first, files_stay_until_no_process_can_look_their_database_up),
]


@pytest.mark.parametrize(("plant", "check"), PLANTED, ids=[each.__name__ for each, _ in PLANTED])
async def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    check: Callable[[], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await check()
    plant(monkeypatch)
    with pytest.RaisesGroup(AssertionError, flatten_subgroups=True):
        await check()
