"""Replicas with real processes: strong reads through kills, and who answers which request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import pytest
import trio

from tests.patience import PATIENCE_SECONDS
from tests.processes.machine import Machine, endless, until
from tests.processes.planted import ignore_the_number
from tests.processes.strong_reads import StrongReads
from tests.processes.wire import Request, Wire, query
from tests.sampling import NIGHTLY

READS, KILL_EVERY = (5000, 700) if NIGHTLY else (1500, 400)
REPLICAS = {"QSERVER_REPLICAS": "1"}


@asynccontextmanager
async def started(folder: Path, prepare: Callable[[], None] = endless) -> AsyncIterator[Machine]:
    machine = Machine(folder, REPLICAS, prepare=prepare, processes=2)
    async with machine.running():
        yield machine
    assert not list(machine.data.glob("replicas.*/*.qserver")), "files of replicas go with them"


@pytest.mark.long
async def test_no_read_is_older_than_an_answer_that_had_left_before_it(tmp_path: Path) -> None:
    async with started(tmp_path) as machine:
        report = await StrongReads(machine, 7, KILL_EVERY).run(READS)
        assert report.problems == []
        assert report.writes > 5 and report.kills > 1 and report.by_replicas > READS / 20, report


@pytest.mark.long
async def test_a_follower_that_does_not_look_at_the_number_is_found(tmp_path: Path) -> None:
    async with started(tmp_path, ignore_the_number) as machine:
        report = await StrongReads(machine, 7).run(20_000)
        assert "and" in report.problems[0]


class Hot:
    """A database that is followed, and whose owner may stand still."""

    def __init__(self, machine: Machine, name: str, owner: int) -> None:
        self.machine, self.name, self.owner = machine, name, owner

    async def replica_reads(self) -> float:
        async with self.machine.connected() as wire:
            page = (await wire.ask("GET", "/metrics")).body.decode().splitlines()
        found = [each for each in page if each.startswith("qserver_replica_reads_total{")]
        return sum(float(each.rpartition(" ")[2]) for each in found)

    async def until_followed(self) -> None:
        """Read over new connections until a replica answers."""
        with trio.fail_after(PATIENCE_SECONDS):
            while not await self.replica_reads():
                async with self.machine.connected() as wire:
                    for _ in range(3):
                        assert (await wire.query("SELECT 1", database=self.name)).is_good
                        await trio.sleep(0.05)

    @asynccontextmanager
    async def at_follower(self) -> AsyncIterator[Wire]:
        """A connection of the follower: the owner stands still when it is made."""
        async with self._while_stands_still(self.owner) as wire:
            yield wire

    @asynccontextmanager
    async def at_owner(self) -> AsyncIterator[Wire]:
        """A connection of the owner."""
        follower = 1 - self.owner
        async with self._while_stands_still(follower) as wire:
            await self.machine.signal(follower, SIGCONT)
            yield wire

    @asynccontextmanager
    async def _while_stands_still(self, process: int) -> AsyncIterator[Wire]:
        await self.machine.signal(process, SIGSTOP)
        try:
            async with self.machine.connected() as wire:
                assert (await wire.query("SELECT 1", database=self.name)).is_good
                yield wire
        finally:
            await self.machine.signal(process, SIGCONT)

    async def go_on(self) -> None:
        await self.machine.signal(self.owner, SIGCONT)


async def made_hot(machine: Machine) -> Hot:
    (made,) = (await machine.make_databases(1, "hot")).items()
    hot = Hot(machine, *made)
    async with machine.connected() as wire:
        for sql in (
            "CREATE TABLE t (id serial PRIMARY KEY, a int)",
            "INSERT INTO t (a) SELECT n FROM generate_series(1, 100) AS n",
        ):
            assert (await wire.query(sql, database=hot.name)).is_good
    await hot.until_followed()
    return hot


@pytest.mark.long
async def test_a_follower_answers_every_kind_of_read_while_the_owner_stands_still(
    tmp_path: Path,
) -> None:
    async with started(tmp_path) as machine:
        hot = await made_hot(machine)
        async with hot.at_follower() as wire:
            found = await wire.query("SELECT count(*) AS n FROM t", database=hot.name)
            assert found.rows == [[100]]
            version = found.json["version"]
            for _ in range(10):
                assert (await wire.query("SELECT 1", database=hot.name)).is_good
            read = await wire.query("SELECT max(a) AS n FROM t", database=hot.name, as_of=version)
            assert read.rows == [[100]]
            stream = "/*+ STREAM */ SELECT a FROM t"
            assert b"event: done" in (await wire.query(stream, database=hot.name)).body
            both = [{"sql": "SELECT 1 AS one"}, {"sql": "SELECT 2 AS two"}]
            data = json.dumps({"statements": both, "database": hot.name}).encode()
            assert (await wire.send(Request("POST", "/v1/transaction", data))).is_good
            path = f"/v1/databases/{hot.name}/diff?from={version}"
            assert (await wire.ask("GET", path)).json["changes"] == []
            path = f"/v1/changes?since={version}&database={hot.name}"
            assert (await wire.ask("GET", path)).status == 200


@pytest.mark.long
async def test_a_follower_has_the_version_that_a_read_names(tmp_path: Path) -> None:
    async with started(tmp_path) as machine:
        hot = await made_hot(machine)
        async with hot.at_follower() as wire:
            sql = "SELECT count(*) AS n FROM t"
            version = (await wire.query(sql, database=hot.name)).json["version"]
            there = await wire.query(sql, database=hot.name, min_version=version)
            assert there.rows == [[100]]
            asked: dict[str, Any] = {
                "min_version": version + 1,
                "consistency": "session",
                "timeout_ms": 50,
            }
            late = await wire.query(sql, database=hot.name, **asked)
            assert (late.status, late.code) == (503, "QS025"), late.body
            await hot.go_on()
            async with machine.connected() as other:
                written = await other.query("INSERT INTO t (a) VALUES (1)", database=hot.name)
            token = written.json["version"]
            near: dict[str, Any] = {"consistency": "session", "max_age_ms": 60_000}
            for fields in (near, {}):
                found = await wire.query(sql, database=hot.name, min_version=token, **fields)
                assert found.rows == [[101]] and found.json["version"] >= token


@pytest.mark.long
async def test_what_writes_or_is_too_old_is_answered_by_the_owner_over_the_same_connection(
    tmp_path: Path,
) -> None:
    async with started(tmp_path) as machine:
        hot = await made_hot(machine)
        async with hot.at_follower() as wire:
            await hot.go_on()
            before, version, row_id = await hot.replica_reads(), 0, 0
            for number in range(3):
                made = await wire.query(
                    "INSERT INTO t (a) VALUES ($1) RETURNING id", [number], database=hot.name
                )
                ((row_id,),) = made.rows
                found = await wire.query(
                    "SELECT a FROM t WHERE id = $1", [row_id], database=hot.name
                )
                assert found.rows == [[number]] and found.json["version"] >= made.json["version"]
                version = made.json["version"]
            assert await hot.replica_reads() - before >= 3, "it has not moved"
            drawn = await wire.query("SELECT nextval('t_id_seq') AS n", database=hot.name)
            assert drawn.rows == [[row_id + 1]]
            same = await wire.query(
                "SELECT a FROM t LIMIT 1", database=hot.name, if_version=version
            )
            assert same.is_good
            once = query("INSERT INTO t (a) VALUES (7)", key="k1", database=hot.name)
            first, second = await wire.send(once), await wire.send(once)
            assert first.body == second.body and first.is_good
            opened = await wire.ask("POST", "/v1/transaction/open", database=hot.name)
            assert opened.status == 201, opened.body
            first_version = await wire.query("SELECT 1 AS n", database=hot.name, as_of=1)
            assert first_version.json["version"] == 1, "that is older than the replica"


@pytest.mark.long
async def test_a_live_query_and_a_feed_of_a_follower_see_what_the_owner_writes(
    tmp_path: Path,
) -> None:
    async with started(tmp_path) as machine:
        hot = await made_hot(machine)
        async with hot.at_follower() as wire:
            live = query("SELECT count(*) AS n FROM t", database=hot.name, live=True)
            await wire.begin([live])
            await wire._until(b"event: ready")
            await hot.go_on()
            async with machine.connected() as other:
                written = await other.query("INSERT INTO t (a) VALUES (1)", database=hot.name)
            await wire._until(b'event: version\ndata: {"version":%d}' % written.json["version"])
            assert b'{"n":101}' in wire._buffer or b"101" in wire._buffer
        async with machine.connected() as wire:
            gone = await wire.ask("DELETE", f"/v1/databases/{hot.name}")
            assert gone.status == 204
            assert (await wire.query("SELECT 1", database=hot.name)).status == 404
        folders = [machine.data / f"replicas.{each}" for each in range(2)]
        await until(
            lambda: not any(each for folder in folders for each in folder.glob("*.qserver")),
            "the files of a deleted database's replica stay",
        )


LONG = "SELECT count(*) AS n FROM t AS a, t AS b, t AS c WHERE a.a + b.a + c.a > $1"
WRITE = "UPDATE t SET a = a WHERE id = 1"


@pytest.mark.long
async def test_a_long_read_goes_to_the_follower_while_the_owner_writes(tmp_path: Path) -> None:
    async with started(tmp_path) as machine:
        hot = await made_hot(machine)
        async with hot.at_owner() as wire:

            async def long_read(**fields: Any) -> bool:
                """Whether the follower has answered."""
                before = await hot.replica_reads()
                found = await wire.query(LONG, [3], database=hot.name, **fields)
                assert found.rows == [[999_999]]
                return await hot.replica_reads() > before

            for _ in range(2):
                assert (await wire.query(WRITE, database=hot.name)).is_good
                assert await long_read()
                assert not await long_read(), "nothing was written meanwhile"
            written = await wire.query(WRITE, database=hot.name)
            version = written.json["version"]
            assert not await long_read(if_version=version), "that the owner must decide"
            assert (await wire.query(WRITE, database=hot.name)).is_good
            opened = await wire.ask("POST", "/v1/transaction/open", database=hot.name)
            assert not await long_read(transaction=opened.json["transaction"]["id"])
            small = await wire.query("SELECT count(*) AS n FROM t", database=hot.name)
            assert small.rows == [[100]]


@pytest.mark.long
async def test_the_owner_answers_a_long_read_whose_follower_dies(tmp_path: Path) -> None:
    async with started(tmp_path) as machine:
        hot = await made_hot(machine)
        async with hot.at_owner() as wire:
            for _ in range(3):
                await hot.until_followed()
                assert (await wire.query(WRITE, database=hot.name)).is_good
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(machine.kill_process, 1 - hot.owner)
                    found = await wire.query(LONG, [3], database=hot.name)
                    assert found.rows == [[999_999]]


async def test_replicas_are_shown_and_set_and_one_process_has_none(tmp_path: Path) -> None:
    async with started(tmp_path) as machine, machine.connected() as wire:
        record = await wire.made("/v1/databases", name="d")
        assert record["replicas"] is None
        for wanted in (0, 1, 63, None):
            data = json.dumps({"replicas": wanted}).encode()
            answer = await wire.send(Request("PATCH", "/v1/databases/d", data))
            assert answer.status == 200 and answer.json["replicas"] == wanted
        for wrong in (-1, 64, 1.5, "two"):
            data = json.dumps({"replicas": wrong}).encode()
            answer = await wire.send(Request("PATCH", "/v1/databases/d", data))
            assert answer.status == 400, answer.body
