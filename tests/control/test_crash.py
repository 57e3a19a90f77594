"""A crash after any commit of the control database: the next start leaves nothing half done.

The logs are copied whenever the control database has written something, as a disk would be found
after a crash at that moment; then the plane is started on every copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import trio

from qserver.control import MemoryLogs
from qserver.control.logs import SizedLog
from qserver.durability.port import StoredRecord
from tests.control.planes import FIRST_KEY, Opened, opened_plane
from tests.sampling import NIGHTLY, drawn


class WatchedLog(SizedLog):
    def __init__(self, written: Callable[[], None]) -> None:
        super().__init__()
        self._written = written

    async def append(self, records: Sequence[StoredRecord]) -> None:
        await super().append(records)
        self._written()


class CopiedLogs(MemoryLogs):
    """Keeps a copy of itself from after each write to the control database."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[MemoryLogs] = []
        self._logs["control"] = WatchedLog(self._copy)

    def _copy(self) -> None:
        copy = MemoryLogs()
        for name, log in self._logs.items():
            other = copy._logs[name] = SizedLog()
            other._records = dict(log._records)
            other._last = log._last
        self.copies.append(copy)


async def live(opened: Opened) -> None:
    """Everything that is done in several steps, some of it at once."""
    plane, grant = opened.plane, opened.grant
    await plane.records.create(grant, "one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(plane.organizations.signup, "acme")
        nursery.start_soon(plane.records.create, grant, "two")
        nursery.start_soon(plane.records.delete, grant, "one")
    await plane.records.rename(grant, "two", "three")
    record, secret = await plane.keys.create(grant, "k", None, ["three"])
    await plane.sessions.create(await plane.authenticate(secret))
    await plane.keys.rotate(grant, record.id)
    await plane.records.delete(grant, "main")


BY_DAY = 5
"""Commits after which a crash is tried. At night all are."""


@pytest.mark.long
async def test_a_start_after_a_crash_at_any_commit_leaves_nothing_half_done() -> None:
    logs = CopiedLogs()
    async with opened_plane(logs) as opened:
        await live(opened)
        copies = list(logs.copies)
    assert len(copies) > 15
    for number in range(len(copies)) if NIGHTLY else drawn(range(len(copies)), BY_DAY):
        copy = copies[number]
        async with opened_plane(copy, first_key=FIRST_KEY) as opened:
            rows = await opened.plane._store.rows("select id, state from databases")
            assert {state for _, state in rows} <= {"ready"}, number
            assert copy.names() == sorted(["control", *(name for name, _ in rows)]), number
            unowned = await opened.plane._store.rows(
                "select name from organizations o where state <> 'ready' or not exists"
                " (select 1 from keys where organization_id = o.id)"
            )
            assert unowned == [], number
            records, _ = await opened.plane.records.list_page(opened.grant)
            for record in records:
                assert await opened.run(opened.grant, "select 1", record.name) == [(1,)]
            assert opened.world.reports == []
