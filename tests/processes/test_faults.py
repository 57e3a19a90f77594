"""Three processes under load, each killed and stopped in turn: nothing promised is broken.

This is the short form; `make processes-torture` has a hundred faults.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.campaign import Campaign
from tests.processes.left_open import BY_HTTPX

pytestmark = [pytest.mark.nightly, BY_HTTPX]


async def test_nothing_acknowledged_is_lost_or_applied_twice_through_faults(tmp_path: Path) -> None:
    report = await Campaign(tmp_path, 7, 6).run()
    assert report.problems == []
    assert report.faults["kill"] == 3 and report.total == 6
    assert report.ledger.acknowledged > 0 and report.versions_followed > 0
    assert sum(report.others) > 0, "others go on while one is away"
