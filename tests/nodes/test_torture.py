"""A short campaign of nodes under load; `make cluster-torture` runs a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nodes.campaign import NodesCampaign
from tests.nodes.planted import BUGS
from tests.processes.left_open import BY_HTTPX
from tests.replication.nodes import log_nodes

pytestmark = [pytest.mark.nightly, BY_HTTPX]
FAULTS_OF_BUG = 4
KINDS = {"kill": 1, "term": 1, "move": 1}


async def test_nothing_acknowledged_is_lost_through_faults_of_nodes(tmp_path: Path) -> None:
    with log_nodes(3, tmp_path) as log:
        report = await NodesCampaign(tmp_path, 7, len(KINDS), log, kinds=KINDS).run()
    assert report.problems == [], str(report)
    assert report.total == len(KINDS)
    assert report.ledger.acknowledged > 0 and report.reads > 0 and report.versions_followed > 0


@pytest.mark.parametrize("name", BUGS)
async def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    plant, kinds = BUGS[name]
    with log_nodes(3, tmp_path) as log:
        campaign = NodesCampaign(
            tmp_path, 7, FAULTS_OF_BUG, log, kinds=dict.fromkeys(kinds, 1), prepare=plant
        )
        report = await campaign.run()
    assert report.problems, str(report)
