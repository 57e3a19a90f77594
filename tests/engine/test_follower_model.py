"""A follower beside a model, through whatever befalls its owner and the link between them.

The model notes what the owner publishes under each version. Each version that the follower shows is
durable, later than the one before, and holds just that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from qserver.engine.database import Database
from qserver.engine.follower import DoesNotFollow, FollowedDatabase
from qserver.engine.following import Message, records_after
from qserver.engine.messages import Append
from qserver.errors import QserverError
from qserver.query.sql_database import SqlDatabase
from qserver.storage.snapshot import empty_snapshot
from simulations.pages import FickleCache
from tests.engine.fakes import HeldLog, Laboratory
from tests.engine.followers import ALWAYS, NEVER, contents, newest
from tests.sampling import examples

SECONDS = 10.0
"""In this time all that is not held comes to its end."""

WRITES = (
    "insert into t (a) select x from generate_series(1, 150) as g(x)",
    "insert into t (a) values (7) returning id",
    "update t set a = a + 1 where id % 5 = 0",
    "delete from t where id % 3 = 0",
    "create table t (id serial primary key, a int)",
    "create table if not exists t (id serial primary key, a int)",
    "create index on t (a)",
    "alter table t add column b text default 'b'",
    "truncate t",
    "drop table t",
    "create sequence s",
    "select nextval('s')",
    "drop sequence s",
)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(WRITES)),
        st.tuples(st.just("write"), st.sampled_from(WRITES)),
        st.tuples(st.just("checkpoint"), st.none()),
        st.tuples(st.just("kill"), st.sampled_from(("coordinator", "log", "shard 0"))),
        st.tuples(st.just("fail"), st.sampled_from(("before", "after"))),
        st.tuples(st.just("restart"), st.booleans()),
        st.tuples(st.sampled_from(("hold", "release", "cut", "connect", "slow")), st.none()),
        st.tuples(st.just("evict"), st.none()),
    ),
    max_size=30,
)


class Machine:
    def __init__(self, nursery: trio.Nursery, is_saved: bool) -> None:
        self.nursery = nursery
        self.world, self.log, self.cache = Laboratory(), HeldLog(), FickleCache()
        self.world.watch = self._note
        self.published: dict[int, Any] = {0: contents(empty_snapshot(2))}
        policy = ALWAYS if is_saved else NEVER
        self.followed = FollowedDatabase(Laboratory(), shards=2, policy=policy, cache=self.cache)
        self.link = trio.CancelScope()
        self.open = trio.Event()
        self.shown = -1

    def _note(self, message: Any) -> None:
        if isinstance(message, Append):
            self.published[message.snapshot.version] = contents(message.snapshot)

    async def start(self) -> None:
        self.process = trio.CancelScope()
        self.database = Database(self.log, self.world, shards=2, policy=NEVER)
        self.sql = SqlDatabase(self.database, self.world)
        self.nursery.start_soon(self._run)

    async def _run(self) -> None:
        with self.process:
            await self.database.run()

    async def watch(self) -> None:
        """Look at each version that the follower shows."""
        while True:
            snapshot = await self.followed.wait_durable_snapshot(version=self.shown + 1)
            self.look(snapshot.version)
            assert contents(snapshot) == self.published[snapshot.version]

    def look(self, version: int) -> None:
        assert self.shown < version <= self.log.versions, "it is durable, and later"
        self.shown = version

    async def _follow(self) -> None:
        with self.link, suppress(DoesNotFollow, QserverError):
            await self.followed.follow(self._messages())

    async def _messages(self) -> AsyncGenerator[Message, None]:
        async with aclosing(records_after(self.database, self.followed.version)) as sent:
            async for message in sent:
                await self.open.wait()
                yield message

    async def do(self, what: str, how: Any) -> None:
        await getattr(self, f"do_{what}")(how)
        await trio.sleep(SECONDS)
        version = self.followed.version
        assert (-1 if version is None else version) == self.shown

    async def do_write(self, statement: str) -> None:
        self.nursery.start_soon(self._write, statement)

    async def _write(self, statement: str) -> None:
        with suppress(QserverError):
            await self.sql.execute(statement)

    async def do_checkpoint(self, _: None) -> None:
        self.nursery.start_soon(self._checkpoint)

    async def _checkpoint(self) -> None:
        with suppress(QserverError):
            await self.database.checkpoint()

    async def do_kill(self, actor: str) -> None:
        self.world.kill(actor)

    async def do_fail(self, when: str) -> None:
        setattr(self.log, f"fails_{when}_append", True)
        self.log.release()
        await self.do_write("create table if not exists t (id serial primary key, a int)")
        await self.do_write("insert into t (a) values (8)")
        await trio.sleep(SECONDS)
        setattr(self.log, f"fails_{when}_append", False)

    async def do_restart(self, is_clean: bool) -> None:
        self.log.release()
        if is_clean:
            await self.database.close()
        self.process.cancel()
        await trio.sleep(SECONDS)
        await self.start()

    async def do_hold(self, _: None) -> None:
        self.log.release()  # what is under way now ends, and what comes next is held
        self.log.hold()

    async def do_release(self, _: None) -> None:
        self.log.release()

    async def do_cut(self, _: None) -> None:
        self.link.cancel()

    async def do_slow(self, _: None) -> None:
        self.open = trio.Event()

    async def do_connect(self, _: None) -> None:
        self.link.cancel()
        self.link = trio.CancelScope()
        self.open.set()
        self.nursery.start_soon(self._follow)

    async def do_evict(self, _: None) -> None:
        self.cache.evict_all()

    async def end(self) -> None:
        """Let all heal: the follower comes to what the owner has."""
        self.log.release()
        await trio.sleep(60 * SECONDS)
        await self.do("connect", None)
        assert contents(newest(self.followed)) == contents(newest(self.database))


def run_program(events: list[tuple[str, Any]], is_saved: bool) -> None:
    async def main() -> None:
        with trio.fail_after(1e6):  # this is how a deadlock shows
            async with trio.open_nursery() as nursery:
                machine = Machine(nursery, is_saved)
                await machine.start()
                nursery.start_soon(machine.followed.run)
                nursery.start_soon(machine.watch)
                for what, how in events:
                    await machine.do(what, how)
                await machine.end()
                nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.long
@settings(deadline=None, max_examples=examples(150))
@given(EVENTS, st.booleans())
def test_a_follower_shows_what_its_owner_has_made_durable(
    events: list[tuple[str, Any]], is_saved: bool
) -> None:
    run_program([("connect", None), *events], is_saved)
