"""Databases move to nodes, nodes are drained, and what makes no sense is refused."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from qserver.cli import main
from qserver.cli.nodes.placing import drain, move_to
from qserver.control.nodes.placement import Placement
from tests.cli.nodes.memory_cluster import FAMILIES, LEASE_SECONDS, MemoryCluster

LOG = ["--log", "nats://memory:4222"]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cluster", *arguments, *LOG]) == 1
    return capsys.readouterr().err


def done(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cluster", *arguments, *LOG]) == 0
    return capsys.readouterr().out


def test_a_database_moves_and_moves_back(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    family = next(each for each in FAMILIES if cluster.placement.owner_of(each) != 1)
    was = "abc"[cluster.placement.owner_of(family)]
    assert f"{family} has moved to b (version 6 of the placement)." in done(
        capsys, "move", family, "b"
    )
    assert cluster.placement.owner_of(family) == 1
    assert done(capsys, "move", family, "b") == f"b has {family} already.\n"
    assert cluster.placement.version == 6
    assert f"{family} has moved back to {was} (version 7 of the placement)." in done(
        capsys, "move", family, "--back"
    )
    assert cluster.placement == Placement(7, 0, (0, 1, 2), known=(0, 1, 2))
    assert done(capsys, "move", family, "--back") == f"Nobody has moved {family}.\n"
    assert cluster.placement.version == 7


def test_whoever_has_control_leads(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "control has moved to c " in done(capsys, "move", "control", "c")
    assert cluster.placement.leader == 2
    assert "no place of its own" in refused(capsys, "move", "control", "--back")


def test_a_move_that_makes_no_sense_is_refused_and_changes_nothing(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.run(cluster.place, Placement(6, 0, (0, 1), drained=(1,)))
    assert "the log has no database db_nowhere" in refused(capsys, "move", "db_nowhere", "a")
    said = refused(capsys, "move", "db_1", "d")
    assert "there is no node d" in said and "a, b, c" in said
    assert "the node c does not serve now" in refused(capsys, "move", "db_1", "c")
    assert "the node b does not serve now, or is drained" in refused(capsys, "move", "db_1", "b")
    assert "to a node, or back" in refused(capsys, "move", "db_1")
    assert "to a node, or back" in refused(capsys, "move", "db_1", "a", "--back")
    assert cluster.placement.version == 6


def test_a_node_is_drained_until_that_is_undone(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    before = cluster.placement
    assert "a owns no database any more (version 6 of the placement)." in done(capsys, "drain", "a")
    assert cluster.placement == Placement(6, 1, (0, 1, 2), known=(0, 1, 2), drained=(0,))
    assert "(version 6 of the placement)" in done(capsys, "drain", "a"), "it is so already"
    assert "there is no node d" in refused(capsys, "drain", "d")
    done(capsys, "drain", "b")
    said = refused(capsys, "drain", "c")
    assert "c is the only node that may own databases" in said
    assert "a owns databases again (version 8 of the placement)." in done(
        capsys, "drain", "a", "--undo"
    )
    done(capsys, "drain", "b", "--undo")
    after = cluster.placement
    assert after.version == 9
    assert [after.owner_of(each) for each in FAMILIES] == [before.owner_of(f) for f in FAMILIES]
    trio.run(cluster.place, Placement(10, 0, (0, 1), drained=(2,)))
    assert "c owns databases again as soon as it serves" in done(capsys, "drain", "c", "--undo")


def test_a_log_without_nodes_says_so(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.run(cluster.log.remove_value, "placement")
    assert "no node has served the databases of this log yet" in refused(capsys, "drain", "a")


def test_a_move_waits_until_every_node_that_lives_has_heeded_it(cluster: MemoryCluster) -> None:
    async def move() -> str:
        await cluster.renew("b", released=5)
        await cluster.renew("c", released=5, ends=True)

        async def heed() -> None:
            await trio.sleep(LEASE_SECONDS)
            heeded.append("b")
            await cluster.renew("b", released=6)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(heed)
            return await move_to(cluster.log, "control", "b")

    heeded: list[str] = []
    said = trio.run(move, clock=MockClock(autojump_threshold=0))
    assert heeded == ["b"] and said == "control has moved to b (version 6 of the placement)."


def test_a_node_that_does_not_heed_a_move_is_named(cluster: MemoryCluster) -> None:
    trio.run(lambda: cluster.renew("b", released=5))
    said = trio.run(drain, cluster.log, "a", clock=MockClock(autojump_threshold=0))
    assert "but not all nodes have heeded it yet: b. Requests wait" in said
