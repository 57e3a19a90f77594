"""SQLAlchemy's own suite for dialects: by day a part over HTTP, at night all, and the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sqlalchemy.suite.known import KNOWN
from tests.sqlalchemy.suite.running import SAMPLE, Outcome, Target, run


@pytest.mark.long
def test_a_part_of_the_suite_passes(tmp_path: Path) -> None:
    outcome = run("http", tmp_path, suite=SAMPLE)
    assert outcome.is_good, outcome.text
    assert len(outcome.passed) > 10


@pytest.mark.nightly
@pytest.mark.parametrize("part", ["Reflection", "not Reflection"])
@pytest.mark.parametrize("target", ["http", "wire"])
def test_the_suite_passes(tmp_path: Path, target: Target, part: str) -> None:
    outcome = run(target, tmp_path, part)
    assert outcome.is_good, outcome.text
    assert len(outcome.passed) > 500


def test_a_failure_that_is_not_known_is_a_surprise() -> None:
    name = "SomeTest_postgresql+qserver_15_0::test_it"
    failed = Outcome("http", frozenset({"A::b"}), frozenset({name}), "")
    assert failed.surprises == [f"failed: {name}"]
    assert not failed.is_good
    assert not Outcome("http", frozenset(), frozenset(), "").is_good


def test_every_known_failure_has_a_reason() -> None:
    assert all(reason for known in KNOWN.values() for reason in known.values())
