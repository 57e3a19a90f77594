"""One node of several: what it is, its links to the others, and how it begins and leaves.

listener ─► number, lease ─► links ─► the control plane takes its part ─► serves
a signal ─► others have all databases ─► open requests end ─► the lease is ended
"""

from __future__ import annotations

import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn, Protocol

import trio

from qserver.cluster import Links, RemoteDoors
from qserver.config import Settings
from qserver.control.nodes.handover import Handover
from qserver.control.nodes.lease import Lease, Seen
from qserver.control.nodes.membership import Identity, Membership
from qserver.control.nodes.node import Node
from qserver.control.nodes.owners import NodeOwners
from qserver.durability.folder import NODE_FILE
from qserver.errors import DatabaseMoved, InvalidSetting, LogFailed, OutcomeUnknown, QserverError
from qserver.http1 import (
    BelongsElsewhere,
    Client,
    ClientGone,
    Elsewhere,
    Headers,
    Response,
    head_of,
    relay_sockets,
)
from qserver.replication.port import LogNodes, Refused, Unanswered
from qserver.replication.replicated_logs import Report
from qserver.web.service.options import server_options
from qserver.web.service.processes import NOTHING_DONE, Mover
from qserver.web.service.service import Service

OWNER: Final = b"x-qserver-owner"
ATTEMPT_SECONDS: Final = 0.5
"""How long a request waits for a node that is away, before its owner is looked up anew."""
PAUSE_SECONDS: Final = 0.05
BEGIN_SECONDS: Final = 30.0
"""Then a node that the log's nodes do not answer ends, and says so."""
LEAVE_SECONDS: Final = 10.0
"""Then a node ends, and others wait until its lease is over."""
logger: Final = logging.getLogger("qserver")


class ClusterNode:
    """What is there before the service, which needs its owners."""

    def __init__(
        self, settings: Settings, name: str, folder: Path, log_nodes: LogNodes, report: Report
    ) -> None:
        self._options = server_options(settings)
        assert settings.link is not None and settings.cluster_key is not None
        self._settings = settings
        self._name = name
        self._folder = folder
        self._report = report
        self._key = settings.cluster_key.encode()
        self.membership = Membership(
            log_nodes,
            lambda: Lease(_clock, settings.lease_s),
            lambda: secrets.token_hex(8),
            report,
        )
        self.owners = NodeOwners(self.membership, settings.replicas)
        self.node = Node(self.membership, self.owners)
        self.mover = NodeMover(self.owners, self.membership)

    def url(self) -> str:
        settings = self._settings
        host, _, _ = str(settings.link).rpartition(":")
        scheme = "http" if settings.tls_certificate is None else "https"
        return settings.node_url or f"{scheme}://{host}:{settings.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be a node during the block: it has a number and a lease, and links to the others."""
        link = str(self._settings.link)
        membership = self.membership
        identity, is_moved = await trio.to_thread.run_sync(identity_of, self._folder)
        membership.identity = Identity(self._name, self.url(), link, identity, is_moved)
        with self._listener(link) as listener:
            await begin_patiently(membership.begin)
            await trio.to_thread.run_sync(keep_identity, self._folder, identity)
            ways = RemoteDoors(
                membership.number,
                listener,
                self._key,
                self._address_of,
                partial(relay_sockets, options=self._options),
                logger.warning,
            )
            self.mover.link(membership.number, ways)
            async with trio.open_nursery() as nursery:
                await nursery.start(self.owners.links.run)
                membership.tell_others = lambda: nursery.start_soon(self.node.tell_all)
                nursery.start_soon(membership.run)
                yield
                membership.tell_others = lambda: None
                await self._end()
                nursery.cancel_scope.cancel()

    def attend(self, service: Service, handover: Handover) -> None:
        """Let the service have its part in the cluster."""
        membership = self.membership
        service.databases.guard_now = lambda: membership.lease.holds
        self._plane = service.plane
        self.node.control_version = service.plane.version
        membership.on_lost = handover.give_up_all
        self._handover = handover

    async def watch(self) -> None:
        """Heed changes of the placement, and claims of others."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._handover.watch_taken)
            nursery.start_soon(self.node.watch, self._handover, self._plane.placement_changed)
            nursery.start_soon(cut_ended, self.membership, self.owners.links)

    async def leave(self) -> None:
        """Let others have all databases, in bounded time."""
        self._plane.leave()
        with trio.move_on_after(LEAVE_SECONDS):
            try:
                await self.node.leave()
            except (QserverError, Refused, Unanswered) as error:
                self._report("this node leaves without a word", _plain(error))

    async def _end(self) -> None:
        with trio.move_on_after(LEAVE_SECONDS, shield=True):
            try:
                await self.membership.end()
            except (QserverError, Refused, Unanswered) as error:
                self._report("others will wait for this node's lease", _plain(error))

    def _listener(self, link: str) -> socket.socket:
        host, _, port = link.rpartition(":")
        if is_of_this_machine(self._settings.host) and not is_of_this_machine(host):
            logger.warning(
                f"this node listens on {self._settings.host}, where no other machine reaches"
                f" {link}: set QSERVER_HOST to an address of the network"
            )
        try:
            return socket.create_server((self._settings.host, int(port)), backlog=128)
        except OSError as error:
            raise InvalidSetting(
                f"the port of QSERVER_LINK {link!r} cannot be used: {error.strerror}",
                hint="Name a port of this machine that is free.",
            ) from None

    def _address_of(self, number: int) -> tuple[str, int] | None:
        seen = self.membership.seen.get(number)
        if seen is None:
            return None
        host, _, port = seen.facts.link.rpartition(":")
        return host.strip("[]"), int(port)


class NodeMover(Mover):
    """Forwards requests to the nodes that own their databases, through moves and failures."""

    visits_in_row = 1 << 30

    def __init__(self, owners: NodeOwners, membership: Membership) -> None:
        super().__init__(owners)
        self._membership = membership

    async def forward(self, elsewhere: Elsewhere, request: bytes, client: Client) -> Response:
        """Return the answer of the node that owns the database, whichever it is by then."""
        process = elsewhere.process
        until = trio.current_time() + elsewhere.seconds
        while trio.current_time() < until:
            sent_by = min(until, trio.current_time() + ATTEMPT_SECONDS)
            arguments = [request, client, until - trio.current_time()]
            try:
                answer = await self._answer_of(process, arguments, sent_by)
                marks = self._marks_of(process)
                return answer if marks is None else answer.marked(marks)
            except NOTHING_DONE:
                await trio.sleep(PAUSE_SECONDS)
            except OutcomeUnknown as lost:
                if not may_be_sent_again(request):
                    raise ClientGone(str(lost)) from lost
            try:
                assert self._host is not None, "it serves"
                return await self._host.answer(request, client)
            except BelongsElsewhere as found:
                process = found.process
            except NOTHING_DONE:
                break
        return elsewhere.refused()

    async def _serve(self, request: bytes, client: Any, seconds: float) -> list[Any]:
        """The same for another node, whose clock is another one.

        Without a lease nothing can be shown: the other node looks for who can.
        """
        if not self._membership.lease.holds():
            raise DatabaseMoved("this node has no lease", hint="Try again.")
        return await super()._serve(request, client, monotonic() + seconds)

    def marks(self) -> Headers | None:
        return self._marks_of(self._membership.number)

    def _marks_of(self, process: int) -> Headers | None:
        """What tells clients where a node is; None if it is not known."""
        seen = self._membership.seen.get(process)
        if seen is None:
            return None
        return Headers([(OWNER, seen.facts.url.encode("latin-1", "replace"))])


async def begin_patiently(begin: Callable[[], Awaitable[None]]) -> None:
    """Begin, also while the log's nodes elect a leader: that takes longer than a short lease."""
    until = trio.current_time() + BEGIN_SECONDS
    while True:
        try:
            return await begin()
        except LogFailed:
            if trio.current_time() >= until:
                raise
        await trio.sleep(PAUSE_SECONDS)


class Known(Protocol):
    """What is known of nodes."""

    seen: dict[int, Seen]
    changed: trio.Event


async def cut_ended(known: Known, links: Links) -> NoReturn:
    """Wait for no answer of a node whose life has ended: others have its databases by then.

    It may be cut off from the log alone. Then its link is good, and what it cannot commit would be
    waited for as long as it waits for the log.
    """
    ended: set[str] = set()
    while True:
        changed = known.changed
        for number, seen in known.seen.items():
            if seen.facts.is_ended and seen.facts.life not in ended:
                ended.add(seen.facts.life)
                links.cut(number)
        await changed.wait()


def may_be_sent_again(request: bytes) -> bool:
    """Return whether a request is not applied twice, however often it arrives."""
    head = head_of(request).lower()
    return head.startswith((b"get ", b"head ", b"options ")) or b"\r\nidempotency-key:" in head


def is_of_this_machine(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host.strip("[]") == "::1"


def needs_own_server() -> InvalidSetting:
    return InvalidSetting(
        "nodes are reached by links, which an ASGI server does not have",
        hint="Run qserver serve, or leave out QSERVER_LINK.",
    )


def identity_of(folder: Path) -> tuple[str, bool]:
    """The name that a data folder keeps, and whether the folder was copied or moved since then.

    The folder is locked by this process. A new one gets a name.
    """
    path = folder / NODE_FILE
    try:
        found = path.read_text().split("\n")
    except FileNotFoundError:
        found = []
    if not found or not found[0]:
        name = secrets.token_hex(16)
        keep_identity(folder, name)
        return name, False
    name, place = found[0].strip(), "".join(found[1:2]).strip()
    return name, bool(place) and place != _place_of(path)


def keep_identity(folder: Path, name: str) -> None:
    """Write down the name of a folder, and where it is: a copy of that lies elsewhere."""
    path = folder / NODE_FILE
    path.touch()
    path.write_text(f"{name}\n{_place_of(path)}\n")


def _place_of(path: Path) -> str:
    """Where a file lies: another machine has another id, and a second file another number."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    return f"{machine or socket.gethostname()} {path.stat().st_ino}"


def _clock() -> float:
    """Seconds that also count while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _plain(error: Exception) -> QserverError:
    return error if isinstance(error, QserverError) else QserverError(str(error) or "no answer")
