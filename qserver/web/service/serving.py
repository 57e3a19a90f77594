"""`qserver serve`: the application on our own HTTP/1.1 server, until a signal stops it.

SIGTERM, SIGINT ─► /ready says 503 ─► no new connections ─► open requests end ─► exit 0
a second one    ─► at once
"""

from __future__ import annotations

import logging
import resource
import signal
import sys
from pathlib import Path
from typing import Final

import trio

from qserver.config import Settings
from qserver.engine.arrivals import Arrivals
from qserver.engine.collector import start_collector
from qserver.errors import QserverError, first_of
from qserver.http1 import Counters, ServerOptions
from qserver.http1 import serve as serve_http
from qserver.limits import DATABASES_OPEN_MAX
from qserver.web.app import Application
from qserver.web.description.welcome import welcome
from qserver.web.service.create import create_application

FILES_BESIDE: Final = 4 * DATABASES_OPEN_MAX
"""Files that a process may want to open besides its connections: those of databases."""

THREAD_SWITCH_SECONDS: Final = 0.0001
"""How long a thread waits until the one that runs must let it run.

Less than a pass of the loop beside long work (`PASS_SECONDS`). At its end the loop lets go of the
interpreter for some microseconds, which are too short for another thread to wake up in, and begin
the thread's wait anew. With a longer time here a commit beside long work waits for its thread by
chance: for 90 ms instead of 6."""


def serve(settings: Settings) -> int:
    """Serve until a signal; return the exit code."""
    start_collector()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    files = allow_files(settings.connections_max)
    if files <= settings.connections_max:
        logging.getLogger("qserver").warning(
            f"this process may open {files} files, fewer than the {settings.connections_max}"
            " connections of QSERVER_CONNECTIONS_MAX: raise its limit (ulimit -n)"
        )
    try:
        trio.run(_serve, settings)
    except Exception as error:
        problem = first_of(error)
        if not isinstance(problem, QserverError):
            raise
        hint = f"\n{problem.hint}" if problem.hint else ""
        sys.stderr.write(f"qserver: {problem.message}{hint}\n")
        return 1
    return 0


def allow_files(connections: int) -> int:
    """Raise this process's limit of open files for so many connections; return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + FILES_BESIDE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


async def _serve(settings: Settings) -> None:
    first_keys: list[str | None] = []
    counters = Counters()
    app = create_application(settings, first_keys.append, counters)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[list[tuple[str, int]]]) -> None:
            options = server_options(settings)
            report = logging.getLogger("qserver").warning
            await serve_http(
                app,
                options,
                stop=stop,
                report=report,
                counters=counters,
                batch=app.service.world.batch,
                turns=Arrivals(),
                task_status=task_status,
            )
            nursery.cancel_scope.cancel()

        nursery.start_soon(_heed_signals, app, stop, nursery.cancel_scope)
        addresses = await nursery.start(run)
        sys.stderr.write(welcome(settings, first_keys[0], addresses[0][1]))
        sys.stderr.flush()


async def _heed_signals(app: Application, stop: trio.Event, scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if stop.is_set():
                scope.cancel()
            app.drain()
            stop.set()


def server_options(settings: Settings) -> ServerOptions:
    certificate, key = settings.tls_certificate, settings.tls_key
    return ServerOptions(
        host=settings.host,
        port=settings.port,
        certificate=None if certificate is None else Path(certificate),
        key=None if key is None else Path(key),
        connections_max=settings.connections_max,
        header_seconds=settings.header_timeout_s,
        idle_seconds=settings.idle_timeout_s,
        drain_seconds=settings.drain_timeout_s,
        access_log=_write_line if settings.access_log else None,
    )


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
