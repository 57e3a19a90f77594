"""Builds the application from settings; only here clock, randomness, files and secrets enter."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from shutil import rmtree

import trio

from qserver.config import IN_MEMORY, Settings, load
from qserver.control.logs import Logs, MemoryLogs
from qserver.control.owners import LEADER
from qserver.durability.copy_mark import check_is_no_copy
from qserver.durability.data_folder import DataFolder
from qserver.durability.folder import REPLICAS, FolderLock, lock_folder
from qserver.engine.collector import settle_collector
from qserver.engine.world import OrdinaryWorld
from qserver.errors import InvalidSetting
from qserver.http1 import Counters
from qserver.sql import load_grammar
from qserver.web.app import Application
from qserver.web.asgi import AsgiApplication
from qserver.web.description.welcome import welcome
from qserver.web.service.computing import compute_in_threads
from qserver.web.service.log_lines import write_welcome
from qserver.web.service.node import needs_own_server
from qserver.web.service.processes import Member
from qserver.web.service.replicated import Replicated
from qserver.web.service.service import Service, Traces
from qserver.web.service.watchdog import EVIDENCE, Watchdog

logger = logging.getLogger("qserver")


def create_app() -> AsgiApplication:
    """The application for an ASGI server, with the settings of the environment."""
    return AsgiApplication(create_application(load(os.environ)))


def create_application(
    settings: Settings,
    announce: Callable[[str | None], None] | None = None,
    counters: Counters | None = None,
    member: Member | None = None,
) -> Application:
    """Build the application.

    `announce` is called when the service has started, with the first key if it was just made;
    without it the terminal shows both. `counters` are those of our own server, for metrics.
    `member` is given for one of several processes; their supervisor has locked the folder.
    """
    chance = Random(secrets.randbits(64))
    world = OrdinaryWorld(time.time, chance, _report, compute_in_threads())
    in_memory = settings.data == IN_MEMORY
    folder = Path(settings.data)
    replicated = None
    if settings.log is not None:
        leads = member is None or member.number == LEADER
        replicated = Replicated(settings, folder, _report, leads=leads)
    logs = _own_logs(settings, world) if replicated is None else replicated.folder
    node = None if replicated is None else replicated.node
    if node is not None and announce is None:
        raise needs_own_server()
    copies = None if member is None else new_folder(member.replicas(folder))
    service = Service(
        *(settings, world, logs, secrets.token_bytes, counters, member, copies),
        None if node is None else node.node,
        new_traces(settings, 0 if member is None else member.number),
    )
    if replicated is not None:
        replicated.attend(service)
    watchdog = _watchdog(service, folder, member)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        lock = None if in_memory or member is not None else lock_data(folder)
        try:
            if not in_memory and replicated is None:
                check_is_no_copy(folder)
            await trio.to_thread.run_sync(load_grammar)
            async with (
                watchdog.running(),
                nullcontext() if replicated is None else replicated.running(),
                service.running() as first_key,
            ):
                if announce is None:
                    write_welcome(welcome(settings, first_key), settings.log_format)
                else:
                    announce(first_key)
                settle_collector()
                yield
        finally:
            await _end(service, lock)

    app = Application(service, running, secrets.token_hex(4) + "-")
    app.node = node
    return app


def _own_logs(settings: Settings, world: OrdinaryWorld) -> Logs:
    if settings.data == IN_MEMORY:
        return MemoryLogs()
    return DataFolder(Path(settings.data), is_alone=world.batch.was_of_one)


async def _end(service: Service, lock: FolderLock | None) -> None:
    """Send the traces that are left, and let others have the folder."""
    if service.traces is not None:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(service.traces.close)
    if lock is not None:
        lock.release()


def new_traces(settings: Settings, process: int) -> Traces | None:
    """What sends traces, if that is wanted; only then its packages are imported."""
    if settings.traces is None:
        return None
    try:
        from qserver.web.service.tracing import Traces as SentTraces
    except ImportError:
        raise InvalidSetting(
            "QSERVER_TRACES needs packages that are not installed",
            hint="pip install 'qserver[otel]'",
        ) from None
    return SentTraces.to(settings.traces, process)


def _watchdog(service: Service, folder: Path, member: Member | None) -> Watchdog:
    evidence = folder / EVIDENCE if member is None else member.evidence(folder)
    return Watchdog(
        logger.error,
        exit_seconds=service.settings.stall_s,
        evidence=None if service.settings.data == IN_MEMORY else evidence,
        count=service.metrics.count_stall,
    )


def lock_data(folder: Path) -> FolderLock:
    """Lock the data folder; warn if others may look into it."""
    lock = lock_folder(folder, datetime.now(UTC).isoformat(timespec="seconds"))
    if not lock.is_private():
        logger.warning("others may look into %s: let only its owner, chmod 700", folder)
    for left in folder.glob(f"{REPLICAS}*"):
        rmtree(left, ignore_errors=True)
    return lock


def new_folder(path: Path) -> DataFolder:
    """A folder for replicas, made with the first: nobody needs what an earlier process has left."""
    rmtree(path, ignore_errors=True)
    return DataFolder(path, syncs_appends=False)


def _report(text: str, error: Exception) -> None:
    logger.error("%s: %s", text, error, exc_info=None if str(error) else error)
