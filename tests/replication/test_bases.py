"""A machine begins with a base: it has all that a whole stream would have given it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock

from qserver.durability.branch_log import read_base
from qserver.durability.memory import MemoryLog
from qserver.durability.pinning import pin_in_log
from qserver.durability.port import NO_PARTS, CheckpointParts, Log, StoredPage
from qserver.errors import DataCorrupted, LogFailed, LogTaken
from qserver.replication import bases as bases_module
from qserver.replication import family as family_module
from qserver.replication.bases import Manifest, decode_manifest
from qserver.replication.memory import MemoryNodes, MemoryStream
from qserver.replication.messages import Branch
from qserver.replication.port import Refused, Stream, Unanswered, Value
from qserver.replication.position import load_position
from qserver.replication.replicated_log import ReplicatedLog
from qserver.web.service.exposition import stream_families
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


class Nodes(MemoryNodes):
    """Nodes whose next calls go wrong as told."""

    def __init__(self) -> None:
        super().__init__()
        self.troubles: list[str] = []
        """Of setting values."""
        self.saving = trio.Event()
        """Set when a part is to be saved; then `may_save` is waited for."""
        self.may_save = trio.Event()
        self.may_save.set()

    async def save_part(self, key: str, data: bytes) -> None:
        self.saving.set()
        await self.may_save.wait()
        await super().save_part(key, data)

    async def begin_base(self, nursery: trio.Nursery, machine: Machine) -> trio.Event:
        """Begin a base that stands still at its first part, until the event is set."""
        self.may_save, self.saving = trio.Event(), trio.Event()
        nursery.start_soon(machine.logs.make_base, "a")
        await self.saving.wait()
        return self.may_save

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "not sent":
            raise Unanswered
        if trouble == "refused":
            raise Refused(revision + 1)
        done = await super().set_value(key, data, revision)
        if trouble == "answer lost":
            raise Unanswered
        return done

    def stream(self, name: str = "a") -> MemoryStream:
        return self._streams[name]

    def manifest(self, name: str = "a") -> Manifest:
        return decode_manifest(self._values[f"manifest.{name}"].data, name)

    @property
    def is_purged(self) -> bool:
        """Up to the manifest, and not beyond; the last message of a stream stays."""
        until = self.manifest().position.sequence
        return self.stream().first in (until, until + 1)

    @property
    def saved(self) -> dict[str, bytes]:
        return self._parts


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    monkeypatch.setattr(bases_module, "PART_BYTES", 100)
    return Nodes()


async def test_another_machine_begins_with_a_base(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 30))
            await one.logs.make_base("a")
            assert nodes.stream().first > 1
            await log.append(records(31, 33))
        async with two.logs.open("a") as log:
            assert await all_of(log) == records(1, 33)
            await log.append(records(34, 34))
        assert await content_of(one, "a") == records(1, 34), "it went on from its own files"
    assert two.files.staged == {}


async def test_a_base_has_branches_and_what_they_share(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a", "c": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 2)
            async with one.logs.open("b") as own:
                await own.append(records(3, 4, "b "))
            await one.logs.make_base("b")
            await make_branch(one, log, "c", 3)
        assert [file.name for file in nodes.manifest().files] == ["a", "b"]
        assert one.files.copied == ["a", "b"], "parents first"
        assert await content_of(two, "c") == records(1, 3)
        async with two.logs.open("b") as own:
            assert await all_of(own) == records(1, 2) + records(3, 4, "b ")
            base = read_base(two.files.logs["b"])
            assert base is not None and base.parent == "a"


async def test_appends_go_on_while_a_base_is_made(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a", "c": "a", "d": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log, trio.open_nursery() as nursery:
            await log.append(records(1, 20))
            for name in ("b", "c"):
                await make_branch(one, log, name, 20)
            may_save = await nodes.begin_base(nursery, one)
            await log.append(records(21, 40))
            await one.logs.remove("b")
            await make_branch(one, log, "d", 30)
            may_save.set()
        position = nodes.manifest().position
        assert position.versions == {"a": 20, "b": 20, "c": 20}
        assert [file.name for file in nodes.manifest().files] == ["a", "c"]
        assert await content_of(two, "a") == records(1, 40)
        assert sorted(two.files.logs) == ["a", "c", "d"]
        assert await content_of(two, "d") == records(1, 30)


async def test_a_database_that_is_being_copied_can_be_removed(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log, trio.open_nursery() as nursery:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 3)
            await nodes.begin_base(nursery, one)
            while "b" not in one.files.copied:
                await nodes.saving.wait()
                nodes.may_save.set()
                await trio.lowlevel.checkpoint()
                nodes.may_save, nodes.saving = trio.Event(), trio.Event()
            await one.logs.remove("b")
            nodes.may_save.set()
        assert [file.name for file in nodes.manifest().files] == ["a"]
        assert await content_of(two, "a") == records(1, 3)


async def test_a_base_is_made_when_the_stream_has_become_long(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(family_module, "POSITION_BYTES", 200)
    monkeypatch.setattr(bases_module, "BASE_BYTES", 2000)
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        version = 0
        while not nodes._values:
            version += 1
            await log.append(records(version, version, "x" * 50))
            await trio.sleep(0.01)
        first = nodes.manifest()
        assert 20 < version < 60
        while nodes.manifest() == first:
            version += 1
            await log.append(records(version, version, "x" * 50))
            await trio.sleep(0.01)
        assert {key.split(".")[1] for key in nodes.saved} == {nodes.manifest().base}
        assert nodes.is_purged
        size = one.files.size_bytes("a")
        assert version * 50 > size / 2, "no base for less than half of the files"


async def test_a_base_that_cannot_be_made_is_reported_and_tried_again(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(family_module, "POSITION_BYTES", 100)
    monkeypatch.setattr(bases_module, "BASE_BYTES", 100)
    one = Machine("one", nodes)
    nodes.troubles = ["not sent"] * 10
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 30))
        await trio.sleep(60)
        assert one.reports == ["the base of the family a is not made"]
        assert nodes.stream().first == 1, "nothing is purged"
        nodes.troubles = []
        await log.append(records(31, 60))
        await trio.sleep(60)
        assert nodes.stream().first > 1
        assert {key.split(".")[1] for key in nodes.saved} == {nodes.manifest().base}


@pytest.mark.parametrize("trouble", ["not sent", "answer lost", "refused"])
async def test_a_manifest_whose_outcome_is_unknown_is_read(
    nodes: Nodes, trouble: str, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 5))
            nodes.troubles = [trouble]
            await one.logs.make_base("a")
            assert nodes.is_purged
        assert await content_of(two, "a") == records(1, 5)


async def test_nothing_is_purged_while_the_manifest_is_not_known_to_be_set(
    nodes: Nodes, autojump_clock: MockClock
) -> None:
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 5))
        await log.append(records(6, 7))
        nodes.troubles = ["not sent"] * 99
        with pytest.raises(LogFailed):
            await one.logs.make_base("a")
        assert nodes.stream().first == 1
        assert nodes.saved, "the manifest may be set yet"


async def test_of_two_makers_the_older_gives_up(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as stale:
        await stale.append(records(1, 20))
        async with trio.open_nursery() as nursery:
            slow = await nodes.begin_base(nursery, one)
            nodes.may_save = trio.Event()
            nodes.may_save.set()
            async with two.logs.open("a") as log:
                await log.append(records(21, 30))
                await two.logs.make_base("a")
                manifest = nodes.manifest()
                await log.append(records(31, 31))
                slow.set()
        assert nodes.manifest() == manifest
        assert {key.split(".")[1] for key in nodes.saved} == {manifest.base}
        assert nodes.is_purged
    async with running(three := Machine("three", nodes)), three.logs.open("a") as log:
        assert await all_of(log) == records(1, 31)


async def test_an_older_base_that_is_done_first_leaves_the_newer_ones_parts(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as stale:
        await stale.append(records(1, 20))
        async with trio.open_nursery() as nursery:
            older = await nodes.begin_base(nursery, one)
            async with two.logs.open("a") as log:
                await log.append(records(21, 30))
                async with trio.open_nursery() as inner:
                    (await nodes.begin_base(inner, two)).set()
                    nodes.may_save = older
                    await trio.testing.wait_all_tasks_blocked()
                    older.set()
    async with running(three := Machine("three", nodes)), three.logs.open("a") as log:
        assert await all_of(log) == records(1, 30)


def _lose(nodes: Nodes) -> None:
    del nodes.saved[max(nodes.saved)]


def _spoil(nodes: Nodes) -> None:
    nodes.saved[max(nodes.saved)] += b"x"


def _forget(nodes: Nodes) -> None:
    nodes._values.clear()


def _break(nodes: Nodes) -> None:
    nodes._values["manifest.a"] = Value(9, b"?")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_lose, "is not whole: part"),
        (_spoil, "is not what was saved"),
        (_forget, "no base has"),
        (_break, "cannot be decoded"),
    ],
)
async def test_a_base_that_is_not_whole_is_refused(
    nodes: Nodes, damage: object, said: str, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 30))
            await log.append(records(31, 31))
            await one.logs.make_base("a")
        damage(nodes)  # type: ignore[operator]
        with pytest.raises(DataCorrupted, match=said):
            await content_of(two, "a")
        assert not two.files.logs and not two.files.staged
        if damage is not _break:
            async with one.logs.open("a") as log:
                await log.append(records(32, 32))
                await one.logs.make_base("a")
            assert await content_of(two, "a") == records(1, 32)


async def test_files_that_are_too_old_are_replaced(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a", "c": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 3)
            await make_branch(one, log, "c", 3)
        async with two.logs.open("a") as log:
            await log.append(records(4, 6))
            await two.logs.remove("b")
            await two.logs.make_base("a")
            await log.append(records(7, 8))
        async with one.logs.open("a") as log:
            assert await all_of(log) == records(1, 8)
            position = load_position(one.files.logs["a"])
            assert position == nodes.manifest().position
        assert sorted(one.files.logs) == ["a", "c"]


@pytest.mark.parametrize("is_other", [False, True])
async def test_a_file_that_has_more_than_base_and_stream_is_not_replaced(
    nodes: Nodes, is_other: bool
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with two.logs.open("a") as log:
            await log.append(records(1, 3))
        async with one.logs.open("a") as log:
            await log.append(records(4, 5))
            await one.logs.make_base("a")
            await log.append(records(6, 7))
        more = records(4, 6, "lost ") if is_other else records(4, 9)
        await MemoryLog.append(two.files.logs["a"], more)
        with pytest.raises(DataCorrupted, match="more than the replicated log"):
            await content_of(two, "a")
        assert await all_of(two.files.logs["a"]) == records(1, 3) + more
        assert two.files.staged == {}


async def test_a_stream_that_is_lost_with_its_base_left_is_refused(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await one.logs.make_base("a")
        await nodes.remove_stream("a")
        for machine in (one, two):
            with pytest.raises(DataCorrupted, match="no stream"):
                await content_of(machine, "a")
        assert await all_of(one.files.logs["a"]) == records(1, 3)


async def test_a_stream_that_lost_messages_behind_its_base_is_refused(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await one.logs.make_base("a")
            await log.append(records(4, 4))
            await log.append(records(5, 5))
        messages = nodes.stream().messages
        messages[-2:] = [messages[-1]]
        with pytest.raises(DataCorrupted, match="does not fit together"):
            await content_of(two, "a")


async def test_a_branch_that_cannot_be_made_here_is_in_the_next_base(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 5))
        async with two.logs.open("a") as log:
            await make_branch(two, log, "b", 2)
        await one.files.logs["a"].forget(4, ())  # its history is shorter than the other's
        with pytest.raises(DataCorrupted, match="files of b are missing"):
            await content_of(one, "a")
        async with two.logs.open("a") as log:
            assert isinstance(log, ReplicatedLog)
            nodes.stream().purge = _nothing  # type: ignore[method-assign]
            await two.logs.make_base("a")
        assert await content_of(one, "b") == records(1, 2)


async def _nothing(until: int) -> None:
    """Leave the stream as it is."""


async def test_a_removed_family_has_no_base(nodes: Nodes) -> None:
    one = Machine("one", nodes)
    async with running(one), trio.open_nursery() as nursery:
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await one.logs.make_base("a")
            await log.append(records(4, 5))
            await nodes.begin_base(nursery, one)
        await one.logs.remove("a")
        await one.logs.remove("a")
        assert not (nodes.saved or nodes._values or one.files.logs)
        assert await content_of(one, "a") == []


async def test_a_newer_base_while_one_is_loaded_is_taken_instead(nodes: Nodes) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    files = MemoryFiles()
    two = Machine("two", nodes, files)
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 30))
            await one.logs.make_base("a")
            old = nodes.manifest()
            await log.append(records(31, 60))
            await one.logs.make_base("a")
        newest = nodes._values["manifest.a"]
        nodes._values["manifest.a"] = Value(newest.revision, bases_module._encode(old))
        real = nodes.load_part

        async def load_part(key: str) -> bytes | None:
            nodes._values["manifest.a"] = newest
            return await real(key)

        nodes.load_part = load_part  # type: ignore[method-assign]
        assert await content_of(two, "a") == records(1, 60)


class Dying(MemoryFiles):
    """Files of a process that ends before one of its changes."""

    def __init__(self, logs: dict[str, MemoryLog], changes: int) -> None:
        super().__init__()
        self.logs = logs
        self._changes = changes

    def _change(self) -> None:
        self._changes -= 1
        if self._changes < 0:
            raise LogFailed("the process ends")

    async def remove(self, name: str) -> None:
        self._change()
        await super().remove(name)

    async def stage(
        self, name: str, pieces: AsyncIterator[bytes], page: StoredPage | None = None
    ) -> None:
        self._change()
        await super().stage(name, pieces, page)

    async def place(self, name: str) -> None:
        self._change()
        await super().place(name)


@pytest.mark.parametrize("changes", range(11))
async def test_a_base_that_is_loaded_in_part_is_loaded_again(nodes: Nodes, changes: int) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a", "c": "a", "d": "a"}
    async with running(one, two):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 2)
            await make_branch(one, log, "c", 3)
        async with two.logs.open("a") as log:
            await log.append(records(4, 4))
            await two.logs.make_base("a")
            await log.append(records(5, 5))
            await make_branch(two, log, "d", 3)
    position = load_position(one.files.logs["a"])
    assert nodes.stream().first > position.sequence + 1
    machines = [Machine("one", nodes, Dying(one.files.logs, many)) for many in (changes, 99)]
    for machine in machines:
        machine.roots = one.roots
    async with running(*machines):
        with suppress(LogFailed):
            async with machines[0].logs.open("a"):
                assert changes >= 10, "it takes so many"
        for name, end in (("a", 5), ("b", 2), ("c", 3), ("d", 3)):
            assert await content_of(machines[1], name) == records(1, end)


async def test_an_owner_whose_stream_was_purged_has_lost_it(autojump_clock: MockClock) -> None:
    nodes = MemoryNodes()
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as stale:
        await stale.append(records(1, 1))
        async with two.logs.open("a") as log:
            await log.append(records(2, 9))
            await two.logs.make_base("a")
        with pytest.raises(LogFailed, match="has made a base"):
            await stale.append(records(2, 2))
        with pytest.raises(LogTaken):
            await stale.fence(1)


async def test_no_base_is_made_while_a_branch_has_no_file_yet() -> None:
    nodes = MemoryNodes()
    one = Machine("one", nodes)
    one.roots = {"b": "a"}
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 3))
        kept = await pin_in_log(log, "b", 3)
        assert kept is not None and isinstance(log, ReplicatedLog)
        message = Branch("b", "a", 3)
        await log.family.publish(message)
        await one.logs.make_base("a")
        assert await nodes.value("manifest.a") is None
        assert await nodes.parts("a.") == []
        await one.logs.copies.begin(message, log, kept)
        await one.logs.make_base("a")
        manifest = await nodes.value("manifest.a")
        assert manifest is not None
        assert [file.name for file in decode_manifest(manifest.data, "a").files] == ["a", "b"]


class Slow(MemoryLog):
    """A file whose checkpoints wait."""

    def __init__(self) -> None:
        super().__init__()
        self.saving, self.may_save = trio.Event(), trio.Event()

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        self.saving.set()
        await self.may_save.wait()
        await super().save_checkpoint(version, data, parts, after)


async def test_no_base_has_a_branch_whose_file_is_made_in_part() -> None:
    nodes, file = MemoryNodes(), Slow()
    one = Machine("one", nodes)
    one.roots, one.files.logs["b"] = {"b": "a"}, file
    async with running(one), one.logs.open("a") as log, trio.open_nursery() as nursery:
        await log.append(records(1, 3))
        nursery.start_soon(make_branch, one, log, "b", 3)
        await file.saving.wait()
        await one.logs.make_base("a")
        assert await nodes.value("manifest.a") is None
        file.may_save.set()


async def test_files_of_databases_that_others_removed_are_removed_at_a_start(nodes: Nodes) -> None:
    one = Machine("one", nodes)
    one.roots = {"b": "a"}
    async with running(one):
        async with one.logs.open("a") as log:
            await log.append(records(1, 3))
            await make_branch(one, log, "b", 3)
        one.files.staged["c"] = b"cut short"

        async def gone(names: Collection[str]) -> list[str]:
            assert list(names) == ["a", "b", "c"]
            return ["b", "c"]

        async with one.logs.open("b"):
            await one.logs.copies.remove_gone(gone)
        assert one.files.all_names() == ["a", "b"], "an open file stays"
        one.files.staged["c"] = b"cut short"
        await one.logs.copies.remove_gone(gone)
        assert one.files.all_names() == ["a"]
        assert await nodes.find_stream("a") is not None


async def test_a_part_that_a_node_lacks_for_a_while_is_waited_for(
    nodes: Nodes, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes, seconds=0.3)
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 9))
        await one.logs.make_base("a")
    saved = dict(nodes.saved)
    nodes.saved.clear()
    async with running(two), trio.open_nursery() as nursery:

        async def look() -> None:
            assert await content_of(two, "a") == records(1, 9)

        nursery.start_soon(look)
        await trio.sleep(bases_module.LAG_SECONDS - 1)
        nodes.saved.update(saved)


async def test_statistics_tell_how_long_a_stream_is_and_of_its_last_base(nodes: Nodes) -> None:
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 9))
        ((root, messages, logged, base),) = one.logs.statistics()
        assert (root, messages, base) == ("a", 2, 0) and logged > 9
        await one.logs.make_base("a")
        assert one.logs.statistics() == [("a", 2, 0, 2)]
        page = "".join(map(str, stream_families(one.logs.statistics())))
        assert "qserver_stream_base" in page and "'database': 'a'" in page
    assert one.logs.statistics() == []


class PurgedMeanwhile(Nodes):
    """Somebody makes the first base just after it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.make: Callable[[], Awaitable[None]] | None = None

    async def value(self, key: str) -> Value | None:
        found, make, self.make = await super().value(key), self.make, None
        if make is not None:
            await make()
        return found


async def test_a_base_that_is_made_while_another_machine_looks_for_one_is_found() -> None:
    nodes = PurgedMeanwhile()
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as log:
        for version in range(1, 6):
            await log.append(records(version, version))

        async def make() -> None:
            await one.logs.make_base("a")

        nodes.make = make
        try:
            assert await content_of(two, "a") == records(1, 5)
        except LogFailed:  # what it was about to read is gone: the next time it has the base
            assert await content_of(two, "a") == records(1, 5)


async def test_no_base_has_a_branch_that_a_crash_left_in_part() -> None:
    nodes = MemoryNodes()
    one = Machine("one", nodes)
    one.roots = {"b": "a"}
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 3))
        assert isinstance(log, ReplicatedLog)
        await log.family.publish(Branch("b", "a", 3))
        one.files.logs["b"] = MemoryLog()
        await one.logs.make_base("a")
        assert await nodes.value("manifest.a") is None


async def test_a_base_whose_pins_could_not_be_removed_is_loaded_again(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 3))
        assert await pin_in_log(log, "b", 2) is not None  # it is not made in the end
        await one.logs.make_base("a")

    async def failing(own: Log, names: Collection[str]) -> None:
        monkeypatch.undo()
        raise LogFailed("the file cannot be written")

    monkeypatch.setattr(bases_module, "unpin_others", failing)
    async with running(two):
        with pytest.raises(LogFailed):
            await content_of(two, "a")
        async with two.logs.open("a") as log:
            assert await all_of(log) == records(1, 3)
            assert all(b"b" not in outline for _, outline in await log.load_outlines())


class Interrupted(MemoryNodes):
    """The same nodes, but something happens before the first append."""

    def __init__(self, nodes: MemoryNodes, work: Callable[[], Awaitable[None]]) -> None:
        vars(self).update(vars(nodes))
        self._work = [work]

    async def find_stream(self, name: str) -> Stream | None:
        found = await super().find_stream(name)
        return None if found is None else InterruptedStream(found, self._work)


class InterruptedStream(Troubled):
    def __init__(self, stream: Stream, work: list[Callable[[], Awaitable[None]]]) -> None:
        super().__init__(stream)
        self._work = work

    async def append(self, data: bytes, expected: int) -> int:
        if self._work:
            await self._work.pop()()
        return await super().append(data, expected)


async def test_a_base_made_while_a_machine_reads_is_what_it_begins_with(
    nodes: MemoryNodes,
) -> None:
    one = Machine("one", nodes)
    async with running(one), one.logs.open("a") as log:
        await log.append(records(1, 3))
        await one.logs.make_base("a")

        async def go_on() -> None:
            await log.append(records(4, 5))
            await log.append(records(6, 6))
            await one.logs.make_base("a")

        two = Machine("two", Interrupted(nodes, go_on))
        async with running(two):
            assert await content_of(two, "a") == records(1, 6)
