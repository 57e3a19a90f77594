"""Whether the loop may wait for a sync, by what the last ones took."""

from __future__ import annotations

import pytest

from qserver.durability import sync_times
from qserver.durability.sync_times import SHORT_SECONDS, SHORT_SECONDS_ALONE, STALL_SECONDS
from qserver.durability.sync_times import SyncTimes as Times

BETWEEN = (SHORT_SECONDS + SHORT_SECONDS_ALONE) / 2


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def noted(
    took: float, *, alone: bool, here: bool = True, times: int = 50, clock: Clock | None = None
) -> Times:
    found = Times(clock or Clock())
    found.note(0.0, here=False, is_alone=False)
    for _ in range(times):
        found.note(took, here, alone)
    return found


def test_a_new_disk_has_to_show_what_it_is() -> None:
    clock = Clock()
    times = Times(clock)
    clock.now += 1e9
    assert not times.may_wait(is_alone=True)
    times.note(0.004, here=False, is_alone=False)
    assert times.may_wait(is_alone=True) and times.may_wait(is_alone=False)


def test_short_syncs_are_waited_for() -> None:
    times = noted(SHORT_SECONDS / 2, alone=False)
    assert times.may_wait(is_alone=False) and times.may_wait(is_alone=True)


def test_longer_ones_only_for_a_lone_client() -> None:
    assert noted(BETWEEN, alone=True).may_wait(is_alone=True)
    clock = Clock()
    times = noted(BETWEEN, alone=True, clock=clock)
    assert not times.may_wait(is_alone=False)
    clock.now += 0.5 * BETWEEN / sync_times.SHARE
    assert not times.may_wait(is_alone=False)
    clock.now += 0.6 * BETWEEN / sync_times.SHARE
    assert times.may_wait(is_alone=False), "when the doubt is over, it is tried again"


def test_too_long_ones_for_nobody() -> None:
    times = noted(SHORT_SECONDS_ALONE * 1.2, alone=True)
    assert not times.may_wait(is_alone=True)
    assert not times.may_wait(is_alone=False)


def test_one_long_sync_is_chance() -> None:
    times = noted(SHORT_SECONDS / 4, alone=False)
    times.note(STALL_SECONDS * 0.9, here=True, is_alone=False)
    assert times.may_wait(is_alone=False)


@pytest.mark.parametrize("here", [True, False])
def test_a_stall_is_doubted_for_a_share_of_the_time(here: bool) -> None:
    clock = Clock()
    times = noted(SHORT_SECONDS / 4, alone=True, clock=clock)
    times.note(1.0, here, is_alone=False)
    clock.now += 0.9 / sync_times.SHARE_ALONE
    assert not times.may_wait(is_alone=True)
    clock.now += 0.2 / sync_times.SHARE_ALONE
    assert not times.may_wait(is_alone=False)
    assert times.may_wait(is_alone=True), "a stall of one second, eleven seconds ago"
    times.note(1.0, here, is_alone=False)
    clock.now += 1.1 / sync_times.SHARE
    assert times.may_wait(is_alone=False)


def test_a_sync_in_a_thread_tells_nothing_but_stalls() -> None:
    times = noted(STALL_SECONDS * 0.9, alone=False, here=False)
    assert times.average == 0.0
    assert times.may_wait(is_alone=False)
