"""`python -m qserver.web.http1 module:application [port]`: try an ASGI application on localhost."""

from __future__ import annotations

import signal
import sys
from functools import partial
from importlib import import_module

import trio

from qserver.web.http1 import Application, ServerOptions, serve


async def main(application: Application, port: int) -> None:
    stop = trio.Event()
    start = partial(serve, application, ServerOptions(port=port), stop=stop, report=print)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            print(await nursery.start(start))
            async for _ in signals:
                stop.set()
                break


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    trio.run(main, getattr(import_module(module), name or "app"), port)
