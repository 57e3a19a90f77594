"""The ways between nodes: processes on different machines, over TCP.

    knock(3) ──► address_of(3) ──► TCP ──► handshake ──► frames of messages, as between processes
    carry(3) ──► address_of(3) ──► TCP ──► handshake ──► Move ──► "taken" ──► "go", then relayed

Nobody is served before the handshake. So many strangers may be in it at once; with one more the
oldest is cut off, because a node needs two round trips and a flood cannot keep it out by waiting.
Reports of strangers are sparing.

**A peer that has vanished.** A machine that is cut off says nothing, and the kernel of a process
that is stopped even answers keepalives. So each end of a link sends a `Beat` every second, and cuts
a peer off from which nothing came in five of its own beats (`connection`). Beats are counted and
not seconds: a node that stood still itself has read nothing meanwhile, and must not blame others.
A call has ended then with OutcomeUnknown at once, and locks of the peer are free. A loop that
stands still for longer than that also loses its links; it could not have answered anyway.
TCP_USER_TIMEOUT is not used: it also ends a connection whose reader takes its time.

**A moved connection** cannot travel as a descriptor. What was read from it goes to the other node
over a connection of its own, which is the client's there; this node relays bytes from then on. The
callee begins with it when it has read "go", which is sent after "taken" has come: until then the
caller can have it back, afterwards it never does. A relayed connection ends with the link to its
node: if that has vanished, the client is told by a reset and does not wait for retransmissions.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable
from struct import Struct
from typing import Final

import trio

from qserver.cluster.connection import Report
from qserver.cluster.frames import DamagedFrame
from qserver.cluster.handshake import Asked, Kind, Refusal, admit, greet, receive_exactly, send_all
from qserver.cluster.messages import Move, decode, encode
from qserver.cluster.sparing_reports import SparingReports
from qserver.cluster.ways import Arrival, Arrived, Carrier, LinkedHere, MovedHere
from qserver.errors import ProgramLimitExceeded, first_of
from qserver.limits import (
    LINK_MESSAGE_BYTES_MAX,
    LINK_MOVES_MAX,
    LINK_RETRY_SECONDS,
    STALL_SECONDS_MAX,
)

AddressOf = Callable[[int], tuple[str, int] | None]
"""The host and the port of a node, as they are now; None if it has none."""
Relay = Callable[[socket.socket, socket.socket], Awaitable[None]]
"""Passes bytes between a client and the node that serves it, until both have ended."""

CONNECT_SECONDS_MAX: Final = 2.0
"""How long it may take to reach a node, its name's resolution included."""
RETRY_SECONDS_MAX: Final = 0.5
"""The longest pause between two attempts to reach a node that is away."""
STRANGERS_MAX: Final = 64
"""Connections at once whose handshake has not ended; with more the oldest is cut off."""
KEY_BYTES_MIN: Final = 16
"""Of a cluster's key: a shorter one could be guessed."""

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3}
"""A peer that is cut off is noticed after five seconds on a connection without bytes under way."""
_MOVE_HEAD: Final = Struct(">BI")
_TAKEN: Final = b"+"
_GO: Final = b"!"


class RemoteDoors:
    """The ways of node `me` to all others. The listener is closed by whoever made it."""

    noun = "node"
    retry_seconds_max = RETRY_SECONDS_MAX
    is_watched = True

    def __init__(
        self,
        me: int,
        listener: socket.socket,
        key: bytes,
        address_of: AddressOf,
        relay: Relay,
        report: Report,
    ) -> None:
        assert len(key) >= KEY_BYTES_MIN
        listener.setblocking(False)
        self._me = me
        self._listener = listener
        self._key = key
        self._address_of = address_of
        self._relay = relay
        self._report = SparingReports(report)
        self._strangers: dict[trio.CancelScope, None] = {}
        """The oldest first."""
        self._relayed = 0

    @property
    def carrier(self) -> Carrier:
        return self

    # --- to others ---

    async def knock(self, process: int) -> socket.socket:
        return await self._connect(process, Kind.LINK)

    async def carry(self, process: int, message: Move, deadline: float) -> socket.socket:
        kind, payload = encode(message)
        if len(payload) > LINK_MESSAGE_BYTES_MAX:
            raise ProgramLimitExceeded(
                f"{len(payload)} bytes for another node are more than {LINK_MESSAGE_BYTES_MAX}"
            )
        if self._relayed >= LINK_MOVES_MAX:
            raise OSError(errno.EMFILE, f"{LINK_MOVES_MAX} connections are relayed")
        with trio.move_on_at(min(deadline, trio.current_time() + STALL_SECONDS_MAX)):
            beyond = await self._connect(process, Kind.MOVED)
            try:
                await send_all(beyond, _MOVE_HEAD.pack(kind, len(payload)) + payload)
                if await receive_exactly(beyond, 1) != _TAKEN:
                    raise OSError(errno.EPROTO, f"node {process} does not take a connection")
                beyond.send(_GO)  # from here on it is the other node's: nothing may wait
            except BaseException:
                beyond.close()
                raise
            return beyond
        raise OSError(errno.ETIMEDOUT, f"node {process} has not taken a connection in time")

    async def relay(self, moved: socket.socket, beyond: socket.socket) -> None:
        moved.setblocking(False)
        self._relayed += 1
        try:
            await self._relay(moved, beyond)
        finally:
            self._relayed -= 1

    async def _connect(self, process: int, kind: Kind) -> socket.socket:
        address = self._address_of(process)
        if address is None:
            raise OSError(errno.ENXIO, f"node {process} has no address")
        connected = await _connected(*address)
        try:
            _tune(connected)
            await greet(connected, self._key, kind, self._me, process)
        except BaseException as error:
            connected.close()
            if isinstance(error, Refusal):
                host, port = address
                text = f"there is no link to node {process} at {host}:{port}: {error.strerror}"
                self._report(f"{process} {error.reason}", text)
            raise
        return connected

    # --- from others ---

    async def receive(self, arrived: Arrived) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                await trio.lowlevel.wait_readable(self._listener)
                try:
                    accepted, address = self._listener.accept()
                except (BlockingIOError, ConnectionAbortedError):
                    continue
                except OSError as error:
                    text = f"cannot accept a connection of a node now: {error.strerror}"
                    self._report("accept", text)
                    await trio.sleep(LINK_RETRY_SECONDS)
                    continue
                scope = self._room_for_a_stranger()
                nursery.start_soon(self._receive_from, accepted, address[0], scope, arrived)

    def _room_for_a_stranger(self) -> trio.CancelScope:
        if len(self._strangers) >= STRANGERS_MAX:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()
            text = f"more than {STRANGERS_MAX} connections wait to prove that they are of nodes"
            self._report("flood", f"{text}: the oldest is cut off")
        scope = trio.CancelScope()
        self._strangers[scope] = None
        return scope

    async def _receive_from(
        self, accepted: socket.socket, host: str, scope: trio.CancelScope, arrived: Arrived
    ) -> None:
        arrival: Arrival | None = None
        try:
            asked = await self._admitted(accepted, host, scope)
            if asked is not None and asked.kind == Kind.LINK:
                arrival = LinkedHere(f"node {asked.caller}", accepted)
            elif asked is not None:
                arrival = await self._taken(accepted, asked.caller)
        finally:
            if arrival is None:
                accepted.close()
        if arrival is not None:
            arrived(arrival)

    async def _admitted(
        self, accepted: socket.socket, host: str, scope: trio.CancelScope
    ) -> Asked | None:
        try:
            with scope:
                _tune(accepted)
                return await admit(accepted, self._key, self._me)
        except Refusal as refusal:
            text = f"a connection from {host} is refused: {refusal.strerror}"
            self._report(refusal.reason, text)
        except OSError:
            pass  # it has left by itself: somebody looks which ports are open, or a node ends
        finally:
            self._strangers.pop(scope, None)
        return None

    async def _taken(self, accepted: socket.socket, caller: int) -> MovedHere | None:
        """Take a client's connection that another node moves here, if it does not change its mind.

        The other node can have it back until its "go" is read.
        """
        try:
            head = await _soon(accepted, _MOVE_HEAD.size)
            kind, length = _MOVE_HEAD.unpack(head)
            if length > LINK_MESSAGE_BYTES_MAX:
                raise DamagedFrame(f"{length} bytes are too many")
            message = decode(kind, await _soon(accepted, length))
            if not isinstance(message, Move):
                raise DamagedFrame(f"{type(message).__name__} moves nothing")
            await send_all(accepted, _TAKEN)
            if await _soon(accepted, 1) != _GO:
                raise DamagedFrame("it is not said that it can begin")
        except DamagedFrame as damage:
            self._report("moved", f"a connection that node {caller} moves here is lost: {damage}")
        except (OSError, trio.TooSlowError):
            pass  # the caller still has it
        else:
            return MovedHere(message.meta, message.data, accepted)
        return None


async def _connected(host: str, port: int) -> socket.socket:
    try:
        with trio.fail_after(CONNECT_SECONDS_MAX):
            stream = await trio.open_tcp_stream(host, port)
    except trio.TooSlowError:
        raise OSError(errno.ETIMEDOUT, f"{host}:{port} cannot be reached in time") from None
    except (OSError, ValueError, OverflowError) as error:  # also what is no name, or no port
        cause = error.__cause__
        first = first_of(cause) if isinstance(cause, Exception) else error
        why = getattr(first, "strerror", None) or first
        raise OSError(errno.EHOSTUNREACH, f"{host}:{port} cannot be reached: {why}") from None
    return socket.socket(fileno=stream.socket.detach())


def _tune(connected: socket.socket) -> None:
    connected.setblocking(False)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        option = getattr(socket, name, None)  # not every system has them all
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


async def _soon(connected: socket.socket, count: int) -> bytes:
    with trio.fail_after(STALL_SECONDS_MAX):
        return await receive_exactly(connected, count)
