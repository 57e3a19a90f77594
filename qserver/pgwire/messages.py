"""Messages of PostgreSQL's protocol 3: frames in, messages out. Pure functions, no I/O.

    from the client     a byte of type, a length, a body     `Frames` cuts them, `read_…` decodes
    to the client       the same                             functions that return bytes

Before the client is known its first messages have no type: a length and a code. A length is checked
before anything is kept for it, and bytes are kept only as they arrive. A length that makes no sense
ends the connection, because nobody can tell where the next message begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import Struct, error, unpack_from
from typing import Final

import msgspec

from qserver.errors import CharacterNotInRepertoire, ProgramLimitExceeded, ProtocolViolation
from qserver.limits import STATEMENT_BYTES_MAX
from qserver.pgwire.limits import COPY_PIECE_BYTES_MAX, MESSAGE_BYTES_MAX, STARTUP_BYTES_MAX

CANCEL_REQUEST: Final = 80877102
TLS_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
PROTOCOL_3: Final = 3

# Types of messages from the client.
BIND, CLOSE, COPY_DATA, COPY_DONE, COPY_FAIL = b"BCdcf"
DESCRIBE, EXECUTE, FLUSH, FUNCTION_CALL = b"DEHF"
PARSE, PASSWORD, QUERY, SYNC, TERMINATE = b"PpQSX"

_NAMES_BYTES: Final = 64 * 1024
"""The rest of a message beside its largest part, about."""
_LONGEST: Final[Mapping[int, int]] = {
    BIND: MESSAGE_BYTES_MAX,
    CLOSE: _NAMES_BYTES,
    COPY_DATA: COPY_PIECE_BYTES_MAX,
    COPY_DONE: 0,
    COPY_FAIL: _NAMES_BYTES,
    DESCRIBE: _NAMES_BYTES,
    EXECUTE: _NAMES_BYTES,
    FLUSH: 0,
    FUNCTION_CALL: MESSAGE_BYTES_MAX,
    PARSE: STATEMENT_BYTES_MAX + 4 * _NAMES_BYTES,
    PASSWORD: STARTUP_BYTES_MAX,
    QUERY: STATEMENT_BYTES_MAX + 1,
    SYNC: 0,
    TERMINATE: 0,
}
"""The longest body of each type."""

_SURELY_GOOD: Final = {kind: 4 + min(most, STARTUP_BYTES_MAX) for kind, most in _LONGEST.items()}
"""Lengths, themselves included, that everybody may send."""

_INT32: Final = Struct("!i")
_INT16: Final = Struct("!h")
_HEAD: Final = Struct("!ci")
_FRAME: Final = Struct("!Bi")
_CODE: Final = Struct("!ii")
NULL: Final = _INT32.pack(-1)

_CODES: Final = frozenset({0, 1})
_COUNT: Final = Struct("!H")

_AROUND_KEPT_MAX: Final = 1024
"""So much of a Bind, beside its values, is remembered."""
_BINDS_KEPT: Final = 64

Frame = tuple[int, bytes]
"""The type and the body of a message."""


class Frames:
    """Cuts what arrives into messages."""

    __slots__ = ("_at", "_buffer", "_missing", "_pieces", "is_known")

    def __init__(self) -> None:
        self._buffer = b""
        self._at = 0
        self._missing = 0
        """Bytes of the next message that have not arrived, if its length is known."""
        self._pieces: list[bytes] = []
        """What has arrived of them: joined once, so that long messages cost no more than others."""
        self.is_known = False
        """Whether the client has been authenticated: until then only short messages may come."""

    def feed(self, data: bytes) -> bool:
        """Take what has arrived; return whether it ends within a message whose length is known."""
        if self._missing > 0:
            self._missing -= len(data)
            self._pieces.append(data)
            if self._missing > 0:
                return True
            data = b"".join(self._pieces)
            self._pieces.clear()
        self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
        self._at = 0
        return False

    def rest(self) -> bytes:
        """Return bytes that have arrived and belong to no message yet."""
        return self._buffer[self._at :] + b"".join(self._pieces)

    def __len__(self) -> int:
        """How many bytes have arrived that belong to no message yet."""
        return len(self._buffer) - self._at + sum(map(len, self._pieces))

    def next_unnamed(self) -> tuple[int, bytes] | None:
        """Return the code and the rest of a message without a type; None if it is not whole."""
        left = len(self._buffer) - self._at
        if left < _INT32.size:
            return None
        (length,) = _INT32.unpack_from(self._buffer, self._at)
        if not _CODE.size <= length <= STARTUP_BYTES_MAX:
            raise broken("invalid length of startup packet")
        if left < length:
            return None
        (code,) = _INT32.unpack_from(self._buffer, self._at + _INT32.size)
        body = self._buffer[self._at + _CODE.size : self._at + length]
        self._at += length
        return code, body

    def next(self) -> Frame | None:
        """Return the next message; None if it is not whole."""
        buffer, at = self._buffer, self._at
        left = len(buffer) - at
        if left < 5 or self._missing > 0:
            return None
        kind, length = _FRAME.unpack_from(buffer, at)
        if not 4 <= length <= _SURELY_GOOD.get(kind, 0):
            self._check(kind, length)
        if left <= length:
            self._missing = max(length + 1 - left, 0)
            return None
        end = at + 1 + length
        self._at = end
        return kind, buffer[at + 5 : end]

    def follows(self, messages: bytes) -> bool:
        """Return whether exactly these messages are the next, and have arrived."""
        return self._buffer.startswith(messages, self._at)

    def skip(self, messages: bytes) -> None:
        """Take messages that follow."""
        self._at += len(messages)

    def _check(self, kind: int, length: int) -> None:
        most = _LONGEST.get(kind)
        if most is None:
            raise broken(f"invalid frontend message type {kind}")
        if length < 4:
            raise broken("invalid message length")
        if not self.is_known:
            most = min(most, STARTUP_BYTES_MAX)
        if length - 4 > most:
            if kind in (COPY_DONE, FLUSH, SYNC, TERMINATE):
                raise broken("invalid message length")
            raise MessageTooLong(
                f"a message has {length - 4} bytes",
                detail=f"The limit for one of type {chr(kind)!r} is {most} bytes.",
            )


class MessageTooLong(ProgramLimitExceeded):
    """The client's fault: a message is longer than it may be. Its connection ends."""


class BrokenFrames(ProtocolViolation):
    """The client's fault: nobody can tell where the next message begins. Its connection ends."""


def broken(message: str) -> BrokenFrames:
    return BrokenFrames(message)


# --- bodies of messages from the client -----------------------------------------------------------


class Parse(msgspec.Struct, frozen=True):
    name: str
    text: str
    oids: tuple[int, ...]


class Bind(msgspec.Struct, frozen=True):
    portal: str
    statement: str
    formats: tuple[int, ...]
    values: list[bytes | None]
    result_formats: tuple[int, ...]


class Named(msgspec.Struct, frozen=True):
    """What Describe and Close are about."""

    is_portal: bool
    name: str


def text_of(data: bytes) -> str:
    """Decode UTF-8; a text has no NUL."""
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        shown = " ".join(f"0x{byte:02x}" for byte in data[wrong.start : wrong.start + 4])
        raise CharacterNotInRepertoire(
            f'invalid byte sequence for encoding "UTF8": {shown}'
        ) from None
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text


def read_query(body: bytes) -> str:
    if body[-1:] != b"\0":
        raise ProtocolViolation("invalid string in message")
    return text_of(body[:-1])


def read_parse(body: bytes) -> Parse:
    name, at = _string(body, 0)
    text, at = _string(body, at)
    oids, at = _list(body, at, "I")
    _check_end(body, at)
    return Parse(name, text, oids)


class Around(msgspec.Struct, frozen=True):
    """What a Bind has before its values, and behind them, and what that means."""

    head: bytes
    tail: bytes
    portal: str
    statement: str
    formats: tuple[int, ...]
    count: int
    result_formats: tuple[int, ...]


class BindReader:
    """Reads the Bind messages of a client: those of a statement mostly differ in their values.

    What stands before the values and behind them is read again if it is not what it was.
    """

    __slots__ = ("_kept", "around")

    def __init__(self) -> None:
        self.around: Around | None = None
        """That of the last one, unless it was long."""
        self._kept: dict[bytes, Around] = {}
        """Those of the last ones, by the names that they begin with."""

    def read(self, body: bytes) -> Bind:
        around = self.around
        if around is None or not body.startswith(around.head):
            around = self._kept.get(body[: _end_of_names(body)])
        if around is not None and body.startswith(around.head):
            values, at = _values(body, len(around.head), around.count)
            if body[at:] == around.tail:
                self.around = around
                formats = around.formats
                return Bind(around.portal, around.statement, formats, values, around.result_formats)
        return self._read(body)

    def _read(self, body: bytes) -> Bind:
        self.around = None
        portal, at = _string(body, 0)
        statement, names_end = _string(body, at)
        formats, at = _list(body, names_end, "h")
        try:
            (count,) = _COUNT.unpack_from(body, at)
        except error:
            raise ProtocolViolation("insufficient data left in message") from None
        start = at + 2
        values, end = _values(body, start, count)
        result_formats, at = _list(body, end, "h")
        _check_end(body, at)
        if not (_CODES.issuperset(formats) and _CODES.issuperset(result_formats)):
            raise ProtocolViolation("unsupported format code")
        if start + at - end <= _AROUND_KEPT_MAX:
            if len(self._kept) >= _BINDS_KEPT:
                self._kept.clear()
            about = portal, statement, formats, count, result_formats
            self.around = self._kept[body[:names_end]] = Around(body[:start], body[end:], *about)
        return Bind(portal, statement, formats, values, result_formats)


def _end_of_names(body: bytes) -> int:
    """Return where the names of portal and statement end in a Bind."""
    return body.find(0, body.find(0) + 1) + 1


def _values(body: bytes, at: int, count: int) -> tuple[list[bytes | None], int]:
    values: list[bytes | None] = []
    try:
        read, length = _INT32.unpack_from, len(body)
        for _ in range(count):
            (size,) = read(body, at)
            at += 4
            if size == -1:
                values.append(None)
                continue
            end = at + size
            if size < 0 or end > length:
                raise ProtocolViolation("insufficient data left in message")
            values.append(body[at:end])
            at = end
    except error:
        raise ProtocolViolation("insufficient data left in message") from None
    return values, at


def read_named(body: bytes) -> Named:
    kind = body[:1]
    if kind not in (b"S", b"P"):
        raise ProtocolViolation("a message is about a statement (S) or a portal (P)")
    name, at = _string(body, 1)
    _check_end(body, at)
    return Named(kind == b"P", name)


def read_execute(body: bytes) -> tuple[str, int]:
    """Return the portal and how many rows are wanted at most; 0 is all."""
    name, at = _string(body, 0)
    if len(body) != at + 4:
        raise ProtocolViolation("invalid message format")
    (most,) = _INT32.unpack_from(body, at)
    return name, max(most, 0)


def read_startup(body: bytes) -> dict[str, str]:
    """Return the names and values of a StartupMessage."""
    if body[-1:] != b"\0":
        raise broken("invalid startup packet layout: expected terminator as last byte")
    parts = body[:-1].split(b"\0")
    if parts.pop() != b"" or len(parts) % 2:
        raise broken("invalid startup packet layout")
    texts = [text_of(each) for each in parts]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def read_cancel(body: bytes) -> tuple[int, int] | None:
    """Return number and secret of a CancelRequest; None for one that is no such message."""
    if len(body) != 8:
        return None
    number, secret = unpack_from("!iI", body)
    return number, secret


def read_initial_response(body: bytes) -> tuple[str, bytes]:
    """Return the mechanism and the first message of SASLInitialResponse."""
    mechanism, at = _string(body, 0)
    if len(body) < at + 4:
        raise ProtocolViolation("invalid message format")
    (size,) = _INT32.unpack_from(body, at)
    data = body[at + 4 :]
    if size != len(data):
        raise ProtocolViolation("invalid message format")
    return mechanism, data


def _string(body: bytes, start: int) -> tuple[str, int]:
    end = body.find(0, start)
    if end == start:
        return "", end + 1
    if end < 0:
        raise ProtocolViolation("invalid string in message")
    return text_of(body[start:end]), end + 1


def _list(body: bytes, at: int, kind: str) -> tuple[tuple[int, ...], int]:
    try:
        (count,) = _COUNT.unpack_from(body, at)
        if not count:
            return (), at + 2
        if count == 1 and kind == "h":  # what most drivers send
            return _INT16.unpack_from(body, at + 2), at + 4
        items = Struct(f"!{count}{kind}")
        return items.unpack_from(body, at + 2), at + 2 + items.size
    except error:
        raise ProtocolViolation("insufficient data left in message") from None


def _check_end(body: bytes, at: int) -> None:
    if at != len(body):
        raise ProtocolViolation("invalid message format")


# What follows a Bind if all rows of the unnamed portal are wanted.
RUN: Final = b"E\0\0\0\t\0\0\0\0\0" + b"S\0\0\0\4"
DESCRIBE_AND_RUN: Final = b"D\0\0\0\6P\0" + RUN


# --- messages to the client -----------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    return _HEAD.pack(kind, len(body) + 4) + body


AUTHENTICATED: Final = message(b"R", _INT32.pack(0))
ASK_PASSWORD: Final = message(b"R", _INT32.pack(3))
PARSED: Final = message(b"1")
BOUND: Final = message(b"2")
CLOSED: Final = message(b"3")
NO_DATA: Final = message(b"n")
SUSPENDED: Final = message(b"s")
NO_QUERY: Final = message(b"I")
COPY_ENDS: Final = message(b"c")
IDLE, INSIDE, FAILED = (message(b"Z", status) for status in (b"I", b"T", b"E"))
"""ReadyForQuery, by the state of the transaction."""


def ask_sasl(mechanisms: Iterable[str]) -> bytes:
    names = b"".join([each.encode() + b"\0" for each in mechanisms])
    return message(b"R", _INT32.pack(10) + names + b"\0")


def go_on_sasl(data: bytes) -> bytes:
    return message(b"R", _INT32.pack(11) + data)


def end_sasl(data: bytes) -> bytes:
    return message(b"R", _INT32.pack(12) + data)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", f"{name}\0{value}\0".encode())


def key_data(number: int, secret: int) -> bytes:
    return message(b"K", Struct("!iI").pack(number, secret))


def negotiate(newest_minor: int, unknown: Sequence[str]) -> bytes:
    names = b"".join([each.encode() + b"\0" for each in unknown])
    return message(b"v", _CODE.pack(newest_minor, len(unknown)) + names)


def notification(sender: int, channel: str, payload: str) -> bytes:
    body = b"%b%b\0%b\0" % (sender.to_bytes(4, "big"), channel.encode(), payload.encode())
    return message(b"A", body)


def complete(tag: str) -> bytes:
    return message(b"C", tag.encode() + b"\0")


@lru_cache(maxsize=256)
def complete_select(rows: int) -> bytes:
    return complete(f"SELECT {rows}")


def parameters(oids: Sequence[int]) -> bytes:
    return message(b"t", Struct(f"!H{len(oids)}I").pack(len(oids), *oids))


def fields(kind: bytes, values: Iterable[tuple[str, str]]) -> bytes:
    """Return an ErrorResponse (E) or a NoticeResponse (N)."""
    texts = [f"{code}{value}\0" for code, value in values]
    return message(kind, "".join(texts).replace("\udcff", "?").encode() + b"\0")


def copy_response(kind: bytes, is_binary: bool, columns: int) -> bytes:
    """Return a CopyInResponse (G) or a CopyOutResponse (H)."""
    form = int(is_binary)
    return message(kind, Struct(f"!bH{columns}h").pack(form, columns, *[form] * columns))


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)
