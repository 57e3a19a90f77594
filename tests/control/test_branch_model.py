"""Writes, branches, deletions, checkpoints and restarts in any order, against dicts."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qserver.control.branches import Origin
from qserver.control.logs import MemoryLogs
from qserver.durability.branch_log import read_base
from qserver.durability.kept import decode_outline
from qserver.durability.page_cache import PageCache
from tests.control.planes import Opened, opened_plane, started_logs
from tests.sampling import examples

which = st.integers(0, 5)
steps = st.one_of(
    st.tuples(st.just("write"), which, st.integers(0, 250), st.integers(1, 120)),
    st.tuples(st.just("delete rows"), which, st.integers(0, 250), st.integers(1, 120)),
    st.tuples(st.just("branch"), which),
    st.tuples(st.just("branch"), which),
    st.tuples(st.just("delete"), which),
    st.tuples(st.just("checkpoint"), which),
    st.tuples(st.just("checkpoint"), which),
    st.tuples(st.just("close"), which),
    st.tuples(st.just("restart")),
)


class Family:
    """The databases as they are, and as they should be: dicts by name."""

    def __init__(self, logs: MemoryLogs) -> None:
        self.logs = logs
        self.rows: dict[str, dict[int, int]] = {}
        self.made = 0
        self.written = 0

    async def live(self, opened: Opened, waiting: list[tuple[Any, ...]]) -> None:
        """Do steps until none is left, or a restart comes."""
        while waiting:
            what, *how = waiting.pop(0)
            if what == "restart":
                return
            if self.rows:
                names = sorted(self.rows)
                await self._do(opened, what, names[how[0] % len(names)], *how[1:])
        await self.check(opened)

    async def _do(self, opened: Opened, what: str, name: str, *how: int) -> None:
        plane, grant, rows = opened.plane, opened.grant, self.rows[name]
        if what == "write":
            self.written += 1
            first, count = how
            rows.update(dict.fromkeys(range(first, first + count), self.written))
            await opened.run(
                grant,
                f"insert into t select k, {self.written} from"
                f" generate_series({first}, {first + count - 1}) k"
                " on conflict (k) do update set v = excluded.v",
                name,
            )
        elif what == "delete rows":
            first, count = how
            self.rows[name] = {
                key: value for key, value in rows.items() if not first <= key < first + count
            }
            await opened.run(
                grant, f"delete from t where k >= {first} and k < {first + count}", name
            )
        elif what == "branch" and len(self.rows) < 6:
            self.made += 1
            branch = f"b{self.made}"
            await plane.records.create(grant, branch, Origin(name))
            self.rows[branch] = dict(rows)
        elif what == "delete" and len(self.rows) > 1:
            await plane.records.delete(grant, name)
            del self.rows[name]
        elif what in ("checkpoint", "close"):
            with await plane.database(grant, name) as used:
                await used.database.checkpoint()
                host = plane.databases._hosts[used.id]
            if what == "close":
                plane.databases._begin_close(host)
                await host.closed.wait()

    async def check(self, opened: Opened) -> None:
        for name, rows in self.rows.items():
            found = await opened.run(opened.grant, "select k, v from t order by k", name)
            assert found == sorted(rows.items()), name
        found = (await opened.plane.records.list_page(opened.grant))[0]
        assert {each.name for each in found} == set(self.rows)
        check_pins(self.logs)


def check_pins(logs: MemoryLogs) -> None:
    """Each branch has its pin, each pin its branch, and each file is needed."""
    bases = {name: base for name in logs.names() if (base := read_base(logs._logs[name]))}
    pins = {
        (parent, branch)
        for parent, log in logs._logs.items()
        for version, outline in log._checkpoints.outlines()
        for branch in decode_outline(version, outline).names
    }
    assert pins == {(base.parent, branch) for branch, base in bases.items()}


@pytest.mark.long
@settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=4, max_size=25))
def test_a_family_of_branches_is_what_dicts_are(waiting: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        family = Family(await started_logs())
        async with opened_plane(family.logs) as opened:
            await opened.run(opened.grant, "create table t (k integer primary key, v integer)")
            family.rows["main"] = {}
            await family._do(opened, "write", "main", 0, 300)
        left = list(waiting)
        while True:
            ended = not left
            async with opened_plane(family.logs, cache=PageCache(0)) as opened:
                await family.live(opened, left)
                await family.check(opened)
            if ended:
                return

    trio.run(run)
