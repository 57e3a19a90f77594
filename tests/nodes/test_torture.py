"""A short campaign of nodes under load; `make cluster-torture` runs a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nodes.campaign import NodesCampaign
from tests.processes.left_open import BY_HTTPX
from tests.replication.nodes import log_nodes

pytestmark = [pytest.mark.nightly, BY_HTTPX]
KINDS = {"kill": 1, "term": 1, "move": 1}


async def test_nothing_acknowledged_is_lost_through_faults_of_nodes(tmp_path: Path) -> None:
    with log_nodes(3, tmp_path) as log:
        report = await NodesCampaign(tmp_path, 7, len(KINDS), log, kinds=KINDS).run()
    assert report.problems == [], str(report)
    assert report.total == len(KINDS)
    assert report.ledger.acknowledged > 0 and report.reads > 0 and report.versions_followed > 0
