"""What nodes answer while two of three log nodes are away: nothing that may be old."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.nodes.cluster import Cluster
from tests.processes.clients import settled
from tests.processes.wire import Answer, query
from tests.replication.nodes import log_nodes

pytestmark = pytest.mark.nightly
LEASE_SECONDS = 4
SETTINGS = {"QSERVER_LEASE_S": str(LEASE_SECONDS), "QSERVER_REPLICAS": "1"}


@pytest.mark.parametrize("consistency", ["strong", "any"])
async def test_reads_stop_with_the_lease_and_go_on_with_a_second_log_node(
    tmp_path: Path, consistency: str
) -> None:
    """Also those that may be old: whether their key was revoked is not known any more."""
    with log_nodes(3, tmp_path) as log:
        cluster = Cluster(tmp_path, log, 3, SETTINGS, can_be_cut=False)
        try:
            await cluster.start()
            await cluster.until_all_serve()
            (name,) = await cluster.make_databases(1)
            async with cluster.nodes[0].connected() as wire:
                for sql in ("CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)"):
                    assert (await settled(wire, query(sql, database=name))).is_good
            read = query("SELECT n FROM t", database=name, consistency=consistency)

            first, second, _ = log.processes.values()
            first.kill()
            second.kill()
            await trio.sleep(1.5 * LEASE_SECONDS)
            refused: list[Answer] = []

            async def ask(number: int) -> None:
                async with cluster.nodes[number].connected() as wire:
                    refused.append(await wire.send(read))

            async with trio.open_nursery() as nursery:
                for node in cluster.nodes:
                    nursery.start_soon(ask, node.number)
            assert [(each.status, each.code) for each in refused] == [(503, "QS023")] * 3

            first.start()
            for node in cluster.nodes:
                async with node.connected() as wire:
                    assert (await settled(wire, read)).rows == [[1]]
        finally:
            cluster.kill()
    assert not cluster.bugs
