"""Clients' connections that move to another node: their bytes are relayed, and nothing is lost."""

from __future__ import annotations

import math
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from struct import pack
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.cluster import Service
from qserver.cluster.frames import head_of
from qserver.cluster.handshake import Kind, admit, greet, receive_exactly
from qserver.cluster.messages import Hello, Message, Move, encode
from tests.cluster.linked import open_descriptors, until
from tests.cluster.nodes import KEY, Node, all_received, nodes, received

LARGE = bytes(range(256)) * (8 * 4096)  # 8 MB


class Receiver:
    def __init__(self) -> None:
        self.moved: list[tuple[Any, bytes, socket.socket]] = []
        self.service = Service(welcome=self.welcome)

    async def welcome(self, meta: Any, data: bytes, moved: socket.socket) -> None:
        moved.setblocking(False)
        self.moved.append((meta, data, moved))

    async def next(self) -> tuple[Any, bytes, socket.socket]:
        await until(lambda: self.moved)
        return self.moved.pop()


class Sender:
    """A client, and what could not be sent."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.client = socket.create_connection(listener.getsockname())
            self.served, _ = listener.accept()
        self.client.setblocking(False)
        self.failed: list[tuple[socket.socket, Any, bytes]] = []

    def move(self, node: Node, data: bytes = b"", deadline: float = math.inf) -> None:
        node.links.send_connection(
            1, ["meta", 1], data, self.served, deadline=deadline, failed=self.fail
        )

    def fail(self, moved: socket.socket, meta: Any, data: bytes) -> None:
        self.failed.append((moved, meta, data))

    def close(self) -> None:
        self.client.close()
        self.served.close()


def is_closed(connected: socket.socket) -> bool:
    return connected.fileno() == -1


async def send(connected: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    while view:
        await trio.lowlevel.wait_writable(connected)
        view = view[connected.send(view) :]


async def test_a_connection_goes_on_at_another_node_with_what_was_read_from_it() -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, one):
        sender = Sender()
        sender.move(zero, LARGE)
        meta, data, moved = await receiver.next()
        assert meta == ["meta", 1] and data == LARGE
        for number in range(50):
            await send(sender.client, b"asked %d" % number)
            assert await received(moved) == b"asked %d" % number
            await send(moved, b"answered %d" % number)
            assert await received(sender.client) == b"answered %d" % number
        moved.close()
        assert await received(sender.client) == b""
        sender.client.close()
        await until(partial(is_closed, sender.served))
        assert sender.failed == [] and zero.reports == one.reports == []


async def test_much_goes_both_ways_and_each_way_ends_by_itself() -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, _):
        sender = Sender()
        sender.move(zero)
        _, _, moved = await receiver.next()

        async def ask() -> None:
            await send(sender.client, LARGE)
            sender.client.shutdown(socket.SHUT_WR)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            assert await all_received(moved) == LARGE
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, moved, LARGE)
            found = b""
            while len(found) < len(LARGE):
                found += await received(sender.client)
        assert found == LARGE, "after the client's end"
        moved.close()
        assert await received(sender.client) == b""
        await until(partial(is_closed, sender.served))
        sender.client.close()


async def test_who_reads_nothing_is_sent_no_more_than_buffers_hold() -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, _):
        sender = Sender()
        sender.move(zero)
        _, _, moved = await receiver.next()
        sent, refused = 0, 0
        while refused < 3:
            assert sent < 100 * len(LARGE)
            try:
                sent += moved.send(LARGE)
                refused = 0
            except BlockingIOError:
                refused += 1
                await wait_all_tasks_blocked(0.05)
        found = 0
        while found < sent:
            found += len(await received(sender.client))
        assert found == sent
        moved.close()
        sender.client.close()


@pytest.mark.parametrize("side", ["client", "owner"])
async def test_a_reset_of_either_side_is_passed_on(side: str) -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, _):
        sender = Sender()
        sender.move(zero)
        _, _, moved = await receiver.next()
        await send(moved, b"a part")
        assert await received(sender.client) == b"a part"
        gone, other = (sender.client, moved) if side == "client" else (moved, sender.client)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        gone.close()
        if side == "owner":
            with pytest.raises(ConnectionResetError):
                await all_received(other)
        else:
            assert await received(other) == b""
        await until(partial(is_closed, sender.served))
        other.close()


async def test_a_relayed_connection_ends_with_the_link_to_its_node(
    autojump_clock: MockClock,
) -> None:
    """The node has vanished: it takes everything, and says nothing."""
    async with moving_to(math.inf) as (sender, listener):
        async with vanishing(listener) as beyond:
            assert await receive_exactly(beyond, 1) == b"!"
            await send(beyond, b"a part")
            assert await received(sender.client) == b"a part"
            with pytest.raises(ConnectionResetError):
                await all_received(sender.client)
        sender.close()
        assert sender.failed == []


@asynccontextmanager
async def moving_to(seconds: float) -> AsyncIterator[tuple[Sender, socket.socket]]:
    """A connection on its way to the node at a listener, which may take so long to have it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        async with nodes(Service(), book={1: listener.getsockname()}) as (zero,):
            sender = Sender()
            sender.move(zero, b"data", trio.current_time() + seconds)
            yield sender, listener


@asynccontextmanager
async def vanishing(listener: socket.socket, takes: bool = True) -> AsyncIterator[socket.socket]:
    """A node at which a connection arrives over the socket, and which then says nothing."""
    with await accept(listener, Kind.LINK) as link:
        link.send(frame(Hello(1)))
        with await accept(listener, Kind.MOVED) as accepted:
            length = int.from_bytes((await receive_exactly(accepted, 5))[1:], "big")
            await receive_exactly(accepted, length)
            if takes:
                accepted.send(b"+")
            yield accepted


async def accept(listener: socket.socket, kind: Kind) -> socket.socket:
    await trio.lowlevel.wait_readable(listener)
    accepted, _ = listener.accept()
    accepted.setblocking(False)
    assert (await admit(accepted, KEY, 1)).kind == kind
    return accepted


def frame(message: Message) -> bytes:
    kind, payload = encode(message)
    return head_of(kind, len(payload), False) + payload


async def test_a_connection_waits_for_its_node_and_then_stays_here(
    autojump_clock: MockClock,
) -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, one):
        await one.die()
        sender = Sender()
        sender.move(zero, b"data", trio.current_time() + 5)
        await trio.sleep(4)
        assert sender.failed == []
        await trio.sleep(2)
        assert sender.failed == [(sender.served, ["meta", 1], b"data")]
        await send(sender.served, b"sorry")
        assert await received(sender.client) == b"sorry"
        sender.close()
    assert receiver.moved == []


async def test_a_connection_that_is_not_taken_in_time_stays_here(
    autojump_clock: MockClock,
) -> None:
    async with moving_to(3) as (sender, listener):
        async with vanishing(listener, takes=False) as beyond:
            assert await received(beyond) == b"", "it may not begin"
            await trio.sleep(1)
        assert sender.failed == [(sender.served, ["meta", 1], b"data")]
        sender.close()


async def test_links_that_end_give_connections_back_and_reset_those_they_relay() -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, one):
        relayed, waiting = Sender(), Sender()
        relayed.move(zero)
        _, _, moved = await receiver.next()
        await one.die()
        waiting.move(zero)
        await wait_all_tasks_blocked()
        await zero.die()
        assert relayed.failed == [] and len(waiting.failed) == 1
        with pytest.raises(ConnectionResetError):
            await all_received(relayed.client)
        for each in (relayed, waiting, moved):
            each.close()


async def test_a_node_does_not_begin_with_what_its_caller_keeps() -> None:
    receiver = Receiver()
    kind, payload = encode(Move("meta", b"data"))
    head = pack(">BI", kind, len(payload))
    async with nodes(Service(), receiver.service) as (_, one):
        for sent in (b"", head, head + payload[:-1], head + payload):
            with one.connect() as caller:
                await greet(caller, KEY, Kind.MOVED, 0, 1)
                await send(caller, sent)
                if sent == head + payload:
                    assert await receive_exactly(caller, 1) == b"+"
            await wait_all_tasks_blocked()
        assert receiver.moved == [] and one.reports == []
        with one.connect() as caller:
            await greet(caller, KEY, Kind.MOVED, 0, 1)
            await send(caller, head + payload + b"!and more")
            meta, data, moved = await receiver.next()
            assert (meta, data) == ("meta", b"data")
            assert await received(moved) == b"and more"
            moved.close()


@pytest.mark.parametrize(
    "sent",
    [
        pack(">BI", encode(Move(1, b""))[0], 1 << 31),
        pack(">BI", encode(Move(1, b""))[0], 3) + b"\xff\xff\xff",
        pack(">BI", encode(Hello(1))[0], 2) + encode(Hello(1))[1],
        pack(">BI", 250, 0),
        pack(">BI", encode(Move(1, b""))[0], 4) + encode(Move(1, b""))[1] + b"?",
    ],
)
async def test_what_is_no_moved_connection_is_cut_off_with_a_report(sent: bytes) -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (_, one):
        with one.connect() as caller:
            await greet(caller, KEY, Kind.MOVED, 0, 1)
            await send(caller, sent)
            while await received(caller):
                pass
        assert len(one.reports) == 1 and "that node 0 moves here is lost" in one.reports[0]
        assert receiver.moved == []


async def test_a_receiver_that_fails_closes_the_connection() -> None:
    async def fail(meta: Any, data: bytes, moved: socket.socket) -> None:
        raise ZeroDivisionError

    async with nodes(Service(), Service(welcome=fail)) as (zero, one):
        sender = Sender()
        sender.move(zero)
        assert await received(sender.client) == b""
        assert "a connection that was moved here is lost" in one.reports[0]
        sender.client.close()


async def test_so_many_connections_are_relayed(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr("qserver.cluster.remote_doors.LINK_MOVES_MAX", 2)
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, _):
        senders = [Sender() for _ in range(3)]
        for sender in senders[:2]:
            sender.move(zero)
        await until(lambda: len(receiver.moved) == 2)
        senders[2].move(zero, deadline=trio.current_time() + 3)
        await trio.sleep(4)
        assert len(senders[2].failed) == 1 and receiver.moved[2:] == []
        for _, _, moved in receiver.moved:
            moved.close()
        for sender in senders:
            sender.close()


async def test_many_connections_leave_nothing_behind() -> None:
    receiver = Receiver()
    async with nodes(Service(), receiver.service) as (zero, _):
        before = open_descriptors()
        for _ in range(5):
            senders = [Sender() for _ in range(20)]
            for number, sender in enumerate(senders):
                sender.move(zero, b"%d" % number)
            await until(lambda: len(receiver.moved) == 20)
            while receiver.moved:
                _, data, moved = receiver.moved.pop()
                await send(moved, data)
                sender = senders[int(data)]
                assert await received(sender.client) == data
                sender.client.close()
                assert await received(moved) == b""
                moved.close()
            for sender in senders:
                await until(partial(is_closed, sender.served))
        after = open_descriptors()
        assert len(after) - len(before) == 2, "the two ends of the link"
