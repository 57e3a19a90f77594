"""A selection of public suites, where they are at hand; `python -m tests.conformance` runs all."""

from __future__ import annotations

import pytest

from tests.conformance import VARIABLE, chosen_files, load_runner, run_files, suites_folder

SECONDS_MOST = 40.0
PASSED_LEAST = 0.97


async def test_public_suites_find_few_differences() -> None:
    folder = suites_folder()
    if folder is None:
        pytest.skip(f"{VARIABLE} names no folder of sqllogictest suites")
    runner = load_runner(folder)
    files = chosen_files(runner, folder, None, None, "smoke.list")
    reports, engine = await run_files(runner, files, seconds_most=SECONDS_MOST)
    passed = sum(report.passed for report in reports)
    failed = sum(report.failed for report in reports)
    assert not engine.crashes, engine.crashes[:3]
    assert passed / (passed + failed) >= PASSED_LEAST
