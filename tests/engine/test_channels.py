"""Channels: what transactions tell, listeners hear when it is durable, once and in commit order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio

from qserver.durability.memory import MemoryLog
from qserver.engine import channels as engine_channels
from qserver.engine.channels import Channels, Delivery, Listener
from qserver.engine.database import Database
from qserver.engine.world import OrdinaryWorld
from qserver.errors import DatabaseUnavailable, ReaderTooSlow
from qserver.storage.transaction import Transaction

WORLD = OrdinaryWorld(lambda: 1000.0, Random(0), lambda text, error: None)


def heard_by(listener: Listener) -> list[tuple[str, str]]:
    heard = []
    while (each := listener.take()) is not None:
        heard.append((each.channel, each.payload))
    return heard


def listener_to(channels: Channels, *names: str) -> Listener:
    listener = Listener(lambda: None)
    listener.listen(channels, frozenset(names))
    return listener


def told(channels: Channels, *payloads: str, version: int = 1, channel: str = "news") -> Delivery:
    delivery = channels.delivery(version, {(channel, each): 7 for each in payloads})
    delivery.put(None)
    return delivery


def test_a_listener_hears_its_channels_and_no_others() -> None:
    channels = Channels()
    one, both = listener_to(channels, "news"), listener_to(channels, "news", "weather")
    told(channels, "first")
    told(channels, "rain", channel="weather")
    assert heard_by(one) == [("news", "first")]
    assert heard_by(both) == [("news", "first"), ("weather", "rain")]
    assert channels.bytes == 0 and channels.usage == 0.0


def test_what_is_not_listened_to_any_more_is_dropped() -> None:
    channels = Channels()
    listener = listener_to(channels, "news", "weather")
    told(channels, "first")
    told(channels, "rain", channel="weather")
    listener.listen(channels, frozenset({"weather"}))
    told(channels, "second")
    assert heard_by(listener) == [("weather", "rain")]
    listener.close()
    told(channels, "sun", channel="weather")
    assert heard_by(listener) == [] and channels.bytes == 0


def test_who_has_stopped_to_listen_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_channels, "NOTIFICATIONS_QUEUED_BYTES_MAX", 250)
    channels = Channels()
    listener = listener_to(channels, "news")
    told(channels, "one", "two")
    listener.listen(channels, frozenset())
    assert channels.bytes == 0 and not listener.has_heard
    told(channels, "three", "four", "five")
    assert listener.ended is None


def test_a_restart_delivers_what_the_log_has_and_drops_the_rest() -> None:
    channels = Channels()
    listener = listener_to(channels, "news")
    for version in (4, 5, 6):
        channels.delivery(version, {("news", str(version)): 0})
    channels.recovered(5)
    assert heard_by(listener) == [("news", "4"), ("news", "5")]
    told(channels, "again", version=6)
    assert heard_by(listener) == [("news", "again")]


def test_a_listener_that_takes_nothing_is_ended_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_channels, "NOTIFICATIONS_QUEUED_MAX", 3)
    channels = Channels()
    slow, quick = listener_to(channels, "news"), listener_to(channels, "news")
    for number in range(4):
        told(channels, str(number))
        assert heard_by(quick) == [("news", str(number))]
    assert isinstance(slow.ended, ReaderTooSlow) and slow.names == frozenset()
    assert quick.ended is None and channels.bytes == 0


def test_what_waits_in_a_database_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_channels, "NOTIFICATIONS_QUEUED_BYTES_MAX", 1000)
    channels = Channels()
    listeners = [listener_to(channels, "news") for _ in range(50)]
    told(channels, "x" * 400)  # all listeners have the same object, which counts once
    assert channels.usage == 0.5 and not any(each.ended for each in listeners)
    more = listener_to(channels, "weather")
    told(channels, "y" * 400, channel="weather")
    told(channels, "z", channel="weather")
    assert isinstance(more.ended, ReaderTooSlow), "it has the most"
    assert not any(each.ended for each in listeners) and channels.bytes == 500


def test_all_listeners_end_with_the_database() -> None:
    channels = Channels()
    listener = listener_to(channels, "news")
    channels.end()
    assert isinstance(listener.ended, DatabaseUnavailable)
    late = listener_to(channels, "news")
    assert isinstance(late.ended, DatabaseUnavailable) and late.ended is not listener.ended


def notifying(*payloads: str) -> Any:
    def work(transaction: Transaction) -> None:
        for each in payloads:
            transaction.notify("news", each, 0)

    return work


async def test_a_transaction_that_only_notifies_makes_a_version_of_its_own() -> None:
    database = Database(MemoryLog(), WORLD, shards=2)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        listener = listener_to(database.channels, "news")
        first = await database.transact(notifying("a", "b", "a"))
        second = await database.transact(notifying("a"))
        assert heard_by(listener) == [("news", "a"), ("news", "b"), ("news", "a")]
        assert second.version == first.version + 1

        def failing(transaction: Transaction) -> None:
            transaction.notify("news", "never", 0)
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await database.transact(failing)
        assert heard_by(listener) == []
        nursery.cancel_scope.cancel()
    assert isinstance(listener.ended, DatabaseUnavailable)
