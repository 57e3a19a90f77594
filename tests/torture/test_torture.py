"""The real server, killed with SIGKILL while clients write: nothing acknowledged is lost.

This is the short form; `make torture` kills 200 times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.campaign import Campaign

# httpx leaves the body of a request unread when the connection breaks while it is sent.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*ByteStream.__aiter__:ResourceWarning",
    "ignore:.*ByteStream.__aiter__:pytest.PytestUnraisableExceptionWarning",
)


@pytest.mark.long
async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    report = await Campaign(tmp_path, 7, 3, {"answer": 2, "step": 1, "moment": 1}).run()
    assert report.problems == []
    assert report.killed == 3
    assert report.acknowledged > 0


@pytest.mark.long
async def test_a_log_that_acknowledges_before_it_writes_is_found(tmp_path: Path) -> None:
    report = await Campaign(tmp_path, 1, 3, {"answer": 1}, bug="early").run()
    assert any("was acknowledged and is gone" in problem for problem in report.problems)
