"""One connection to one of several servers; when it breaks, to the next of them.

    ask ──► waiting bytes ──► _write ──► server ──► _read ──► Parser ──► the question's replies
            bounded

A question names a subject of its own for replies, below one that only this connection has: a
server's id and the number that it gave the connection. So a reply to an earlier connection, or to
somebody else, cannot be taken for another.

A question is sent once. When its connection breaks, or when no reply comes in time, nobody knows
what became of it: Unanswered. While there is no connection questions wait for one, within their
time. A server that a question cannot be sent to because of how it is set up (token, TLS, size of
messages) is LogFailed, if there is no other.

A server that sends nothing for two pings, a second each, counts as broken.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import cycle
from typing import Final, NamedTuple

import trio

from qserver.errors import InvalidSetting, LogFailed
from qserver.replication.nats.protocol import (
    PING,
    PONG,
    Delivery,
    Event,
    Info,
    Parser,
    Ping,
    Pong,
    ProtocolError,
    ServerError,
    connect,
    publish,
    subscribe,
)
from qserver.replication.port import Unanswered

USER: Final = "qserver"
PORT, PORT_MAX = 4222, 65_535
MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
"""What a node must take as one message, headers included; one that takes less is refused."""

CONNECT_SECONDS_MAX: Final = 2.0
PING_SECONDS: Final = 1.0
PINGS_UNANSWERED_MAX: Final = 2
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.05, 1.0
"""Before another server is tried, after one that could not be reached: twice as long each time."""

UNSENT_BYTES_MAX: Final = 4 * MESSAGE_BYTES_MAX
"""Questions wait while more than this has not left."""

_PIECE_BYTES: Final = 64 * 1024
_FAILURES: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, ProtocolError)


class Server(NamedTuple):
    host: str
    port: int
    is_secure: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


Dial = Callable[[Server], Awaitable[trio.abc.Stream]]


def servers_of(text: str) -> list[Server]:
    """Return the servers of `nats://h1:4222,h2:4222`; with `tls://`, those that speak TLS."""
    scheme, found, rest = text.partition("://")
    servers = []
    for each in rest.split(","):
        host, colon, port = each.strip().rpartition(":")
        if not colon or each.endswith("]"):
            host, port = each.strip(), str(PORT)
        is_port = port.isascii() and port.isdigit() and 0 < int(port) <= PORT_MAX
        if scheme not in ("nats", "tls") or not found or not host or not is_port or "/" in each:
            raise InvalidSetting(
                f"{text!r} does not name log nodes",
                hint="Name them as nats://host:4222,host:4222 or, with TLS, tls://host:4222.",
            )
        servers.append(Server(host.strip("[]"), int(port), scheme == "tls"))
    return servers


async def dial(server: Server) -> trio.abc.Stream:
    return await trio.open_tcp_stream(server.host, server.port)


class Question:
    """What was asked, and what came back: `ended` when the last reply has come, or none can."""

    def __init__(self, is_last: Callable[[Delivery], bool] | None) -> None:
        self.replies: list[Delivery] = []
        self.is_last = is_last
        self.ended = trio.Event()

    def receive(self, reply: Delivery) -> None:
        if self.ended.is_set():  # two nodes take themselves for the leader
            return
        self.replies.append(reply)
        if self.is_last is None or self.is_last(reply):
            self.ended.set()


class Connection:
    """Asks one of the servers. `run` keeps a connection to one of them."""

    def __init__(
        self,
        servers: Sequence[Server],
        token: str = "",
        tls: ssl.SSLContext | None = None,
        dial: Dial = dial,
    ) -> None:
        self._servers = servers
        self._token = token
        self._tls = tls
        self._dial = dial
        self._link: Link | None = None
        self._linked = trio.lowlevel.ParkingLot()
        self._trouble: Exception = Unanswered("no log node was reached yet")
        """Why there is no connection."""

    @property
    def server(self) -> Server | None:
        """The one that questions go to now."""
        return None if self._link is None else self._link.server

    async def run(self) -> None:
        pause = PAUSE_SECONDS_MIN
        for server in cycle(self._servers):
            link = await self._try(server)
            if link is None:
                await trio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
                continue
            pause = PAUSE_SECONDS_MIN
            self._link = link
            self._linked.unpark_all()
            try:
                self._trouble = Unanswered(f"{server}: {await link.run()}")
            finally:
                self._link = None

    async def ask(
        self,
        subject: str,
        data: bytes,
        seconds: float,
        headers: Mapping[str, str] = {},
        is_last: Callable[[Delivery], bool] | None = None,
    ) -> list[Delivery]:
        """Return the first reply, or all up to the last, or those that came in time: never none."""
        question = Question(is_last)
        with trio.move_on_after(seconds):
            while self._link is None or self._link.broken is not None:
                await self._linked.park()
            await self._link.ask(question, subject, data, headers)
        if question.replies:
            return question.replies
        if self._link is None:
            raise self._why()
        raise Unanswered(f"{self.server}: no reply within {seconds:g} seconds")

    def _why(self) -> Exception:
        if isinstance(self._trouble, LogFailed):
            return LogFailed(self._trouble.message, hint=self._trouble.hint)
        return Unanswered(str(self._trouble))

    async def _try(self, server: Server) -> Link | None:
        stream: trio.abc.Stream | None = None
        link: Link | None = None
        try:
            with trio.fail_after(CONNECT_SECONDS_MAX):
                stream = await self._dial(server)
                link = await greet(stream, server, self._token, self._tls)
        except trio.TooSlowError:
            self._trouble = Unanswered(f"{server}: no answer in {CONNECT_SECONDS_MAX:g} seconds")
        except _FAILURES as error:
            self._trouble = Unanswered(f"{server}: {_reason(error)}")
        except LogFailed as error:
            self._trouble = error
        finally:
            if stream is not None and link is None:
                await trio.aclose_forcefully(stream)
        return link


class Link:
    """One connection that has begun. `run` serves it until it breaks."""

    def __init__(self, server: Server, stream: trio.abc.Stream, parser: Parser, inbox: str) -> None:
        self.server = server
        self._stream = stream
        self._parser = parser
        self._inbox = inbox
        self._asked = 0
        self._questions: dict[bytes, Question] = {}
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._pings = 0
        """How many were sent since the server has sent anything."""
        self._work = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        self.broken: str | None = None
        """Why, if it is."""

    async def ask(
        self, question: Question, subject: str, data: bytes, headers: Mapping[str, str]
    ) -> None:
        """Send a question, and return when it has its last reply, or some and the link broke."""
        while self._unsent_bytes > UNSENT_BYTES_MAX and self.broken is None:
            await self._room.park()
        if self.broken is not None:
            raise Unanswered(f"{self.server}: {self.broken}")
        self._asked += 1
        reply = f"{self._inbox}.{self._asked}"
        name = reply.encode()
        self._questions[name] = question
        self._send(publish(subject, reply, data, headers))
        try:
            await question.ended.wait()
        finally:
            self._questions.pop(name, None)
        if self.broken is not None and not question.replies:
            raise Unanswered(f"{self.server}: {self.broken}")

    async def run(self) -> str:
        """Return why the connection broke."""
        try:
            async with trio.open_nursery() as nursery:
                for work in (self._read, self._write, self._watch):
                    nursery.start_soon(self._until_broken, work, nursery.cancel_scope)
        finally:
            self.broken = self.broken or "the connection was closed"
            for question in self._questions.values():
                question.ended.set()
            self._room.unpark_all()
            await trio.aclose_forcefully(self._stream)
        return self.broken

    async def _until_broken(
        self, work: Callable[[], Awaitable[str]], scope: trio.CancelScope
    ) -> None:
        try:
            reason = await work()
        except _FAILURES as error:
            reason = _reason(error)
        self.broken = self.broken or reason
        scope.cancel()

    async def _read(self) -> str:
        while True:
            while (event := self._parser.next_event()) is not None:
                if isinstance(event, Delivery):
                    question = self._questions.get(event.subject)
                    if question is not None:  # else its time is over
                        question.receive(event)
                elif isinstance(event, Ping):
                    self._send(PONG)
                elif isinstance(event, ServerError):
                    return event.text
            data = await self._stream.receive_some(_PIECE_BYTES)
            if not data:
                return "it closed the connection"
            self._pings = 0
            self._parser.feed(data)

    async def _write(self) -> str:
        while True:
            while not self._unsent:
                await self._work.park()
            data = b"".join(self._unsent)
            self._unsent.clear()
            await self._stream.send_all(data)
            self._unsent_bytes -= len(data)
            self._room.unpark_all()

    async def _watch(self) -> str:
        while self._pings < PINGS_UNANSWERED_MAX:
            self._pings += 1
            self._send(PING)
            await trio.sleep(PING_SECONDS)
        return f"it sent nothing for {PINGS_UNANSWERED_MAX * PING_SECONDS:g} seconds"

    def _send(self, data: bytes) -> None:
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        self._work.unpark()


async def greet(
    stream: trio.abc.Stream, server: Server, token: str, tls: ssl.SSLContext | None
) -> Link:
    """Begin a connection. Raise LogFailed if the server is not set up as it must be."""
    parser = Parser()
    info = await _next(stream, parser)
    if not isinstance(info, Info):
        raise ProtocolError("it does not greet as a NATS server does")
    _check(info, server)
    if server.is_secure:
        parser = Parser()  # what came before is no part of the conversation
        stream = await _secured(stream, server, tls)
    inbox = f"_INBOX.{info.server_id}.{info.client_id}"
    await stream.send_all(connect(USER, token, "qserver") + subscribe(f"{inbox}.*", 1) + PING)
    while not isinstance(event := await _next(stream, parser), Pong):
        if isinstance(event, ServerError):
            raise LogFailed(
                f"the log node {server} refuses the connection: {event.text}",
                hint="Its token must be the one in QSERVER_LOG_TOKEN.",
            )
    return Link(server, stream, parser, inbox)


async def _secured(
    stream: trio.abc.Stream, server: Server, tls: ssl.SSLContext | None
) -> trio.abc.Stream:
    tls = tls or ssl.create_default_context()
    secured = trio.SSLStream(stream, tls, server_hostname=server.host)
    try:
        await secured.do_handshake()
    except trio.BrokenResourceError as error:
        if isinstance(error.__cause__, ssl.SSLCertVerificationError):
            raise LogFailed(
                f"the certificate of the log node {server} is refused: {error.__cause__}",
                hint="It must be for the name in the address, by an authority that is trusted.",
            ) from None
        raise
    return secured


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _check(info: Info, server: Server) -> None:
    reason = None
    if not info.headers or not info.jetstream:
        reason = "does not run JetStream"
    elif info.max_payload < MESSAGE_BYTES_MAX:
        reason = f"takes messages of {info.max_payload} bytes, and {MESSAGE_BYTES_MAX} are needed"
    elif server.is_secure and not (info.tls_required or info.tls_available):
        reason = "does not speak TLS"
    elif info.tls_required and not server.is_secure:
        reason = "speaks TLS only: its address must begin with tls://"
    if reason is not None:
        hint = "`qserver log-config` writes a configuration for it."
        raise LogFailed(f"the log node {server} {reason}", hint=hint)


async def _next(stream: trio.abc.Stream, parser: Parser) -> Event:
    while (event := parser.next_event()) is None:
        data = await stream.receive_some(_PIECE_BYTES)
        if not data:
            raise ProtocolError("it closed the connection")
        parser.feed(data)
    return event
