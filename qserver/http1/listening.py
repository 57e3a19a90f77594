"""Listening sockets, and the loop that accepts connections from them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import trio

from qserver.errors import CannotListen
from qserver.http1.options import ServerOptions

ACCEPTED_AT_ONCE_MAX = 16
LET_OTHERS_SECONDS = 0.002
"""For processes with fewer connections: to those that are idle it is long, to a client short."""
PAUSE_WITHOUT_FILES_SECONDS = 0.1
"""The pause before the next accept when the process has no file descriptor left."""
NOT_OF_THIS_MACHINE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

ADDRESSES: Final[dict[str, Any]] = {"type": socket.SOCK_STREAM, "flags": socket.AI_PASSIVE}

Welcome = Callable[[socket.socket, tuple[str, int]], None]


class Crowd(Protocol):
    """The connections of this process among those of others that accept from the same listeners."""

    def note(self, count: int) -> None:
        """The process has so many now."""

    def lets_others_accept(self) -> bool:
        """Whether another has fewer."""


async def bind_all(options: ServerOptions) -> list[socket.socket]:
    """Bind a socket for each address of the host; the sockets do not listen yet."""
    try:
        found = await trio.socket.getaddrinfo(options.host, options.port, **ADDRESSES)
    except OSError as error:
        raise _cannot_listen(options, error) from error
    return _bind_found(found, options)


def bind_now(options: ServerOptions) -> list[socket.socket]:
    """The same where no event loop runs, before processes are made that share the sockets."""
    try:
        found = socket.getaddrinfo(options.host, options.port, **ADDRESSES)
    except OSError as error:
        raise _cannot_listen(options, error) from error
    return _bind_found(found, options)


def _bind_found(found: Iterable[Any], options: ServerOptions) -> list[socket.socket]:
    bound: list[socket.socket] = []
    port = options.port
    missing: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        try:
            listener = _bound(family, kind, protocol, (address[0], port, *address[2:]), options)
        except OSError as error:
            if error.errno in NOT_OF_THIS_MACHINE:
                missing = error  # such as localhost's IPv6 address on a machine without IPv6
                continue
            close_all(bound)
            raise _cannot_listen(options, error) from error
        bound.append(listener)
        port = listener.getsockname()[1]  # all addresses share a port that the kernel chose
    if not bound:
        assert missing is not None, "a name stands for one address at least"
        raise _cannot_listen(options, missing) from missing
    return bound


def _bound(
    family: int, kind: int, protocol: int, address: tuple[str | int, ...], options: ServerOptions
) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        if options.reuse_address:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def listen_all(listeners: list[socket.socket], options: ServerOptions) -> list[tuple[str, int]]:
    """Start to listen; return the addresses, with the port that the kernel chose."""
    try:
        for listener in listeners:
            listener.setblocking(False)
            listener.listen(options.backlog)  # another process may have done so: nothing changes
    except OSError as error:  # another process may have bound the port and listened first
        raise _cannot_listen(options, error) from error
    return [listener.getsockname()[:2] for listener in listeners]


def close_all(listeners: list[socket.socket]) -> None:
    """Close them here; other processes that have them go on listening."""
    for listener in listeners:
        listener.close()


async def accept_for_ever(
    listener: socket.socket,
    welcome: Welcome,
    report: Callable[[str], None],
    crowd: Crowd | None = None,
) -> None:
    while True:
        await trio.lowlevel.wait_readable(listener)
        most = ACCEPTED_AT_ONCE_MAX
        if crowd is not None:
            if crowd.lets_others_accept():
                await trio.sleep(LET_OTHERS_SECONDS)  # and then take what is left
            else:
                most = 1
        try:
            accept_waiting(listener, welcome, most)
        except OSError as error:
            if error.errno not in OUT_OF_RESOURCES:
                raise
            report(f"cannot accept a connection now: {error.strerror}")
            await trio.sleep(PAUSE_WITHOUT_FILES_SECONDS)


def accept_waiting(
    listener: socket.socket, welcome: Welcome, most: int = ACCEPTED_AT_ONCE_MAX
) -> None:
    """Accept the connections that wait in the kernel, without waiting for more."""
    for _ in range(most):
        try:
            connected, address = listener.accept()
        except BlockingIOError:
            return  # none, or another process was faster
        except ConnectionError:
            continue  # the client left
        connected.setblocking(False)
        welcome(connected, address[:2])


def _cannot_listen(options: ServerOptions, error: OSError) -> CannotListen:
    where = f"{options.host} port {options.port}"
    match error.errno:
        case errno.EADDRINUSE:
            hint = "Stop the other program, or choose another port."
            return CannotListen(f"{where} is already in use", hint=hint)
        case errno.EACCES | errno.EPERM:
            hint = "Choose a port above 1023, or run with more rights."
            return CannotListen(f"not allowed to listen on {where}", hint=hint)
        case _:
            reason = error.strerror or str(error)
            hint = "Choose an address of this machine."
            return CannotListen(f"cannot listen on {where}: {reason}", hint=hint)
