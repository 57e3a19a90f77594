"""Django's own tests of its database layer: at night, over the wire and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.engines import NoOracle
from tests.django.suite.known import KNOWN
from tests.django.suite.running import LABELS, TARGETS, Target, read, run
from tests.django.suite.sources import NotToBeHad

_ENDED = """
======================================================================
ERROR: test_one (schema.tests.SchemaTests.test_one)
----------------------------------------------------------------------
FAIL: test_two (schema.tests.SchemaTests.test_two) (name='a part of it')
----------------------------------------------------------------------
Ran 220 tests in 21.328s
"""


@pytest.mark.nightly
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_suite_passes(tmp_path: Path, target: Target, label: str) -> None:
    try:
        outcome = run(target, label, tmp_path)
    except (NotToBeHad, NoOracle) as error:
        pytest.skip(str(error))
    assert outcome.is_good, outcome.text


def test_a_failure_that_is_not_known_is_a_surprise_and_so_is_one_that_did_not_come() -> None:
    outcome = read("wire", "schema", _ENDED)
    assert outcome.ran == 220
    expected = [f"failed: schema.tests.SchemaTests.test_{name}" for name in ("one", "two")]
    assert outcome.surprises[:2] == expected
    known = [name for name in KNOWN["wire"] if name.startswith("schema.")]
    assert len(outcome.surprises) == 2 + len(known)
    assert not outcome.is_good


def test_a_run_without_tests_is_not_good() -> None:
    assert not read("wire", "no_label", "Ran 0 tests in 0.000s").is_good


def test_every_known_failure_has_a_reason() -> None:
    assert all(reason for known in KNOWN.values() for reason in known.values())
