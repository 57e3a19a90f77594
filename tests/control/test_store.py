"""The control database as a process reads it: copies come and go meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from qserver.control.store import Store
from qserver.errors import DatabaseUnavailable
from tests.patience import PATIENCE_SECONDS, PAUSE_SECONDS

pytestmark = pytest.mark.trio


class Copy:
    """Answers with its name, once it is open; fails who still waits when it is closed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0
        self.is_closed = False
        self.changed = trio.Event()
        self.snapshots = self

    def take(self) -> None:
        return None

    def close(self) -> None:
        self.is_closed = True
        self.changed.set()

    async def execute(self, sql: str, parameters: Any, timeout_ms: int) -> str:
        self.asked += 1
        await self.changed.wait()
        if self.is_closed:
            raise DatabaseUnavailable(f"{self.name} is closed")
        return self.name


def begin(store: Store, copy: Copy) -> None:
    store.follow(copy, None)  # type: ignore[arg-type]


async def test_who_reads_a_copy_that_is_closed_reads_the_next_one() -> None:
    store, one, other = Store(lambda: 0.0), Copy("one"), Copy("other")
    store.gets_another = True
    begin(store, one)
    found: list[Any] = []

    async def read() -> None:
        found.append(await store.read_here("select 1"))

    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            one.close()
            while one.asked < 3:  # noqa: ASYNC110 - there is no other yet
                await trio.sleep(PAUSE_SECONDS)
            begin(store, other)
            other.changed.set()
    assert found == ["other"]


async def test_where_no_other_copy_will_come_its_readers_fail() -> None:
    store, one = Store(lambda: 0.0), Copy("one")
    begin(store, one)
    one.close()
    with pytest.raises(DatabaseUnavailable, match="one is closed"):
        await store.read_here("select 1")
