"""A change of `control` that one process does not confirm: it may have been made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import trio
import trio.testing

from qserver.control.owners import OwnedElsewhere
from qserver.errors import Applied, ChangeUnconfirmed, DatabaseUnavailable, Unauthorized
from tests.control.machines import Machine, grants, impatient, machine
from tests.control.planes import FIRST_KEY

pytestmark = pytest.mark.trio


@contextmanager
def dying(made: Machine, away: int, at: int) -> Iterator[None]:
    """A process dies when another has opened a new database, and is not waited for long."""
    records = made[at].records
    open_once = records.open_once
    with ExitStack() as impatience:

        async def open_then(*arguments: Any) -> None:
            await open_once(*arguments)
            await made.die(away)
            impatience.enter_context(impatient(made))

        records.open_once = open_then  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            records.open_once = open_once  # type: ignore[method-assign]


@pytest.mark.long
async def test_the_client_is_told_that_it_may_have_been_made() -> None:
    async with machine() as (made, start):
        every = await grants(made)
        await made.die(2)
        for at in (0, 1):
            with impatient(made), pytest.raises(ChangeUnconfirmed) as raised:
                await made[at].keys.create(every[at], f"k{at}")
            assert raised.value.applied is Applied.UNKNOWN and not raised.value.retryable
        await start(2)
        found, _ = await made[2].keys.list_page(await made[2].authenticate(FIRST_KEY))
        assert {"k0", "k1"} < {each.name for each in found}


@pytest.mark.long
async def test_a_database_that_may_be_in_use_is_not_deleted() -> None:
    async with machine() as (made, start):
        every = await grants(made)
        at = made.members[0].owners.process_for(every[0].organization_id, "d0")
        assert at == made.members[0].owners.process_for(every[0].organization_id, "d3")
        away = next(each for each in (1, 2) if each != at)
        with dying(made, away, at), pytest.raises(ChangeUnconfirmed):
            await made[at].records.create(every[at], "d0")
        with await made[at].database(every[at], "d0") as opened:
            await opened.sql.execute("create table t (id int primary key)")
        with impatient(made), pytest.raises(ChangeUnconfirmed):
            await made[at].records.create(every[at], "d3")
        with pytest.raises(DatabaseUnavailable, match="is being made"):
            await made[at].database(every[at], "d3")
        await start(away)
        await made[at].sweep()
        for name in ("d0", "d3"):
            (await made[at].database(every[at], name)).release()
            with pytest.raises(OwnedElsewhere):
                await made[away].database(await made[away].authenticate(FIRST_KEY), name)


async def test_a_signup_that_was_made_gets_its_key() -> None:
    async with machine() as (made, _):
        with dying(made, 2, at=0):
            *_, secret = await made[0].organizations.signup("acme")
        assert (await made[1].authenticate(secret)).organization == "acme"


@pytest.mark.long
async def test_a_signup_that_was_cut_short_is_undone_by_a_sweep() -> None:
    async with machine() as (made, start):
        names = made.logs.names()
        await made.die(2)
        with impatient(made), pytest.raises(ChangeUnconfirmed):
            await made[0].organizations.signup("acme")
        await start(2)
        await made[0].sweep()
        assert made.logs.names() == names
        *_, secret = await made[0].organizations.signup("acme")
        assert (await made[2].authenticate(secret)).organization == "acme"


async def test_the_first_key_is_made_when_all_processes_are_there() -> None:
    async with machine(2, is_new=True) as (made, start):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(start, 0)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert made[0].version() is not None, "it has begun, and waits"
            with pytest.raises(Unauthorized):
                await made[0].authenticate(FIRST_KEY)
            await start(1)
        assert (await made[1].authenticate(FIRST_KEY)).organization == "default"


async def test_a_process_that_dies_when_it_is_asked_can_be_asked_again() -> None:
    async with machine() as (made, start):
        every = await grants(made)
        organization, owners = every[0].organization_id, made.members[0].owners
        there = next(name for name in "abc" if owners.process_for(organization, name) == 2)
        await made[2].records.create(every[2], there)
        asked = trio.Event()

        async def never(*_: object) -> None:
            asked.set()
            await trio.sleep_forever()

        made.members[2].owners.methods["facts"] = never
        async with trio.open_nursery() as nursery:

            async def die() -> None:
                await asked.wait()
                await made.die(2)

            nursery.start_soon(die)
            with pytest.raises(DatabaseUnavailable, match="process 2") as raised:
                await made[0].records.find(every[0], there)
            assert raised.value.retryable
        await start(2)
        assert (await made[0].records.find(every[0], there))[1].rows == 0
