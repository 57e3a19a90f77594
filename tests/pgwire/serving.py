"""The whole service with its listener for PostgreSQL's clients, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import trio

from qserver.config import load
from qserver.control.records import Grant
from qserver.engine.world import OrdinaryWorld
from qserver.pgwire import Listener
from qserver.web.service.postgres import bind_postgres, new_postgres
from qserver.web.service.service import Service
from tests.sql.databases import NOON
from tests.web.served import ADMIN, started_logs

KEY = ADMIN
PATIENCE_SECONDS = 120.0
T = TypeVar("T")


@dataclass
class Served:
    port: int
    service: Service
    listener: Listener
    stop: trio.Event
    clock: list[float]

    @property
    def url(self) -> str:
        return self.url_of(KEY)

    def url_of(self, key: str, user: str = "me", database: str = "main") -> str:
        return f"postgresql://{user}:{key}@127.0.0.1:{self.port}/{database}"

    async def grant(self) -> Grant:
        return await self.service.plane.authenticate(KEY)

    def statistics(self) -> dict[str, Any]:
        assert self.service.postgres is not None
        statistics = self.service.postgres()
        return {name: getattr(statistics, name) for name in statistics.__struct_fields__}


@asynccontextmanager
async def serving(**variables: str) -> AsyncIterator[Served]:
    settings = load(
        {
            "QSERVER_DATA_DIR": ":memory:",
            "QSERVER_API_KEY": KEY,
            "QSERVER_SHARDS": "1",
            "QSERVER_PG_PORT": "0",
            "QSERVER_DRAIN_TIMEOUT_S": "5",
            **variables,
        }
    )
    clock = [NOON]

    def report(text: str, error: Exception) -> None:
        raise AssertionError(text) from error

    world = OrdinaryWorld(lambda: clock[0], Random(0), report)
    logs = await started_logs()
    service = Service(settings, world, logs, Random(3).randbytes)  # it draws no id that is there
    with trio.fail_after(PATIENCE_SECONDS):
        async with service.running(), trio.open_nursery() as nursery:
            stop = trio.Event()
            listener = new_postgres(service, settings, None)
            sockets = bind_postgres(settings)
            addresses = await nursery.start(listener.run, sockets, stop)
            yield Served(addresses[0][1], service, listener, stop, clock)
            stop.set()
            await listener.wait_drained()
            assert service.metrics.internal_errors == 0, "a bug was met"


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Run a client that blocks, while the server serves here."""
    return await trio.to_thread.run_sync(work, *arguments)
