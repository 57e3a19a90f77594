"""Clients' connections that move to another process: whole or not at all, and never leaked."""

from __future__ import annotations

import math
import socket
from functools import partial
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.cluster import Service
from qserver.cluster.doors import next_at_door
from tests.cluster.linked import linked, open_descriptors, until


class Meta(msgspec.Struct):
    address: str
    charged: bool


class Receiver:
    def __init__(self, breaks: bool = False) -> None:
        self.moved: list[tuple[Any, bytes, socket.socket]] = []
        self.service = Service(welcome=self.welcome)
        self._breaks = breaks

    async def welcome(self, meta: Any, data: bytes, moved: socket.socket) -> None:
        await trio.lowlevel.checkpoint()
        if self._breaks:
            raise ZeroDivisionError
        self.moved.append((meta, data, moved))


class Sender:
    """What could not be sent."""

    def __init__(self) -> None:
        self.failed: list[tuple[socket.socket, Any, bytes]] = []

    def fail(self, moved: socket.socket, meta: Any, data: bytes) -> None:
        self.failed.append((moved, meta, data))


async def test_a_connection_moves_with_what_was_read_from_it() -> None:
    before = open_descriptors()
    receiver, sender = Receiver(), Sender()
    async with linked(Service(), receiver.service) as (zero, _):
        client, served = socket.socketpair()
        meta = Meta("127.0.0.1", True)
        data = bytes(10_000_000)
        zero.links.send_connection(1, meta, data, served, deadline=math.inf, failed=sender.fail)
        await until(lambda: receiver.moved)
        ((found, read, moved),) = receiver.moved
        assert msgspec.convert(found, Meta) == meta and read == data
        await wait_all_tasks_blocked()
        assert served.fileno() == -1, "the sender has closed its own"
        client.sendall(b"more")
        assert moved.recv(10) == b"more"
        moved.close()
        assert client.recv(10) == b"", "nobody else has it"
        client.close()
    assert sender.failed == [] and open_descriptors() <= before


async def test_many_connections_move_to_and_fro_without_a_leak() -> None:
    before = open_descriptors()
    receivers, sender = (Receiver(), Receiver()), Sender()
    async with linked(*(each.service for each in receivers)) as processes:
        clients = []
        for number in range(200):
            client, served = socket.socketpair()
            clients.append(client)
            processes[number % 2].links.send_connection(
                1 - number % 2, number, b"", served, deadline=math.inf, failed=sender.fail
            )
        await until(lambda: sum(len(each.moved) for each in receivers) == 200)
        for receiver in receivers:
            for number, _, moved in receiver.moved:
                moved.sendall(str(number).encode())
                assert clients[number].recv(10) == str(number).encode()
                moved.close()
                clients[number].close()
    assert open_descriptors() <= before


async def test_a_connection_waits_for_its_process_and_then_fails(autojump_clock: MockClock) -> None:
    before = open_descriptors()
    receiver, sender = Receiver(), Sender()
    async with linked(Service(), receiver.service) as (zero, one):
        await one.die()
        client, served = socket.socketpair()
        deadline = trio.current_time() + 5
        zero.links.send_connection(1, "m", b"d", served, deadline=deadline, failed=sender.fail)
        await trio.sleep(4)
        assert sender.failed == []
        await trio.sleep(2)
        assert sender.failed == [(served, "m", b"d")] and served.fileno() != -1
        served.close()
        client.close()
    assert receiver.moved == [] and open_descriptors() <= before


async def test_a_connection_that_cannot_be_sent_in_time_stays_here(
    autojump_clock: MockClock,
) -> None:
    """The peer is there, but takes nothing: its loop stands still."""
    before = open_descriptors()
    sender = Sender()
    async with linked(Service(), Service()) as (zero, one):
        await one.die()
        pairs = [socket.socketpair() for _ in range(2)]
        deadline = trio.current_time() + 5
        for _, served in pairs:
            zero.links.send_connection(
                1, None, bytes(5_000_000), served, deadline=deadline, failed=sender.fail
            )
        await wait_all_tasks_blocked()
        with next_at_door(one.doors.inside[1]) as accepted:
            accepted.sendall(b"qf\0\0\0\0\0\x02\x91\x01")  # Hello(1)
            await trio.sleep(100)
            assert {each[0] for each in sender.failed} == {served for _, served in pairs}
        for pair in pairs:
            for each in pair:
                each.close()
    assert open_descriptors() <= before


async def test_links_that_end_give_connections_back() -> None:
    before = open_descriptors()
    sender = Sender()
    async with linked(Service(), Service()) as (zero, one):
        await one.die()
        client, served = socket.socketpair()
        zero.links.send_connection(1, None, b"", served, deadline=math.inf, failed=sender.fail)
        await wait_all_tasks_blocked()
        await zero.die()
        assert sender.failed == [(served, None, b"")]
        zero.links.send_connection(1, 2, b"", served, deadline=math.inf, failed=sender.fail)
        assert sender.failed[1:] == [(served, 2, b"")], "nor do they take one that comes later"
        served.close()
        client.close()
    assert open_descriptors() <= before


def _is_closed(ended: socket.socket) -> bool:
    return ended.fileno() == -1


async def test_a_receiver_that_fails_closes_the_connection() -> None:
    before = open_descriptors()
    sender = Sender()
    async with linked(Service(), Receiver(breaks=True).service, Service()) as (zero, one, two):
        for process in (one, two):
            client, served = socket.socketpair()
            zero.links.send_connection(
                process.number, None, b"", served, deadline=math.inf, failed=sender.fail
            )
            await until(partial(len, process.reports))
            await until(partial(_is_closed, served))  # the sender has a copy until then
            assert client.recv(10) == b""
            assert "a connection that was moved here is lost" in process.reports[0]
            client.close()
    assert sender.failed == [] and open_descriptors() <= before


async def test_so_many_connections_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qserver.cluster.links.LINK_MOVES_MAX", 2)
    sender = Sender()
    async with linked(Service(), Service()) as (zero, one):
        await one.die()
        ends = [each for _ in range(3) for each in socket.socketpair()]
        for served in ends[::2]:
            zero.links.send_connection(1, None, b"", served, deadline=math.inf, failed=sender.fail)
        assert [each[0] for each in sender.failed] == [ends[4]]
    for each in ends:
        each.close()
