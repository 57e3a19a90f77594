"""GET /health tells which part is not well, and that it is well again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from time import time

import httpx
import pytest
import trio

from qserver.cluster import Doors, SharedConnections, SharedVersions, SharedWindows
from qserver.config import load
from qserver.control.logs import MemoryLogs
from qserver.durability.port import Log, StoredRecord
from qserver.engine.world import OrdinaryWorld
from qserver.errors import DataCorrupted, LogFailed
from qserver.web.app import Application
from qserver.web.service.processes import Member
from qserver.web.service.service import Service
from tests.web.test_app import KEY, running


class BadDisk(MemoryLogs):
    """Logs that fail while they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.damaged: set[str] = set()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Log]:
        if name in self.damaged:
            raise DataCorrupted("a record of the log does not match its checksum")
        async with super().open(name) as log:
            write = log.append

            async def append(records: Sequence[StoredRecord]) -> None:
                if self.full:
                    raise LogFailed("there is no room on the disk")
                await write(records)

            log.append = append  # type: ignore[method-assign]
            try:
                yield log
            finally:
                log.append = write  # type: ignore[method-assign]


def service_on(disk: BadDisk, member: Member | None = None) -> Service:
    settings = load({"QSERVER_DATA_DIR": ":memory:", "QSERVER_API_KEY": KEY, "QSERVER_SHARDS": "1"})
    world = OrdinaryWorld(time, Random(1), lambda text, error: None)
    return Service(settings, world, disk, Random(2).randbytes, member=member)


def app_on(disk: BadDisk) -> Application:
    service = service_on(disk)
    return Application(service, service.running, "test-")


async def run(client: httpx.AsyncClient, sql: str, **fields: object) -> httpx.Response:
    return await client.post("/v1/query", json={"sql": sql, **fields})


async def wait_for_health(client: httpx.AsyncClient, status: int) -> httpx.Response:
    with trio.fail_after(240):
        while True:
            answer = await client.get("/health")
            if answer.status_code == status:
                return answer
            await trio.sleep(0.01)


async def test_one_of_several_processes_that_starts_says_so_to_the_others() -> None:
    doors, windows = Doors(2), SharedWindows()
    try:
        service = service_on(
            BadDisk(), Member(1, 2, [], doors, windows, SharedVersions(2), SharedConnections(2), 0)
        )
        assert (await service.checks())["control"] == "starting"
    finally:
        windows.close()
        doors.close()


@pytest.mark.long
async def test_a_full_disk_is_red_reads_go_on_and_all_is_well_when_there_is_room() -> None:
    disk = BadDisk()
    async with running(app_on(disk)) as client:
        assert (await run(client, "create table t (a int)")).json()["success"]
        assert (await run(client, "insert into t values (1)")).json()["success"]
        disk.full = True
        refused = await run(client, "insert into t values (2)", timeout_ms=300)
        assert refused.json()["success"] is False
        answer = await wait_for_health(client, 503)
        assert answer.json()["status"] == "fail"
        assert "write and sync" in answer.json()["checks"]["storage"]
        assert int(answer.headers["retry-after"]) >= 1
        seen = (await run(client, "select a from t")).json()
        assert seen["rows"] == [{"a": 1}]
        disk.full = False
        assert (await wait_for_health(client, 200)).json()["checks"]["storage"] == "ok"
        assert (await run(client, "insert into t values (3)")).json()["success"]
        seen = (await run(client, "select a from t order by a")).json()
        assert seen["rows"] == [{"a": 1}, {"a": 3}]


async def test_a_database_that_cannot_be_opened_is_red_and_the_others_serve() -> None:
    disk = BadDisk()
    async with running(app_on(disk)) as client:
        made = (await client.post("/v1/databases", json={"name": "other"})).json()
        app_databases = (await client.get("/v1/databases")).json()["databases"]
        assert {each["name"] for each in app_databases} == {"main", "other"}
        assert (await client.get("/health")).status_code == 200
    disk.damaged.add(made["id"])
    async with running(app_on(disk)) as client:
        answer = await run(client, "select 1", database="other")
        assert answer.status_code == 503
        health = await client.get("/health")
        assert health.status_code == 503
        assert health.json()["checks"]["databases"].startswith(made["id"])
        assert (await run(client, "select 1")).json()["success"]


async def test_a_damaged_page_fails_what_needs_it_and_turns_the_health_red() -> None:
    disk = BadDisk()
    app = app_on(disk)
    async with running(app) as client:
        assert (await run(client, "create table t (a int primary key)")).json()["success"]
        assert (await run(client, "create table other (a int)")).json()["success"]
        assert (await run(client, "insert into t values (1), (2)")).json()["success"]
        cache = app.service.databases.cache
        for each in list(app.service.databases._open.values()):
            await each.database.checkpoint()
        cache.most = 0
        cache.make_room()
        assert (await wait_for_health(client, 200)).json()["checks"]["storage"] == "ok"
        for log in disk._logs.values():
            log._pages = {number: data[:-1] for number, data in log._pages.items()}
        failed = (await run(client, "select a from t")).json()
        assert failed["error"]["code"] == "XX001"
        assert "does not match its checksum" in (await wait_for_health(client, 503)).text
        assert (await run(client, "select a from other")).json()["rows"] == []
