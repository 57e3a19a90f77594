"""The last step of a connection that moves to another process."""

from __future__ import annotations

from qserver.http1.application import Client, Elsewhere
from qserver.http1.context import ServerContext
from qserver.http1.moving import Moved, relay, released
from qserver.http1.transport import Transport


async def depart(
    context: ServerContext, transport: Transport, where: Elsewhere, client: Client, data: bytes
) -> None:
    """Give a connection to another process; return when this one has no more to do for it."""
    mover = context.mover
    assert mover is not None, "it was there before"
    context.counters.connections_moved_out += 1
    if context.reactor is not None:
        context.reactor.forget(transport.descriptor)
    given, near = released(transport)
    mover.move(Moved(given, client, data), where)
    del given  # a relay may last
    if near is not None:
        await relay(transport, near, context.options)
