"""Nodes as processes: what each of them does for databases that another one has.

    log nodes n1 n2 n3 ◄── nodes q1 q2 q3 ◄── clients, who mostly ask one that is not the owner

All tests have one cluster. Who ends a node starts it again.
"""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import trio

from qserver.client import TrioClient
from tests.nodes.cluster import Cluster, NodeMachine, start_together
from tests.processes.clients import settled
from tests.processes.machine import KEY, until
from tests.processes.wire import Lost, Request, posted, query
from tests.replication.nodes import log_nodes

LEASE = {"QSERVER_LEASE_S": "2"}
TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, word text)"
ROWS = 60_000
OWNER = "x-qserver-owner"
_numbers = count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("nodes")
    with log_nodes(3, folder) as log:
        made = Cluster(folder, log, 7, LEASE, can_be_cut=False)
        try:
            trio.run(made.start)
            yield made
            assert made.bugs == []
        finally:
            made.kill()


@dataclass
class Database:
    name: str
    family: str
    owner: NodeMachine
    others: list[NodeMachine]

    def query(self, sql: str, *params: object, key: str | None = None, **fields: Any) -> Request:
        return query(sql, params, key, database=self.name, **fields)


@pytest.fixture
async def database(cluster: Cluster) -> Database:
    """A database with a table."""
    return await made(cluster)


async def made(cluster: Cluster) -> Database:
    await cluster.until_all_serve()
    (name,) = await cluster.make_databases(1, f"made{next(_numbers)}-")
    family = cluster.ids.pop(name)
    number = (await cluster.placement()).owner_of(family)
    owner, *_ = (node for node in cluster.nodes if node.number == number)
    others = [node for node in cluster.nodes if node is not owner]
    found = Database(name, family, owner, others)
    async with others[0].connected() as wire:
        assert (await settled(wire, found.query(TABLE))).is_good
    return found


async def ids(node: NodeMachine, database: Database) -> list[int]:
    """What the table has, as a node tells."""
    async with node.connected() as wire:
        answer = await settled(wire, database.query("SELECT id FROM t ORDER BY id"))
        return [row[0] for row in answer.rows]


# --- requests to a node that is not the owner ---


@pytest.mark.long
async def test_every_node_answers_and_names_the_owner(cluster: Cluster, database: Database) -> None:
    asked = (
        database.query("SELECT 7 AS n"),
        Request("GET", f"/v1/query?database={database.name}&sql=SELECT%207%20AS%20n"),
        posted(
            "/v1/transaction",
            {"statements": [{"sql": "SELECT 7 AS n"}], "database": database.name},
        ),
    )
    for request in asked:
        for node in cluster.nodes:
            async with node.connected() as wire:
                for _ in range(2):
                    answer = await wire.send(request)
                    assert answer.is_good and b'{"n":7}' in answer.body, answer.body
                    expected = None if node is database.owner else database.owner.url
                    assert answer.headers.get(OWNER) == expected


async def test_a_body_that_arrives_after_its_head_is_answered_and_names_the_owner(
    cluster: Cluster, database: Database
) -> None:
    """The connection is relayed from then on: so its later answers say it, too."""
    other = await owned_by_another(cluster, database)
    for node in cluster.nodes:
        async with node.connected() as wire:
            answer = await wire.send_in_two(database.query("SELECT 7 AS n"))
            assert answer.rows == [[7]]
            expected = None if node is database.owner else database.owner.url
            assert answer.headers.get(OWNER) == expected
            again = await wire.send(database.query("SELECT 8 AS n"))
            assert (again.rows, again.headers.get(OWNER)) == ([[8]], expected)
            elsewhere = await wire.send(other.query("SELECT 9 AS n"))
            assert elsewhere.rows == [[9]]
            if node is not other.owner:
                assert elsewhere.headers[OWNER] == other.owner.url


async def owned_by_another(cluster: Cluster, database: Database) -> Database:
    while (found := await made(cluster)).owner is database.owner:
        pass
    return found


@pytest.mark.long
async def test_rows_in_bulk_go_in_and_out_through_other_nodes(database: Database) -> None:
    lines = "".join(f'{{"id":{at},"word":"w{at}"}}\n' for at in range(ROWS))
    kind = (("Content-Type", "application/x-ndjson"), ("X-Database", database.name))
    first, second = database.others
    async with first.connected() as wire:
        load = Request("POST", "/v1/tables/t/rows", lines.encode(), kind)
        answer = await wire.send(load)
        assert answer.json["affected_rows"] == ROWS, answer.body
        assert answer.headers[OWNER] == database.owner.url

    async with second.connected() as wire:
        accepts = (("Accept", "text/csv"), ("X-Database", database.name))
        answer = await wire.send(Request("GET", "/v1/tables/t/rows?order=id", b"", accepts))
        assert answer.headers[OWNER] == database.owner.url
        head, *rows = csv.reader(answer.body.decode().splitlines())
        assert head == ["id", "word"]
        assert rows == [[str(at), f"w{at}"] for at in range(ROWS)]

        streamed = database.query("/*+ STREAM */ SELECT id FROM t ORDER BY id")
        answer = await wire.send(streamed)
        assert answer.headers[OWNER] == database.owner.url
        data = [line[6:] for line in answer.body.splitlines() if line.startswith(b"data: ")]
        assert [json.loads(each)["id"] for each in data[1:-1]] == list(range(ROWS))
        assert json.loads(data[-1])["row_count"] == ROWS


async def test_changes_and_live_queries_are_followed_through_other_nodes(
    database: Database,
) -> None:
    first, second = database.others
    changes: list[int] = []
    sums: list[Any] = []

    async def follow(client: TrioClient) -> None:
        async with client.changes(0, ["t"], database.name) as feed:
            async for version in feed:
                rows = [each for each in version.changes if each["op"] == "insert"]
                changes.extend(each["after"]["id"] for each in rows)

    async def watch(client: TrioClient) -> None:
        async with client.live("SELECT count(*) AS n FROM t", database=database.name) as live:
            sums.append(live.rows[0][0])
            async for _ in live:
                sums.append(live.rows[0][0])

    async with TrioClient(first.url, KEY) as client, trio.open_nursery() as nursery:
        nursery.start_soon(follow, client)
        nursery.start_soon(watch, client)
        await until(lambda: sums, "the live query does not begin")
        async with second.connected() as wire:
            for number in range(20):
                await wire.send(database.query("INSERT INTO t VALUES ($1, 'x')", number))
        await until(lambda: sums[-1] == 20, f"the live query has {sums}")
        await until(lambda: len(changes) == 20, f"the feed has {changes}")
        nursery.cancel_scope.cancel()
    assert changes == list(range(20)) and sums == sorted(sums)


async def test_an_open_transaction_goes_on_through_any_node(
    cluster: Cluster, database: Database
) -> None:
    first, second = database.others
    name = await opened_transaction(first, database)
    for number, node in enumerate(cluster.nodes):
        async with node.connected() as wire:
            insert = query("INSERT INTO t VALUES ($1, 'in')", [number], transaction=name)
            assert (await wire.send(insert)).is_good
            seen = await wire.send(query("SELECT count(*) AS n FROM t", transaction=name))
            assert seen.rows == [[number + 1]]
        assert await ids(node, database) == []
    async with second.connected() as wire:
        assert (await wire.send(Request("POST", f"/v1/transaction/{name}/commit"))).is_good
    assert await ids(first, database) == [0, 1, 2]


async def opened_transaction(node: NodeMachine, database: Database) -> str:
    async with node.connected() as wire:
        answer = await wire.send(posted("/v1/transaction/open", {"database": database.name}))
        name: str = answer.json["transaction"]["id"]
        return name


# --- what is known everywhere ---


async def test_a_key_that_one_node_has_revoked_is_refused_by_all_from_its_answer_on(
    cluster: Cluster, database: Database
) -> None:
    for revoker in cluster.nodes:
        async with revoker.connected() as wire:
            record = await wire.made("/v1/keys", name="revoked", scopes=["data:read"])
            asked = database.query("SELECT 1 AS n")
            assert [await status(node, record["key"], asked) for node in cluster.nodes] == [200] * 3
            answer = await wire.send(Request("DELETE", f"/v1/keys/{record['id']}"))
            assert answer.status == 204
        assert [await status(node, record["key"], asked) for node in cluster.nodes] == [401] * 3


async def status(node: NodeMachine, key: str, request: Request) -> int:
    async with node.connected(key) as wire:
        return (await wire.send(request)).status


# --- nodes that come and go ---


@asynccontextmanager
async def another_node(
    cluster: Cluster, name: str, settings: dict[str, str]
) -> AsyncIterator[NodeMachine]:
    like = cluster.nodes[0].settings
    shared = {each: like[each] for each in like if "LOG" in each or "LEASE" in each}
    node = NodeMachine(cluster.folder / f"another-{name}", 3, shared, None)
    node.settings |= {"QSERVER_NODE": name, **settings}
    try:
        node.launch()
        yield node
    finally:
        node.kill()


async def test_a_node_with_another_key_is_refused_and_told_why(cluster: Cluster) -> None:
    before = await cluster.placement()
    other = {"QSERVER_CLUSTER_KEY": "key-of-another-cluster"}
    async with another_node(cluster, "stranger", other) as node:
        refused = "there is no link to node 0"
        await until(lambda: refused in node.output, "it is not refused")
        assert "perhaps their keys differ" in node.output
        said = "is refused: it does not have the key of this cluster"
        await until(lambda: said in cluster.nodes[0].output, "nobody says why")
        async with node.connected() as wire:
            with pytest.raises(Lost):
                await wire.ask("GET", "/ready")
    assert await cluster.placement() == before, "it owns nothing"


@pytest.mark.half
async def test_a_second_node_of_a_name_is_refused(cluster: Cluster, database: Database) -> None:
    async with another_node(cluster, "q1", {}) as node:
        assert await node.ended() == 1
        said = f"another node has the name q1, at {cluster.nodes[0].url}"
        assert said in node.output and "QSERVER_NODE" in node.output
        assert "Traceback" not in node.output
    for each in cluster.nodes:
        assert await ids(each, database) == []


@pytest.mark.long
async def test_a_node_that_drains_leaves_all_it_has_acknowledged_to_others(
    cluster: Cluster,
) -> None:
    """The one that leads, while clients write through all nodes."""
    leader = cluster.nodes[(await cluster.placement()).leader]
    databases = [await made(cluster) for _ in range(3)]
    writers = [Writer(node, each) for node in cluster.nodes for each in databases]
    async with trio.open_nursery() as nursery:
        for writer in writers:
            nursery.start_soon(writer.write)
        await until(lambda: all(writer.written for writer in writers), "nothing is written")
        leader.send(signal.SIGTERM)
        assert await leader.ended() == 0, leader.output
        others = [writer for writer in writers if writer.node is not leader]
        before = {writer: len(writer.written) for writer in others}
        await until(
            lambda: all(len(writer.written) > before[writer] for writer in others),
            "others do not go on",
        )
        nursery.cancel_scope.cancel()
    assert (await cluster.placement()).leader != leader.number
    await leader.start()
    for database in databases:
        here = [writer for writer in writers if writer.database is database]
        for node in cluster.nodes:
            found = await ids(node, database)
            assert len(found) == len(set(found))
            assert {each for writer in here for each in writer.written} <= set(found)
            assert set(found) <= {each for writer in here for each in writer.sent}


class Writer:
    """Inserts rows through a node, each once: without an answer it may be there or not."""

    def __init__(self, node: NodeMachine, database: Database) -> None:
        self.node = node
        self.database = database
        self.sent: list[int] = []
        self.written: list[int] = []

    async def write(self) -> None:
        async with self.node.connected() as wire:
            while True:
                number = next(_numbers)
                self.sent.append(number)
                insert = self.database.query("INSERT INTO t VALUES ($1, 'w')", number)
                try:
                    answer = await wire.send(insert)
                except Lost as lost:
                    assert not lost.is_half
                    await trio.sleep(0.05)
                    continue
                if answer.is_good:
                    self.written.append(number)
                else:
                    assert answer.is_unknown, answer.body


@pytest.mark.long
async def test_a_transaction_of_a_node_that_is_killed_is_gone_and_that_is_said(
    database: Database,
) -> None:
    first, second = database.others
    name = await opened_transaction(first, database)
    insert = query("INSERT INTO t VALUES (1, 'lost')", transaction=name)
    async with first.connected() as wire:
        assert (await wire.send(insert)).is_good
        kept = database.query("INSERT INTO t VALUES (2, 'kept')", key=database.name)
        assert (await wire.send(kept)).is_good
        database.owner.kill()
        for request in (insert, Request("POST", f"/v1/transaction/{name}/commit")):
            answer = await settled(wire, request)
            assert (answer.status, answer.code) == (404, "QS030"), answer.body
            assert "on another node now" in answer.json["error"]["detail"]
        again = await settled(wire, kept)
        assert again.is_good and again.headers["idempotency-replayed"] == "true"
    assert await ids(second, database) == [2]
    await database.owner.start()
    assert await ids(database.owner, database) == [2]


@pytest.mark.long
async def test_a_restart_of_everything_keeps_all(cluster: Cluster, database: Database) -> None:
    first, *_ = database.others
    async with first.connected() as wire:
        rows = "INSERT INTO t SELECT n, 'kept' FROM generate_series(1, 1000) AS n"
        assert (await wire.send(database.query(rows))).is_good
        record = await wire.made("/v1/keys", name="kept", scopes=["data:read"])
        branch = await wire.made("/v1/databases", name="twig", branch_of=database.name)
    for node in cluster.nodes:
        assert await node.stop() == 0, node.output
    for process in cluster.log.processes.values():
        process.kill()
    for process in cluster.log.processes.values():
        process.start()
    await start_together(cluster.nodes)
    for node in cluster.nodes:
        assert await ids(node, database) == list(range(1, 1001))
        async with node.connected(record["key"]) as wire:
            sql = "SELECT count(*) AS n FROM t WHERE word = 'kept'"
            assert (await settled(wire, query(sql, database=branch["name"]))).rows == [[1000]]
