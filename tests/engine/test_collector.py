"""The collector leaves what is there alone, and looks at the rest less often."""

from __future__ import annotations

import gc

import pytest

from qserver.engine.collector import THRESHOLDS, settle_collector, start_collector


@pytest.mark.long
def test_what_is_there_is_frozen_and_the_rest_is_looked_at_less_often() -> None:
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)  # as Python begins
    settle_collector()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == THRESHOLDS
    assert THRESHOLDS[0] > 700


def test_a_program_imported_without_the_collector_is_frozen_and_the_collector_runs_again() -> None:
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    gc.disable()
    start_collector()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == THRESHOLDS
