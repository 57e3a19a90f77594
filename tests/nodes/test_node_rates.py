"""The limit of an organization holds for all nodes of a cluster together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nodes.cluster import Cluster
from tests.processes.rates import SETTINGS, Spender
from tests.replication.nodes import log_nodes

pytestmark = pytest.mark.nightly
REQUESTS = 900


async def test_no_organization_gets_more_requests_than_its_limit_over_three_nodes(
    tmp_path: Path,
) -> None:
    with log_nodes(3, tmp_path) as log:
        cluster = Cluster(tmp_path, log, 3, {**SETTINGS, "QSERVER_LEASE_S": "8"})
        async with cluster.running():
            report = await Spender(cluster, 3).run(REQUESTS)  # type: ignore[arg-type]
        assert not cluster.bugs
    kinds = [each.status for each in report.asked]
    assert "accepted within a window" not in str(report.problems()), str(report)
    assert kinds.count(200) > 150 and kinds.count(429), "and it gets about as many"
