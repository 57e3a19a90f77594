"""What every implementation of the port to log nodes must do: the same tests for each.

    class TestMyNodes(PortContract):
        @pytest.fixture
        async def candidate(self) -> AsyncIterator[LogNodes]: …

The nodes may leave calls unanswered and reads may lag at any time. Names are the test's own, so
many tests may share real nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import count

import pytest
import trio

from qserver.errors import LogFailed
from qserver.replication.port import Bounds, LogNodes, Message, Refused, Stream, Unanswered
from tests.patience import PATIENCE_SECONDS
from tests.replication.patient_nodes import PAUSE_SECONDS, PatientNodes, PatientStream, answered


async def read_all(stream: Stream, first: int, last: int, most: int = 100) -> list[Message]:
    """Read on until a message, however far the nodes that are asked lag."""
    found: list[Message] = []
    with trio.fail_after(PATIENCE_SECONDS):
        while first + len(found) <= last:
            part = await answered(partial(stream.read, first + len(found), most))
            assert len(part) <= most
            found += part
            if not part:
                await trio.sleep(PAUSE_SECONDS)
    assert [each.sequence for each in found] == list(range(first, first + len(found)))
    return found


async def append_surely(stream: Stream, data: bytes, expected: int) -> bool:
    """Append a message that is another than all others; return whether it is the next one.

    What can be read decides. Only so an owner of a stream may append.
    """
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            try:
                assert await stream.append(data, expected) == expected + 1
            except Unanswered:
                await trio.sleep(PAUSE_SECONDS)
            except Refused as refused:
                ours = partial(stream.read, expected + 1, 1)
                if refused.last > expected and (found := await answered(ours)):
                    return found[0].data == data
                await trio.sleep(PAUSE_SECONDS)
            else:
                return True


async def race(
    streams: Sequence[Stream], is_enough: Callable[[dict[int, bytes]], bool]
) -> dict[int, bytes]:
    """Let several append, each behind the last message that it has read; return whose succeeded.

    They are the same stream, each opened by one writer.
    """
    acknowledged: dict[int, bytes] = {}

    async def write(writer: int, stream: Stream) -> None:
        read = 0
        for number in count():
            if is_enough(acknowledged):
                return
            data = b"%d:%d" % (writer, number)
            read = await end_of(stream, read)
            if await append_surely(stream, data, read):
                assert read + 1 not in acknowledged, "two messages in one place"
                acknowledged[read + 1] = data

    async with trio.open_nursery() as nursery:
        for writer, stream in enumerate(streams):
            nursery.start_soon(write, writer, stream)
    return acknowledged


async def end_of(stream: Stream, read: int) -> int:
    """The last message that can be read now."""
    while True:
        part = await answered(partial(stream.read, read + 1, 100))
        if not part:
            return read
        read = part[-1].sequence


async def check_race(stream: Stream, acknowledged: dict[int, bytes]) -> None:
    """Nothing that was acknowledged is lost, in another place, or there twice."""
    messages = await read_all(stream, 1, max(acknowledged))
    there = {each.sequence: each.data for each in messages}
    assert {at: there[at] for at in acknowledged} == acknowledged
    assert len(set(there.values())) == len(there), "a message is there twice"


class PortContract:
    @pytest.fixture
    async def candidate(self) -> AsyncIterator[LogNodes]:
        raise AssertionError("each kind of nodes has its own")
        yield

    @pytest.fixture
    async def nodes(self, candidate: LogNodes) -> PatientNodes:
        return PatientNodes(candidate)

    @pytest.fixture
    def name(self, request: pytest.FixtureRequest) -> str:
        """A word that no other test has."""
        return re.sub(r"\W", "-", f"{type(self).__name__}-{request.node.name}")

    @pytest.fixture
    async def stream(self, nodes: PatientNodes, name: str) -> PatientStream:
        return await nodes.open_stream(name)

    async def append_many(self, stream: PatientStream, messages: Sequence[bytes]) -> None:
        for expected, data in enumerate(messages):
            assert await stream.append(data, expected) == expected + 1

    # --- streams ---------------------------------------------------------------------------------

    async def test_a_message_is_appended_behind_the_last(self, stream: PatientStream) -> None:
        messages = [b"a", b"", b"\0\r\n\xff", b"d" * 100_000]
        await self.append_many(stream, messages)
        assert [each.data for each in await read_all(stream, 1, 4)] == messages
        assert await stream.bounds() == Bounds(1, 4)

    async def test_a_message_is_refused_behind_any_other(self, stream: PatientStream) -> None:
        for expected in (1, 2):
            with pytest.raises(Refused) as refused:
                await stream.append(b"x", expected)
            assert refused.value.last == 0
        await self.append_many(stream, [b"a", b"b"])
        for expected in (0, 1, 3, 2**40):
            with pytest.raises(Refused) as refused:
                await stream.append(b"x", expected)
            assert refused.value.last == 2
        assert [each.data for each in await read_all(stream, 1, 2)] == [b"a", b"b"]
        assert await stream.bounds() == Bounds(1, 2)

    async def test_an_empty_stream_ends_before_its_first_message(
        self, stream: PatientStream
    ) -> None:
        assert await stream.bounds() == Bounds(1, 0)
        assert list(await stream.read(1, 10)) == []

    async def test_no_more_is_read_than_asked_for(self, stream: PatientStream) -> None:
        await self.append_many(stream, [b"%d" % at for at in range(7)])
        await read_all(stream, 1, 7)
        assert [each.data for each in await read_all(stream, 3, 4, most=1)] == [b"2", b"3"]
        assert [each.sequence for each in await read_all(stream, 1, 7, most=3)] == [*range(1, 8)]
        assert list(await stream.read(8, 5)) == []
        assert list(await stream.read(1000, 5)) == []

    async def test_many_long_messages_are_read_in_order(self, stream: PatientStream) -> None:
        messages = [bytes([at]) * 1_000_000 for at in range(12)]
        await self.append_many(stream, messages)
        assert [each.data for each in await read_all(stream, 1, 12)] == messages

    async def test_purged_messages_are_gone_and_sequences_go_on(
        self, stream: PatientStream
    ) -> None:
        await self.append_many(stream, [b"%d" % at for at in range(5)])
        await read_all(stream, 1, 5)
        await stream.purge(2)
        assert await stream.bounds() == Bounds(3, 5)
        assert [each.data for each in await read_all(stream, 3, 5)] == [b"2", b"3", b"4"]
        assert await stream.append(b"5", 5) == 6
        await stream.purge(1)
        assert await stream.bounds() == Bounds(3, 6)

    async def test_a_purged_message_is_not_read_as_another(self, stream: PatientStream) -> None:
        await self.append_many(stream, [b"%d" % at for at in range(5)])
        await stream.purge(3)
        with trio.fail_after(PATIENCE_SECONDS):
            while found := await stream.read(2, 10):  # a node that lags may have it still
                assert found[0] == Message(2, b"1")
                await trio.sleep(PAUSE_SECONDS)

    @pytest.mark.parametrize("until", [5, 6, 1000])
    async def test_a_purge_leaves_the_last_message(self, stream: PatientStream, until: int) -> None:
        await stream.purge(until)
        assert await stream.bounds() == Bounds(1, 0)
        await self.append_many(stream, [b"%d" % at for at in range(5)])
        await stream.purge(until)
        assert await stream.bounds() == Bounds(5, 5)
        assert [each.data for each in await read_all(stream, 5, 5)] == [b"4"]
        with pytest.raises(Refused) as refused:
            await stream.append(b"x", 0)
        assert refused.value.last == 5
        assert await stream.append(b"5", 5) == 6

    async def test_a_stream_is_made_once(self, nodes: PatientNodes, name: str) -> None:
        assert await nodes.find_stream(name) is None
        assert name not in await nodes.streams()
        stream = await nodes.open_stream(name)
        assert stream.name == name
        await stream.append(b"a", 0)
        for again in (await nodes.open_stream(name), await nodes.find_stream(name)):
            assert again is not None
            assert again.name == name
            assert await again.bounds() == Bounds(1, 1)
        assert list(await nodes.streams()).count(name) == 1
        assert list(await nodes.streams()) == sorted(await nodes.streams())

    async def test_a_stream_is_apart_from_others(self, nodes: PatientNodes, name: str) -> None:
        first, second = [await nodes.open_stream(f"{name}-{at}") for at in (1, 2)]
        await first.append(b"a", 0)
        assert await second.append(b"b", 0) == 1
        await nodes.remove_stream(first.name)
        assert [each.data for each in await read_all(second, 1, 1)] == [b"b"]

    async def test_a_removed_stream_is_gone(
        self, nodes: PatientNodes, stream: PatientStream
    ) -> None:
        await stream.append(b"a", 0)
        await nodes.remove_stream(stream.name)
        await nodes.remove_stream(stream.name)
        assert await nodes.find_stream(stream.name) is None
        assert stream.name not in await nodes.streams()
        with pytest.raises((LogFailed, Unanswered)):
            await stream.stream.append(b"b", 1)
        with pytest.raises((LogFailed, Unanswered)):
            await stream.stream.bounds()
        again = await nodes.open_stream(stream.name)
        assert await again.bounds() == Bounds(1, 0)
        assert await again.append(b"c", 0) == 1

    # --- values ----------------------------------------------------------------------------------

    async def test_a_value_changes_only_from_its_revision(
        self, nodes: PatientNodes, name: str
    ) -> None:
        assert await nodes.value(name) is None
        with pytest.raises(Refused) as refused:
            await nodes.set_value(name, b"x", 7)
        assert refused.value.last == 0
        first = await nodes.set_value(name, b"1", 0)
        assert first > 0
        for revision in (0, first + 1):
            with pytest.raises(Refused) as refused:
                await nodes.set_value(name, b"x", revision)
            assert refused.value.last == first
        second = await nodes.set_value(name, b"", first)
        assert second > first
        value = await nodes.value(name)
        assert value is not None
        assert (value.revision, value.data) == (second, b"")

    async def test_a_removed_value_gets_a_new_revision(
        self, nodes: PatientNodes, name: str
    ) -> None:
        first = await nodes.set_value(name, b"1", 0)
        await nodes.remove_value(name)
        await nodes.remove_value(name)
        assert await nodes.value(name) is None
        with pytest.raises(Refused) as refused:
            await nodes.set_value(name, b"2", first)
        assert refused.value.last == 0
        assert await nodes.set_value(name, b"2", 0) > first

    async def test_values_are_found_by_prefix(self, nodes: PatientNodes, name: str) -> None:
        keys = [f"{name}.node.n1", f"{name}.node.n2", f"{name}.nodes", f"{name}.other.n1"]
        revisions = {key: await nodes.set_value(key, key.encode(), 0) for key in keys}
        found = await nodes.values(f"{name}.node.")
        assert {key: (each.revision, each.data) for key, each in found.items()} == {
            key: (revisions[key], key.encode()) for key in keys[:2]
        }
        assert list(await nodes.values(f"{name}.no")) == sorted(keys[:3])
        assert list(await nodes.values(f"{name}.node.n2")) == [keys[1]]
        assert set(keys) <= set(await nodes.values(""))
        assert await nodes.values(f"{name}.nothing.") == {}
        await nodes.remove_value(keys[0])
        assert list(await nodes.values(f"{name}.node.")) == [keys[1]]

    # --- parts -----------------------------------------------------------------------------------

    async def test_a_part_is_loaded_as_it_was_saved(self, nodes: PatientNodes, name: str) -> None:
        assert await nodes.load_part(f"{name}.1.0") is None
        for at, data in enumerate([b"", b"\0\r\n\xff", b"d" * 4_000_000]):
            await nodes.save_part(f"{name}.1.{at}", data)
            assert await nodes.load_part(f"{name}.1.{at}") == data
        await nodes.save_part(f"{name}.1.1", b"again")
        assert await nodes.load_part(f"{name}.1.1") == b"again"
        assert await nodes.load_part(f"{name}.1.3") is None
        assert len(await nodes.parts(f"{name}.1.")) == 3

    async def test_parts_are_listed_and_removed_by_prefix(
        self, nodes: PatientNodes, name: str
    ) -> None:
        keys = [f"{name}.{base}.{part:04}" for base in (1, 10, 2) for part in range(3)]
        for key in reversed(keys):
            await nodes.save_part(key, key.encode())
        assert list(await nodes.parts(f"{name}.")) == sorted(keys)
        assert list(await nodes.parts(f"{name}.1.")) == keys[:3]
        assert list(await nodes.parts(f"{name}.1")) == keys[:6]
        await nodes.remove_parts(f"{name}.1.")
        assert list(await nodes.parts(f"{name}.")) == keys[3:]
        await nodes.remove_parts(f"{name}.1")
        assert list(await nodes.parts(f"{name}.")) == keys[6:]
        await nodes.remove_parts(f"{name}.nothing.")
        await nodes.remove_parts(f"{name}.2.0001")
        assert list(await nodes.parts(f"{name}.")) == [keys[6], keys[8]]

    # --- whoever else writes ---------------------------------------------------------------------

    async def test_writers_that_race_lose_and_fork_nothing(self, stream: PatientStream) -> None:
        await check_race(stream, await race([stream.stream] * 4, lambda done: len(done) >= 60))

    async def test_no_change_of_a_value_is_lost(self, nodes: PatientNodes, name: str) -> None:
        made: Counter[str] = Counter()
        unknown: Counter[str] = Counter()

        async def add(writer: str) -> None:
            for _ in range(10):
                value = await nodes.value(name)
                revision, data = (value.revision, value.data) if value else (0, b"")
                try:
                    await nodes.nodes.set_value(name, data + writer.encode(), revision)
                except Unanswered:
                    unknown[writer] += 1
                except Refused:
                    pass
                else:
                    made[writer] += 1

        async with trio.open_nursery() as nursery:
            for writer in "abcd":
                nursery.start_soon(add, writer)
        value = await nodes.value(name)
        assert value is not None
        assert made <= Counter(value.data.decode()) <= made + unknown
