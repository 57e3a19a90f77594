"""Bytes of organizations, measured on real files: past the bound only what stores more ends."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import trio

from qserver.control.records import Grant
from qserver.control.tiers import Tier
from qserver.durability.data_folder import DataFolder
from qserver.durability.files import Disk
from qserver.errors import DiskFull
from qserver.limits import DISK_FREE_BYTES_MIN, DISK_RESERVE_BYTES
from qserver.query.results import Once, Statement
from tests.control.planes import Opened, opened_plane

MOST = 1 << 20
TIERS = {
    "free": Tier("free", 200, 3, MOST),
    "pro": Tier("pro", 200, 3, MOST),
    "unlimited": Tier("unlimited", None, 1000, None),
}
TABLE = "create table t (id integer primary key, text text)"
FILL = "insert into t select n, repeat('x', 2000) from generate_series({}, {}) n"


class SmallDisk(DataFolder):
    """A folder on a disk that is as full as the test says."""

    free = 1 << 40

    def disk(self) -> Disk | None:
        return Disk(self.free, 1 << 40)


async def fill(opened: Opened, grant: Grant, database: str = "main") -> int:
    """Insert rows until that is refused for good; return how many there are."""
    start = 1
    for _ in range(100):
        if await goes_on(opened, grant, FILL.format(start, start + 99), database, tries=3):
            start += 100
        elif (await opened.plane.organizations.overview(grant)).use.stored_bytes >= MOST:
            return start - 1  # also when the write-ahead log is empty
        await opened.plane.space.measure()
    raise AssertionError("it never came to an end")


async def goes_on(
    opened: Opened, grant: Grant, sql: str, database: str = "main", tries: int = 20
) -> bool:
    """Run a statement, again and again while there is no room."""
    for _ in range(tries):
        try:
            await opened.run(grant, sql, database)
            return True
        except DiskFull:
            await opened.plane.space.measure()
            await trio.sleep(0.01)
            with await opened.plane.database(grant, database) as used:
                await used.database.checkpoint()
    return False


@pytest.mark.long
async def test_an_organization_that_is_full_can_read_and_remove_and_then_goes_on(
    tmp_path: Path,
) -> None:
    folder = DataFolder(tmp_path)
    async with opened_plane(folder, tiers=TIERS) as opened:
        grant, other = await opened.stranger("acme"), await opened.stranger("other")
        for each in (grant, other):
            await opened.run(each, TABLE)
        count = await fill(opened, grant)
        use = (await opened.plane.organizations.overview(grant)).use
        assert MOST <= use.stored_bytes < 2 * MOST
        for sql in (
            "update t set text = 'more' where id = 1",
            "create table u (id integer)",
            "create index on t (text)",
            "create table u as select * from t",
            "insert into t values (0, 'x') on conflict do nothing",
        ):
            with pytest.raises(DiskFull, match=f"{MOST} are allowed") as refused:
                await opened.run(grant, sql)
            assert refused.value.code == "53100" and "DELETE" in (refused.value.hint or "")
            del refused
        with pytest.raises(DiskFull):
            await opened.plane.records.create(grant, "another")
        assert await opened.run(grant, "select count(*) from t") == [(count,)]
        await opened.run(other, "insert into t values (1, 'others are not full')")
        await opened.run(opened.grant, TABLE)

        await opened.run(grant, f"delete from t where id > {count // 2}")
        gc.collect()  # the traceback of a refusal keeps its snapshot, and so its pages
        assert await goes_on(opened, grant, "insert into t values (0, 'there is room again')")
        assert await opened.run(grant, "select count(*) from t") == [(count // 2 + 1,)]


async def test_drop_and_truncate_work_where_nothing_else_does(tmp_path: Path) -> None:
    async with opened_plane(DataFolder(tmp_path), tiers=TIERS) as opened:
        grant = await opened.stranger()
        await opened.run(grant, TABLE)
        await opened.run(grant, "create table v (id integer)")
        await fill(opened, grant)
        await opened.run(grant, "truncate v")
        await opened.run(grant, "drop table v")
        with await opened.plane.database(grant, None) as used:
            assert used.quota.refused >= 1
        assert opened.plane.space.statistics().organizations_full == 1


@pytest.mark.half
async def test_bytes_of_closed_databases_count_and_a_deleted_one_does_not(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    async with opened_plane(folder, tiers=TIERS) as opened:
        *_, secret = await opened.plane.organizations.signup("acme")
        grant = await opened.plane.authenticate(secret)
        await opened.plane.records.create(grant, "big")
        await opened.run(grant, TABLE, "big")
        await fill(opened, grant, "big")
    async with opened_plane(folder, tiers=TIERS) as opened:
        grant = await opened.plane.authenticate(secret)
        await opened.run(grant, "select 1")
        await opened.plane.space.measure()
        with pytest.raises(DiskFull):
            await opened.run(grant, TABLE)
        await opened.plane.records.delete(grant, "big")
        await opened.plane.space.measure()
        await opened.run(grant, TABLE)


async def test_a_tier_bounds_the_number_of_databases() -> None:
    async with opened_plane() as opened:
        grant = await opened.stranger()
        assert (await opened.plane.organizations.overview(grant)).limits.databases == 25
        for number in range(24):
            await opened.plane.records.create(grant, f"d{number}")
        with pytest.raises(DiskFull, match="has at most 25 databases") as refused:
            await opened.plane.records.create(grant, "more")
        assert refused.value.code == "53100"


async def test_on_a_disk_that_is_almost_full_nobody_stores_more(tmp_path: Path) -> None:
    folder = SmallDisk(tmp_path)
    async with opened_plane(folder) as opened:
        await opened.run(opened.grant, TABLE)
        await opened.plane.space.measure()
        assert folder.reserved_bytes == DISK_RESERVE_BYTES
        folder.free = DISK_FREE_BYTES_MIN - 1
        await opened.plane.space.measure()
        with pytest.raises(DiskFull, match="almost full"):
            await opened.run(opened.grant, "insert into t values (1, 'x')")
        await opened.run(opened.grant, "delete from t")
        folder.free = DISK_FREE_BYTES_MIN
        await opened.plane.space.measure()
        await opened.run(opened.grant, "insert into t values (1, 'x')")
        folder.hold_reserve(0)  # as when the disk was full
        await opened.plane.space.measure()
        with pytest.raises(DiskFull, match="almost full"):
            await opened.run(opened.grant, "insert into t values (2, 'x')")
        folder.free += DISK_RESERVE_BYTES
        await opened.plane.space.measure()
        await opened.run(opened.grant, "insert into t values (2, 'x')")
        assert folder.reserved_bytes == DISK_RESERVE_BYTES


async def test_what_stores_an_answer_is_refused_whatever_it_does(tmp_path: Path) -> None:
    def once(key: bytes) -> Once:
        return Once(key, b"", 3600.0, lambda results, retries: (b"x" * 1000, b""))

    async with opened_plane(SmallDisk(tmp_path)) as opened:
        await opened.run(opened.grant, TABLE)
        with await opened.plane.database(opened.grant, None) as used:
            statements = [Statement("delete from t returning id")]
            first = await used.sql.transaction(statements, once=once(b"first"))
            used.quota.full = DiskFull("there is no room")
            version = (await used.database.wait_durable_snapshot()).version
            for number in range(3):
                with pytest.raises(DiskFull, match="no room") as refused:
                    await used.sql.transaction(statements, once=once(b"%d" % number))
                assert "without an Idempotency-Key" in (refused.value.hint or "")
            again = await used.sql.transaction(statements, once=once(b"first"))
            assert again.answered is not None and again.answered.replayed
            assert first.answered is not None and again.answered.text == first.answered.text
            assert (await used.database.wait_durable_snapshot()).version == version
            await used.sql.transaction(statements)
            used.quota.full = None
            await used.sql.transaction(statements, once=once(b"0"))
