"""Reports of what strangers can cause as often as they like: one of each sort in a minute."""

from __future__ import annotations

from math import inf
from typing import Final

import trio

from qserver.cluster.connection import Report

REPORT_SECONDS_MIN: Final = 60.0
"""Between two reports of one sort; those between them are counted."""


class SparingReports:
    """The sorts must be few: each is remembered."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._latest: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def __call__(self, sort: str, text: str) -> None:
        now = trio.current_time()
        if now < self._latest.get(sort, -inf) + REPORT_SECONDS_MIN:
            self._left_out[sort] = self._left_out.get(sort, 0) + 1
            return
        self._latest[sort] = now
        left_out = self._left_out.pop(sort, 0)
        self._report(f"{text} ({left_out} more like it before)" if left_out else text)
