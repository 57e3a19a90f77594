"""A test that hangs fails, and says where it waits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hung import Silence, noticed

ROOT = Path(__file__).parents[1]

_HANGING = """
import trio
from tests.hung import noticed

async def wait_for_what_never_comes():
    await trio.sleep_forever()

async def run():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_what_never_comes)

with noticed(0.1):
    trio.run(run)
"""


@pytest.mark.half
def test_tasks_that_wait_for_ever_are_named() -> None:
    """In a process of its own: Trio is left in pieces."""
    done = subprocess.run([sys.executable, "-c", _HANGING], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"task .*wait_for_what_never_comes:\n", done.stderr)


def test_a_thread_that_waits_for_ever_is_shown() -> None:
    with pytest.raises(pytest.fail.Exception, match="test_a_thread_that_waits"), noticed(0.1):
        signal.pause()


def test_what_ends_in_time_is_left_alone() -> None:
    with noticed(60):
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        assert 0 < left <= 60
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


_SILENT = """
import os
import time
from pathlib import Path

import pytest

from tests.hung import Silence

class SilenceBehindTests(Silence):
    def pytest_runtest_logreport(self, report):
        if report.when == "teardown":
            self._seconds = 1.0  # the machine may be slow until here
        super().pytest_runtest_logreport(report)

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        Path("worker").write_text(str(os.getpid()))
    else:
        config.pluginmanager.register(SilenceBehindTests())

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        time.sleep(1000)
"""


@pytest.mark.long
def test_a_run_that_hangs_behind_its_last_test_ends_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_SILENT)
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:schemathesis", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    assert re.search(
        "no news of any test.*\n.*the last test of gw0: test_it.py::test_it", done.stdout
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "worker").read_text()), 0)


def test_news_are_waited_for_anew() -> None:
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    silence = Silence(60)
    try:
        silence.pytest_sessionstart()
        signal.setitimer(signal.ITIMER_REAL, 1000)
        silence.pytest_runtest_logreport(
            pytest.TestReport("test_it", ("", 0, ""), {}, "passed", None, "call")
        )
        assert signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    finally:
        signal.signal(signal.SIGALRM, before[0])
        signal.setitimer(signal.ITIMER_REAL, *before[1])
