"""A request takes no more than what is recorded: `counts.json`, renewed by `make counts`.

The counts do not depend on the machine or its load, so a slower hot path fails on any of them. They
depend on the minor version of Python, so another one is skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hot_path.counting import counted_alone
from tests.hot_path.recorded import ADVICE, PYTHON, SLACK, differences, recorded
from tests.hot_path.syscalls import StraceUnusable, calls_of_commit

same_python = pytest.mark.skipif(
    recorded()["python"] != PYTHON,
    reason=f"counts are recorded for Python {recorded()['python']}, this is {PYTHON}",
)


@same_python
def test_a_request_takes_what_is_recorded() -> None:
    found = differences(recorded()["requests"], counted_alone())
    assert not found, "\n" + "\n".join(found) + "\n" + ADVICE


def test_a_commit_makes_the_system_calls_that_are_recorded(tmp_path: Path) -> None:
    try:
        calls = calls_of_commit(tmp_path)
    except StraceUnusable as error:
        pytest.skip(f"system calls cannot be counted: {error}")
    found = differences(recorded()["commit"], {"system calls": calls})
    assert not found, "\n" + "\n".join(found) + "\n" + ADVICE
    assert calls["fdatasync"] == 1.0


def test_what_differs_is_told_and_what_is_close_is_not() -> None:
    before = {"read": {"calls": 100.0, "kept_blocks": 0.0, "gone": 4.0}}
    assert differences(before, {"read": {"calls": 103.0, "kept_blocks": SLACK, "gone": 4.0}}) == []
    assert differences(before, {"read": {"calls": 104.0, "kept_blocks": 1.0}}) == [
        "read, calls: 104, recorded 100 (+4%)",
        "read, kept_blocks: 1, recorded 0",
        "read, gone: 0, recorded 4 (-100%)",
    ]
    assert differences({}, {"new": {"calls": 7.0}}) == ["new, calls: 7, recorded 0"]
