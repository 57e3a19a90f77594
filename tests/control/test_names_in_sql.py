"""What statements are told of the database that they run in: its name, and since when it runs."""

from __future__ import annotations

import pytest

from qserver.errors import InvalidObjectDefinition, UnknownDatabase
from tests.control.planes import Opened, opened_plane

ASKED = (
    "select current_database(), current_catalog, datname, table_catalog, (select * from told)"
    " from pg_database, information_schema.tables where table_name = 'told'"
)


async def _names(opened: Opened, database: str) -> set[str]:
    result = await opened.run(opened.grant, ASKED, database)
    (row,) = result
    return set(row)


async def test_each_database_and_branch_knows_its_name_also_after_it_is_renamed() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        for name in ("main", "shop"):
            await opened.run(opened.grant, "create view told as select current_database()", name)
            for _ in range(2):  # the second time by a kept plan
                assert await _names(opened, name) == {name}
        await opened.plane.records.rename(opened.grant, "shop", "store")
        assert await _names(opened, "store") == {"store"}
        assert await _names(opened, "main") == {"main"}
        branch = await opened.plane.records.create_for_transaction(opened.grant, "main")
        assert await _names(opened, branch.name) == {branch.name}


async def test_a_default_is_the_name_that_the_database_has_when_a_row_is_written() -> None:
    async with opened_plane() as opened:
        run, grant = opened.run, opened.grant
        await run(grant, "create table t (id int, n text default current_database())", "main")
        await run(grant, "insert into t values (1)", "main")
        await opened.plane.records.rename(grant, "main", "core")
        await run(grant, "insert into t values (2)", "core")
        result = await run(grant, "select n from t order by id", "core")
        assert result == [("main",), ("core",)]


async def test_only_the_name_of_the_database_names_it_in_words_about_databases() -> None:
    async with opened_plane() as opened:
        run, grant = opened.run, opened.grant
        await run(grant, "reindex database main", "main")
        await run(grant, "grant connect on database main to public", "main")
        with pytest.raises(UnknownDatabase):
            await run(grant, "reindex database other", "main")


async def test_no_index_can_depend_on_the_name() -> None:
    async with opened_plane() as opened:
        await opened.run(opened.grant, "create table t (a text)", "main")
        with pytest.raises(InvalidObjectDefinition):
            sql = "create index on t ((a || current_database()))"
            await opened.run(opened.grant, sql, "main")


async def test_the_server_began_before_the_statement_and_does_not_begin_again() -> None:
    async with opened_plane() as opened:
        sql = "select pg_postmaster_start_time(), pg_conf_load_time(), now()"
        opened.world.time += 60
        (first,) = await opened.run(opened.grant, sql, "main")
        opened.world.time += 60
        (second,) = await opened.run(opened.grant, sql, "main")
        assert first[0] == first[1] == second[0] < first[2] < second[2]
