"""Log nodes by a script: small servers in this process that answer as they are told.

    dial ──► memory streams ──► ScriptedNode: greets, then `answer` for each question
                                may send only so many bytes, and then close or fall silent

They keep streams by `MemoryNodes`' rules, as far as a conversation needs them.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import trio
from trio.testing import memory_stream_pair

from qserver.replication.nats.connection import MESSAGE_BYTES_MAX, Server

SERVERS: Final = [Server("n1", 4222, False), Server("n2", 4222, False)]
_ASKED: Final = re.compile(rb"(H?)PUB (\S+) (\S+) (?:(\d+) )?(\d+)")
_SEQUENCE: Final = re.compile(rb"Nats-Expected-Last-Sequence: (\d+)")

Reply = tuple[str, bytes]
"""Headers, and data."""


@dataclass
class Question:
    subject: str
    head: bytes
    data: bytes

    @property
    def asked(self) -> Any:
        return json.loads(self.data or b"{}")


def error(code: int, number: int, text: str = "no") -> bytes:
    failure = {"code": code, "err_code": number, "description": text}
    return json.dumps({"error": failure, "seq": 0}).encode()


def setup(name: str = "n1", size: int = 2, **settings: object) -> bytes:
    """What a node says of itself."""
    data = {"config": settings or {"sync_always": True}, "meta_cluster": {"cluster_size": size}}
    return json.dumps({"server": {"name": name}, "data": data}).encode()


@dataclass
class ScriptedNodes:
    """All servers, which share what they keep. A list of bytes cuts connections, one each."""

    nursery: trio.Nursery
    cuts: list[int] = field(default_factory=list)
    falls_silent: bool = False
    """At its cut, instead of closing the connection."""
    info: dict[str, object] = field(default_factory=dict)
    greeting: bytes | None = None
    refusal: bytes | None = None
    special: Callable[[Question], list[Reply] | None] = lambda _: None
    """Answers a question instead of the script; None leaves it to that."""
    streams: dict[str, list[bytes]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    dialed: list[Server] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Bytes by the number of the connection."""

    async def dial(self, server: Server) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        ours, theirs = memory_stream_pair()
        self.nursery.start_soon(self._serve, theirs, len(self.dialed))
        self.dialed.append(server)
        return ours

    async def _serve(self, stream: trio.abc.Stream, number: int) -> None:
        try:
            async with stream:
                await self._converse(stream, number)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client is gone

    async def _converse(self, stream: trio.abc.Stream, number: int) -> None:
        info = {"server_id": "N1", "client_id": number, "max_payload": MESSAGE_BYTES_MAX}
        info |= {"headers": True, "jetstream": True} | self.info
        greeting = self.greeting or b"INFO %b\r\n" % json.dumps(info).encode()
        if not await self._send(stream, number, greeting):
            return
        buffer = bytearray()
        while data := await stream.receive_some():
            buffer += data
            while (reply := self._next(buffer)) is not None:
                if reply and not await self._send(stream, number, reply):
                    return

    async def _send(self, stream: trio.abc.Stream, number: int, data: bytes) -> bool:
        left = self.cuts[number] - self.sent[number] if number < len(self.cuts) else len(data)
        self.sent[number] += len(data)
        await stream.send_all(data[:left])
        if left < len(data) and self.falls_silent:
            await trio.sleep_forever()
        return left >= len(data)

    def _next(self, buffer: bytearray) -> bytes | None:
        """Take one line, with its message, and return what it is answered with."""
        end = buffer.find(b"\r\n")
        if end < 0:
            return None
        line = bytes(buffer[:end])
        found = _ASKED.fullmatch(line)
        if found is None:
            del buffer[: len(line) + 2]
            return (self.refusal or b"PONG\r\n") if line == b"PING" else b""
        size, begin = int(found[5]), len(line) + 2
        if len(buffer) < begin + size + 2:
            return None
        message = bytes(buffer[begin : begin + size])
        del buffer[: begin + size + 2]
        length = int(found[4] or 0)
        question = Question(found[2].decode(), message[:length], message[length:])
        self.asked.append(question.subject)
        replies = self.special(question)
        replies = self._replies(question) if replies is None else replies
        return b"".join(_sent(found[3], head, data) for head, data in replies)

    def _replies(self, question: Question) -> list[Reply]:
        match question.subject.split("."):
            case ["$SYS", *_]:
                return [("", setup(name)) for name in ("n1", "n2")]
            case ["$JS", "API", "INFO"]:
                return [("", b'{"storage": 7, "limits": {"max_storage": -1}}')]
            case ["$JS", "API", "STREAM", "INFO", name] if name not in self.streams:
                return [("", error(404, 10059))]
            case ["$JS", "API", "STREAM", "CREATE" | "UPDATE", name]:
                self.streams.setdefault(name, [])
                self.settings[name] = question.asked
                return [("", json.dumps({"config": question.asked}).encode())]
            case ["$JS", "API", "STREAM", "INFO", name]:
                last = len(self.streams[name])
                state = {"first_seq": min(1, last), "last_seq": last}
                return [("", json.dumps({"config": self.settings[name], "state": state}).encode())]
            case ["$JS", "API", "DIRECT", "GET", name]:
                return self._read(name, question.asked)
            case ["$JS", "API", "STREAM", "MSG", "GET", name]:
                return [("", self._message(self.streams[name], question.asked["seq"]))]
            case ["STREAMS", name]:
                return [("", self._append(self.streams[name], question))]
        raise AssertionError(f"the script has no answer to {question.subject}")

    def _message(self, messages: list[bytes], sequence: int) -> bytes:
        if not 0 < sequence <= len(messages):
            return error(404, 10037)
        data = b64encode(messages[sequence - 1]).decode()
        return json.dumps({"message": {"seq": sequence, "data": data}}).encode()

    def _append(self, messages: list[bytes], question: Question) -> bytes:
        expected = _SEQUENCE.search(question.head)
        if expected is None or int(expected[1]) != len(messages):
            return error(400, 10071, f"wrong last sequence: {len(messages)}")
        messages.append(question.data)
        return json.dumps({"stream": "F", "seq": len(messages)}).encode()

    def _read(self, name: str, asked: dict[str, int]) -> list[Reply]:
        first, last = asked["seq"], min(asked["seq"] + asked["batch"] - 1, len(self.streams[name]))
        if last < first:
            return [("NATS/1.0 404 Message Not Found\r\n\r\n", b"")]
        found = [message(at, self.streams[name][at - 1]) for at in range(first, last + 1)]
        return [*found, END]


END: Final[Reply] = ("NATS/1.0 204 EOB\r\n\r\n", b"")


def message(sequence: int, data: bytes) -> Reply:
    return f"NATS/1.0\r\nNats-Sequence: {sequence}\r\n\r\n", data


def _sent(subject: bytes, head: str, data: bytes) -> bytes:
    if not head:
        return b"MSG %b 1 %d\r\n%b\r\n" % (subject, len(data), data)
    sizes = len(head), len(head) + len(data)
    return b"HMSG %b 1 %d %d\r\n%b%b\r\n" % (subject, *sizes, head.encode(), data)
