"""The simulated disk keeps the promises of the port, and breaks no other than it says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio

from qserver.errors import LogFailed
from simulations.copy_disk import CopyDisk
from simulations.determinism import run_repeatably
from simulations.disk import Disk, DiskHandle
from simulations.faults import Faults, make_profile
from simulations.trace import Trace
from simulations.world import ACTOR, SimulatedWorld


def on_disk(
    use: Callable[[Disk, DiskHandle], Awaitable[None]],
    *,
    eager: bool = True,
    faults: tuple[str, ...] = (),
    make: type[Disk] = Disk,
) -> None:
    profile = replace(make_profile("calm", 1), eager_log=eager)
    world = SimulatedWorld(1, profile, Faults(1, dict.fromkeys(faults, 1.0)), Trace())

    async def main() -> None:
        ACTOR.set("log")
        async with trio.open_nursery() as nursery:
            disk = make(world, nursery)
            world.faults.on = True
            await use(disk, disk.connect())

    run_repeatably(1, main, virtual_seconds_max=10.0, steps_max=100_000)


@pytest.mark.parametrize("eager", [True, False])
def test_an_eager_disk_begins_an_append_before_it_is_waited_for(eager: bool) -> None:
    async def use(disk: Disk, handle: DiskHandle) -> None:
        appending = handle.append([(1, b"one")])
        await trio.sleep(1.0)
        assert disk.versions() == ([1] if eager else [])
        await appending
        assert disk.versions() == [1]

    on_disk(use, eager=eager)


def test_operations_are_served_in_the_order_in_which_they_were_asked_for() -> None:
    async def use(disk: Disk, handle: DiskHandle) -> None:
        appends = [handle.append([(version, b"")]) for version in range(1, 9)]
        for appending in reversed(appends):
            await appending
        assert disk.versions() == list(range(1, 9))

    on_disk(use)


def test_a_failed_sync_loses_pages_and_no_checkpoint_counts_on_them() -> None:
    async def use(disk: Disk, handle: DiskHandle) -> None:
        pages = [(number, b"page") for number in range(1, 21)]
        await handle.save_pages(pages)
        with pytest.raises(LogFailed, match="sync failed"):
            await handle.append([(1, b"one")])
        assert 0 < len(disk.shelf.unsynced) < len(pages)
        with pytest.raises(LogFailed, match="pages of the checkpoint are lost"):
            await handle.save_checkpoint(1, b"")
        assert disk.shelf.checkpoint is None
        records = await handle.read(0, 10)
        with pytest.raises(LogFailed, match="pages of the checkpoint are lost"):
            await handle.save_checkpoint(1, b"")  # somebody has read, and nobody has recovered
        assert await handle.fence(len(records))
        await handle.save_checkpoint(1, b"")
        assert disk.shelf.checkpoint == (1, b"")

    on_disk(use, faults=("sync_fails",))


def test_a_local_copy_has_its_records_at_once_and_a_crash_loses_the_last_of_them() -> None:
    async def use(disk: Disk, handle: DiskHandle) -> None:
        assert isinstance(disk, CopyDisk)
        await handle.append([(1, b"one")])
        await handle.sync_pages()
        await handle.append([(2, b"two")])
        assert await handle.read(0, 9) == [(1, b"one"), (2, b"two")]
        disk.crash(handle, lose_all=True)
        assert await disk.connect().read(0, 9) == [(1, b"one")]

    on_disk(use, make=CopyDisk)


def test_a_local_copy_that_cannot_be_written_keeps_what_it_had() -> None:
    async def use(disk: Disk, handle: DiskHandle) -> None:
        assert isinstance(disk, CopyDisk)
        disk.world.faults.on = False
        await handle.append([(1, b"one")])
        disk.world.faults.on = True
        with pytest.raises(LogFailed):
            await handle.append([(2, b"two"), (3, b"three")])
        disk.world.faults.on = False
        found = await handle.read(0, 9)
        assert found in ([(1, b"one"), (2, b"two"), (3, b"three")][: size + 1] for size in range(3))
        await disk.close(handle)
        assert await disk.connect().read(0, 9) == found

    on_disk(use, faults=("sync_fails",), make=CopyDisk)
