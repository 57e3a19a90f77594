"""Nothing leaves before the log has it, and what gathers meanwhile is written as one group."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.durability.records import decode_record, writes_of
from qserver.engine.batch import Batch
from qserver.engine.log_writer import Begun, LogWriter, LogWriterStatistics
from qserver.engine.mailbox import Mailbox, Reply
from qserver.engine.messages import Answer, Append, Committed
from qserver.engine.versions import Versions
from qserver.errors import LogFailed
from qserver.storage.catalog import Catalog, changes_from_plain
from qserver.storage.ranges import Trees
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.values.steps import at_once
from tests.engine import counters
from tests.engine.fakes import HeldLog


class Desk:
    """A log writer with what it reads from and writes to."""

    def __init__(self) -> None:
        self.log = HeldLog()
        self.versions = Versions(empty_snapshot(1), lambda: 0.0)
        self.mailbox = Mailbox[Append | Begun]("log", 64)
        self.batch = Batch()
        self.logged: list[int] = []
        self.writer = LogWriter(
            self.log, self.versions, self.mailbox, self.batch, self.logged.append
        )
        self.replies: list[Reply[Answer]] = []
        self.answered: list[Answer] = []

    def publish(self) -> None:
        """The next version, with one answer that waits for it."""
        version = self.versions.newest.version + 1
        self.versions.publish(Snapshot(version, float(version), Catalog(), Trees(), 1))
        reply = Reply[Answer]()
        self.replies.append(reply)
        self.mailbox.put_nowait(
            Append(
                self.versions.newest,
                {5: {(version,): (version, "x")}},
                (8,),
                {"t": counters.definition(9), "gone": None},
                ((reply, Committed(version)),),
            )
        )

    async def collect(self) -> None:
        for reply in self.replies:
            self.answered.append(await reply.wait())


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.writer.run)
        yield made
        nursery.cancel_scope.cancel()


async def test_nothing_is_released_before_the_append_has_returned() -> None:
    async with desk() as d:
        d.log.hold()
        d.publish()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(d.collect)
            await wait_all_tasks_blocked()
            assert d.log.groups == [[1]], "the append has begun"
            assert d.versions.durable.version == 0
            assert d.answered == []
            d.log.release()
        assert d.versions.durable.version == 1
        assert d.answered == [Committed(1)]


async def test_what_gathers_while_one_group_syncs_is_the_next_group() -> None:
    async with desk() as d:
        d.log.hold()
        d.publish()
        await wait_all_tasks_blocked()
        for _ in range(3):
            d.publish()
        await wait_all_tasks_blocked()
        assert d.log.groups == [[1]]
        d.log.release()
        await d.collect()
        assert d.log.groups == [[1], [2, 3, 4]]
        assert d.answered == [Committed(version) for version in (1, 2, 3, 4)]


async def test_a_group_is_as_large_as_the_unsynced_rounds_may_be_and_no_larger() -> None:
    d = Desk()
    for _ in range(64):
        d.publish()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(d.writer.run)
        await d.collect()
        nursery.cancel_scope.cancel()
    assert d.log.groups == [list(range(1, 65))]


async def test_the_record_says_what_the_round_did() -> None:
    async with desk() as d:
        d.publish()
        await d.collect()
        ((version, data),) = await d.log.read(0, 10)
        record = decode_record(data)
        assert (version, record.version, record.time) == (1, 1, 1.0)
        assert at_once(writes_of(record)) == {5: {(1,): (1, "x")}}
        assert record.dropped == (8,)
        changes = changes_from_plain(record.catalog_changes)
        assert changes == {"t": counters.definition(9), "gone": None}


async def test_a_log_that_fails_ends_the_writer_and_releases_nothing() -> None:
    d = Desk()
    d.log.fails_after_append = True
    d.publish()
    with pytest.raises(LogFailed):
        await d.writer.run()
    assert d.versions.durable.version == 0
    with trio.move_on_after(0) as scope:
        await d.replies[0].wait()
    assert scope.cancelled_caught, "nobody was answered"


async def test_statistics_count_groups_records_and_bytes() -> None:
    async with desk() as d:
        d.log.hold()
        d.publish()
        await wait_all_tasks_blocked()
        d.publish()
        d.publish()
        d.log.release()
        await d.collect()
        size = sum(len(data) for _, data in await d.log.read(0, 10))
        assert d.writer.statistics() == LogWriterStatistics(
            groups=2, records=3, bytes=size, records_of_group_most=2
        )
        assert repr(d.writer) == "the log writer after 3 records in 2 groups"
