"""Whole families leave a log and come into one, while it is served or not."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from qserver.durability.column_numbers import POSITION
from qserver.errors import DataCorrupted, LogFailed
from qserver.replication.memory import MemoryNodes, MemoryStream
from qserver.replication.moving import begin_family, families_of, read_family, versions_of
from qserver.replication.port import Message, Refused, Unanswered
from qserver.replication.position import load_position
from tests.replication.machines import Machine, MemoryFiles, all_of, make_branch, records, running


def new_name() -> str:
    return "command-1"


async def family(machine: Machine) -> None:
    """A family with branches of branches, of which the machine has the files."""
    machine.roots = {"b": "a", "c": "a"}
    async with running(machine), machine.logs.open("a") as log:
        await log.append(records(1, 3))
        await make_branch(machine, log, "b", 2)
        async with machine.logs.open("b") as own:
            await own.append(records(3, 5, "b "))
        await make_branch(machine, log, "c", 3)


async def test_a_family_goes_into_another_log_and_out_again() -> None:
    one = Machine("one", MemoryNodes())
    await family(one)
    found = await families_of(one.files, ["c", "b", "a"])
    assert list(found) == ["a"] and found["a"][0] == "a" and sorted(found["a"]) == ["a", "b", "c"]
    nodes = MemoryNodes()
    await begin_family(nodes, one.files, found["a"], new_name)
    two = Machine("two", nodes)
    two.roots = one.roots
    async with running(two), two.logs.open("b") as log:
        assert await all_of(log) == records(1, 2) + records(3, 5, "b ")
        await log.append(records(6, 6, "b "))
        files = MemoryFiles()
        assert await read_family(nodes, files, "a") == {"a": 3, "b": 6, "c": 3}
        assert files.logs["a"].load([POSITION]) == {}, "it is a copy of nothing"
        assert await versions_of(files, files.logs) == {"a": 3, "b": 6, "c": 3}
        await log.append(records(7, 7, "b "))
    assert await read_family(nodes, MemoryFiles(), "x") == {}


async def test_the_log_is_only_read() -> None:
    nodes = MemoryNodes()
    one = Machine("one", nodes)
    await family(one)
    before = (list(nodes._streams["a"].messages), dict(nodes._values), dict(nodes._parts))
    await read_family(nodes, MemoryFiles(), "a")
    assert before == (nodes._streams["a"].messages, nodes._values, nodes._parts)


async def test_a_family_is_read_while_its_owner_makes_bases() -> None:
    nodes = MemoryNodes()
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        for version in range(1, 200):
            await log.append(records(version, version))
        stream, reads = nodes._streams["a"], 0
        real = stream.read

        async def read(first: int, most: int) -> list[Message]:
            nonlocal reads
            reads += 1
            if reads == 2:
                await log.append(records(200, 200))
                await one.logs.make_base("a")
                await log.append(records(201, 201))
            return list(await real(first, most))

        stream.read = read  # type: ignore[method-assign]
        files = MemoryFiles()
        assert await read_family(nodes, files, "a") == {"a": 201}
        assert await all_of(files.logs["a"]) == records(1, 201)


async def test_files_that_begin_a_stream_anew_are_a_copy_of_it() -> None:
    nodes = MemoryNodes()
    one, two = Machine("one", nodes), Machine("two", nodes)
    await family(one)
    two.roots = one.roots
    await nodes.remove_stream("a")
    await begin_family(nodes, one.files, ["a", "b", "c"], new_name, keeps_position=True)
    assert load_position(one.files.logs["a"]).sequence == 1
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(4, 4))
        async with two.logs.open("b") as log:
            assert await all_of(log) == records(1, 2) + records(3, 5, "b ")


class Lost(MemoryStream):
    """The answer to the first append is lost, or it is another's that was first."""

    def __init__(self, by_another: bool) -> None:
        super().__init__("a")
        self._by_another = by_another

    async def append(self, data: bytes, expected: int) -> int:
        if self.messages:
            raise Refused(self.last)
        await super().append(b"other" if self._by_another else data, expected)
        raise Unanswered


@pytest.mark.parametrize("by_another", [False, True])
async def test_a_claim_whose_answer_is_lost_is_looked_for(
    by_another: bool, autojump_clock: MockClock
) -> None:
    one, nodes = Machine("one", MemoryNodes()), MemoryNodes()
    await family(one)
    nodes._streams["a"] = Lost(by_another)
    if by_another:
        with pytest.raises(LogFailed, match="another process writes"):
            await begin_family(nodes, one.files, ["a", "b", "c"], new_name)
    else:
        await begin_family(nodes, one.files, ["a", "b", "c"], new_name)
        assert await read_family(nodes, MemoryFiles(), "a") == {"a": 3, "b": 5, "c": 3}


async def test_a_log_that_has_lost_a_branch_is_not_read() -> None:
    nodes = MemoryNodes()
    one = Machine("one", nodes)
    await family(one)
    await begin_family(other := MemoryNodes(), one.files, ["a", "b"], new_name)
    other._streams["a"].messages[0] = Message(1, b"?")
    with pytest.raises(DataCorrupted):
        await read_family(other, MemoryFiles(), "a")
