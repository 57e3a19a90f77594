"""The feed: every version once, in order, from the window and from the past alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import Any
from unittest import mock

import pytest
import trio
import trio.lowlevel
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from qserver.engine import feed as engine_feed
from qserver.engine.feed import VERSION_BYTES_LONG, WINDOW_BYTES_MAX, Feed
from qserver.errors import OutOfMemory
from qserver.limits import ANSWER_PART_BYTES
from qserver.query.memory_pool import MemoryPool
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.storage.changes import net_changes
from qserver.web.streaming import feed as web_feed
from qserver.web.streaming.feed import EventBuffer, FeedParts, TableFilter, some_changes
from qserver.web.streaming.readers import Readers
from tests.engine.pasts import NotedPast
from tests.sql.databases import opened_sql

ALL = TableFilter()


@asynccontextmanager
async def fed() -> AsyncIterator[tuple[SqlDatabase, Feed, NotedPast]]:
    async with opened_sql() as database:
        past = NotedPast()
        engine = database.database
        engine._observers = (*engine._observers, past)
        assert engine._generation is not None
        engine._generation._log_writer._observers = engine._observers
        await database.execute("CREATE TABLE a (id INT PRIMARY KEY, v NUMERIC)")
        await database.execute("CREATE TABLE b (x TEXT)")
        yield database, engine.feed, past


async def read(
    feed: Feed, past: NotedPast, since: int, limit: int = 1000, wait: float = 0.0, **tables: Any
) -> dict[str, Any]:
    wanted = TableFilter(**tables)
    reader = Readers("feeds", lambda: 1).open("o", 1000)
    body = await some_changes(feed, past, since, wanted, limit, wait, reader)
    answer: dict[str, Any] = json.loads(body)
    return answer


async def test_changes_have_rows_before_and_after() -> None:
    async with fed() as (database, feed, past):
        await database.execute("INSERT INTO a VALUES (1, 1.50), (2, NULL)")
        await database.execute("UPDATE a SET v = 2 WHERE id = 1")
        await database.execute("UPDATE a SET id = 3 WHERE id = 2")
        await database.execute("UPDATE a SET v = v")
        await database.execute("DELETE FROM a WHERE id = 1")
        await database.execute("INSERT INTO b VALUES ('x')")
        answer = await read(feed, past, 2)
        found = [
            (each["table"], each["op"], each["key"], each["before"], each["after"])
            for each in answer["changes"]
        ]
        assert found == [
            ("a", "insert", {"id": 1}, None, {"id": 1, "v": "1.50"}),
            ("a", "insert", {"id": 2}, None, {"id": 2, "v": None}),
            ("a", "update", {"id": 1}, {"id": 1, "v": "1.50"}, {"id": 1, "v": "2"}),
            ("a", "delete", {"id": 2}, {"id": 2, "v": None}, None),
            ("a", "insert", {"id": 3}, None, {"id": 3, "v": None}),
            ("a", "delete", {"id": 1}, {"id": 1, "v": "2"}, None),
            ("b", "insert", None, None, {"x": "x"}),
        ]
        versions = [each["version"] for each in answer["changes"]]
        assert versions == sorted(versions) and versions[0] == 3
        assert answer["changes"][0]["time"] == "2023-11-14T22:13:20Z"
        assert answer["next"] == answer["newest"] == feed.newest()
        schema = await read(feed, past, 0, limit=1)
        assert [(each["table"], each["op"]) for each in schema["changes"]] == [("a", "schema")]
        assert schema["next"] == 1


async def test_a_filter_and_a_limit_leave_whole_versions() -> None:
    async with fed() as (database, feed, past):
        await database.execute("INSERT INTO a SELECT n, n FROM generate_series(1, 5) n")
        await database.execute("INSERT INTO b VALUES ('x'), ('y')")
        await database.execute("INSERT INTO a VALUES (6, 6)")
        whole = await read(feed, past, 2, limit=1)
        assert len(whole["changes"]) == 5 and whole["next"] == 3
        two = await read(feed, past, 2, limit=7)
        assert len(two["changes"]) == 7 and two["next"] < two["newest"]
        only = await read(feed, past, 2, tables=frozenset({"b"}))
        assert [each["table"] for each in only["changes"]] == ["b", "b"]
        assert only["next"] == only["newest"]
        none = await read(feed, past, only["newest"])
        assert none["changes"] == [] and none["next"] == only["newest"]


async def test_definitions_leave_room_for_the_rows_of_their_version() -> None:
    async with fed() as (database, feed, past):
        await database.execute("INSERT INTO a VALUES (1, 1), (2, 2)")
        since = feed.newest()
        rename = "ALTER TABLE a RENAME TO c"
        feed.open()
        await database.transaction([Statement(rename), Statement("DELETE FROM c WHERE id = 1")])
        found = (await read(feed, past, since))["changes"]
        feed.close()
        assert [(each["table"], each["op"], each.get("statement")) for each in found] == [
            ("a", "schema", rename),
            ("c", "schema", rename),
            ("c", "delete", None),
        ]


async def test_waiting_ends_with_the_first_change_that_passes() -> None:
    async with fed() as (database, feed, past):
        since = feed.newest()
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await read(feed, past, since, wait=600, tables=frozenset({"b"})))

        with trio.fail_after(240):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
                await database.execute("INSERT INTO a VALUES (1, 1)")
                await trio.testing.wait_all_tasks_blocked()
                assert answers == []
                await database.execute("INSERT INTO b VALUES ('x')")
        assert [each["table"] for each in answers[0]["changes"]] == ["b"]
        assert answers[0]["next"] == feed.newest()


def parsed(parts: list[bytes]) -> list[tuple[str, Any]]:
    events = []
    for block in b"".join(parts).decode().split("\n\n")[:-1]:
        if block == ": keep-alive":
            continue
        lines = block.split("\n")
        data = json.loads(lines[-1].removeprefix("data: "))
        kind = lines[0].removeprefix("event: ")
        assert ("id: " in block) == (kind == "version")
        events.append((kind, data))
    return events


async def allowed() -> None:
    await trio.lowlevel.checkpoint()


POOL = MemoryPool()


def stream(
    feed: Feed,
    past: NotedPast,
    since: int,
    wanted: TableFilter = ALL,
    pool: MemoryPool = POOL,
) -> AsyncGenerator[bytes, None]:
    reader = Readers("feeds", lambda: 1).open("o", 1000)
    return FeedParts(feed, past, since, wanted, reader, pool).events(allowed)


@pytest.mark.parametrize("long_bytes", [VERSION_BYTES_LONG, 150, 0])
async def test_readers_that_come_and_go_see_every_version_once_and_in_order(
    monkeypatch: pytest.MonkeyPatch, long_bytes: int, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(web_feed, "FEED_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(web_feed, "ANSWER_PART_BYTES", 150)
    monkeypatch.setattr(engine_feed, "VERSION_BYTES_LONG", long_bytes)
    chance = Random(3)
    async with fed() as (database, feed, past):
        monkeypatch.setattr(engine_feed, "FEED_VERSIONS_MAX", 3)  # slow readers need the past
        done = trio.Event()
        last = [0]

        async def write() -> None:
            for number in range(120):
                await database.transaction(
                    [
                        Statement("INSERT INTO a VALUES ($1, 1)", [number]),
                        Statement("DELETE FROM a WHERE id = $1 - 7", [number]),
                    ]
                )
                if chance.random() < 0.3:
                    await trio.lowlevel.checkpoint()
            last[0] = feed.newest()
            done.set()

        async def follow(seed: int) -> None:
            own = Random(seed)
            if seed == 0:
                await done.wait()  # it begins when the window has only the last versions
            since, versions = 2, list[int]()
            seen: dict[int, list[Any]] = {}
            while since < 122 or not done.is_set() or since < last[0]:
                seen.pop(since + 1, None)  # a version that was cut off comes again
                async with aclosing(stream(feed, past, since)) as parts:
                    for _ in range(own.randrange(1, 9)):
                        with trio.move_on_after(1.0) as scope:
                            part = await anext(parts)
                        if scope.cancelled_caught:
                            break
                        for kind, data in parsed([part]):
                            if kind == "version":
                                since = data["version"]
                                versions.append(since)
                            else:
                                seen.setdefault(data["version"], []).append(data)
                        if own.random() < 0.3:
                            await trio.sleep(0.03)
            assert versions == list(range(3, last[0] + 1))
            for version, changes in seen.items():
                before, append = past.noted[version]
                assert len(changes) == sum(map(len, append.writes.values())), before

        with trio.fail_after(240):
            async with trio.open_nursery() as nursery:
                for seed in range(4):
                    nursery.start_soon(follow, seed)
                nursery.start_soon(write)
        assert past.reads >= 1
        assert feed.statistics().readers == 0 and feed.statistics().versions == 0


@pytest.mark.half
async def test_long_rows_leave_the_window_soon_and_every_reader_gets_them() -> None:
    async with fed() as (database, feed, past):
        since, pool = feed.newest(), MemoryPool()
        long = [f"{number:03}" + "x" * 500_000 for number in range(40)]
        seen: list[Any] = []
        async with aclosing(stream(feed, past, since, ALL, pool)) as parts:
            for text in long:
                await database.execute("INSERT INTO b VALUES ($1)", [text])
                seen += parsed([await anext(parts)])
                assert sum(len(each.get("after", {})["x"]) for _, each in seen[-2:-1]) == len(text)
            assert feed.statistics().versions * len(long[0]) <= WINDOW_BYTES_MAX
            assert pool.held <= 2 * WINDOW_BYTES_MAX
            for text in long:
                await database.execute("DELETE FROM b WHERE x = $1", [text])
                seen += parsed([await anext(parts)])
            assert feed.statistics().versions * len(long[0]) <= WINDOW_BYTES_MAX
        assert [each["after"]["x"] for kind, each in seen[:80] if kind == "change"] == long
        assert [each["before"]["x"] for kind, each in seen[80:] if kind == "change"] == long
        assert pool.held == 0


@pytest.mark.long
@pytest.mark.parametrize("catches_up", [True, False])
async def test_a_long_version_is_sent_in_parts(catches_up: bool) -> None:
    async with fed() as (database, feed, past):
        since, pool = feed.newest(), MemoryPool()
        if not catches_up:
            feed.open()
        await database.execute("INSERT INTO a SELECT i, i FROM generate_series(1, 30000) i")
        found: list[bytes] = []
        async with aclosing(stream(feed, past, since, ALL, pool)) as parts:
            async for part in parts:
                found.append(part)
                assert 0 < pool.held < 20_000_000
                if b"event: version" in part:
                    break
        assert max(map(len, found)) < 2 * ANSWER_PART_BYTES and len(found) > 5
        events = parsed(found)
        assert [each["key"]["id"] for _, each in events[:-1]] == list(range(1, 30001))
        assert events[-1] == ("version", {"version": since + 1})
        assert pool.held == 0
        with pytest.raises(OutOfMemory):
            small = MemoryPool(1_000_000)
            await anext(stream(feed, past, since, ALL, small))
        assert small.held == 0


async def test_a_version_is_encoded_once_for_each_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fed() as (database, feed, past):
        made: list[object] = []
        original = net_changes

        def counted(*given: Any) -> Any:
            made.append(given)
            return original(*given)

        monkeypatch.setattr(engine_feed, "net_changes", counted)
        received: list[list[tuple[str, Any]]] = []
        since = feed.newest()

        async def follow(wanted: TableFilter) -> None:
            async with aclosing(stream(feed, past, since, wanted)) as parts:
                received.append(parsed([await anext(parts)]))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(follow, ALL)
                nursery.start_soon(follow, TableFilter(frozenset({"a"})))
            await trio.testing.wait_all_tasks_blocked()
            await database.execute("INSERT INTO a VALUES (1, 1)")
        assert len(made) == 1
        assert len(received) == 20
        for events in received:
            assert [kind for kind, _ in events] == ["change", "version"]


@pytest.mark.parametrize("streams", [True, False])
async def test_readers_that_catch_up_together_have_the_past_made_once(
    monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    monkeypatch.setattr(engine_feed, "RUN_VERSIONS", 7)
    async with fed() as (database, feed, past):
        for number in range(40):
            await database.execute("INSERT INTO a VALUES ($1, 1)", [number])
        newest, seen = feed.newest(), list[list[int]]()

        async def follow(since: int) -> None:
            versions: list[int] = []
            while not versions or versions[-1] < newest:
                at = versions[-1] if versions else since
                if not streams:
                    answer = await read(feed, past, at, limit=9)
                    versions += [each["version"] for each in answer["changes"]]
                    continue
                async with aclosing(stream(feed, past, at)) as parts:
                    found = parsed([await anext(parts)])
                versions += [data["version"] for kind, data in found if kind == "version"]
            seen.append(versions)

        feed.open()  # somebody reads all the time
        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(follow, 2 + number % 3)
        assert sorted(map(len, seen)) == [38] * 10 + [39] * 10 + [40] * 10
        assert all(each == [*range(each[0], newest + 1)] for each in seen)
        assert past.made <= 2 * 40, "each version once or twice, not for each of thirty readers"
        feed.close()
        assert not feed.shared


class Passes(trio.abc.Instrument):
    """Counts the passes of the event loop."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


async def test_readers_that_catch_up_take_turns_and_share_what_was_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_feed, "RUN_VERSIONS", 20)
    monkeypatch.setattr(web_feed, "ANSWER_PART_BYTES", 1000)  # a run is several parts
    async with fed() as (database, feed, past):
        for number in range(200):
            await database.execute("INSERT INTO a VALUES ($1, 1)", [number])
        since, newest = 2, feed.newest()
        passes, taken = Passes(), Counter[int]()
        looked: list[int] = []
        original = web_feed.lines_of

        async def counted(version: Any, *given: Any, **more: Any) -> Any:
            looked.append(version.version)
            return await original(version, *given, **more)

        monkeypatch.setattr(web_feed, "lines_of", counted)

        async def follow() -> None:
            at = since
            async with aclosing(stream(feed, past, at)) as parts:
                while at < newest:
                    part = await anext(parts)
                    taken[passes.count] += 1
                    found = [data["version"] for kind, data in parsed([part]) if kind == "version"]
                    assert found == [*range(at + 1, found[-1] + 1)]
                    at = found[-1]

        trio.lowlevel.add_instrument(passes)
        try:
            async with trio.open_nursery() as nursery:
                for _ in range(30):
                    nursery.start_soon(follow)
        finally:
            trio.lowlevel.remove_instrument(passes)
        assert taken.total() >= 30 * 200 // 20
        # One has its turn, and one may have waited for what another encoded.
        assert max(taken.values()) <= 2, "a commit waits for all that run in one pass of the loop"
        assert sorted(looked) == [*range(since + 1, newest + 1)], "once, not for each of thirty"


async def test_a_reader_of_few_versions_has_few_made_and_leaves_none() -> None:
    async with fed() as (database, feed, past):
        for number in range(100):
            await database.execute("INSERT INTO a VALUES ($1, 1)", [number])
        feed.open()  # somebody reads all the time
        answer = await read(feed, past, 2, limit=3)
        assert [each["version"] for each in answer["changes"]] == [3, 4, 5]
        assert past.made <= 10, "not all that it might ask for next"
        shared = feed.shared[engine_feed.SharedCatchUp]
        assert repr(shared) == "0 runs of versions", "they would hold snapshots, and so pages"
        feed.close()


async def test_a_filtered_reader_is_told_how_far_it_has_come() -> None:
    async with fed() as (database, feed, past):
        reader = Readers("feeds", lambda: 1).open("o", 1000)
        wanted = TableFilter(frozenset({"b"}))
        parts = FeedParts(feed, past, feed.newest(), wanted, reader, MemoryPool())
        events = parts.events(allowed)
        async with aclosing(events):
            async with trio.open_nursery() as nursery:

                async def write() -> None:
                    await trio.testing.wait_all_tasks_blocked()
                    await database.execute("INSERT INTO a VALUES (1, 1)")
                    await trio.testing.wait_all_tasks_blocked()
                    reader.sent_at = float("-inf")  # it has been silent for long
                    feed.changed()

                nursery.start_soon(write)
                with trio.fail_after(240):
                    part = await anext(events)
        assert parsed([part]) == [("version", {"version": feed.newest()})]


@given(
    st.lists(st.one_of(st.none(), st.binary(max_size=9), st.integers(0, 40)), max_size=40),
    st.sampled_from([1, 5, 20, 1000]),
)
def test_a_buffer_has_the_events_behind_any_version_and_knows_their_bytes(
    steps: list[bytes | int | None], part: int
) -> None:
    with mock.patch.object(web_feed, "ANSWER_PART_BYTES", part):
        check_buffer(steps, part)


def check_buffer(steps: list[bytes | int | None], part: int) -> None:
    buffer = EventBuffer(1)
    model: dict[int, bytes | None] = {}
    for step in steps:
        if isinstance(step, int):
            buffer.forget_before(step)
            model = {version: events for version, events in model.items() if version >= step}
        else:
            model[buffer.last + 1] = step
            buffer.add(step)
        assert buffer.size == sum(len(events or b"") for events in model.values())
        for since in range(45):
            reached, expected = since, b""
            while len(expected) < part and model.get(reached + 1) is not None:
                reached += 1
                expected += model[reached] or b""
            assert buffer.behind(since) == (reached, expected)
