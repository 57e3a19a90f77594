"""A connection moves to the server that its request belongs to, with all that has arrived."""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.http1 import Elsewhere, Headers, Moved
from qserver.http1.listening import bind_all
from qserver.http1.options import ServerOptions
from qserver.limits import RECEIVE_BYTES
from tests.http1.serving import PATIENCE_SECONDS, App, Asked, Client, request, running
from tests.http1.two_servers import WAYS, Two, chunked, elsewhere, expected, two_servers
from tests.sampling import NIGHTLY, examples

MOVES = 100_000 if NIGHTLY else 2_000
LONG_SECONDS = 20 * PATIENCE_SECONDS
LARGE = b"0123456789" * 300_000
BODY = b"some bytes of a body"


def sized(path: str, body: bytes) -> bytes:
    return request(path, "POST", body)


KINDS: dict[str, Callable[[str, bytes], bytes]] = {"sized": sized, "chunked": chunked}


@pytest.mark.parametrize("way", WAYS)
async def test_a_kept_connection_is_served_by_both_in_turn(way: str) -> None:
    async with two_servers() as two, await two.client() as client:
        address = client.stream.socket.getsockname()  # type: ignore[union-attr]
        for turn in range(20):
            path = f"/{turn % 2}/{way}"
            assert (await client.ask(sized(path, BODY))).body == expected(path, BODY)
        assert two.count("connections_moved_out") == [10, 9]
        assert two.count("connections_moved_in") == [9, 10]
        assert two.count("connections_accepted") == [1, 0]
        assert two.count("connections_open") == [0, 1]
        await two.until(lambda: [len(server.log) for server in two.servers] == [10, 10])
        assert two.owners[0].clients == two.owners[1].clients == {address}


async def test_pipelined_requests_to_both_are_answered_in_order() -> None:
    paths = [f"/{at * at % 7 % 2}/{WAYS[at % len(WAYS)]}/{at}" for at in range(300)]
    kinds = [KINDS["chunked" if at % 5 == 0 else "sized"] for at in range(300)]
    data = b"".join(kind(path, BODY) for kind, path in zip(kinds, paths, strict=True))
    async with two_servers() as two, await two.client() as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, data)
            for path in paths:
                assert (await client.answer()).body == expected(path, BODY)
        assert min(two.count("connections_moved_out")) > 30


@pytest.mark.parametrize("way", WAYS)
async def test_all_answers_of_a_connection_that_came_with_marks_have_them(way: str) -> None:
    async with two_servers() as two, await two.client() as client:
        two.movers[0].marks = Headers([(b"x-owner", b"1")])
        for path in (f"/1/{way}", f"/1/{way}", f"/0/{way}"):
            answer = await client.ask(sized(path, BODY))
            assert answer.body == expected(path, BODY)
            assert answer.header("x-owner") == ("1" if path.startswith("/1") else None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_request_that_is_cut_anywhere_moves_whole(way: str, kind: str) -> None:
    """Two requests, of which the second half-arrives behind the first one, too."""
    paths = [f"/1/{way}", f"/0/{way}"]
    data = b"".join(KINDS[kind](path, BODY) for path in paths)
    step = 1 if NIGHTLY or way in ("now", "read") else 3
    async with two_servers() as two, await two.client() as client:
        for cut in range(1, len(data), step):
            await client.send(data[:cut])
            await trio.testing.wait_all_tasks_blocked()
            await client.send(data[cut:])
            assert [(await client.answer()).body for _ in paths] == [
                expected(path, BODY) for path in paths
            ]
        assert two.count("requests_refused") == [0, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
async def test_large_bodies_and_what_follows_them_arrive(way: str, kind: str) -> None:
    make = chunked if kind == "sized" else sized
    async with two_servers() as two, await two.client() as client:
        for owner in (1, 0, 1):
            path, next_path = f"/{owner}/{way}", f"/{1 - owner}/now"
            data = KINDS[kind](path, LARGE) if kind == "sized" else chunked(path, LARGE, 70_000)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send, data + make(next_path, BODY))
                assert (await client.answer()).body == expected(path, LARGE)
                assert (await client.answer()).body == expected(next_path, BODY)


async def test_a_body_that_is_read_in_parts_is_read_by_its_owner_as_it_comes() -> None:
    async with two_servers() as two, await two.client() as client:
        data = sized("/1/bulk", BODY)
        await client.send(data[:-15])
        await two.owners[1].bodies.wait()
        assert not two.owners[0].bodies.is_set()
        await client.send(data[-15:])
        assert (await client.answer()).body == expected("/1/bulk", BODY)


@pytest.mark.parametrize("way", ["now", "read", "bulk", "later"])
@pytest.mark.parametrize("kind", KINDS)
async def test_100_continue_is_sent_once_by_whoever_reads(way: str, kind: str) -> None:
    path = f"/1/{way}"
    head, _, body = KINDS[kind](path, BODY).partition(b"\r\n\r\n")
    async with two_servers() as two, await two.client() as client:
        answer = await client.ask(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert answer.status == 100
        answer = await client.ask(body)
        assert (answer.status, answer.body) == (200, expected(path, BODY))
        assert two.count("connections_moved_out") == [1, 0]


@pytest.mark.parametrize("way", WAYS)
async def test_other_sorts_of_requests_move(way: str) -> None:
    path = f"/1/{way}"
    async with two_servers() as two:
        async with await two.client() as client:
            answer = await client.ask(request(path, "HEAD"), "HEAD")
            assert answer.status == 200
            assert (await client.ask(b"\r\n" + request("/0/now"))).status == 200
        async with await two.client() as client:
            answer = await client.ask(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            assert answer.body == expected(path, method="GET")
            assert await client.rest() in (b"", answer.body)
        async with await two.client() as client:  # after the end of input
            await client.send(request(path) + request("/0/now"))
            await client.stream.send_eof()
            assert (await client.answer()).body == expected(path, method="GET")
            assert (await client.answer()).body == expected("/0/now", method="GET")
            assert await client.rest() == b""
        await two.until_empty()


async def test_a_body_that_is_too_large_is_refused_and_does_not_move() -> None:
    async with two_servers(body_bytes_max=10) as two, await two.client() as client:
        assert (await client.ask(sized("/1/now", BODY))).status == 413
        assert two.count("connections_moved_out") == [0, 0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reset", [True, False])
async def test_a_client_may_leave_at_any_moment(way: str, reset: bool) -> None:
    data = sized(f"/1/{way}", BODY) + chunked(f"/0/{way}", BODY)
    async with two_servers() as two:
        for cut in range(1, len(data) + 1, 1 if NIGHTLY else 5):
            for rounds in (0, 1, cut % 7):
                client = await two.client()
                await client.send(data[:cut])
                for _ in range(rounds):
                    await trio.lowlevel.checkpoint()
                if reset:
                    option = socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                    client.stream.setsockopt(*option)  # type: ignore[union-attr]
                await client.stream.aclose()
        await two.until_empty()
        async with await two.client() as client:
            assert (await client.ask(request("/1/now"))).status == 200


@pytest.mark.parametrize(("way", "body"), [("stream", LARGE), ("quiet", BODY)])
async def test_a_stream_of_the_owner_stops_when_its_reader_is_gone(way: str, body: bytes) -> None:
    async with two_servers() as two:
        client = await two.client()
        await client.send(sized(f"/1/{way}", body))
        await client.until(b"\r\n\r\n")
        await client.stream.aclose()
        await two.until_empty()


# --- refusals and limits --------------------------------------------------------------------------


@pytest.mark.parametrize("data", [sized("/1/now", BODY), chunked("/1/read", BODY)])
async def test_a_move_that_cannot_be_made_is_refused(data: bytes) -> None:
    async with two_servers() as two, await two.client() as client:
        await client.send(data[:30])
        mover = two.movers[0]
        mover.are_away = True
        answer = await client.ask(data[30:])
        assert (answer.status, answer.body) == (503, b"away")
        assert answer.header("connection") == "close"
        assert await client.rest() == b""
        assert two.count("connections_moved_in") == [1, 0]
        mover.are_away = False


async def test_a_refused_head_request_gets_no_body() -> None:
    async with two_servers() as two, await two.client() as client:
        two.movers[0].are_away = True
        assert (await client.ask(request("/1/now", "HEAD"), "HEAD")).status == 503
        assert await client.rest() == b""


async def test_connections_that_move_in_count_for_the_limit() -> None:
    async with two_servers(connections_max=1) as two:
        async with await two.client(1) as first, await two.client(0) as second:
            assert (await first.ask(request("/1/now"))).status == 200
            assert (await second.ask(request("/0/now"))).status == 200
            answer = await second.ask(request("/1/now"))
            assert answer.status == 503
            assert await second.rest() == b""
            assert two.count("connections_refused") == [0, 1]
        async with await two.client(1) as third:
            assert (await third.ask(request("/1/now"))).status == 200


async def test_without_other_processes_it_is_a_mistake_to_name_one() -> None:
    async with running(App(lambda asked: elsewhere(1))) as server, await server.client() as client:
        assert (await client.ask(request())).status == 500
    assert "no process 1" in server.reports.pop()


async def test_after_a_part_of_the_body_was_read_it_is_a_mistake_to_move() -> None:
    async def read_some(asked: Asked) -> Elsewhere:
        assert not isinstance(asked.body, bytes)
        await asked.body.receive_some()
        return elsewhere(1)

    async with two_servers() as two, await two.client() as client:
        two.owners[0].function = read_some
        body = b"x" * RECEIVE_BYTES  # too long to be waited for
        await client.send(sized("/1/now", body)[: -len(body)])
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.ask(body)).status == 500
        assert "where the request belongs" in two.servers[0].reports.pop()


# --- stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stopping", [(0,), (1,), (0, 1)])
async def test_a_request_moves_while_servers_drain(stopping: tuple[int, ...]) -> None:
    async with two_servers() as two:
        async with await two.client() as client, await two.client(1) as other:
            assert (await other.ask(request("/1/now"))).status == 200
            data = sized("/1/read", BODY)
            await other.send(data[:-1])  # keeps 1 running
            await client.send(data[:-1])
            await trio.testing.wait_all_tasks_blocked()
            for at in stopping:
                two.servers[at].stop.set()
            await trio.testing.wait_all_tasks_blocked()
            await client.send(data[-1:])
            answer = await client.answer()
            assert answer.body == expected("/1/read", BODY)
            assert (answer.header("connection") == "close") is (1 in stopping)
            assert (await other.ask(data[-1:])).status == 200


async def test_a_connection_that_arrives_after_the_end_is_closed() -> None:
    async with two_servers() as two, await two.client() as client:
        two.movers[0].held = []
        await client.send(request("/1/now"))
        await two.until(lambda: bool(two.movers[0].held))
        two.servers[1].stop.set()
        await two.servers[1].ended.wait()
        await two.movers[0].deliver(*two.movers[0].held[0])
        assert await client.rest() in (b"", b"<reset>")


async def test_a_connection_that_arrives_while_the_server_ends_is_closed() -> None:
    """Also in the moment between the end of its last task and its own."""
    client, moved = socket.socketpair()
    async with two_servers() as two:
        late = Late(two.movers[1].host, Moved(moved, None, b""))
        trio.lowlevel.add_instrument(late)
        two.servers[1].stop.set()
        await two.servers[1].ended.wait()
        trio.lowlevel.remove_instrument(late)
        assert late.is_over and late.errors == []
    with client:
        assert client.recv(1) == b""


class Late(trio.abc.Instrument):
    """Moves a connection to a server when its last task has ended."""

    def __init__(self, host: Any, moved: Moved) -> None:
        self._host = host
        self._moved = moved
        self._nursery: trio.Nursery = host._nursery
        self.is_over = False
        self.errors: list[Exception] = []

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        if task.parent_nursery is self._nursery and not self._nursery.child_tasks:
            self.is_over = True
            try:
                self._host.adopt(self._moved)
            except Exception as error:
                self.errors.append(error)
                self._moved.socket.close()


async def test_several_servers_accept_from_one_listener_and_end_one_by_one() -> None:
    listeners = await bind_all(ServerOptions())
    others = [listener.dup() for listener in listeners]
    async with two_servers([listeners, others]) as two:
        assert two.servers[0].addresses == two.servers[1].addresses
        for turn in range(20):
            async with await two.client() as client:
                assert (await client.ask(request(f"/{turn % 2}/now"))).status == 200
        assert sum(two.count("connections_accepted")) == 20
        two.servers[0].stop.set()
        await two.servers[0].ended.wait()
        for _ in range(5):
            async with await two.client(1) as client:
                assert (await client.ask(request("/1/now"))).status == 200


# --- nothing is left behind -----------------------------------------------------------------------


def registrations() -> list[int]:
    """How many sockets each epoll of this process watches, Trio's and the servers'."""
    counts = []
    for each in Path("/proc/self/fdinfo").iterdir():
        try:
            counts.append(each.read_text().count("tfd:"))
        except FileNotFoundError:
            pass  # that of the listing
    return sorted(filter(None, counts))


def left(two: Two) -> dict[str, object]:
    """What connections could leave behind in this process."""
    reactors = [mover.context.reactor for mover in two.movers]
    tables = ("_ready", "_owners", "_waiting", "_known", "_marked", "_ending", "_failures")
    descriptors = [int(each.name) for each in Path("/proc/self/fd").iterdir()]
    return {
        "descriptors": len(descriptors),
        "registrations": sum(registrations()),
        "tasks": [mover.connection_tasks for mover in two.movers],
        "tables": [len(getattr(each, table)) for each in reactors for table in tables],
        "connections": [len(mover.context.connections) for mover in two.movers],
    }


async def move_often(two: Two, count: int) -> None:
    clients = [await two.client(at % 2) for at in range(8)]
    for turn in range(count // len(clients)):
        path = f"/{turn % 2}/{WAYS[turn // 2 % len(WAYS)]}"
        for client in clients:
            await client.send(sized(path, BODY))
        for client in clients:
            assert (await client.answer()).body == expected(path, BODY)
    for client in clients:
        await client.stream.aclose()
    await two.until_empty()
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.long
async def test_thousands_of_moves_leave_nothing_behind() -> None:
    async with two_servers(access_log=None, patience_seconds=LONG_SECONDS) as two:
        await move_often(two, 200)
        for owner in two.owners:
            owner.paths.clear()
        blocks, before = _blocks(), left(two)  # what earlier tests have left is collected first
        moved = sum(two.count("connections_moved_out"))
        await move_often(two, MOVES)
        assert left(two) == before
        assert sum(two.count("connections_moved_out")) - moved >= MOVES - 8
        for owner in two.owners:
            owner.paths.clear()
        assert _blocks() - blocks < MOVES / 4


def _blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("way", WAYS)
async def test_a_socket_that_left_is_watched_no_more_though_it_is_open(way: str) -> None:
    async with two_servers() as two, await two.client() as client:
        watched = []
        for owner in (0, 1, 0, 1, 0, 1):
            data = sized(f"/{owner}/{way}", BODY)
            await client.send(data[:-1])
            await trio.testing.wait_all_tasks_blocked()
            assert (await client.ask(data[-1:])).status == 200
            await trio.testing.wait_all_tasks_blocked()
            watched.append(sum(registrations()))
        assert max(watched) == watched[0]


# --- random sequences -----------------------------------------------------------------------------

asked = st.tuples(
    st.sampled_from([0, 1]),
    st.sampled_from(WAYS),
    st.sampled_from([*KINDS]),
    st.binary(max_size=40),
)
cuts = st.lists(st.integers(1, 400), max_size=12)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(asked, min_size=1, max_size=12), cuts, st.sampled_from([0, 1]))
def test_any_sequence_of_requests_in_any_parts_is_answered_in_order(
    sequence: list[tuple[int, str, str, bytes]], sizes: list[int], first: int
) -> None:
    async def main() -> None:
        paths = [f"/{owner}/{way}" for owner, way, _, _ in sequence]
        bodies = [body for *_, body in sequence]
        data = b"".join(
            KINDS[kind](path, body)
            for path, (_, _, kind, body) in zip(paths, sequence, strict=True)
        )
        async with two_servers() as two, await two.client(first) as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send_in_parts, client, data, sizes)
                for path, body in zip(paths, bodies, strict=True):
                    assert (await client.answer()).body == expected(path, body)

    trio.run(main)


async def _send_in_parts(client: Client, data: bytes, sizes: list[int]) -> None:
    for size in sizes:
        await client.send(data[:size])
        data = data[size:]
        for _ in range(size % 5):
            await trio.lowlevel.checkpoint()
    await client.send(data)
