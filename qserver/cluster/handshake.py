"""How two nodes find out over a new connection that both have the cluster's key.

    caller                                               callee
    mark version │ kind caller callee nonce  ────►
                                             ◄────  mark version │ nonce
    proof of the caller                      ────►
                                             ◄────  proof of the callee
                              bytes of the kind that was asked for

A proof is an HMAC-SHA256 with the key over its direction, both nonces, both numbers and the kind.
The key never travels. A nonce is 32 random bytes of this handshake, so what was recorded of another
one proves nothing; the directions differ, so neither does what the peer has sent itself. The callee
proves something only to a caller that has proved it first: a stranger gets nothing to try keys on.

The proofs keep strangers out. They do not hide or protect what follows: whoever can read and change
the packets between two nodes can do so with the bytes of a link, and the network must be one where
nobody can.

Mark and version stand first in every release, so nodes of different ones can tell.
"""

from __future__ import annotations

import errno
import hmac
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

import trio

VERSION: Final = 1
HANDSHAKE_SECONDS_MAX: Final = 2.0
"""How long a handshake may take, before the peer is refused."""

_MARK: Final = b"qsrv"
_NONCE_BYTES: Final = 32
_START: Final = Struct(">4sB")
_ASKED: Final = Struct(">BII32s")
_PROOF_BYTES: Final = 32
_RECEIVE_BYTES: Final = 256 * 1024


class Kind(IntEnum):
    """What a connection is for."""

    LINK = 1
    MOVED = 2


class Refusal(OSError):
    """The peer is not who it should be. `reason` is a word for all refusals of this sort."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(errno.EPROTO, text)
        self.reason = reason


class Asked(NamedTuple):
    """What a caller asks for."""

    kind: int
    caller: int
    callee: int
    nonce: bytes


async def greet(connected: socket.socket, key: bytes, kind: Kind, caller: int, callee: int) -> None:
    """Prove to a callee that this is a node, and that it is the right one; or raise OSError."""
    asked = Asked(kind, caller, callee, secrets.token_bytes(_NONCE_BYTES))
    with _in_time():
        await send_all(connected, _START.pack(_MARK, VERSION) + _ASKED.pack(*asked))
        await _read_start(connected)
        nonce = await receive_exactly(connected, _NONCE_BYTES)
        await send_all(connected, _proof(key, b"caller", asked, nonce))
        try:
            found = await receive_exactly(connected, _PROOF_BYTES)
        except ConnectionError:
            raise Refusal(
                "refused", "it has refused this node, and reports why: perhaps their keys differ"
            ) from None
    if not hmac.compare_digest(found, _proof(key, b"callee", asked, nonce)):
        raise Refusal("key", "it does not have the key of this cluster")


async def admit(connected: socket.socket, key: bytes, me: int) -> Asked:
    """Return what a caller asks for that has the key and means this node; or raise OSError."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    with _in_time():
        await send_all(connected, _START.pack(_MARK, VERSION) + nonce)
        await _read_start(connected)
        asked = Asked(*_ASKED.unpack(await receive_exactly(connected, _ASKED.size)))
        found = await receive_exactly(connected, _PROOF_BYTES)
        if not hmac.compare_digest(found, _proof(key, b"caller", asked, nonce)):
            raise Refusal("key", "it does not have the key of this cluster")
        if asked.callee != me:
            raise Refusal(
                "number",
                f"node {asked.caller} takes this node for node {asked.callee}, but it is {me}",
            )
        if asked.kind not in [*Kind]:
            raise Refusal("kind", f"node {asked.caller} asks for something unknown: {asked.kind}")
        await send_all(connected, _proof(key, b"callee", asked, nonce))
    return asked


async def receive_exactly(connected: socket.socket, count: int) -> bytes:
    """Return so many bytes, and take no more; raise ConnectionError if there are less."""
    received = bytearray()
    while len(received) < count:
        await trio.lowlevel.wait_readable(connected)
        try:
            data = connected.recv(min(count - len(received), _RECEIVE_BYTES))
        except BlockingIOError:
            continue
        if not data:
            raise ConnectionError(errno.ECONNRESET, "it has ended the connection")
        received += data
    return bytes(received)


async def send_all(connected: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[connected.send(view) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(connected)


async def _read_start(connected: socket.socket) -> None:
    mark, version = _START.unpack(await receive_exactly(connected, _START.size))
    if mark != _MARK:
        raise Refusal("stranger", "it is no node: what it says is something else")
    if version != VERSION:
        raise Refusal(
            "version",
            f"it speaks version {version} of the protocol between nodes, and this node version "
            f"{VERSION}: they are of different releases",
        )


def _proof(key: bytes, direction: bytes, asked: Asked, callee_nonce: bytes) -> bytes:
    start = _START.pack(_MARK, VERSION)
    return hmac.digest(key, direction + start + _ASKED.pack(*asked) + callee_nonce, "sha256")


@contextmanager
def _in_time() -> Iterator[None]:
    try:
        with trio.fail_after(HANDSHAKE_SECONDS_MAX):
            yield
    except trio.TooSlowError:
        raise Refusal(
            "slow", f"its handshake takes longer than {HANDSHAKE_SECONDS_MAX:g} seconds"
        ) from None
