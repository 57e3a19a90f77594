"""Writes, branches, restores and restarts in any order; every version of every database is kept.

The model has each version of each database as a dict. A branch has all versions of its parent up to
its own, and then its own. What was must be read as it was, by version and by time, whatever came
since: other writes, restores, branches, deletions, checkpoints, restarts.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qserver.control.branches import Origin
from qserver.control.logs import MemoryLogs
from qserver.engine.history import AsOf
from qserver.query.sql_database import Statement
from tests.control.planes import NOON, Opened, TestWorld, opened_plane, started_logs

which = st.integers(0, 5)
older = st.integers(0, 40)
steps = st.one_of(
    st.tuples(st.just("write"), which, st.integers(0, 60), st.integers(1, 40)),
    st.tuples(st.just("write"), which, st.integers(0, 60), st.integers(1, 40)),
    st.tuples(st.just("remove"), which, st.integers(0, 60), st.integers(1, 40)),
    st.tuples(st.just("branch"), which, older),
    st.tuples(st.just("branch"), which, older),
    st.tuples(st.just("restore"), which, older),
    st.tuples(st.just("read"), which, older),
    st.tuples(st.just("delete"), which),
    st.tuples(st.just("checkpoint"), which),
    st.tuples(st.just("restart")),
)

HISTORY = 86400.0
READ = "select k, v from t order by k"


class Past:
    """What one database was: its versions, each with its time and its rows."""

    def __init__(self, versions: dict[int, tuple[float, dict[int, int]]], own: int) -> None:
        self.versions = versions
        self.own = own
        """The first version that its own log can make; those before are its parent's."""

    @property
    def newest(self) -> int:
        return max(self.versions)

    @property
    def rows(self) -> dict[int, int]:
        return self.versions[self.newest][1]

    def drawn(self, number: int) -> int:
        own = [version for version in self.versions if version >= self.own]
        return own[number % len(own)]

    def until(self, version: int) -> Past:
        kept = {each: what for each, what in self.versions.items() if each <= version}
        return Past(kept, version)


class Family:
    def __init__(self, logs: MemoryLogs) -> None:
        self.logs = logs
        self.world = TestWorld()
        self.pasts: dict[str, Past] = {}
        self.made = self.written = 0

    async def live(self, opened: Opened, waiting: list[tuple[Any, ...]]) -> None:
        """Do steps until none is left, or a restart comes."""
        while waiting:
            what, *how = waiting.pop(0)
            if what == "restart":
                break
            names = sorted(self.pasts)
            self.world.time += 1.0
            await self.do(opened, what, names[how[0] % len(names)], *how[1:])
        await self.check(opened)

    async def do(self, opened: Opened, what: str, name: str, *how: int) -> None:
        plane, grant, past = opened.plane, opened.grant, self.pasts[name]
        if what in ("write", "remove"):
            await self.write(opened, what, name, *how)
        elif what == "branch" and len(self.pasts) < 5:
            self.made += 1
            version = past.drawn(how[0])
            time = past.versions[version][0]
            as_of: AsOf | None = (version, time, None)[how[0] % 3]
            branch = f"b{self.made}"
            await plane.records.create(grant, branch, Origin(name, as_of))
            self.pasts[branch] = past.until(past.newest if as_of is None else version)
        elif what == "restore":
            version = past.drawn(how[0])
            with await plane.database(grant, name) as used:
                made, restored = await used.database.restore_version(version)
            assert restored == version
            rows = past.versions[version][1]
            assert made == past.newest + (rows != past.rows)
            past.versions[made] = (past.versions.get(made, (self.world.time, {}))[0], rows)
        elif what == "read":
            await self.read(opened, name, past.drawn(how[0]))
        elif what == "delete" and len(self.pasts) > 1:
            await plane.records.delete(grant, name)
            del self.pasts[name]
        elif what == "checkpoint":
            with await plane.database(grant, name) as used:
                await used.database.checkpoint()

    async def write(self, opened: Opened, what: str, name: str, first: int, count: int) -> None:
        past = self.pasts[name]
        self.written += 1
        keys = range(first, first + count)
        rows = {key: value for key, value in past.rows.items() if key not in keys}
        if what == "write":
            rows |= dict.fromkeys(keys, self.written)
            sql = (
                f"insert into t select k, {self.written} from generate_series({first},"
                f" {first + count - 1}) k on conflict (k) do update set v = excluded.v"
            )
        else:
            sql = f"delete from t where k >= {first} and k < {first + count}"
        with await opened.plane.database(opened.grant, name) as used:
            done = await used.sql.transaction([Statement(sql)])
        assert done.version == past.newest + (rows != past.rows)
        if rows != past.rows:
            past.versions[done.version] = (self.world.time, rows)

    async def read(self, opened: Opened, name: str, version: int) -> None:
        """Read a version, and the time at which it was made."""
        past = self.pasts[name]
        time, rows = past.versions[version]
        self.world.time += 1.0
        with await opened.plane.database(opened.grant, name) as used:
            for as_of in (version, time, time + 0.5):
                found = await used.sql.transaction([Statement(READ)], as_of=as_of)
                assert found.version == version, (name, as_of)
                assert found.results[0].rows == sorted(rows.items()), (name, as_of)

    async def check(self, opened: Opened) -> None:
        for name, past in self.pasts.items():
            assert await opened.run(opened.grant, READ, name) == sorted(past.rows.items()), name
            for version in past.versions:
                if version >= past.own:
                    await self.read(opened, name, version)


@pytest.mark.long
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=6, max_size=25))
def test_every_version_of_a_family_is_what_a_dict_was(waiting: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        family = Family(await started_logs())
        async with opened_plane(family.logs, family.world, history=HISTORY) as opened:
            await opened.run(opened.grant, "create table t (k integer primary key, v integer)")
            with await opened.plane.database(opened.grant, "main") as used:
                version = (await used.database.wait_durable_snapshot()).version
            family.pasts["main"] = Past({version: (NOON, {})}, version)
            family.world.time += 1.0
            await family.do(opened, "write", "main", 0, 80)
        left = list(waiting)
        while True:
            ended = not left
            async with opened_plane(family.logs, family.world, history=HISTORY) as opened:
                await family.live(opened, left)
            if ended:
                return

    trio.run(run)
