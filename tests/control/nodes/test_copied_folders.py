"""Two nodes with copies of one data folder: one of them ends, and says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock

from qserver.durability.folder import NODE_FILE
from qserver.errors import LogTaken, first_of
from qserver.web.service.node import identity_of, keep_identity
from tests.control.nodes.members import LEASE, Cluster, Member

HELD_SECONDS = LEASE * 1.1
COPY = "a copy of this folder"


def copied(cluster: Cluster, name: str) -> Member:
    """A node of the same name, with a copy of the same folder."""
    made = cluster.member(name)
    identity = made.membership.identity
    made.membership.identity = msgspec.structs.replace(identity, is_moved=True)
    return made


async def test_a_copy_is_refused_while_the_first_one_lives(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        (one,) = await cluster.start(nursery, "one")
        with pytest.raises(LogTaken, match=COPY) as refused:
            await copied(cluster, "one").membership.begin()
        assert "node.id" in (refused.value.hint or "")
        await trio.sleep(3 * LEASE)
        assert one.lost == 0 and one.membership.lease.holds(), "it has not noticed"
        nursery.cancel_scope.cancel()


async def test_a_folder_that_was_moved_begins_when_the_lease_is_over(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        (one,) = await cluster.start(nursery, "one")
        one.die()
        began = trio.current_time()
        await copied(cluster, "one").membership.begin()
        assert trio.current_time() - began >= HELD_SECONDS
        nursery.cancel_scope.cancel()


async def test_a_folder_that_was_moved_begins_at_once_if_its_node_was_stopped(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        cluster = Cluster()
        (one,) = await cluster.start(nursery, "one")
        await one.membership.end()
        one.die()
        began = trio.current_time()
        await copied(cluster, "one").membership.begin()
        assert trio.current_time() - began < 1
        nursery.cancel_scope.cancel()


async def test_a_copy_that_serves_ends_when_the_first_one_comes_back(
    autojump_clock: MockClock,
) -> None:
    cluster = Cluster()
    async with trio.open_nursery() as nursery:
        (one,) = await cluster.start(nursery, "one")
        one.die()
        copy = copied(cluster, "one")
        await copy.membership.begin()
        ended: list[Exception] = []

        async def run() -> None:
            try:
                await copy.membership.run()
            except Exception as error:
                ended.append(first_of(error))

        nursery.start_soon(run)
        again = cluster.member("one")
        await again.start(nursery)
        await trio.sleep(4 * LEASE)
        assert [type(each) for each in ended] == [LogTaken] and COPY in str(ended[0])
        assert again.lost == 0 and again.membership.lease.holds(), "no life ends another's again"
        nursery.cancel_scope.cancel()


def test_a_copied_folder_is_known_by_its_place(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    name, is_moved = identity_of(one)
    assert not is_moved and identity_of(one) == (name, False)
    shutil.copytree(one, two)
    assert identity_of(two) == (name, True)
    keep_identity(two, name)
    assert identity_of(two) == (name, False)
    (two / NODE_FILE).unlink()
    assert identity_of(two)[0] != name
    (one / NODE_FILE).write_text(f"{name}\n")
    assert identity_of(one) == (name, False), "an earlier release has written no place"
