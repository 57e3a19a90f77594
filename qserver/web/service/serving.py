"""`qserver serve`: the application on our own HTTP/1.1 server, until a signal stops it.

SIGTERM, SIGINT ─► /ready says 503 ─► no new connections ─► open requests end ─► exit 0
a second one    ─► at once

With several processes a supervisor binds the port and forks them (`cluster.supervisor`); each of
them serves as one alone does.
"""

from __future__ import annotations

import logging
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

import trio

from qserver.cluster.doors import Doors
from qserver.cluster.shared_connections import SharedConnections
from qserver.cluster.shared_versions import SharedVersions
from qserver.cluster.shared_windows import SharedWindows
from qserver.cluster.supervisor import supervise
from qserver.config import Settings
from qserver.control.owners import LEADER
from qserver.engine.arrivals import Arrivals
from qserver.engine.collector import start_collector
from qserver.errors import QserverError, first_of
from qserver.http1 import Counters, bind_now, close_all, tls_context
from qserver.http1 import serve as serve_http
from qserver.limits import DATABASES_OPEN_MAX, PROCESSES_MAX
from qserver.sql import load_grammar
from qserver.web.description.welcome import welcome
from qserver.web.routes.bridge import RULES
from qserver.web.service.create import create_application, lock_data
from qserver.web.service.log_lines import begin_log, write_welcome
from qserver.web.service.machine import cores, half_of_memory
from qserver.web.service.options import server_options
from qserver.web.service.postgres import bind_postgres, new_postgres
from qserver.web.service.processes import Member, Mover

logger: Final = logging.getLogger("qserver")

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
    begin_log(settings.log_format)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    files = allow_files(settings.connections_max)
    if files <= settings.connections_max:
        logger.warning(
            f"this process may open {files} files, fewer than the {settings.connections_max}"
            " connections of QSERVER_CONNECTIONS_MAX: raise its limit (ulimit -n)"
        )
    processes = settings.processes or min(cores(), PROCESSES_MAX)
    if processes == 1:
        return _run(settings, None)
    try:
        return _serve_in_processes(settings, processes)
    except QserverError as problem:
        _write_problem(problem)
        return 1


def _run(settings: Settings, member: Member | None) -> int:
    try:
        trio.run(_serve, settings, member)
    except Exception as error:
        problem = first_of(error)
        if not isinstance(problem, QserverError):
            raise
        _write_problem(problem)
        return 1
    return 0


def _write_problem(problem: QserverError) -> None:
    hint = f"\n{problem.hint}" if problem.hint else ""
    sys.stderr.write(f"qserver: {problem.message}{hint}\n")


def _serve_in_processes(settings: Settings, count: int) -> int:
    """Make what all processes share, then run them."""
    folder = Path(settings.data)
    with lock_data(folder):
        options = server_options(settings)
        tls_context(options)  # raises if the certificate cannot be used: here, and not in each one
        sockets = bind_now(options)
        pg_sockets = bind_postgres(settings)
        doors = Doors(count)
        shared = SharedWindows(), SharedVersions(count), SharedConnections(count)
        load_grammar()
        import_module(RULES)  # once, for all of them
        share = share_of_memory(settings, count)

        def run(number: int, alive: int) -> int:
            made = Member(number, count, sockets, doors, *shared, alive, pg_sockets)
            return _run(share, made)

        try:
            return supervise(count, run, logger.warning)
        finally:
            doors.close()
            close_all(sockets)
            close_all(pg_sockets)


def share_of_memory(settings: Settings, count: int) -> Settings:
    """The settings of one of several processes."""
    memory = (settings.memory or half_of_memory()) // count
    most = settings.memory_bytes_max // count
    return replace(settings, processes=count, memory=memory, memory_bytes_max=most)


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


async def _serve(settings: Settings, member: Member | None) -> None:
    first_keys: list[str | None] = []
    counters = Counters()
    app = create_application(settings, first_keys.append, counters, member)
    mover = None if member is None else Mover.of(member, app.service.plane.owners)
    if app.node is not None:
        mover = app.node.mover
    stop = trio.Event()
    pg_sockets = bind_postgres(settings) if member is None else member.pg_sockets
    postgres = new_postgres(app.service, settings, mover) if pg_sockets else None
    waits_for_leader = member is not None and member.number != LEADER
    waits_for_others = waits_for_leader or settings.log is not None
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[list[tuple[str, int]]]) -> None:
            options = server_options(settings)
            report = logger.warning
            await serve_http(
                app,
                options,
                stop=stop,
                report=report,
                counters=counters,
                batch=app.service.world.batch,
                turns=Arrivals(),
                listeners=None if member is None else member.sockets,
                mover=mover,
                crowd=None if member is None else member.connections.of(member.number),
                beside=None if postgres is None else postgres.wait_drained,
                task_status=task_status,
            )
            nursery.cancel_scope.cancel()

        def drain() -> None:
            app.drain()
            stop.set()
            if mover is not None:
                mover.drain()
            if waits_for_others:
                nursery.cancel_scope.cancel()  # the leader may have ended, or the log be away

        leave = None if app.node is None else app.node.leave
        nursery.start_soon(_heed_signals, drain, stop, nursery.cancel_scope, member, leave)
        if app.node is not None:
            nursery.start_soon(app.node.mover.drop_old)
        elif member is not None and mover is not None:
            nursery.start_soon(_heed_supervisor, member, drain)
            await nursery.start(mover.run)
        addresses = await nursery.start(run)
        waits_for_others = False
        pg_port = None
        if postgres is not None:
            pg_port = (await nursery.start(postgres.run, pg_sockets, stop))[0][1]
        if mover is not None:
            mover.begin_postgres(postgres)
        if member is None or member.number == LEADER:
            text = welcome(settings, first_keys[0], addresses[0][1], pg_port)
            write_welcome(text, settings.log_format)


async def _heed_signals(
    drain: Callable[[], None],
    stop: trio.Event,
    scope: trio.CancelScope,
    member: Member | None,
    leave: Callable[[], Awaitable[None]] | None,
) -> None:
    """Drain at the first signal, end at the second; see `supervisor` for one of several."""
    at_once = {signal.SIGINT} if member is not None else {signal.SIGTERM, signal.SIGINT}
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for each in signals:
            if stop.is_set() and each in at_once:
                scope.cancel()
            elif leave is not None:
                await leave()
            drain()


async def _heed_supervisor(member: Member, drain: Callable[[], None]) -> None:
    await trio.lowlevel.wait_readable(member.alive)
    drain()
