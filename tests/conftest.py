"""What holds for all tests: the machine may be slow, the longest ones come first, and what is for
the night is left out by day."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from qserver.engine.collector import start_collector
from qserver.sql.vectors.loading import load
from tests.durations import Durations
from tests.given import hide
from tests.hung import Silence, noticed
from tests.progress import FewDots
from tests.sampling import NIGHTLY, SEED, left_for_the_night
from tests.sharing import Sharing

ROOT: Final = Path(__file__).parents[1]

LONG: Final = (
    "tests/web/contract",
    "tests/hostile/test_hostile.py",
    "tests/processes",
    "tests/simulations/test_repeatable.py",
    "tests/simulations/test_campaign.py",
    "tests/simulations/test_branches.py",
    "tests/simulations/test_planted_bugs_a.py",
    "tests/simulations/test_planted_bugs_b.py",
    "tests/simulations/test_planted_bugs_c.py",
    "tests/simulations/test_planted_bugs_d.py",
    "tests/replication/test_log_nodes.py",
    "tests/query/test_bombs.py",
    "tests/query/test_planning.py",
    "tests/powerloss/test_io_errors.py",
    "tests/powerloss/test_powerloss.py",
    "tests/differential",
    "tests/cli",
    "tests/sql/test_tpch.py",
    "tests/sql/test_fuzz.py",
    "tests/sql/parser/test_robustness.py",
    "tests/engine/test_memory_of_aggregates.py",
    "tests/web",
)
"""The files and folders that take longest, which are not to be begun when all others are done."""

settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=300 if NIGHTLY else 12,
    suppress_health_check=(HealthCheck.too_slow,),
)
settings.load_profile("any machine")

# Tests fork, and numpy's library for matrices begins a thread that every fork has to end.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
load()  # so that a first plan over vectors is made as later ones are, whichever test comes first


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = SEED
    config.pluginmanager.register(Durations())
    config.pluginmanager.register(FewDots())
    if config.getoption("dist") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Silence())
        config.pluginmanager.register(Sharing())


def pytest_collection_finish() -> None:
    """In each process that runs tests, and not in the one that has others run them."""
    hide()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    with noticed():
        return (yield)


def pytest_unconfigure() -> None:
    """Let the collector have what it was told to spare, or libraries in C find it leaked."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sample = "everything was run, by" if NIGHTLY else "a sample was run; to repeat it:"
    terminalreporter.write_line(f"{sample} QSERVER_TEST_SEED={SEED}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [item for item in items if left_for_the_night(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not left_for_the_night(item)]
    paths = [ROOT / each for each in LONG]
    assert all(path.exists() for path in paths), "a file or folder of LONG is gone"

    @cache
    def place(file: Path) -> int:
        return next((at for at, path in enumerate(paths) if file.is_relative_to(path)), len(paths))

    items.sort(key=lambda item: place(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect tests without the collector of garbage, because their modules and items are none.

    Afterwards it is set as it is where databases are served, whichever test comes first, and never
    scans the tests themselves.
    """
    gc.disable()
    try:
        share_compiling(session.config)
        return (yield)
    finally:
        start_collector()


def share_compiling(config: pytest.Config) -> None:
    """Import a part of the tests first: the other processes begin with other parts.

    pytest compiles a test with assertions that explain themselves. In a new clone that takes half a
    minute, which every process would spend on all files at the same time.
    """
    given = getattr(config, "workerinput", None)
    if given is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    number = int(given["workerid"].removeprefix("gw"))
    for path in sorted((ROOT / "tests").rglob("test_*.py"))[number :: given["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # its collection tells
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
