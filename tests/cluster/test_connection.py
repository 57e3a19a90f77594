"""Messages over a real socket: large ones, withdrawn ones, descriptors, peers that are broken."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from qserver.cluster import messages
from qserver.cluster.connection import Connection, LinkBroken
from qserver.cluster.frames import head_of
from qserver.cluster.messages import Answer, Cancel, Hello, Item, Message, Move, encode
from qserver.cluster.outgoing import Outgoing
from qserver.errors import ProgramLimitExceeded
from qserver.limits import LINK_MESSAGE_BYTES_MAX, LINK_UNSENT_BYTES_MAX, STALL_SECONDS_MAX
from tests.cluster.linked import open_descriptors

LARGE = bytes(range(256)) * (32 * 4096)  # 32 MB


class End:
    """A connection, what it received and what it reported."""

    def __init__(self, connected: socket.socket) -> None:
        self.received: list[tuple[Message, int | None]] = []
        self.arrived = trio.lowlevel.ParkingLot()
        self.reports: list[str] = []
        self.connection = Connection(connected, "the peer", self.reports.append)
        self.ended = trio.Event()

    async def run(self) -> None:
        await self.connection.run(self.receive)
        self.ended.set()

    def receive(self, message: Message, descriptor: int | None) -> None:
        self.received.append((message, descriptor))
        self.arrived.unpark_all()

    async def wait_for(self, count: int) -> None:
        while len(self.received) < count:
            await self.arrived.park()


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[End, End]]:
    before = open_descriptors()
    one, other = map(End, socket.socketpair())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        nursery.start_soon(other.run)
        yield one, other
        nursery.cancel_scope.cancel()
    for end in (one, other):
        for _, descriptor in end.received:
            if descriptor is not None:
                os.close(descriptor)
    assert open_descriptors() == before


@asynccontextmanager
async def against_bytes() -> AsyncIterator[tuple[End, socket.socket]]:
    """A connection, and the bare socket of its peer."""
    ours, theirs = socket.socketpair()
    end = End(ours)
    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end.run)
            yield end, theirs
            nursery.cancel_scope.cancel()


async def test_large_messages_go_both_ways_at_once() -> None:
    async with pair() as (one, other):
        for end in (one, other):
            end.connection.send_nowait(Outgoing(Answer(1, LARGE)))
            end.connection.send_nowait(Outgoing(Answer(2, "small")))
        await one.wait_for(2)
        await other.wait_for(2)
        for end in (one, other):
            assert end.received == [(Answer(2, "small"), None), (Answer(1, LARGE), None)]


@pytest.mark.half
async def test_others_wait_for_a_piece_of_a_large_message_and_not_for_the_whole() -> None:
    """Neither in the queue nor for a place in it."""
    async with pair() as (one, other):
        for number in (1, 2, 3):
            one.connection.send_nowait(Outgoing(Item(number, LARGE)))
        for number in range(4, 104):
            await one.connection.send(Outgoing(Item(number, b"x")))
        await other.wait_for(103)
        order = [message.id for message, _ in other.received if isinstance(message, Item)]
        assert order == [*range(4, 104), 1, 2, 3]


async def test_what_has_the_same_id_keeps_its_order() -> None:
    values = [b"a", LARGE[:100_000], b"b", LARGE[:70_000], LARGE[:200_000], b"c"]
    async with pair() as (one, other):
        withdrawn = [Outgoing(Item(1, b"not this")), Outgoing(Item(1, LARGE))]
        for value in values:
            one.connection.send_nowait(Outgoing(Item(1, value)))
        for message in withdrawn:
            one.connection.send_nowait(message)
            assert one.connection.withdraw(message)
        one.connection.send_nowait(Outgoing(messages.End(1)))
        one.connection.send_nowait(Outgoing(Cancel(2)))
        await other.wait_for(len(values) + 2)
        received = [message for message, _ in other.received]
        assert received.index(Cancel(2)) < 3, "another id does not wait"
        received.remove(Cancel(2))
        assert received == [*(Item(1, value) for value in values), messages.End(1)]


async def test_what_waits_behind_a_large_message_ends_with_the_connection() -> None:
    async with against_bytes() as (end, theirs):
        waiting = [Outgoing(Item(1, value)) for value in (LARGE, b"x", LARGE, b"y")]
        for message in waiting:
            end.connection.send_nowait(message)
        await trio.testing.wait_all_tasks_blocked()
        theirs.close()
        await end.ended.wait()
        assert all(message.ended.is_set() and not message.sent for message in waiting)


async def test_others_run_while_a_large_message_goes() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with pair() as (one, other):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_turns)
            one.connection.send_nowait(Outgoing(Answer(1, LARGE)))
            await other.wait_for(1)
            nursery.cancel_scope.cancel()
    assert turns > len(LARGE) // (1024 * 1024)


async def test_a_descriptor_arrives_with_its_message() -> None:
    async with pair() as (one, other):
        first, second = os.pipe()
        one.connection.send_nowait(Outgoing(Cancel(1)))
        one.connection.send_nowait(Outgoing(Move("first", LARGE), first))
        one.connection.send_nowait(Outgoing(Cancel(2)))
        one.connection.send_nowait(Outgoing(Move("second", b""), second))
        await other.wait_for(4)
        os.close(first)
        os.close(second)
        (_, none), (_, none_again), (b, writing), (a, reading) = other.received
        assert (none, none_again, a, b) == (None, None, Move("first", LARGE), Move("second", b""))
        assert reading is not None and writing is not None
        assert not os.get_inheritable(reading)
        os.write(writing, b"through")
        assert os.read(reading, 100) == b"through"


async def test_who_sends_much_waits_until_some_has_left(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with against_bytes() as (end, theirs):
        frame = Outgoing(Answer(1, bytes(LINK_UNSENT_BYTES_MAX)))
        await end.connection.send(frame)
        with trio.move_on_after(1) as waiting:
            await end.connection.send(Outgoing(Answer(2, LARGE)))
        assert waiting.cancelled_caught
        theirs.setblocking(False)
        while not frame.ended.is_set():
            await trio.lowlevel.wait_readable(theirs)
            theirs.recv(1 << 20)
            await trio.testing.wait_all_tasks_blocked()
        await end.connection.send(Outgoing(Answer(3, LARGE)))


async def test_what_has_not_begun_can_be_withdrawn() -> None:
    async with pair() as (one, other):
        first, second, third = (Outgoing(Cancel(number)) for number in (1, 2, 3))
        for frame in (first, second, third):
            one.connection.send_nowait(frame)
        assert one.connection.withdraw(second)
        await other.wait_for(2)
        assert [message for message, _ in other.received] == [Cancel(1), Cancel(3)]
        assert (first.sent, second.sent, third.sent) == (True, False, True)
        assert not one.connection.withdraw(first)


async def test_what_waits_for_a_full_socket_can_be_withdrawn_until_a_byte_has_left() -> None:
    async with against_bytes() as (end, theirs):
        large, small = Outgoing(Answer(1, LARGE)), Outgoing(Cancel(2))
        end.connection.send_nowait(large)
        await trio.testing.wait_all_tasks_blocked()
        end.connection.send_nowait(small)
        await trio.testing.wait_all_tasks_blocked()
        assert large.begun and not end.connection.withdraw(large)
        assert end.connection.withdraw(small) and not small.sent
        theirs.close()
        await end.ended.wait()
        assert end.connection.withdraw(large), "it broke in the middle: nobody has it"


async def test_a_peer_that_takes_nothing_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with against_bytes() as (end, _):
        frame = Outgoing(Answer(1, LARGE))
        began = trio.current_time()
        end.connection.send_nowait(frame)
        await end.ended.wait()
        assert trio.current_time() - began == pytest.approx(STALL_SECONDS_MAX)
        assert frame.ended.is_set() and not frame.sent
        assert end.reports == [f"the peer took nothing for {STALL_SECONDS_MAX:g} seconds"]
        with pytest.raises(LinkBroken):
            await end.connection.send(Outgoing(Cancel(1)))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no head of a frame"),
        (head_of(200, 0, False), "frames of kind 200 are unknown"),
        (head_of(encode(Hello(1))[0], 1, False) + b"\xff", "Hello does not read"),
        (head_of(encode(Move(1, b""))[0], 2, True) + b"\x90", "is missing"),
        (head_of(5, 4, False) + encode(Move(1, b""))[1], "Move with a wrong descriptor"),
    ],
)
async def test_damage_closes_the_connection_with_a_report(data: bytes, what: str) -> None:
    async with against_bytes() as (end, theirs):
        theirs.sendall(data)
        await end.ended.wait()
        assert theirs.recv(10) == b"" and end.received == []
        assert len(end.reports) == 1 and what in end.reports[0]


@pytest.mark.parametrize("kind", [200, encode(Cancel(1))[0]])
async def test_the_descriptor_of_a_damaged_message_is_closed(kind: int) -> None:
    before = open_descriptors()
    async with against_bytes() as (end, theirs):
        with socket.socket(socket.AF_UNIX) as moved:
            socket.send_fds(theirs, [head_of(kind, 2, True) + b"\x91\x01"], [moved.fileno()])
        await end.ended.wait()
        assert len(end.reports) == 1
    assert open_descriptors() == before


async def test_a_message_that_is_too_large_is_refused() -> None:
    with pytest.raises(ProgramLimitExceeded, match="bytes for another process"):
        Outgoing(Answer(1, bytes(LINK_MESSAGE_BYTES_MAX)))
