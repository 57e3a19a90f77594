"""One process of several: what it inherits, and its links to the others.

supervisor ─► fork ─► Member ─┬─ listening sockets      accepted by all processes
                              ├─ links                  calls, and connections that move
                              └─ windows                requests counted by all, in memory
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import msgspec
import trio

from qserver.cluster import Links, Listeners, Stream
from qserver.cluster import Service as LinkService
from qserver.cluster.shared_windows import SharedWindows
from qserver.control.owners import Owners
from qserver.errors import (
    DatabaseMoved,
    DatabaseUnavailable,
    OutcomeUnknown,
    QserverError,
    TooManyRequests,
)
from qserver.http1 import (
    AnswerCut,
    Client,
    ClientGone,
    Headers,
    Host,
    Moved,
    Parts,
    Refusal,
    Response,
)
from qserver.limits import MOVE_SECONDS_MAX
from qserver.web.statements.answers import error_body
from qserver.web.statuses import headers_of, status_of

logger: Final = logging.getLogger("qserver")
_REQUEST_ID: Final = re.compile(rb"(?i)\r\nx-request-id: *([\w.:-]{1,128}) *\r\n")
JSON: Final = (b"content-type", b"application/json")
AWAY: Final = "the process of this database does not answer"


class Member(msgspec.Struct, frozen=True):
    """What a forked process begins with."""

    number: int
    count: int
    sockets: list[socket.socket]
    listeners: Listeners
    windows: SharedWindows
    alive: int
    """Reads as ended when the supervisor has."""

    def evidence(self, folder: Path) -> Path:
        """The watchdog's file of this process."""
        return folder / f"stall.{self.number}.txt"


class Mover:
    """Takes clients' connections and requests to the processes that own their databases."""

    visits_in_row = 4

    def __init__(self, member: Member, owners: Owners) -> None:
        self._host: Host | None = None
        self._began = trio.Event()
        self._ids = count()
        self._parts: dict[int, tuple[Parts, float]] = {}
        """Answers whose body is to be fetched, and until when."""
        owners.answer("serve", self._serve)
        owners.streams["parts"] = self._send_parts
        service = LinkService(owners.methods, owners.streams, self._welcome, owners.locks)
        listeners, number = member.listeners, member.number
        self._links = owners.links = Links(
            number, listeners.keep(number), listeners.paths, service, logger.warning
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self._links.run)
            task_status.started()
            while True:
                await trio.sleep(MOVE_SECONDS_MAX)
                await self._drop_old()

    def begin(self, host: Host) -> None:
        self._host = host
        self._began.set()

    def drain(self) -> None:
        """Wait for no process that is away: all end, and it will not come back."""
        self._links.drain()

    # --- connections that move ---

    def move(self, moved: Moved) -> None:
        deadline = trio.current_time() + MOVE_SECONDS_MAX
        self._links.send_connection(
            moved.process,
            moved.client,
            moved.data,
            moved.socket,
            deadline=deadline,
            failed=self._failed,
        )

    async def _welcome(self, client: Any, data: bytes, connected: socket.socket) -> None:
        """Serve a connection that has arrived, as soon as this process serves any."""
        await self._began.wait()
        self._take(connected, client, data, None)

    def _failed(self, connected: socket.socket, client: Any, data: bytes) -> None:
        code = DatabaseMoved.code, DatabaseMoved.name
        self._take(connected, client, data, Refusal(503, AWAY, "Try again.", code))

    def _take(
        self, connected: socket.socket, client: Any, data: bytes, refusal: Refusal | None
    ) -> None:
        assert self._host is not None, "it serves"
        self._host.adopt(Moved(0, connected, _address(client), data), refusal)

    # --- requests that are forwarded ---

    async def forward(self, process: int, request: bytes, client: Client) -> Response:
        """Return the answer of another process; one that fails is answered with its error."""
        try:
            found = await self._links.call(process, "serve", [request, client])
        except (DatabaseMoved, DatabaseUnavailable, TooManyRequests):  # nothing was done
            return _answer_of(DatabaseMoved(AWAY, hint="Try again."), request)
        except OutcomeUnknown as lost:  # as if it had been served by the process that has ended
            raise ClientGone(str(lost)) from lost
        status, pairs, body, request_id, farewell = found
        if not isinstance(body, bytes):
            body = FetchedParts(self._links, process, body)
        headers = Headers((name, value) for name, value in pairs)
        return Response(status, headers, body, request_id, farewell)

    async def _serve(self, request: bytes, client: Any) -> list[Any]:
        """Answer a request of a connection that another process keeps."""
        await self._began.wait()
        assert self._host is not None
        answer = await self._host.answer(request, _address(client))
        body: bytes | int
        if isinstance(answer.body, bytes):
            body = answer.body
        else:
            body = next(self._ids)
            self._parts[body] = answer.body, trio.current_time() + MOVE_SECONDS_MAX
        pairs = list(answer.headers.pairs)
        return [answer.status, pairs, body, answer.request_id, answer.farewell]

    async def _send_parts(self, back: Stream, number: int) -> AsyncGenerator[bytes, None]:
        parts, _ = self._parts.pop(number)
        try:
            async for part in parts:
                yield part
        finally:
            with trio.CancelScope(shield=True):
                await parts.aclose()

    async def _drop_old(self) -> None:
        """Close answers that nobody has fetched: the process that wanted them has died."""
        now = trio.current_time()
        for number in [each for each, (_, until) in self._parts.items() if until < now]:
            await self._parts.pop(number)[0].aclose()

    def __repr__(self) -> str:
        return f"the way to other processes, by {self._links!r}"


class FetchedParts:
    """The body of an answer that another process makes."""

    def __init__(self, links: Links, process: int, number: int) -> None:
        self._parts = self._fetched(links, process, number)

    async def _fetched(
        self, links: Links, process: int, number: int
    ) -> AsyncGenerator[bytes, None]:
        try:
            async with links.follow(process, "parts", [number]) as stream:
                async for part in stream:
                    assert isinstance(part, bytes)
                    yield part
        except QserverError as error:
            raise AnswerCut(str(error)) from error

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts

    async def aclose(self) -> None:
        await self._parts.aclose()


def _address(client: Any) -> Client:
    return None if client is None else (str(client[0]), int(client[1]))


def _answer_of(error: QserverError, request: bytes) -> Response:
    given = _REQUEST_ID.search(request)
    request_id = token_hex(12) if given is None else given[1].decode()
    body = error_body(error, request_id, 0, 0)
    return Response(status_of(error), Headers([JSON, *headers_of(error)]), body, request_id)
