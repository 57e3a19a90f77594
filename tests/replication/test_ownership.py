"""One node serves a replicated log, until another is told to take over."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from qserver.durability.copy_mark import check_is_no_copy, copy_of, mark_as_copy
from qserver.errors import DataInUse, LogTaken
from qserver.replication.memory import MemoryNodes
from qserver.replication.ownership import Ownership
from qserver.replication.port import Refused, Unanswered


def ownership(nodes: MemoryNodes, node: str) -> Ownership:
    return Ownership(nodes, node, lambda: f"cluster of {node}")


async def test_a_second_node_is_refused_until_it_takes_over(autojump_clock: MockClock) -> None:
    nodes = MemoryNodes()
    one, two = ownership(nodes, "one"), ownership(nodes, "two")
    await one.take(by_force=False)
    await one.take(by_force=False)
    with pytest.raises(LogTaken, match="by the node one") as refused:
        await two.take(by_force=False)
    assert refused.value.hint is not None
    assert "two" in refused.value.hint
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_hears_of_it, one)
        await trio.sleep(100)
        await two.take(by_force=True)
    await two.check()


async def _hears_of_it(one: Ownership) -> None:
    with pytest.raises(LogTaken, match="by the node two"):
        await one.watch()


async def test_a_log_has_one_name() -> None:
    nodes = MemoryNodes()
    assert await ownership(nodes, "one").cluster() == "cluster of one"
    assert await ownership(nodes, "two").cluster() == "cluster of one"


class LostAnswers(MemoryNodes):
    """Sets values, and loses each first answer."""

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        found = await self.value(key)
        if found is None:
            await super().set_value(key, data, revision)
            raise Unanswered
        raise Refused(found.revision)


async def test_who_has_no_answer_reads(autojump_clock: MockClock) -> None:
    nodes = LostAnswers()
    await ownership(nodes, "one").take(by_force=False)
    with pytest.raises(LogTaken):
        await ownership(nodes, "two").take(by_force=False)


def test_a_folder_of_copies_belongs_to_one_log(tmp_path: Path) -> None:
    check_is_no_copy(tmp_path)
    assert copy_of(tmp_path) is None
    mark_as_copy(tmp_path, "a1")
    mark_as_copy(tmp_path, "a1")
    assert copy_of(tmp_path) == "a1"
    with pytest.raises(DataInUse, match="another"):
        mark_as_copy(tmp_path, "b2")
    with pytest.raises(DataInUse, match="are copies"):
        check_is_no_copy(tmp_path)


def test_a_folder_with_databases_of_its_own_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "control.qserver").write_bytes(b"")
    with pytest.raises(DataInUse, match="not in the replicated log"):
        mark_as_copy(tmp_path, "a1")
    assert copy_of(tmp_path) is None
