"""Django's own tests of its database layer: at night, over the wire and on PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from tests.differential.engines import NoOracle
from tests.django.suite.known import KNOWN
from tests.django.suite.running import LABELS, TARGETS, Target, Watch, read, run, stop_run
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


def test_a_label_that_took_too_long_is_stopped_and_told() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], start_new_session=True,
                               stdin=subprocess.PIPE, text=True)  # fmt: skip
    stopped = Event()
    stop_run(process, stopped)
    assert stopped.is_set() and process.returncode < 0
    assert process.stdin is not None
    process.stdin.close()
    outcome = replace(read("wire", "schema", ""), was_stopped=True, done=17)
    assert not outcome.is_good
    assert outcome.cells == ("schema", "wire", "stopped after 17", "0", "?")


def test_news_count_what_has_ended_and_failed() -> None:
    watch = Watch("schema on wire", lambda _: None)
    for line in ("test_a (s.T.test_a) ... ok\n", "more\n", "test_b (s.T.test_b) ... FAIL\n"):
        watch.see(line)
    assert (watch.done, watch.failed, len(watch.lines)) == (2, 1, 3)


def test_a_run_without_tests_is_not_good() -> None:
    assert not read("wire", "no_label", "Ran 0 tests in 0.000s").is_good


def test_every_known_failure_has_a_reason() -> None:
    assert all(reason for known in KNOWN.values() for reason in known.values())
