"""Views are published in order and become durable later; old ones are let go."""

from __future__ import annotations

from weakref import ref

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.engine.versions import Versions, VersionsStatistics
from qserver.storage.catalog import Catalog
from qserver.storage.ranges import Trees
from qserver.storage.snapshot import Snapshot


class Moment(float):
    """A time that can be missed."""


class News(Exception):
    """What those who wait are told."""


def snapshot(version: int, time: float = 0.0) -> Snapshot:
    return Snapshot(version, time, Catalog(), Trees(), 1)


def published() -> Versions:
    return Versions(snapshot(0), lambda: 0.0)


def test_what_is_published_is_the_newest_and_not_yet_durable() -> None:
    history = published()
    history.publish(snapshot(1))
    history.publish(snapshot(2))
    assert (history.newest.version, history.durable.version) == (2, 0)
    history.mark_durable(1)
    assert (history.newest.version, history.durable.version) == (2, 1)


@pytest.mark.parametrize("version", [0, 2])
def test_a_version_that_does_not_follow_is_our_own_mistake(version: int) -> None:
    with pytest.raises(AssertionError, match="versions follow each other"):
        published().publish(snapshot(version))


async def test_who_waits_goes_on_when_its_version_is_durable_and_not_before() -> None:
    history = published()
    for version in (1, 2, 3):
        history.publish(snapshot(version))
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
        history.publish(snapshot(version))
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
        history.end(News())
    assert told == [2]
    await history.wait_durable(1)
    with pytest.raises(News):
        await history.wait_durable(2)
    with pytest.raises(News):
        history.check_alive()


async def test_one_that_stopped_waiting_is_no_longer_counted() -> None:
    history = published()
    history.publish(snapshot(1))
    with trio.CancelScope() as scope:
        scope.cancel()
        await history.wait_durable(1)
    assert history.statistics().waiting == 0


async def test_one_who_gives_up_at_the_very_moment_of_durability_is_only_cancelled() -> None:
    history = published()
    history.publish(snapshot(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(history.wait_durable, 1)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()  # the task is about to be told so
        history.mark_durable(1)
    assert history.statistics().waiting == 0


def test_old_snapshots_are_let_go() -> None:
    shown = published()
    shown.publish(snapshot(1, Moment(1.0)))
    shown.mark_durable(1)
    old = ref(shown.durable.time)
    assert old() == 1.0
    shown.publish(snapshot(2))
    shown.mark_durable(2)
    assert old() is None
    assert shown.statistics() == VersionsStatistics(newest=2, durable=2, waiting=0)


def test_it_reads_as_a_sentence() -> None:
    shown = published()
    shown.publish(snapshot(1))
    assert repr(shown) == "version 1 published, 0 durable"
