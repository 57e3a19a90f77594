"""What can be caused as often as one likes is reported once in a while, with its count."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from qserver.cluster.sparing_reports import REPORT_SECONDS_MIN, SparingReports


async def test_one_of_each_sort_is_reported_in_a_while(autojump_clock: MockClock) -> None:
    said: list[str] = []
    report = SparingReports(said.append)
    for number in range(1000):
        report("a", f"a {number}")
    report("b", "b")
    await trio.sleep(REPORT_SECONDS_MIN - 1)
    report("a", "too early")
    assert said == ["a 0", "b"]
    await trio.sleep(1)
    for _ in range(2):
        report("a", "later")
        report("b", "later")
    assert said[2:] == ["later (1000 more like it before)", "later"]
