"""A short campaign with real log nodes and real servers; `make log-torture` runs a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.left_open import BY_HTTPX
from tests.replication.campaign import LogCampaign
from tests.replication.nodes import log_nodes

pytestmark = BY_HTTPX


@pytest.mark.long
async def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with log_nodes(3, tmp_path) as nodes:
        report = await LogCampaign(tmp_path, 1, 5, nodes).run()
    assert report.problems == [], str(report)
    assert report.faults["new machine"] and report.faults["node cut"]
    assert report.ledger.acknowledged > 50
