"""A run of thousands of tests shows its progress on one screen: a dot stands for many of them."""

from __future__ import annotations

from typing import Final

import pytest

DOTS: Final = 140
"""Two lines."""


class FewDots:
    """A plugin. What fails or is skipped has a letter of its own, as ever."""

    def __init__(self) -> None:
        self._passed = 0
        self._session: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        of_a_call = report.when == "call" and report.passed and not hasattr(report, "wasxfail")
        if self._session is None or not of_a_call:
            return None
        self._passed += 1
        many = max(1, self._session.testscollected // DOTS)
        return "passed", "" if self._passed % many else ".", "PASSED"
