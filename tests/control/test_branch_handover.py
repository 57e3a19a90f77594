"""A branch begins with what its parent has in memory: it waits for no checkpoint and no replay."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from qserver.control import MemoryLogs
from qserver.control.branches import Origin
from qserver.durability.page_cache import PageCache
from qserver.durability.recovery import Replay
from qserver.engine.checkpointer import Checkpointer
from qserver.engine.database import Database
from qserver.storage.page import Leaf, Tree
from tests.control.planes import Opened, opened_plane
from tests.sampling import sampled

TABLE = "create table t (id integer primary key, n integer, text text)"
FILL = "insert into t select n, n, repeat('x', 80) from generate_series({}, {}) n"
CONTENTS = "select id, n from t order by id"


class Counted:
    """Counts records that are replayed, and pages that checkpoints encode."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.records = self.checkpoints = 0
        apply, save = Replay.apply, Checkpointer.save

        def applied(replay: Replay, stored: Any) -> Any:
            self.records += 1
            return apply(replay, stored)

        async def saved(checkpointer: Checkpointer, *arguments: Any, **options: Any) -> None:
            self.checkpoints += 1
            await save(checkpointer, *arguments, **options)

        monkeypatch.setattr(Replay, "apply", applied)
        monkeypatch.setattr(Checkpointer, "save", saved)

    def reset(self) -> None:
        self.records = self.checkpoints = 0


async def leaves(opened: Opened, name: str) -> list[Leaf]:
    with await opened.plane.database(opened.grant, name) as used:
        return list(leaves_of(used.database))


def leaves_of(database: Database) -> Iterator[Leaf]:
    snapshot = database.snapshots.take()
    assert snapshot is not None
    waiting: list[Tree] = list(snapshot.trees.tree(snapshot.catalog.tables["t"].id).roots)
    while waiting:
        page = waiting.pop()
        if isinstance(page, Leaf):
            yield page
        else:
            waiting += page.children


@pytest.mark.parametrize("rows", [1_000, 20_000])
async def test_a_branch_waits_for_no_checkpoint_and_replays_nothing(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    async with opened_plane() as opened:
        await opened.run(opened.grant, TABLE)
        await opened.run(opened.grant, FILL.format(1, rows))
        counted.reset()
        await opened.plane.records.create(opened.grant, "b", Origin("main"))
        assert (counted.records, counted.checkpoints) == (0, 0)
        ours = {id(leaf.values_here) for leaf in await leaves(opened, "main")}
        branched = await leaves(opened, "b")
        assert {id(leaf.values_here) for leaf in branched} == ours, "no row is copied"
        assert not {*map(id, branched)} & {*map(id, await leaves(opened, "main"))}
        contents = await opened.run(opened.grant, CONTENTS)
        assert await opened.run(opened.grant, CONTENTS, "b") == contents


async def test_a_branch_of_an_older_version_is_read_from_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(monkeypatch)
    async with opened_plane(history=3600.0) as opened:
        await opened.run(opened.grant, TABLE)
        await opened.run(opened.grant, FILL.format(1, 500))
        await opened.run(opened.grant, "delete from t")
        counted.reset()
        await opened.plane.records.create(opened.grant, "b", Origin("main", 2))
        assert counted.records > 0
        assert len(await opened.run(opened.grant, CONTENTS, "b")) == 500


async def test_without_memory_for_both_the_parent_saves_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted, cache = Counted(monkeypatch), PageCache(8 << 20)
    async with opened_plane(cache=cache) as opened:
        await opened.run(opened.grant, TABLE)
        await opened.run(opened.grant, FILL.format(1, 1_200))
        counted.reset()
        assert 2 * cache.unsaved > cache.most >> 3 > cache.unsaved
        await opened.plane.records.create(opened.grant, "b", Origin("main"))
        assert counted.checkpoints == 1
        assert cache.unsaved < cache.most >> 3
        contents = await opened.run(opened.grant, CONTENTS)
        assert await opened.run(opened.grant, CONTENTS, "b") == contents


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(6), 2))
async def test_parent_and_branch_go_their_own_ways(seed: int) -> None:
    """Checkpoints, evictions, restarts and branches of branches in any order."""
    chance, logs, world = Random(seed), MemoryLogs(), None
    model: dict[str, dict[int, int]] = {}
    memory = chance.choice([64 << 10, 1 << 30])
    for life in range(4):
        async with opened_plane(logs, world, cache=PageCache(memory)) as opened:
            world = opened.world
            if not life:
                await opened.run(opened.grant, TABLE)
                model["main"] = {}
            for _ in range(12):
                await step(opened, chance, model)
            for name, rows in model.items():
                found = await opened.run(opened.grant, CONTENTS, name)
                assert dict(found) == rows, name


async def step(opened: Opened, chance: Random, model: dict[str, dict[int, int]]) -> None:
    name = chance.choice(sorted(model))
    rows = model[name]
    first = chance.randrange(400)
    match chance.choice(["write", "write", "delete", "checkpoint", "branch", "branch"]):
        case "write":
            value = chance.randrange(1000)
            await opened.run(
                opened.grant,
                f"insert into t select n, {value}, 'x' from generate_series({first}, {first + 150})"
                " n on conflict (id) do update set n = excluded.n",
                name,
            )
            rows |= dict.fromkeys(range(first, first + 151), value)
        case "delete":
            await opened.run(
                opened.grant, f"delete from t where id between {first} and {first + 99}", name
            )
            for each in range(first, first + 100):
                rows.pop(each, None)
        case "checkpoint":
            with await opened.plane.database(opened.grant, name) as used:
                await used.database.checkpoint()
        case "branch" if len(model) < 6:
            made = f"b{len(model)}"
            await opened.plane.records.create(opened.grant, made, Origin(name))
            model[made] = dict(rows)
