"""Views are published in order, become durable later, and recent ones are kept."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.engine.published import Published, PublishedStatistics
from qserver.errors import HistoryTooOld
from qserver.storage.catalog import Catalog
from qserver.storage.ranges import Trees
from qserver.storage.view import View


class News(Exception):
    """What those who wait are told."""


def view(version: int, time: float = 0.0) -> View:
    return View(version, time, Catalog(), Trees(), 1)


def published(views_most: int = 100, age_seconds_most: float = 1e9) -> Published:
    return Published(view(0), lambda: 0.0, views_most, age_seconds_most)


def with_versions(count: int, views_most: int = 100, age_seconds_most: float = 1e9) -> Published:
    """Versions 1 to `count`, each 10 seconds after the one before, all durable."""
    history = published(views_most, age_seconds_most)
    for version in range(1, count + 1):
        history.publish(view(version, 10.0 * version))
        history.mark_durable(version)
    return history


def test_what_is_published_is_the_newest_and_not_yet_durable() -> None:
    history = published()
    history.publish(view(1))
    history.publish(view(2))
    assert (history.newest.version, history.durable.version) == (2, 0)
    history.mark_durable(1)
    assert (history.newest.version, history.durable.version) == (2, 1)


@pytest.mark.parametrize("version", [0, 2])
def test_a_version_that_does_not_follow_is_our_own_mistake(version: int) -> None:
    with pytest.raises(AssertionError, match="versions follow each other"):
        published().publish(view(version))


async def test_who_waits_goes_on_when_its_version_is_durable_and_not_before() -> None:
    history = published()
    for version in (1, 2, 3):
        history.publish(view(version))
    awake: list[int] = []

    async def wait(version: int) -> None:
        await history.wait_durable(version)
        awake.append(version)

    async with trio.open_nursery() as nursery:
        for version in (1, 2, 3):
            nursery.start_soon(wait, version)
        await wait_all_tasks_blocked()
        assert awake == []
        assert history.statistics().waiting == 3
        history.mark_durable(2)
        await wait_all_tasks_blocked()
        assert sorted(awake) == [1, 2]
        history.mark_durable(3)
    assert sorted(awake) == [1, 2, 3]
    assert history.statistics().waiting == 0


async def test_who_waits_for_what_never_will_be_durable_is_told() -> None:
    history = published()
    for version in (1, 2):
        history.publish(view(version))
    told: list[int] = []

    async def wait(version: int) -> None:
        try:
            await history.wait_durable(version)
        except News:
            told.append(version)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, 1)
        nursery.start_soon(wait, 2)
        await wait_all_tasks_blocked()
        history.mark_durable(1)
        history.fall(News())
    assert told == [2]
    await history.wait_durable(1)
    with pytest.raises(News):
        await history.wait_durable(2)
    with pytest.raises(News):
        history.check_alive()


async def test_one_that_stopped_waiting_is_no_longer_counted() -> None:
    history = published()
    history.publish(view(1))
    with trio.CancelScope() as scope:
        scope.cancel()
        await history.wait_durable(1)
    assert history.statistics().waiting == 0


async def test_one_who_gives_up_at_the_very_moment_of_durability_is_only_cancelled() -> None:
    history = published()
    history.publish(view(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(history.wait_durable, 1)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()  # the task is about to be told so
        history.mark_durable(1)
    assert history.statistics().waiting == 0


def test_history_is_asked_by_version() -> None:
    history = with_versions(5)
    assert [history.at_version(version).version for version in range(6)] == [0, 1, 2, 3, 4, 5]
    history.publish(view(6, 60.0))
    with pytest.raises(HistoryTooOld, match="version 6 is not in the kept history"):
        history.at_version(6)


@pytest.mark.parametrize(
    ("time", "version"), [(0.0, 0), (9.9, 0), (10.0, 1), (19.9, 1), (50.0, 5), (1e9, 5)]
)
def test_history_is_asked_by_time(time: float, version: int) -> None:
    assert with_versions(5).at_time(time).version == version


def test_history_is_bounded_by_count() -> None:
    history = with_versions(9, views_most=3)
    assert history.statistics() == PublishedStatistics(
        newest=9, durable=9, oldest=7, views=3, waiting=0
    )
    assert history.at_version(7).version == 7
    with pytest.raises(HistoryTooOld) as caught:
        history.at_version(6)
    assert str(caught.value) == "version 6 is not in the kept history"
    assert caught.value.detail == "Kept are the versions from 7 to 9."


def test_history_is_bounded_by_age() -> None:
    history = with_versions(9, age_seconds_most=25.0)
    assert (history.statistics().oldest, history.statistics().views) == (7, 3)
    with pytest.raises(HistoryTooOld) as caught:
        history.at_time(69.9)
    assert str(caught.value) == "time 69.9 is not in the kept history"
    assert caught.value.detail == "Kept are the versions from 7 to 9."


def test_the_newest_durable_view_is_kept_however_old_it_is() -> None:
    history = with_versions(3, views_most=1, age_seconds_most=0.001)
    assert history.at_version(3) is history.durable


def test_it_reads_as_a_sentence() -> None:
    history = with_versions(2)
    history.publish(view(3))
    assert repr(history) == "version 3 published, 2 durable"
