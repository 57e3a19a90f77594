"""Links between nodes, over TCP: calls, streams and locks, strangers, and peers that vanish."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.cluster import RemoteLocks, Service, Stream
from qserver.cluster.connection import BEAT_SECONDS, SILENT_BEATS_MAX
from qserver.cluster.frames import head_of
from qserver.cluster.handshake import HANDSHAKE_SECONDS_MAX, VERSION, Kind, admit, greet
from qserver.cluster.messages import Call, Hello, Lock, Message, encode
from qserver.cluster.remote_doors import STRANGERS_MAX
from qserver.errors import DatabaseUnavailable, OutcomeUnknown, RateLimited
from tests.cluster.linked import until
from tests.cluster.nodes import KEY, Book, Node, nodes, received

LARGE = bytes(range(256)) * (30 * 4096)  # 30 MB


class Callee:
    def __init__(self) -> None:
        self.may_end = trio.Event()
        self.begun = 0
        self.locks = RemoteLocks()
        handlers = {"echo": self.echo, "wait": self.wait, "refuse": self.refuse}
        self.service = Service(handlers, {"double": self.double}, locks=self.locks)

    async def echo(self, *values: Any) -> Any:
        return values

    async def wait(self) -> None:
        self.begun += 1
        await self.may_end.wait()

    async def refuse(self) -> None:
        raise RateLimited("too many", retry_after_seconds=7)

    async def double(self, back: Stream, first: int) -> AsyncGenerator[int, None]:
        yield 2 * first
        async for value in back:
            yield 2 * value


def frame(message: Message) -> bytes:
    kind, payload = encode(message)
    return head_of(kind, len(payload), False) + payload


# --- what links do over any way ---


async def test_nodes_call_each_other_and_themselves() -> None:
    async with nodes(Callee().service, Callee().service) as made:
        for caller in made:
            for callee in (0, 1):
                assert await caller.links.call(callee, "echo", [callee, b"x"]) == [callee, b"x"]
        with pytest.raises(RateLimited, match="too many"):
            await made[0].links.call(1, "refuse")
        assert [node.reports for node in made] == [[], []]


@pytest.mark.half
async def test_large_values_go_both_ways_beside_small_ones() -> None:
    async with nodes(Callee().service, Callee().service) as (zero, one):
        found: list[Any] = []

        async def call(node: Node, callee: int, value: bytes) -> None:
            found.append((await node.links.call(callee, "echo", [value]))[0] == value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, zero, 1, LARGE)
            nursery.start_soon(call, one, 0, LARGE)
            for _ in range(20):
                nursery.start_soon(call, zero, 1, b"small")
        assert found == [True] * 22


async def test_streams_go_both_ways() -> None:
    async with nodes(Service(), Callee().service) as (zero, _):
        async with zero.links.follow(1, "double", [1]) as stream:
            assert await anext(stream) == 2
            for number in range(100):
                await stream.send(number)
                assert await anext(stream) == 2 * number


async def test_a_lock_is_lost_with_the_node_that_holds_it() -> None:
    async with nodes(Service(), Callee().service, Service()) as (zero, _, two):
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                async with zero.links.lock(1, "control"):
                    await trio.sleep_forever()

            nursery.start_soon(hold)
            await wait_all_tasks_blocked()
            await zero.die()
            async with two.links.lock(1, "control") as lock:
                assert await lock.call("echo") == []
            nursery.cancel_scope.cancel()


async def test_a_call_waits_for_a_node_that_starts_anew_at_its_address() -> None:
    async with nodes(Service(), Callee().service) as (zero, one):
        assert await zero.links.call(1, "echo", [1]) == [1]
        await one.die()
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                assert await zero.links.call(1, "echo", [2]) == [2]
                await one.die()

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            nursery.start_soon(one.run)


async def test_a_call_under_way_ends_with_its_node() -> None:
    callee = Callee()
    async with nodes(Service(), callee.service) as (zero, one):
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(OutcomeUnknown, match="node 1 was asked"):
                    await zero.links.call(1, "wait")

            nursery.start_soon(call)
            await until(lambda: callee.begun)
            await one.die()


async def test_a_node_may_join_later() -> None:
    book: Book = {}
    async with nodes(Service(), book=book) as (zero,):
        late = Node(7, book, Callee().service)
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                assert await zero.links.call(7, "echo", [1]) == [1]
                await late.die()

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            nursery.start_soon(late.run)


async def test_a_node_that_is_away_is_told_with_the_reason(autojump_clock: MockClock) -> None:
    book: Book = {}
    async with nodes(Service(), Callee().service, book=book) as (zero, one):
        await one.die()
        book |= {2: ("a" * 70, 1), 3: ("127.0.0.1", 70_000)}
        reasons = {
            1: "Connection refused",
            2: "cannot be reached",
            3: "cannot be reached",
            5: "node 5 has no address",
        }
        for number, reason in reasons.items():
            with pytest.raises(DatabaseUnavailable, match=f"node {number} does not") as failed:
                await zero.links.call(number, "echo", deadline=trio.current_time() + 3)
            assert reason in str(failed.value.detail)


# --- strangers ---


@pytest.mark.parametrize("place", ["caller", "callee"])
async def test_another_key_is_refused_and_told_on_both_sides(
    place: str, autojump_clock: MockClock
) -> None:
    book: Book = {}
    async with nodes(Callee().service, book=book) as (one,):
        other = Node(1, book, Callee().service, key=bytes(32))
        async with trio.open_nursery() as nursery:
            await nursery.start(other.run)
            caller, callee = (other, one) if place == "caller" else (one, other)
            with pytest.raises(DatabaseUnavailable) as failed:
                deadline = trio.current_time() + 30
                await caller.links.call(callee.number, "echo", deadline=deadline)
            assert "perhaps their keys differ" in str(failed.value.detail)
            assert [text.partition(" (")[0] for text in callee.reports] == [
                "a connection from 127.0.0.1 is refused: it does not have the key of this cluster"
            ], "one, though it was tried again and again"
            assert len(caller.reports) == 1 and "perhaps their keys differ" in caller.reports[0]
            nursery.cancel_scope.cancel()


async def test_a_callee_without_the_key_is_refused(autojump_clock: MockClock) -> None:
    """It says that it is content with the caller, and cannot prove that it may be."""
    async with impostor() as (zero, accepted):
        accepted.send(b"qsrv" + bytes([VERSION]) + bytes(32 + 32))
        await until(lambda: zero.reports)
        assert "does not have the key" in zero.reports[0]


async def test_a_node_that_is_found_at_the_address_of_another_is_refused(
    autojump_clock: MockClock,
) -> None:
    book: Book = {}
    async with nodes(Service(), Callee().service, book=book) as (zero, one):
        book[2] = book[1]
        with pytest.raises(DatabaseUnavailable, match="node 2 does not answer"):
            await zero.links.call(2, "echo", deadline=trio.current_time() + 3)
        expected = "node 0 takes this node for node 2, but it is 1"
        assert len(one.reports) == 1 and expected in one.reports[0]
        assert await zero.links.call(1, "echo") == []


async def test_another_version_is_told_on_both_sides(autojump_clock: MockClock) -> None:
    expected = "speaks version 9 of the protocol between nodes, and this node version"
    async with nodes(Service()) as (zero,):
        with zero.connect() as stranger:
            stranger.send(b"qsrv\x09")
            await until(lambda: zero.reports)
            assert expected in zero.reports[0]
    async with impostor() as (zero, accepted):
        accepted.send(b"qsrv\x09")
        await until(lambda: zero.reports)
        assert expected in zero.reports[0] and "node 1" in zero.reports[0]


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"qsrX" + bytes(100)])
async def test_nonsense_is_refused_at_once(data: bytes) -> None:
    async with nodes(Callee().service) as (zero,):
        with zero.connect() as stranger:
            stranger.send(data)
            while await received(stranger):
                pass
        assert len(zero.reports) == 1 and "it is no node" in zero.reports[0]
        assert await zero.links.call(0, "echo") == []


async def test_whoever_only_looks_is_not_worth_a_report() -> None:
    async with nodes(Callee().service) as (zero,):
        zero.connect().close()
        await wait_all_tasks_blocked()
        assert zero.reports == []


async def test_a_handshake_that_takes_too_long_is_ended(autojump_clock: MockClock) -> None:
    async with nodes(Service()) as (zero,):
        with zero.connect() as stranger:
            stranger.send(b"qsrv")
            began = trio.current_time()
            while await received(stranger):
                pass
            assert trio.current_time() == pytest.approx(began + HANDSHAKE_SECONDS_MAX)
        assert len(zero.reports) == 1 and "takes longer than 2 seconds" in zero.reports[0]
    async with impostor() as (zero, _):
        await trio.sleep(HANDSHAKE_SECONDS_MAX + 1)
        assert "takes longer than 2 seconds" in zero.reports[0]


async def test_a_flood_of_strangers_keeps_no_node_out() -> None:
    async with nodes(Service(), Callee().service) as (zero, one):
        strangers = [one.connect() for _ in range(STRANGERS_MAX)]
        await wait_all_tasks_blocked()
        assert one.reports == [], "so many may be there"
        try:
            for number in range(50):
                strangers += [one.connect() for _ in range(4)]
                if number % 10 == 5:
                    strangers[-1].send(b"nonsense")
                if number == 25:
                    assert await zero.links.call(1, "echo", [1]) == [1]
            await wait_all_tasks_blocked()
            for oldest in strangers[:STRANGERS_MAX]:
                assert len(oldest.recv(100)) == 5 + 32
                assert oldest.recv(100) == b"", "it had to make room"
            assert await zero.links.call(1, "echo", [1]) == [1]
            assert await one.links.call(1, "echo", [1]) == [1], "over a new connection"
        finally:
            for each in strangers:
                each.close()
        assert len(one.reports) == 2, "one of each sort"


async def test_a_handshake_that_was_recorded_opens_nothing() -> None:
    async with nodes(Callee().service) as (zero,):
        with Recorder(zero.connect()) as good:
            await greet(good, KEY, Kind.LINK, 5, 0)
            assert (await received(good)).startswith(frame(Hello(0))), "it is accepted"
        with zero.connect() as replayed:
            replayed.send(b"".join(good.sent))
            found = b""
            while data := await received(replayed):
                found += data
        assert len(found) == 5 + 32, "its own nonce, and no proof"
        assert "does not have the key" in zero.reports[0]


class Recorder(socket.socket):
    """A socket that remembers what was sent."""

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(fileno=connected.detach())
        self.setblocking(False)
        self.sent: list[bytes] = []

    def send(self, data: Any, flags: int = 0) -> int:
        count = super().send(data, flags)
        self.sent.append(bytes(data[:count]))
        return count


@asynccontextmanager
async def impostor() -> AsyncIterator[tuple[Node, socket.socket]]:
    """A node that calls node 1, and what pretends to be node 1."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        async with nodes(Service(), book={1: listener.getsockname()}) as (zero,):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(zero.links.call, 1, "echo"))
                await trio.lowlevel.wait_readable(listener)
                with listener.accept()[0] as accepted:
                    accepted.setblocking(False)
                    yield zero, accepted
                nursery.cancel_scope.cancel()


# --- peers that vanish ---


async def test_a_link_without_calls_lasts(autojump_clock: MockClock) -> None:
    async with nodes(Service(), Callee().service) as (zero, one):
        async with zero.links.follow(1, "double", [1]) as stream:
            assert await anext(stream) == 2
            await trio.sleep(20 * SILENT_BEATS_MAX * BEAT_SECONDS)
            await stream.send(4)
            assert await anext(stream) == 8, "it is the same connection"
        assert zero.reports == one.reports == []


async def test_a_callee_that_says_nothing_any_more_is_given_up(autojump_clock: MockClock) -> None:
    """As if it were stopped, or cut off: the kernel takes all, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        async with nodes(Service(), book={1: listener.getsockname()}) as (zero,):
            async with trio.open_nursery() as nursery:

                async def call() -> None:
                    with pytest.raises(OutcomeUnknown):
                        await zero.links.call(1, "wait")

                nursery.start_soon(call)
                await trio.lowlevel.wait_readable(listener)
                with listener.accept()[0] as accepted:
                    accepted.setblocking(False)
                    assert (await admit(accepted, KEY, 1)).caller == 0
                    accepted.send(frame(Hello(1)))
                    began = trio.current_time()
                    while await received(accepted):
                        pass
                    assert trio.current_time() - began <= (SILENT_BEATS_MAX + 1) * BEAT_SECONDS
        assert any("node 1 has said nothing for 5 seconds" in text for text in zero.reports)


async def test_a_caller_that_says_nothing_any_more_loses_its_locks(
    autojump_clock: MockClock,
) -> None:
    callee = Callee()
    async with nodes(Service(), callee.service) as (zero, one):
        with one.connect() as silent:
            await greet(silent, KEY, Kind.LINK, 0, 1)
            silent.send(frame(Lock(1, "control")) + frame(Call(2, "wait", [], 1)))
            await until(lambda: callee.begun)
            async with zero.links.lock(1, "control"):
                assert repr(callee.locks) == "1 locks are held, 0 claims wait"
        assert len(one.reports) == 1 and "node 0 has said nothing" in one.reports[0]


async def test_connections_between_nodes_are_kept_alive_and_do_not_wait_for_more() -> None:
    async with nodes(Service(), Service()) as (zero, _):
        with closing(await zero.ways.knock(1)) as connected:
            for level, option, expected in (
                (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
                (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2),
                (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
            ):
                assert connected.getsockopt(level, option) == expected
