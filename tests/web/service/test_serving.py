"""What `qserver serve` sets for its process: open files, and when threads take turns."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from qserver.engine.turns import PASS_SECONDS
from qserver.limits import CONNECTIONS_MAX
from qserver.web.service.serving import FILES_BESIDE, THREAD_SWITCH_SECONDS, allow_files

FEW = 1024
"""What many systems give a process."""


@pytest.fixture
def few_files() -> Iterator[int]:
    """The hard limit; the soft one is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(few_files: int) -> None:
    wanted = CONNECTIONS_MAX + FILES_BESIDE
    expected = wanted if few_files == resource.RLIM_INFINITY else min(wanted, few_files)
    assert allow_files(CONNECTIONS_MAX) == expected
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (expected, few_files)


def test_what_is_enough_stays_as_it_is() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert allow_files(0) >= min(before[0], FILES_BESIDE)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= before[0]


def test_a_thread_waits_for_less_than_a_pass_of_the_loop() -> None:
    """Each end of a pass begins its wait anew, so that a longer one may never be over."""
    assert THREAD_SWITCH_SECONDS < PASS_SECONDS / 2
