"""The protocol between a client and a NATS server, as bytes in and events out: no I/O.

    server  INFO {…}            client  CONNECT {…}
            MSG <subject> <sid> [reply] <bytes>          PUB <subject> <reply> <bytes>
            HMSG … <bytes of headers> <bytes of all>     HPUB … <bytes of headers> <bytes of all>
            PING, PONG, +OK, -ERR '…'                    SUB <subject> <sid>, PING, PONG

A line ends with CR LF, and so does a payload behind its line. The parser is strict: what it does
not know, or what is longer than its bounds, raises `ProtocolError`, and the connection cannot go
on. It never holds more than one message and the piece that it was fed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

LINE_BYTES_MAX: Final = 64 * 1024
"""INFO names all servers; other lines are far shorter."""

PAYLOAD_BYTES_MAX: Final = 32 * 1024 * 1024
"""What a server may send as one message: lists of keys, and messages as base64."""

_SUBJECT: Final = rb"[\x21-\x7e\x80-\xff]{1,1024}"
_SIZE: Final = rb"(\d{1,9})"
_MESSAGE: Final = re.compile(
    rb"MSG (" + _SUBJECT + rb") \d{1,9}(?: " + _SUBJECT + rb")? " + _SIZE, re.DOTALL
)
_WITH_HEADERS: Final = re.compile(
    rb"HMSG (" + _SUBJECT + rb") \d{1,9}(?: " + _SUBJECT + rb")? " + _SIZE + rb" " + _SIZE,
    re.DOTALL,
)
_VERSION: Final = b"NATS/1.0"
_STATUS: Final = re.compile(r" (\d{3})(?: (.*))?")
_END: Final = b"\r\n"
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+")

PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"


class ProtocolError(Exception):
    """The server's fault: what it sent is not its protocol."""


class Info(msgspec.Struct, frozen=True, gc=False):
    """What a server says of itself when a connection begins, and when that changes."""

    server_id: str = ""
    """Another one each time that the server starts."""
    server_name: str = ""
    client_id: int = 0
    max_payload: int = 0
    headers: bool = False
    jetstream: bool = False
    tls_required: bool = False
    tls_available: bool = False


class Ping(msgspec.Struct, frozen=True, gc=False):
    pass


class Pong(msgspec.Struct, frozen=True, gc=False):
    pass


class ServerError(msgspec.Struct, frozen=True, gc=False):
    text: str


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A message that was sent to us."""

    subject: bytes
    payload: bytes
    headers: Mapping[str, str] = {}
    status: int = 0
    """A number as HTTP has them, if the server itself answers; 0 if it does not say."""
    description: str = ""


Event = Info | Ping | Pong | ServerError | Delivery


class Parser:
    """Pieces of bytes in, cut anywhere; events out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        """Where the first line, or payload, begins that was not given out."""
        self._searched = 0
        """Up to where there is no end of that line."""
        self._subject: bytes | None = None
        """Of the message whose payload is awaited, with its two sizes."""
        self._sizes = 0, 0

    def feed(self, data: bytes | bytearray) -> None:
        del self._buffer[: self._at]
        self._searched -= self._at
        self._at = 0
        self._buffer += data

    def next_event(self) -> Event | None:
        """Return the next whole event, None if more bytes are needed; or raise ProtocolError."""
        while True:
            if self._subject is not None:
                return self._delivery(self._subject)
            line = self._line()
            if line is None:
                return None
            if (event := self._event(line)) is not None:
                return event

    def _line(self) -> bytes | None:
        end = self._buffer.find(_END, max(self._at, self._searched))
        if (len(self._buffer) if end < 0 else end) - self._at > LINE_BYTES_MAX:
            raise ProtocolError(f"a line of more than {LINE_BYTES_MAX} bytes")
        if end < 0:
            self._searched = max(self._at, len(self._buffer) - 1)
            return None
        line = bytes(self._buffer[self._at : end])
        self._at = end + len(_END)
        return line

    def _event(self, line: bytes) -> Event | None:
        """Return what a line says; None for +OK, and for the head of a message."""
        if (found := _MESSAGE.fullmatch(line)) is not None:
            self._expect(found[1], 0, int(found[2]))
            return None
        if (found := _WITH_HEADERS.fullmatch(line)) is not None:
            self._expect(found[1], int(found[2]), int(found[3]))
            return None
        if line == b"PING":
            return Ping()
        if line == b"PONG":
            return Pong()
        if line == b"+OK":
            return None
        if line.startswith(b"-ERR "):
            return ServerError(_text(line[5:]).strip("'"))
        if line.startswith(b"INFO "):
            try:
                return msgspec.json.decode(line[5:], type=Info)
            except msgspec.MsgspecError as error:
                raise ProtocolError(f"INFO that cannot be read: {error}") from None
        raise ProtocolError(f"{_text(line[:80])!r} is no line of the protocol")

    def _expect(self, subject: bytes, head: int, size: int) -> None:
        if head > size or size > PAYLOAD_BYTES_MAX:
            raise ProtocolError(f"a message of {head} and {size} bytes")
        self._subject, self._sizes = subject, (head, size)

    def _delivery(self, subject: bytes) -> Delivery | None:
        head, size = self._sizes
        begin, end = self._at, self._at + size
        if len(self._buffer) < end + len(_END):
            return None
        if self._buffer[end : end + len(_END)] != _END:
            raise ProtocolError(f"a message of {size} bytes that does not end there")
        self._at, self._subject = end + len(_END), None
        with memoryview(self._buffer) as view:
            payload = bytes(view[begin + head : end])
            if not head:
                return Delivery(subject, payload)
            return Delivery(subject, payload, *_headers(bytes(view[begin : begin + head])))


def _headers(head: bytes) -> tuple[dict[str, str], int, str]:
    """Return names and values, the status if there is one, and what stands behind that."""
    first, *lines = _text(head).split("\r\n")
    found = _STATUS.fullmatch(first, len(_VERSION))
    if not head.startswith(_VERSION) or lines[-2:] != ["", ""]:
        raise ProtocolError(f"{_text(head[:80])!r} are no headers")
    if len(first) > len(_VERSION) and found is None:
        raise ProtocolError(f"{first[:80]!r} is no status")
    headers: dict[str, str] = {}
    for line in lines[:-2]:
        name, colon, value = line.partition(":")
        if not name or not colon:
            raise ProtocolError(f"{line[:80]!r} is no header")
        headers.setdefault(name, value.strip())
    return headers, int(found[1]) if found else 0, (found and found[2]) or ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# --- what a client sends -------------------------------------------------------------------------


def connect(user: str, token: str, name: str) -> bytes:
    """The first line; a server asks for the token by itself, or as the password of a user."""
    options: dict[str, object] = {"verbose": False, "pedantic": False, "echo": False, "protocol": 1}
    options |= {"headers": True, "no_responders": True}
    options |= {"name": name, "lang": "python", "version": "1"}
    if token:
        options |= {"user": user, "pass": token, "auth_token": token}
    return b"CONNECT " + msgspec.json.encode(options) + _END


def subscribe(subject: str, identifier: int) -> bytes:
    assert _SENDABLE.fullmatch(subject)
    return f"SUB {subject} {identifier}\r\n".encode()


def publish(subject: str, reply: str, data: bytes, headers: Mapping[str, str] = {}) -> bytes:
    assert _SENDABLE.fullmatch(subject) and _SENDABLE.fullmatch(reply)
    if not headers:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), reply.encode(), len(data), data)
    assert all(_SENDABLE.fullmatch(each) for pair in headers.items() for each in pair)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = b"%b\r\n%b\r\n" % (_VERSION, lines.encode())
    sizes = len(head), len(head) + len(data)
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject.encode(), reply.encode(), *sizes, head, data)
