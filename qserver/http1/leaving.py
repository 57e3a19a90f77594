"""The last steps of a connection.

It moves to another process, goes on in another protocol, or ends.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import trio

from qserver.http1.application import Answer, Client, Elsewhere, Response, Upgrade
from qserver.http1.context import ServerContext
from qserver.http1.moving import Moved, relay, released
from qserver.http1.transport import Transport


async def leave(
    context: ServerContext,
    transport: Transport,
    answer: Elsewhere | Upgrade,
    client: Client,
    data: bytes,
) -> None:
    """Do what an answer asks for; return when the connection has no more to do."""
    if context.reactor is not None:
        context.reactor.forget(transport.descriptor)
    if isinstance(answer, Elsewhere):
        await _depart(context, transport, answer, client, data)
        return
    lines = [name + b": " + value for name, value in answer.pairs]
    head = b"\r\n".join([b"HTTP/1.1 101 Switching Protocols", *lines, b"", b""])
    await transport.send_all(memoryview(head), context.options.send_seconds)
    await answer.speak(transport, data)


async def _depart(
    context: ServerContext, transport: Transport, where: Elsewhere, client: Client, data: bytes
) -> None:
    """Give a connection to another process."""
    mover = context.mover
    assert mover is not None, "it was there before"
    context.counters.connections_moved_out += 1
    given, near = released(transport)
    mover.move(Moved(given, client, data), where)
    del given  # a relay may last
    if near is not None:
        await relay(transport, near, context.options)


async def see_out(transport: Transport, seconds: float) -> None:
    """Read and drop what the client still sends.

    If a socket is closed with unread input, the kernel sends a reset, and the reset can overtake
    the answer that tells the client its error.
    """
    await transport.end_output()
    with trio.move_on_after(seconds):
        while await transport.receive():
            pass


async def close_unstarted(owed: Response | Coroutine[Any, Any, Answer] | None) -> None:
    """Close a coroutine or parts that nobody has started: they may hold resources."""
    if isinstance(owed, Coroutine):
        owed.close()
    elif owed is not None and not isinstance(owed.body, bytes):
        await owed.body.aclose()
