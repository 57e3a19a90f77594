"""The collector leaves what is there alone, and looks at the rest less often."""

from __future__ import annotations

import gc

from qserver.engine.collector import THRESHOLDS, settle_collector


def test_what_is_there_is_frozen_and_the_rest_is_looked_at_less_often() -> None:
    before = gc.get_threshold()
    try:
        settle_collector()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold() == THRESHOLDS
        assert THRESHOLDS[0] > 700, "which is what Python begins with"
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
