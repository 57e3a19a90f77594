"""The status names all nodes, what they own, and whether they live."""

from __future__ import annotations

import json

import pytest
import trio
from trio.testing import MockClock

from qserver.cli import main
from qserver.cli.nodes.status import ClusterStatus, status_of
from qserver.control.nodes.placement import Placement
from tests.cli.nodes.memory_cluster import FAMILIES, LEASE_SECONDS, MemoryCluster

LOG = ["--log", "nats://memory:4222"]


def states(found: ClusterStatus) -> dict[str, str]:
    return {each.name: each.state for each in found.nodes}


async def watched(cluster: MemoryCluster, alive: str) -> tuple[ClusterStatus, float]:
    """The status while some nodes renew, and how long it took."""

    async def renew(name: str) -> None:
        while True:
            await trio.sleep(LEASE_SECONDS / 3)
            await cluster.renew(name)

    async with trio.open_nursery() as nursery:
        for name in alive:
            nursery.start_soon(renew, name)
        began = trio.current_time()
        found = await status_of(cluster.log, is_quick=False)
        nursery.cancel_scope.cancel()
    return found, trio.current_time() - began


def without_waiting(cluster: MemoryCluster, alive: str) -> tuple[ClusterStatus, float]:
    return trio.run(watched, cluster, alive, clock=MockClock(autojump_threshold=0))


def test_a_node_lives_if_it_is_seen_to_renew(cluster: MemoryCluster) -> None:
    found, seconds = without_waiting(cluster, "abc")
    assert states(found) == {"a": "alive", "b": "alive", "c": "alive"}
    assert seconds < LEASE_SECONDS / 2, "it does not look longer than it must"


def test_a_node_that_does_not_renew_is_silent_and_one_that_has_ended_is_ended(
    cluster: MemoryCluster,
) -> None:
    trio.run(lambda: cluster.renew("c", ends=True))
    found, seconds = without_waiting(cluster, "a")
    assert states(found) == {"a": "alive", "b": "silent", "c": "ended"}
    assert seconds > LEASE_SECONDS, "it had all the time of its lease"


def test_the_table_has_what_nodes_own(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    family = next(each for each in FAMILIES if cluster.placement.owner_of(each) != 1)
    placement = Placement(9, 1, (0, 1, 2), drained=(2,)).with_moved(family, 1)
    trio.run(cluster.place, placement)
    assert main(["cluster", "status", "--quick", *LOG]) == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line for line in said.splitlines()[2:5]}
    owned = [placement.owner_of(each) for each in FAMILIES]
    for name, number in (("a", 0), ("b", 1), ("c", 2)):
        cells = [cell.strip() for cell in rows[name].split("|")]
        assert cells[:5] == [name, str(number), f"http://{name}:8000", f"{name}:7420", "unknown"]
        assert cells[5] == ("yes" if name == "b" else "")
        assert cells[6] == ("drained" if name == "c" else "yes")
        assert cells[7] == str(owned.count(number))
    assert owned.count(2) == 0 < owned.count(1)
    assert "placement: version 10\n" in said and f"moved by hand: {family} to b\n" in said


def test_json_has_the_same(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    trio.run(cluster.place, Placement(6, 0, (0,), {"db_1": 7}))
    assert main(["cluster", "status", "--quick", "--json", *LOG]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 6 and found["moved"] == {"db_1": "7"}
    assert found["nodes"][0] == {
        "name": "a",
        "number": 0,
        "url": "http://a:8000",
        "link": "a:7420",
        "state": "unknown",
        "leads": True,
        "serves": True,
        "drained": False,
        "databases": len(FAMILIES),
    }
    assert [each["serves"] for each in found["nodes"]] == [True, False, False]


def test_a_log_that_no_node_has_used_says_so(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in ("numbers", "placement", "node.a", "node.b", "node.c"):
        trio.run(cluster.log.remove_value, key)
    assert main(["cluster", "status", *LOG]) == 0
    assert capsys.readouterr().out == "No node has served the databases of this log yet.\n"
