"""Oids: each object keeps its own as long as it lives, and an older log gets the same each time."""

from __future__ import annotations

from typing import Any

from qserver.durability.memory import MemoryLog
from qserver.engine.freshness import STRONG
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from qserver.storage.catalog import Catalog, changes_from_plain, changes_to_plain
from qserver.values.numbering import FIRST_OID, oids_of
from tests.query.catalog.test_relations import SCHEMA, database_with_all
from tests.sql.databases import opened_sql

ALL_OIDS = (
    "SELECT 'class', oid, relname FROM pg_class WHERE oid >= 16384"
    " UNION ALL SELECT 'constraint', oid, conname FROM pg_constraint WHERE oid >= 16384"
    " UNION ALL SELECT 'type', oid, typname FROM pg_type WHERE oid >= 16384"
    " UNION ALL SELECT 'schema', oid, nspname FROM pg_namespace WHERE oid >= 16384"
    " UNION ALL SELECT 'label', oid, enumlabel FROM pg_enum"
    " UNION ALL SELECT 'default', oid, adnum::text FROM pg_attrdef ORDER BY 1, 2"
)


async def _oid(database: SqlDatabase, name: str) -> int:
    result = await database.execute("SELECT $1::regclass::oid", [name])
    return int(result.rows[0][0])


async def test_a_restart_changes_no_oid() -> None:
    log = MemoryLog()
    async with opened_sql(log) as database:
        for sql in SCHEMA:
            await database.execute(sql)
        before = (await database.execute(ALL_OIDS)).rows
    async with opened_sql(log) as database:
        assert (await database.execute(ALL_OIDS)).rows == before
        await database.execute("CREATE TABLE later (a int PRIMARY KEY)")
        assert await _oid(database, "later") > max(oid for _, oid, _ in before)


async def test_an_object_keeps_its_oid_through_changes_of_it() -> None:
    async with database_with_all() as database:
        before = await _oid(database, "people")
        for sql in (
            "ALTER TABLE people ADD COLUMN age int DEFAULT 1",
            "ALTER TABLE people ALTER COLUMN age TYPE bigint",
            "ALTER TABLE people RENAME TO folk",
            "TRUNCATE folk CASCADE",
            "CREATE INDEX folk_age ON folk (age)",
        ):
            await database.execute(sql)
        assert await _oid(database, "folk") == before
        await database.execute("DROP TABLE folk CASCADE")
        await database.execute("CREATE TABLE folk (a int)")
        assert await _oid(database, "folk") > before


async def test_a_replaced_view_is_the_same_object() -> None:
    async with database_with_all() as database:
        before = await _oid(database, "shop.totals")
        sql = "CREATE OR REPLACE VIEW shop.totals AS SELECT a, sum(price) AS total FROM shop.orders"
        await database.execute(f"{sql} WHERE a > 1 GROUP BY a")
        assert await _oid(database, "shop.totals") == before


async def test_a_rolled_back_definition_leaves_nothing() -> None:
    async with opened_sql() as database:
        transaction = await database.open()
        texts = ("CREATE TABLE t (a int)", "SELECT 't'::regclass::text")
        inside = [Statement(text) for text in texts]
        done = await database.inside(transaction, inside, RunOptions())
        assert done.results[1].rows == [("t",)]
        transaction.release()
        result = await database.execute("SELECT to_regclass('t')")
        assert result.rows == [(None,)]


async def test_definitions_of_an_older_log_get_the_same_oids_each_time() -> None:
    async with database_with_all() as database:
        catalog = (await database.wait_fresh(STRONG)).catalog
    plain = _without_oids(changes_to_plain({each.key: each for each in catalog.definitions()}))
    first = Catalog().changed(changes_from_plain(plain), catalog.trees_used)
    again = Catalog().changed(changes_from_plain(plain), catalog.trees_used)
    assert dict(first.oids) == dict(again.oids)
    numbers = [oid for each in first.definitions() for oid in oids_of(each)]
    assert len(set(numbers)) == len(numbers) and min(numbers) >= FIRST_OID


def _without_oids(plain: Any) -> Any:
    """Return definitions as earlier releases wrote them."""
    if isinstance(plain, dict):
        return {name: _without_oids(each) for name, each in plain.items() if "oid" not in name}
    if isinstance(plain, list) and plain and plain[0] == "schema":
        return ["schema", plain[1][0]]
    if isinstance(plain, list) and plain and plain[0] == "type":
        return ["type", plain[1][:3]]
    return plain
