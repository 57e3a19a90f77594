"""Statements are counted by all processes together: the owner of a database and its replica."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.test_replicas import made_hot, started


@pytest.mark.long
async def test_runs_at_owner_and_replica_are_added(tmp_path: Path) -> None:
    async with started(tmp_path) as machine:
        hot = await made_hot(machine)
        sql, reads = "SELECT max(a) AS m FROM t", 0
        for at in (hot.at_owner, hot.at_follower):
            async with at() as wire:
                for _ in range(7):
                    assert (await wire.query(sql, database=hot.name)).is_good
                    reads += 1
        seen = "SELECT calls FROM pg_stat_statements WHERE query LIKE '%max(a)%'"
        for _ in range(4):  # whoever is asked
            async with machine.connected() as wire:
                assert (await wire.query(seen, database=hot.name)).rows == [[reads]]
                path = f"/v1/databases/{hot.name}/statements?order=calls&limit=1000"
                found = (await wire.ask("GET", path)).json["statements"]
                assert [each["calls"] for each in found if "max(a)" in each["query"]] == [reads]
        async with machine.connected() as wire:
            reset = "SELECT pg_stat_statements_reset()"
            assert (await wire.query(reset, database=hot.name)).is_good
            assert (await wire.query(seen, database=hot.name)).rows == []
