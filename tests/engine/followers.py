"""What the tests of followers share: a link that can be cut, and what a snapshot holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
import trio

from qserver.durability.check_snapshot import problems_of
from qserver.durability.page_cache import PageCache
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.follower import FollowedDatabase
from qserver.engine.following import Message, records_after
from qserver.storage.snapshot import Snapshot
from tests.engine.fakes import Laboratory

ALWAYS = CheckpointPolicy(log_bytes=1, seconds=1e9)
NEVER = CheckpointPolicy(log_bytes=1 << 60, seconds=1e9)


def contents(snapshot: Snapshot) -> Any:
    """Everything that a snapshot holds, whatever pages and ranges it has."""
    assert [each for each in problems_of(snapshot) if each is not None] == []
    catalog = snapshot.catalog
    trees = {}
    for number, tree in snapshot.trees.items():
        entries = [entry for page in snapshot.pages(number) for entry in zip(*page, strict=True)]
        if entries:
            trees[number] = tree.last_change, entries
    named = {**catalog.tables}, {**catalog.others}, {**catalog.moments}, catalog.last_change
    return snapshot.version, snapshot.time, catalog.trees_used, named, trees


def newest(database: Database | FollowedDatabase) -> Snapshot:
    snapshot = database.snapshots.take()
    assert snapshot is not None
    return snapshot


class Link:
    """Carries the messages of a database as bytes, as a socket would."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def messages(
        self, database: Database, version: int | None
    ) -> AsyncGenerator[Message, None]:
        async with aclosing(records_after(database, version)) as sent:
            async for message in sent:
                self.kinds.append(message[0])
                yield msgspec.msgpack.decode(msgspec.msgpack.encode(message))


@asynccontextmanager
async def following(
    world: Laboratory | None = None,
    policy: CheckpointPolicy | None = None,
    cache: PageCache | None = None,
) -> AsyncIterator[FollowedDatabase]:
    """A follower without a stream, that runs inside the block."""
    followed = FollowedDatabase(world or Laboratory(), policy=policy, cache=cache)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(followed.run)
        yield followed
        nursery.cancel_scope.cancel()


async def catch_up(followed: FollowedDatabase, database: Database) -> list[str]:
    """Follow until the newest version is there; return the kinds of messages."""
    link = Link()
    wanted = (await database.wait_durable_snapshot()).version
    with trio.fail_after(10_000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(followed.follow, link.messages(database, followed.version))
            await followed.wait_durable_snapshot(version=wanted)
            nursery.cancel_scope.cancel()
    return link.kinds
