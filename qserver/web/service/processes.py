"""One process of several: what it inherits, and its links to the others.

supervisor ─► fork ─► Member ─┬─ listening sockets      accepted by all processes
                              ├─ links                  calls, and connections that move
                              ├─ windows                requests counted by all, in memory
                              └─ versions               of databases that others follow, in memory
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn, Protocol

import msgspec
import trio

from qserver.cluster import Doors, Links, LocalDoors, Stream, Ways
from qserver.cluster import Service as LinkService
from qserver.cluster.shared_connections import SharedConnections
from qserver.cluster.shared_versions import SharedVersions
from qserver.cluster.shared_windows import SharedWindows
from qserver.control.owners import Owners
from qserver.durability.folder import REPLICAS
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
    Elsewhere,
    Headers,
    Host,
    Moved,
    Parts,
    Response,
)
from qserver.limits import CALL_SECONDS_MAX, PARTS_SECONDS_MAX
from qserver.pgwire import MARK

NOTHING_DONE: Final = (DatabaseMoved, DatabaseUnavailable, TooManyRequests)
"""What a process that does not serve a request answers."""
logger: Final = logging.getLogger("qserver")


class Member(msgspec.Struct, frozen=True):
    """What a forked process begins with."""

    number: int
    count: int
    sockets: list[socket.socket]
    doors: Doors
    windows: SharedWindows
    versions: SharedVersions
    connections: SharedConnections
    alive: int
    """Reads as ended when the supervisor has."""
    pg_sockets: list[socket.socket] = []
    """Those for clients of PostgreSQL."""

    def evidence(self, folder: Path) -> Path:
        """The watchdog's file of this process."""
        return folder / f"stall.{self.number}.txt"

    def replicas(self, folder: Path) -> Path:
        """The folder of what this process follows; it lasts as long as the process."""
        return folder / f"{REPLICAS}{self.number}"


class Postgres(Protocol):
    """Serves connections of PostgreSQL's protocol."""

    def adopt(self, connected: socket.socket, client: Any, data: bytes) -> None:
        """Go on with a connection that another process has accepted."""


class Mover:
    """Takes clients' connections and requests to the processes that own their databases."""

    visits_in_row = 4

    def __init__(self, owners: Owners) -> None:
        """Call `link` before it is used."""
        self._owners = owners
        self._host: Host | None = None
        self._began = trio.Event()
        self._postgres: Postgres | None = None
        self._postgres_began = trio.Event()
        self._ids = count()
        self._parts: dict[int, tuple[Parts, float]] = {}
        """Answers whose body is to be fetched, and until when."""
        owners.answer("serve", self._serve)
        owners.streams["parts"] = self._send_parts

    @classmethod
    def of(cls, member: Member, owners: Owners) -> Mover:
        """The mover of one of several processes."""
        mover = cls(owners)
        inside = member.doors.keep(member.number)
        mover.link(member.number, LocalDoors(inside, member.doors, logger.warning))
        return mover

    def link(self, number: int, ways: Ways) -> None:
        """Make the links to the others, by these ways; whoever calls this runs them."""
        owners = self._owners
        service = LinkService(owners.methods, owners.streams, self._welcome, owners.locks)
        self._links = owners.links = Links(number, ways, service, logger.warning)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the links, and drop what nobody fetches."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._links.run)
            nursery.start_soon(self.drop_old)
            task_status.started()

    def begin(self, host: Host) -> None:
        self._host = host
        self._began.set()

    def drain(self) -> None:
        """Wait for no process that is away: all end, and it will not come back."""
        if self._host is not None:
            self._links.drain()

    # --- connections that move ---

    def move(self, moved: Moved, elsewhere: Elsewhere) -> None:
        def failed(connected: socket.socket, *_: Any) -> None:
            assert self._host is not None, "it serves"
            self._host.adopt(moved, elsewhere.refused())

        self._links.send_connection(
            elsewhere.process,
            moved.client,
            moved.data,
            moved.socket,
            deadline=trio.current_time() + elsewhere.seconds,
            failed=failed,
        )

    async def _welcome(self, client: Any, data: bytes, connected: socket.socket) -> None:
        """Serve a connection that has arrived, as soon as this process serves any."""
        if data.startswith(MARK):
            await self._postgres_began.wait()
            if self._postgres is None:
                connected.close()
            else:
                self._postgres.adopt(connected, _address(client), data)
            return
        await self._began.wait()
        assert self._host is not None
        self._host.adopt(Moved(connected, _address(client), data, self.marks()))

    def marks(self) -> Headers | None:
        """What answers say to clients of other processes."""
        return None

    def begin_postgres(self, postgres: Postgres | None) -> None:
        """Called once: who serves connections of PostgreSQL's protocol here, if anybody does."""
        self._postgres = postgres
        self._postgres_began.set()

    def send(
        self,
        process: int,
        client: Any,
        data: bytes,
        moved: socket.socket,
        failed: Callable[[socket.socket], None],
    ) -> None:
        """Send a connection of another protocol; `failed` gets it back if that is not possible."""
        deadline = trio.current_time() + CALL_SECONDS_MAX
        self._links.send_connection(
            process,
            client,
            data,
            moved,
            deadline=deadline,
            failed=lambda connected, *_: failed(connected),
        )

    # --- requests that are forwarded ---

    async def forward(self, elsewhere: Elsewhere, request: bytes, client: Client) -> Response:
        """Return the answer of another process; one that does not begin with it is away."""
        seconds = elsewhere.seconds
        until, sent_by = monotonic() + seconds, trio.current_time() + seconds
        try:
            return await self._answer_of(elsewhere.process, [request, client, until], sent_by)
        except (*NOTHING_DONE, OutcomeUnknown) as error:
            if elsewhere.instead is not None:
                return await elsewhere.instead()
            if isinstance(error, OutcomeUnknown):  # as if the process that has ended had served it
                raise ClientGone(str(error)) from error
            return elsewhere.refused()

    async def _answer_of(self, process: int, arguments: list[Any], sent_by: float) -> Response:
        found = await self._links.call(process, "serve", arguments, sent_by=sent_by)
        status, pairs, body, request_id, farewell = found
        if not isinstance(body, bytes):
            body = FetchedParts(self._links, process, body)
        headers = Headers((name, value) for name, value in pairs)
        return Response(status, headers, body, request_id, farewell)

    async def _serve(self, request: bytes, client: Any, until: float) -> list[Any]:
        """Answer a request of a connection that another process keeps, if it can begin in time.

        `until` is of the clock that all processes of a machine have.
        """
        with trio.move_on_at(trio.current_time() + until - monotonic()):
            await self._began.wait()
        if self._host is None or monotonic() > until:
            raise DatabaseMoved("it has begun too late", hint="Try again.")
        answer = await self._host.answer(request, _address(client))
        body: bytes | int
        if isinstance(answer.body, bytes):
            body = answer.body
        else:
            body = next(self._ids)
            self._parts[body] = answer.body, trio.current_time() + PARTS_SECONDS_MAX
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

    async def drop_old(self) -> NoReturn:
        """Close answers that nobody has fetched: the process that wanted them has died."""
        while True:
            await trio.sleep(PARTS_SECONDS_MAX)
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
