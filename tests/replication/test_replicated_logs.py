"""A family moves between machines: nothing acknowledged is lost, and one of them writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from qserver.durability.column_numbers import POSITION
from qserver.durability.memory import MemoryLog
from qserver.durability.pinning import pin_in_log
from qserver.durability.port import Ended, Log, StoredRecord
from qserver.errors import DataCorrupted, LogFailed, LogTaken
from qserver.replication import family as family_module
from qserver.replication.family import State
from qserver.replication.memory import MemoryNodes
from qserver.replication.messages import Claim, decode, encode
from qserver.replication.port import Message, Stream, Unanswered
from qserver.replication.position import BEGINNING, load_position
from qserver.replication.replicated_log import ReplicatedLog
from tests.replication.machines import (
    Machine,
    MemoryFiles,
    Troubled,
    all_of,
    content_of,
    make_branch,
    records,
    running,
)
from tests.sql.databases import opened_sql


@pytest.fixture
def nodes() -> MemoryNodes:
    return MemoryNodes()


def replicated(log: Log) -> ReplicatedLog:
    assert isinstance(log, ReplicatedLog)
    return log


async def test_a_new_machine_has_what_another_wrote(nodes: MemoryNodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            assert await log.fence(0)
            await log.append(records(1, 3))
            await log.append(records(4, 4))
        async with two.logs.open("a") as log:
            assert await all_of(log) == records(1, 4)
            assert not await log.fence(0)
            assert await log.fence(4)
            await log.append(records(5, 5))
        assert await content_of(one, "a") == records(1, 5)


async def test_a_stale_owner_can_write_nothing(nodes: MemoryNodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as stale:
        await stale.append(records(1, 1))
        async with two.logs.open("a") as log:
            with pytest.raises(LogTaken) as taken:
                await stale.append(records(2, 3, "other "))
            assert taken.value.version == 2
            await log.append(records(2, 2))
            with pytest.raises(LogTaken):
                await stale.fence(1)
            assert await all_of(log) == records(1, 2)
        assert await all_of(stale) == records(1, 1), "its file is old, and not wrong"


async def test_members_of_a_family_share_a_message(nodes: MemoryNodes) -> None:
    one = Machine("one", nodes)
    one.roots = {"b": "a"}
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 1))
        await make_branch(one, log, "b", 1)
        stream = await nodes.find_stream("a")
        assert stream is not None
        async with one.logs.open("b") as other, trio.open_nursery() as nursery:
            before = (await stream.bounds()).last
            for each in (log.append(records(2, 2)), other.append(records(2, 3))):
                nursery.start_soon(_wait, each)
        assert (await stream.bounds()).last == before + 1
    assert replicated(log).family.versions == {"a": 2, "b": 3}


async def _wait(awaitable: object) -> None:
    await awaitable  # type: ignore[misc]


@pytest.mark.parametrize("trouble", ["not sent", "answer lost", "refused by itself"])
async def test_an_append_is_repeated_and_applied_once(
    nodes: MemoryNodes, trouble: str, autojump_clock: MockClock
) -> None:
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        troubled = _troubled(log)
        troubled.troubles = [trouble] * 3
        await log.append(records(1, 2))
        await log.append(records(3, 3))
        assert await all_of(log) == records(1, 3)
    async with running(two := Machine("two", nodes)), two.logs.open("a") as log:
        assert await all_of(log) == records(1, 3)


def _troubled(log: Log) -> Troubled:
    family = replicated(log).family
    family._stream = troubled = Troubled(family._stream)
    return troubled


@pytest.mark.parametrize("is_there", [False, True])
async def test_what_became_of_an_unknown_append_shows_when_the_nodes_answer(
    nodes: MemoryNodes, is_there: bool, autojump_clock: MockClock
) -> None:
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        troubled = _troubled(log)
        troubled.troubles = ["answer lost" if is_there else "not sent"] + ["not sent"] * 99
        with pytest.raises(LogFailed) as raised:
            await log.append(records(1, 1))
        assert raised.value.detail == "stream a, message 2, led by n2 when nodes last told"
        assert "If all of them run, restart n2." in (raised.value.hint or "")
        assert replicated(log).family.state is State.DOUBT
        assert await all_of(log) == []
        troubled.troubles = []
        assert await log.fence(0) is not is_there
        assert await all_of(log) == (records(1, 1) if is_there else [])
        await log.append(records(2, 2) if is_there else records(1, 1, "again "))


async def test_a_long_message_is_sent_in_parts(
    nodes: MemoryNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family_module, "MESSAGE_BYTES", 50)
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 40))
            await log.append(records(41, 41))
        assert await content_of(two, "a") == records(1, 41)


async def test_a_claim_voids_parts_without_their_last(
    nodes: MemoryNodes, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(family_module, "MESSAGE_BYTES", 50)
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as stale:
        troubled = _troubled(stale)
        troubled.troubles = ["", ""] + ["not sent"] * 99
        with pytest.raises(LogFailed):
            await stale.append(records(1, 40))
        async with two.logs.open("a") as log:
            assert await all_of(log) == []
            await log.append(records(1, 2, "two "))
        async with running(three := Machine("three", nodes)), three.logs.open("a") as log:
            assert await all_of(log) == records(1, 2, "two ")


async def test_a_start_reads_on_from_the_position(nodes: MemoryNodes) -> None:
    files = MemoryFiles()
    one = Machine("one", nodes, files)
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 5))
    position = load_position(files.logs["a"])
    assert position.versions == {"a": 5}
    stream = await nodes.find_stream("a")
    assert stream is not None
    assert position.sequence == (await stream.bounds()).last
    async with running(one), one.logs.open("a") as log:
        await log.append(records(6, 6))


def _cut(messages: list[Message]) -> None:
    del messages[2:]


def _replace(messages: list[Message]) -> None:
    """Put another message in the place of one, with the right checksum before it."""
    old = decode(messages[1].data, "")
    messages[1] = Message(2, encode(old.previous, "one.1", Claim()))


def _replace_last(messages: list[Message]) -> None:
    old = decode(messages[-1].data, "")
    messages[-1] = Message(messages[-1].sequence, encode(old.previous, "one.1", Claim()))


@pytest.mark.parametrize("damage", [_cut, _replace, _replace_last])
@pytest.mark.parametrize("is_new", [False, True])
async def test_a_log_that_lost_or_forked_is_refused(
    nodes: MemoryNodes,
    damage: Callable[[list[Message]], None],
    is_new: bool,
    autojump_clock: MockClock,
) -> None:
    files = MemoryFiles()
    one = Machine("one", nodes, files)
    async with running(one), one.logs.open("a") as log:
        for version in range(1, 5):
            await log.append(records(version, version))
    stream = await nodes.find_stream("a")
    damage(stream.messages)  # type: ignore[union-attr]
    if is_new and damage is not _replace:
        pytest.skip("whoever has no file cannot know of the end")
    two = Machine("two", nodes, MemoryFiles() if is_new else files)
    if damage is _replace and not is_new:
        files.logs["a"]._pages.clear()  # the position is lost, so it reads all again
    async with running(two):
        with pytest.raises(DataCorrupted):
            await content_of(two, "a")
    assert is_new or await all_of(files.logs["a"]) == records(1, 4), "the second copy stays"


async def test_a_file_that_has_more_than_the_log_is_refused(nodes: MemoryNodes) -> None:
    files = MemoryFiles()
    one = Machine("one", nodes, files)
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 2))
    await MemoryLog.append(files.logs["a"], records(3, 3))
    async with running(one):
        with pytest.raises(DataCorrupted, match="ends with version 3"):
            await content_of(one, "a")


async def test_a_file_that_went_another_way_is_refused(nodes: MemoryNodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 2))
        two.files.logs["a"] = await _file(records(1, 1, "other "))
        with pytest.raises(DataCorrupted, match="not the same"):
            await content_of(two, "a")


async def _file(contents: list[StoredRecord]) -> MemoryLog:
    log = MemoryLog()
    await log.append(contents)
    return log


async def test_branches_are_messages(nodes: MemoryNodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a", "c": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            kept = await pin_in_log(log, "b", 2)
            assert kept is not None and kept.version == 0
            await one.logs.branch("b", "a", log, kept, 2)
            async with one.logs.open("b") as branch:
                assert await all_of(branch) == records(1, 2)
                await branch.append(records(3, 4, "b "))
            await make_branch(one, log, "c", 3)
            await one.logs.remove("c")
        async with two.logs.open("b") as log:
            assert await all_of(log) == records(1, 2) + records(3, 4, "b ")
            assert sorted(two.files.logs) == ["a", "b"]
            outlines = await two.files.logs["a"].load_outlines()
        names = [name for name in ("b", "c") if any(name.encode() in data for _, data in outlines)]
        assert names == ["b"], "nothing is held for a branch that is gone"


async def test_a_branch_that_was_made_in_part_is_made_again(nodes: MemoryNodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 2)
        two.files.logs["b"] = MemoryLog()  # a crash left no more of it
        assert await content_of(two, "b") == records(1, 2)


@pytest.mark.parametrize("crashes", [False, True])
async def test_a_pin_goes_with_its_branch_though_the_branch_was_never_made(
    nodes: MemoryNodes, crashes: bool
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            assert await pin_in_log(log, "b", 2) is not None
        async with two.logs.open("a"):
            await two.logs.remove("b")
        if crashes:  # before it wrote its position
            del one.files.logs["a"]._pages[POSITION]
        async with one.logs.open("a") as log:
            assert all(b"b" not in outline for _, outline in await log.load_outlines())


async def test_columns_that_are_saved_leave_the_position_alone(nodes: MemoryNodes) -> None:
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log, opened_sql(log) as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        await database.execute("INSERT INTO t SELECT generate_series(1, 10000)")
        await replicated(log).family.save_position()
        position = load_position(one.files.logs["a"])
        assert position != BEGINNING
        await database.database.checkpoint()
        assert min(one.files.logs["a"]._pages) < POSITION, "columns are there"
        assert load_position(one.files.logs["a"]) == position


async def test_a_crash_between_a_removal_and_its_unpin_leaves_no_pin(nodes: MemoryNodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            kept = await pin_in_log(log, "b", 2)
            assert kept is not None
            await one.logs.branch("b", "a", log, kept, 2)
            await one.logs.remove("b")
            await replicated(log).family.save_position()
            assert any(b"b" in outline for _, outline in await log.load_outlines())
        async with two.logs.open("a"):
            await two.logs.remove("b")  # its record is there until it is unpinned
        for machine in (one, two):
            async with machine.logs.open("a") as log:
                assert all(b"b" not in outline for _, outline in await log.load_outlines())


async def test_a_missing_file_is_no_fault_while_a_node_lags_that_would_tell_of_its_removal(
    nodes: MemoryNodes,
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 2)
            await one.logs.remove("b")
        stream = await nodes.find_stream("a")
        assert stream is not None
        behind = LaggingNodes(stream, (await stream.bounds()).last - 1)
        two = Machine("two", behind)
        two.files.logs["a"] = MemoryLog()
        await two.files.logs["a"].append(records(1, 3))
        await two.files.logs["a"].forget(2, [])
    async with running(two):
        with pytest.raises(LogFailed):
            await content_of(two, "a")
        behind.last += 1
        async with two.logs.open("a"):
            assert sorted(two.files.logs) == ["a"]


async def test_an_own_claim_that_came_late_is_not_taken_for_another_one(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        family = replicated(log).family
        troubled = Troubled(family._stream)
        family._stream = troubled
        troubled.troubles = ["not sent"] * 1000
        with pytest.raises(LogFailed):
            await log.append(records(1, 1))
        troubled.troubles = ["answer lost", *["not sent"] * 1000]
        with pytest.raises(LogFailed):
            await log.append(records(1, 1))
        troubled.troubles = []
        await log.append(records(1, 1))
        assert await all_of(log) == records(1, 1)


class LaggingNodes(MemoryNodes):
    """Nodes with one stream, of which readers see the messages up to `last`."""

    def __init__(self, stream: Stream, last: int) -> None:
        super().__init__()
        self._stream = stream
        self.last = last

    async def find_stream(self, name: str) -> Stream | None:
        return LaggingStream(self._stream, self)


class LaggingStream(Troubled):
    def __init__(self, stream: Stream, nodes: LaggingNodes) -> None:
        super().__init__(stream)
        self._nodes = nodes

    async def read(self, first: int, most: int) -> Sequence[Message]:
        messages = await super().read(first, most)
        return [each for each in messages if each.sequence <= self._nodes.last]


async def test_a_stale_owner_does_not_make_a_branch_that_another_has_made(
    nodes: MemoryNodes,
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two), one.logs.open("a") as stale:
        await stale.append(records(1, 1))
        async with two.logs.open("a") as log:
            await make_branch(two, log, "b", 1)
        with pytest.raises(LogTaken):
            await content_of(one, "b")
        assert "b" not in one.files.logs


async def test_the_position_is_no_page_of_a_tree(nodes: MemoryNodes) -> None:
    one = Machine("one", nodes)
    async with running(one):
        await content_of(one, "a")
        async with one.logs.open("a") as log:
            assert await log.last_page() == 0


async def test_a_removed_family_leaves_nothing(nodes: MemoryNodes) -> None:
    one = Machine("one", nodes)
    async with running(one):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
        await one.logs.remove("a")
        await one.logs.remove("a")
        assert await nodes.streams() == []
        assert one.files.logs == {}
        assert await content_of(one, "a") == []


async def test_a_removed_branch_is_not_missed_when_it_is_read_of_again(nodes: MemoryNodes) -> None:
    files = MemoryFiles()
    one = Machine("one", nodes, files)
    one.roots = {"b": "a"}
    async with running(one):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 3)
            async with one.logs.open("b") as branch:
                await branch.append(records(4, 4))
            await replicated(log).family.save_position()
            async with one.logs.open("b") as branch:
                await branch.append(records(5, 5))
            old = dict(files.logs["a"]._pages)
            await one.logs.remove("b")
        files.logs["a"]._pages |= old  # the process died before it wrote its position
        async with one.logs.open("a") as log:
            assert replicated(log).family.versions == {"a": 3}


class SilentNodes(MemoryNodes):
    """Nodes whose first calls are not answered."""

    silences = 0

    def _be_silent(self) -> None:
        self.silences -= 1
        if self.silences >= 0:
            raise Unanswered

    async def open_stream(self, name: str) -> Stream:
        stream = await super().open_stream(name)
        self._be_silent()
        return stream

    async def find_stream(self, name: str) -> Stream | None:
        self._be_silent()
        return await super().find_stream(name)

    async def remove_stream(self, name: str) -> None:
        await super().remove_stream(name)
        self._be_silent()


async def test_a_family_that_nobody_answers_about_is_asked_for_again(
    autojump_clock: MockClock,
) -> None:
    nodes = SilentNodes()
    one = Machine("one", nodes)
    async with running(one):
        nodes.silences = 4
        async with one.logs.open("a") as log:
            await log.append(records(1, 1))
        nodes.silences = 4
        await one.logs.remove("a")
        nodes.silences = 1000
        with pytest.raises(LogFailed):
            await content_of(one, "b")
    assert await nodes.streams() == []


class FullLog(MemoryLog):
    """Takes nothing for a while."""

    is_full = False

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        return Ended(LogFailed("the disk is full")) if self.is_full else super().append(records)


async def test_a_full_disk_loses_nothing_that_the_nodes_have(nodes: MemoryNodes) -> None:
    one = Machine("one", nodes)
    one.files.logs["a"] = full = FullLog()
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 1))
        full.is_full = True
        with pytest.raises(LogFailed, match="full"):
            await log.append(records(2, 2))
        with pytest.raises(LogFailed, match="full"):
            await log.fence(1)
        full.is_full = False
        assert not await log.fence(1), "there is more to read"
        assert await all_of(log) == records(1, 2)
        await log.append(records(3, 3))


async def test_a_file_that_was_replaced_by_an_older_one_is_refused(nodes: MemoryNodes) -> None:
    one = Machine("one", nodes)
    async with running(one):
        async with one.logs.open("a") as log:
            await log.append(records(1, 2))
            await log.append(records(3, 3))
        del one.files.logs["a"]._records[3]
        one.files.logs["a"]._last = 2
        with pytest.raises(DataCorrupted, match="ends before version 3"):
            await content_of(one, "a")
        one.files.logs.clear()
        assert await content_of(one, "a") == records(1, 3), "without files it is loaded again"


async def test_a_log_is_closed_while_an_append_is_on_its_way(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    """The nodes answer late: what they have is in the file when it is opened again."""
    one = Machine("one", nodes)
    one.roots = {"b": "a"}
    async with running(one):
        async with one.logs.open("a") as log:
            await log.append(records(1, 1))
            await make_branch(one, log, "b", 1)
        async with one.logs.open("a") as root:
            async with one.logs.open("b") as branch:
                troubled = _troubled(root)
                troubled.troubles = ["answer lost"] * 3
                sent = branch.append(records(2, 2))
                await trio.testing.wait_all_tasks_blocked()
            await sent
            await root.append(records(2, 2))
            async with one.logs.open("b") as branch:
                assert (await all_of(branch))[-1:] == records(2, 2)
                await branch.append(records(3, 3))
    async with running(two := Machine("two", nodes)), two.logs.open("a") as log:
        assert await all_of(log) == records(1, 2)


async def test_who_waits_while_a_right_is_lost_asks_for_it_anew(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    """A lease that has lapsed for a moment is no end: the next one that opens has it again."""
    one = Machine("one", nodes)
    one.roots = {"b": "a"}
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 2))
        await make_branch(one, log, "b", 2)
    rights = [True, False]  # before and after the first claim

    async def check_owner(root: str) -> Callable[[], bool]:
        await trio.sleep(1)  # meanwhile others come
        return lambda: rights.pop(0) if rights else True

    one.logs.check_owner = check_owner
    found: dict[str, object] = {}

    async def look(name: str) -> None:
        try:
            found[name] = await content_of(one, name)
        except LogTaken as taken:
            found[name] = taken

    async with running(one), trio.open_nursery() as nursery:
        nursery.start_soon(look, "a")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(look, "b")
    assert isinstance(found["a"], LogTaken)
    assert found["b"] == records(1, 2)
