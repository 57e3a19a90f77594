"""Conversations with log nodes by a script: cut anywhere, silent, refused, or wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from qserver.errors import InvalidSetting, LogFailed
from qserver.replication.nats.connection import (
    MESSAGE_BYTES_MAX,
    UNSENT_BYTES_MAX,
    Server,
    servers_of,
)
from qserver.replication.nats.jetstream import (
    ANY_NODE_ATTEMPTS,
    ANY_NODE_SECONDS_MAX,
    LEADER_MESSAGES_MAX,
)
from qserver.replication.nats.nodes import CHECK_SECONDS, NatsNodes
from qserver.replication.port import Bounds, Message, Refused, Stream, Unanswered, Value
from tests.patience import PATIENCE_SECONDS
from tests.replication.port_contract import append_surely, read_all
from tests.replication.scripted import (
    END,
    SERVERS,
    Question,
    Reply,
    ScriptedNodes,
    error,
    message,
    setup,
)
from tests.sampling import NIGHTLY, drawn


@asynccontextmanager
async def scripted(**script: Any) -> AsyncIterator[tuple[ScriptedNodes, NatsNodes]]:
    async with trio.open_nursery() as nursery:
        nodes = ScriptedNodes(nursery, **script)
        client = NatsNodes(SERVERS, copies=2, token="token", dial=nodes.dial)
        await nursery.start(client.run)
        yield nodes, client
        nursery.cancel_scope.cancel()


async def refused_at_start(**script: Any) -> LogFailed:
    async with trio.open_nursery() as nursery:
        nodes = ScriptedNodes(nursery, **script)
        client = NatsNodes(SERVERS, copies=2, token="token", dial=nodes.dial)
        with pytest.raises(LogFailed) as failed, trio.fail_after(PATIENCE_SECONDS):
            await client.run()
        nursery.cancel_scope.cancel()
    return failed.value


async def converse(client: NatsNodes) -> Stream:
    """Append three messages, and read them."""
    while True:
        try:
            stream = await client.open_stream("a")
        except Unanswered:
            continue
        break
    for at in range(3):
        assert await append_surely(stream, b"message %d" % at, at)
    assert [each.data for each in await read_all(stream, 1, 3)] == [
        b"message %d" % at for at in range(3)
    ]
    return stream


@pytest.mark.parametrize("falls_silent", [False, True])
async def test_a_conversation_survives_a_cut_at_every_byte(
    autojump_clock: MockClock, falls_silent: bool
) -> None:
    async with scripted() as (nodes, client):
        await converse(client)
        whole = nodes.sent[0]
    assert whole > 1000
    for cut in range(whole) if NIGHTLY else drawn(range(whole), 60):
        async with scripted(cuts=[cut], falls_silent=falls_silent) as (nodes, client):
            await converse(client)
            assert nodes.streams["a"] == [b"message 0", b"message 1", b"message 2"]
            assert nodes.dialed[0] == SERVERS[0]
            assert cut > whole - 100 or nodes.dialed[1:] == SERVERS[1:]  # all had come before


async def test_a_lost_acknowledgement_is_unanswered_and_then_refused(
    autojump_clock: MockClock,
) -> None:
    async with scripted() as (nodes, client):
        stream = await client.open_stream("a")
        nodes.cuts = [nodes.sent[0] + 10]
        with pytest.raises(Unanswered, match="n1:4222: it closed the connection"):
            await stream.append(b"x", 0)
        with pytest.raises(Refused) as refused:
            await stream.append(b"x", 0)
        assert refused.value.last == 1
        assert await stream.read(1, 10) == [Message(1, b"x")]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ({"info": {"max_payload": MESSAGE_BYTES_MAX - 1}}, "takes messages of"),
        ({"info": {"jetstream": False}}, "does not run JetStream"),
        ({"info": {"headers": False}}, "does not run JetStream"),
        ({"info": {"tls_required": True}}, "speaks TLS only"),
        ({"refusal": b"-ERR 'Authorization Violation'\r\n"}, "Authorization Violation"),
        ({"greeting": b"SSH-2.0-OpenSSH_9.6\r\n"}, "is no line of the protocol"),
        ({"greeting": b"PING\r\n"}, "does not greet"),
        ({"greeting": b"\x16\x03" * 40_000}, "a line of more than"),
        ({"cuts": [0] * 1000}, "it closed the connection"),
        ({"cuts": [0] * 1000, "falls_silent": True}, "no answer in 2 seconds"),
    ],
)
async def test_servers_that_cannot_be_used_are_told(
    autojump_clock: MockClock, script: dict[str, Any], text: str
) -> None:
    failure = await refused_at_start(**script)
    assert text in failure.message
    assert any(str(server) in failure.message for server in SERVERS)
    assert failure.hint


def answering(subject: str, *replies: Reply) -> dict[str, Any]:
    """Answers of their own to questions on a subject."""

    def special(question: Question) -> list[Reply] | None:
        return list(replies) if question.subject == subject else None

    return {"special": special}


# --- nodes that sync -----------------------------------------------------------------------------

ASK_ALL = "$SYS.REQ.SERVER.PING.JSZ"
UNSYNCED = ("", setup("n2", sync_interval=120_000_000_000))


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        ([("", setup()), UNSYNCED], "n2 acknowledges messages before they are synced"),
        ([UNSYNCED], "n2 acknowledges messages before they are synced"),
        ([("NATS/1.0 503\r\n\r\n", b"")], "n1:4222 does not say whether log nodes sync"),
        ([("", setup()), ("", b"rubbish")], "does not say whether it syncs"),
        ([("", b'{"server": {"name": "n1"}, "error": {}}'), ("", setup("n2"))], "n1 does not say"),
        ([("", setup())], "log nodes do not answer: 1 of 2"),
        ([], "log nodes do not answer"),
    ],
)
async def test_nodes_that_do_not_sync_are_refused_at_start(
    autojump_clock: MockClock, replies: list[Reply], text: str
) -> None:
    failure = await refused_at_start(**answering(ASK_ALL, *replies))
    assert text in failure.message
    assert failure.hint


async def test_a_majority_that_syncs_is_enough(autojump_clock: MockClock) -> None:
    idle = b'{"server": {"name": "n4"}, "data": {"disabled": true}}'
    answers = [("", setup("n1", 3)), ("", idle), ("", setup("n3", 3))]
    async with scripted(**answering(ASK_ALL, *answers)) as (_, client):
        await converse(client)


async def test_a_node_that_stops_syncing_is_refused_until_it_syncs(
    autojump_clock: MockClock,
) -> None:
    async with scripted() as (nodes, client):
        stream = await client.open_stream("a")
        nodes.special = answering(ASK_ALL, ("", setup()), UNSYNCED)["special"]
        assert await stream.append(b"x", 0) == 1
        await trio.sleep(2 * CHECK_SECONDS)
        for call in (
            lambda: stream.append(b"y", 1),
            lambda: stream.read(1, 1),
            stream.bounds,
            lambda: client.open_stream("b"),
            lambda: client.set_value("a", b"", 0),
            lambda: client.save_part("a", b""),
        ):
            with pytest.raises(LogFailed) as failed:
                await call()
            assert failed.value.message.startswith("the log node n2 acknowledges")
            assert "sync_interval: always" in (failed.value.hint or "")
        assert nodes.streams["a"] == [b"x"]
        nodes.special = answering(ASK_ALL)["special"]  # silence proves nothing
        await trio.sleep(2 * CHECK_SECONDS)
        with pytest.raises(LogFailed):
            await stream.append(b"y", 1)
        nodes.special = lambda _: None
        await trio.sleep(2 * CHECK_SECONDS)
        assert await stream.append(b"y", 1) == 2
        nodes.special = answering(ASK_ALL)["special"]
        await trio.sleep(2 * CHECK_SECONDS)
        assert await stream.append(b"z", 2) == 3


@pytest.mark.parametrize(("used", "most"), [(91, 100), (2000, 1000)])
async def test_nodes_that_are_nearly_full_take_no_appends(
    autojump_clock: MockClock, used: int, most: int
) -> None:
    async with scripted() as (nodes, client):
        stream = await client.open_stream("a")
        assert await stream.append(b"x", 0) == 1
        room = b'{"storage": %d, "limits": {"max_storage": %d}}'
        nodes.special = answering("$JS.API.INFO", ("", room % (used, most)))["special"]
        await trio.sleep(2 * CHECK_SECONDS)
        with pytest.raises(LogFailed, match=r"log nodes store [\d,]+ bytes of [\d,]+"):
            await stream.append(b"y", 1)
        assert [each.data for each in await stream.read(1, 10)] == [b"x"]
        await client.open_stream("b")
        nodes.special = answering("$JS.API.INFO", ("", room % (most // 2, most)))["special"]
        await trio.sleep(2 * CHECK_SECONDS)
        assert await stream.append(b"y", 1) == 2


# --- what answers mean ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (("", error(400, 10071, "wrong last sequence: 7")), Refused),
        (("", error(400, 10164, "wrong last sequence")), Unanswered),
        (("", error(503, 10008, "temporarily unavailable")), Unanswered),
        (("", error(429, 10167, "too many requests")), Unanswered),
        (("", error(400, 10005, "no suitable peers for placement")), Unanswered),
        (("NATS/1.0 503\r\n\r\n", b""), Unanswered),
        (("", error(503, 10023, "insufficient resources")), LogFailed),
        (("", error(400, 10071, "wrong")), LogFailed),
        (("", error(400, 10077, "maximum bytes exceeded")), LogFailed),
        (("", b'{"seq": 3}'), LogFailed),
        (("", b"{}"), LogFailed),
        (("", b"rubbish"), LogFailed),
        (("", b""), LogFailed),
    ],
)
async def test_an_answer_to_an_append_is_understood(
    autojump_clock: MockClock, reply: Reply, expected: type[Exception]
) -> None:
    async with scripted(**answering("STREAMS.a", reply)) as (_, client):
        stream = await client.open_stream("a")
        with pytest.raises(expected) as raised:
            await stream.append(b"x", 0)
        if isinstance(raised.value, Refused):
            assert raised.value.last == 7


async def test_no_answer_to_an_append_is_unanswered(autojump_clock: MockClock) -> None:
    async with scripted(**answering("STREAMS.a")) as (nodes, client):
        stream = await client.open_stream("a")
        with pytest.raises(Unanswered, match="no reply within"):
            await stream.append(b"x", 0)
        assert nodes.dialed == SERVERS[:1]  # it answers pings: another one would know no more


NOTHING: Reply = ("NATS/1.0 404 Message Not Found\r\n\r\n", b"")


@pytest.mark.parametrize(
    ("replies", "sequences"),
    [
        ([message(3, b"c"), message(4, b"d"), END], [3, 4]),
        ([message(3, b"c"), message(5, b"e"), END], [3]),
        ([message(4, b"d"), END], []),
        ([message(2, b"b"), END], []),
        ([("NATS/1.0\r\nNats-Sequence: 3x\r\n\r\n", b""), END], []),
        ([("", b"c"), END], []),
        ([NOTHING], []),
        ([END], []),
        ([message(3, b"c"), message(4, b"d")], [3, 4]),
    ],
)
async def test_a_read_has_no_gap(
    autojump_clock: MockClock, replies: list[Reply], sequences: list[int]
) -> None:
    async with scripted(**answering("$JS.API.DIRECT.GET.a", *replies)) as (_, client):
        stream = await client.open_stream("a")
        assert [each.sequence for each in await stream.read(3, 10)] == sequences


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([], Unanswered),
        ([("NATS/1.0 503\r\n\r\n", b"")], Unanswered),
        ([("NATS/1.0 408 Bad Request\r\n\r\n", b"")], LogFailed),
    ],
)
async def test_a_read_that_fails_says_how(
    autojump_clock: MockClock, replies: list[Reply], expected: type[Exception]
) -> None:
    def special(question: Question) -> list[Reply] | None:
        return replies if ".GET.a" in question.subject else None

    async with scripted(special=special) as (_, client):
        stream = await client.open_stream("a")
        with pytest.raises(expected):
            await stream.read(1, 10)


async def test_the_leader_is_asked_if_a_node_swallows_questions(autojump_clock: MockClock) -> None:
    """It stands still, and the others take it for alive."""
    async with scripted(**answering("$JS.API.DIRECT.GET.a")) as (_, client):
        stream = await client.open_stream("a")
        for number in range(20):
            await stream.append(b"message %d" % number, number)
        began = trio.current_time()
        found = await stream.read(3, 10)
        assert found == [Message(each + 1, b"message %d" % each) for each in range(2, 12)]
        assert trio.current_time() - began <= ANY_NODE_ATTEMPTS * ANY_NODE_SECONDS_MAX
        assert await stream.read(19, 10) == [Message(19, b"message 18"), Message(20, b"message 19")]
        assert await stream.read(21, 10) == []
        assert len(await stream.read(1, 1000)) == LEADER_MESSAGES_MAX


async def test_the_first_of_two_answers_counts() -> None:
    """A node that stood still answers late, and its successor does, too."""
    stored = ("", b'{"message": {"seq": 7, "data": "eA=="}}')
    subject = "$JS.API.STREAM.MSG.GET.META"
    async with scripted(**answering(subject, stored, stored)) as (_, client):
        assert await client.value("a") == Value(7, b"x")


async def test_a_stream_becomes_what_it_should_be() -> None:
    async with scripted() as (nodes, client):
        await client.open_stream("a")
        asked = len(nodes.asked)
        await client.open_stream("a")
        assert nodes.asked[asked:] == ["$JS.API.STREAM.INFO.a"]
        nodes.settings["a"]["num_replicas"] = 1
        await client.open_stream("a")
        assert nodes.settings["a"]["num_replicas"] == 2
        assert nodes.settings["a"]["discard"] == "new"


# --- the connection ------------------------------------------------------------------------------


async def test_many_may_ask_at_once_and_each_gets_its_answer() -> None:
    async with scripted() as (_, client):

        async def append(name: str) -> None:
            stream = await client.open_stream(name)
            for at in range(20):
                assert await stream.append(f"{name} {at}".encode(), at) == at + 1
            found = await stream.read(1, 20)
            assert [each.data for each in found] == [f"{name} {at}".encode() for at in range(20)]

        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(append, f"s{number}")


async def test_a_cancelled_call_leaves_the_connection_whole(autojump_clock: MockClock) -> None:
    async with scripted() as (nodes, client):
        stream = await client.open_stream("a")
        nodes.special = answering("STREAMS.a")["special"]
        with trio.move_on_after(0.5) as scope:
            await stream.append(b"lost", 0)
        assert scope.cancelled_caught
        nodes.special = lambda _: None
        assert await stream.append(b"x", 0) == 1
        assert nodes.dialed == SERVERS[:1]


async def test_questions_wait_for_room_and_not_for_ever(autojump_clock: MockClock) -> None:
    async with scripted() as (nodes, client):
        streams = [await client.open_stream(f"s{at}") for at in range(8)]
        nodes.cuts, nodes.falls_silent = [nodes.sent[0]], True
        ended: list[str] = []

        async def append(stream: Stream) -> None:
            with pytest.raises(Unanswered):
                await stream.append(b"x" * (UNSENT_BYTES_MAX // 4 - 2000), 0)
            ended.append(stream.name)

        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(append, stream)
        assert len(ended) == 8
        await converse(client)


async def test_calls_wait_for_a_connection(autojump_clock: MockClock) -> None:
    async with scripted() as (nodes, client):
        stream = await client.open_stream("a")
        nodes.cuts = [nodes.sent[0], 0, 0, 0]  # three servers in turn do not greet
        with pytest.raises(Unanswered):
            await stream.append(b"x", 0)
        assert await stream.append(b"y", 1) == 2
        assert await stream.bounds() == Bounds(1, 2)
        assert len(nodes.dialed) == 5


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("nats://a", [("a", 4222, False)]),
        ("nats://a:1,b:2, c", [("a", 1, False), ("b", 2, False), ("c", 4222, False)]),
        ("tls://a.example.org:4222", [("a.example.org", 4222, True)]),
        ("nats://[::1]:7,[::2]", [("::1", 7, False), ("::2", 4222, False)]),
    ],
)
def test_addresses_of_servers_are_read(text: str, servers: list[tuple[str, int, bool]]) -> None:
    assert servers_of(text) == [Server(*each) for each in servers]
    assert servers_of(f"nats://{servers_of(text)[0]}")[0].host == servers[0][0]


@pytest.mark.parametrize(
    "text",
    ["", "a:1", "http://a:1", "nats://", "nats://a:0", "nats://a:b", "nats://a,,b", "nats://a/b"],
)
def test_what_names_no_servers_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        servers_of(text)
