"""Every relation of PostgreSQL's catalogs is there, with its columns and their types."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from qserver.query.catalog.data import RelationData, relations
from qserver.query.catalog.relations import column_type
from qserver.query.sql_database import SqlDatabase
from tests.differential.engines import NoOracle, opened_postgres
from tests.sql.databases import opened_sql

SCHEMA = (
    "CREATE SCHEMA shop",
    "CREATE TYPE shop.state AS ENUM ('new', 'paid')",
    "CREATE TABLE people (id serial PRIMARY KEY, name varchar(20) NOT NULL DEFAULT 'x' UNIQUE)",
    "CREATE TABLE shop.orders (a int, b bigint GENERATED ALWAYS AS IDENTITY, state shop.state[],"
    " price numeric(10, 2) CHECK (price > 0), person int REFERENCES people ON DELETE CASCADE,"
    " PRIMARY KEY (a, b))",
    "CREATE INDEX orders_idx ON shop.orders (lower(price::text), a DESC) WHERE a > 0",
    "CREATE VIEW shop.totals AS SELECT a, sum(price) AS total FROM shop.orders GROUP BY a",
    "COMMENT ON TABLE people IS 'who'",
    "COMMENT ON COLUMN people.name IS 'how they are called'",
    "COMMENT ON SCHEMA shop IS 'what is sold'",
    "COMMENT ON TYPE shop.state IS 'how far'",
)

# What PostgreSQL 16 has otherwise than 15: relations of which columns came, went or moved.
CHANGED_IN_16 = {
    *("pg_attribute", "pg_auth_members", "pg_collation", "pg_database", "pg_subscription"),
    *("pg_hba_file_rules", "pg_ident_file_mappings", "pg_prepared_statements"),
    *("pg_stat_all_tables", "pg_stat_sys_tables", "pg_stat_user_tables", "pg_stat_all_indexes"),
    *("pg_stat_sys_indexes", "pg_stat_user_indexes", "pg_stat_subscription"),
    *("pg_stat_xact_all_tables", "pg_stat_xact_sys_tables", "pg_stat_xact_user_tables"),
}


@asynccontextmanager
async def database_with_all() -> AsyncIterator[SqlDatabase]:
    async with opened_sql() as database:
        for sql in SCHEMA:
            await database.execute(sql)
        yield database


def _wanted(data: RelationData) -> list[tuple[str, str]]:
    return [(name, str(column_type(kind).bare)) for name, kind, *_ in data.columns]


@pytest.mark.long
async def test_every_relation_has_the_columns_and_types_of_postgresql() -> None:
    async with database_with_all() as database:
        for (schema, name), data in relations().items():
            for _ in range(2):  # the second time by a kept plan
                result = await database.execute(f'SELECT * FROM {schema}."{name}" LIMIT 0')
                types = [str(each.bare) for each in result.types]
                assert list(zip(result.columns, types, strict=True)) == _wanted(data), name


@pytest.mark.parametrize("name", ["tables", "views", "schemata", "check_constraints", "sequences"])
async def test_a_view_of_information_schema_has_rows(name: str) -> None:
    async with database_with_all() as database:
        result = await database.execute(f"SELECT * FROM information_schema.{name}")
        assert result.rows


@pytest.mark.parametrize(
    ("limit", "bounds"),
    [
        ("LIMIT 2", slice(2)),
        ("LIMIT 1 OFFSET 1", slice(1, 2)),
        ("LIMIT 2000", slice(2000)),
        ("FETCH FIRST ROW ONLY", slice(1)),
    ],
)
async def test_the_first_rows_of_a_table_are_those_of_all_its_rows(
    limit: str, bounds: slice
) -> None:
    async with database_with_all() as database:
        for name in ("pg_class", "pg_database", "pg_namespace", "pg_attribute", "pg_settings"):
            everything = await database.execute(f"SELECT * FROM {name}")
            first = await database.execute(f"SELECT * FROM {name} {limit}")
            assert first.rows == everything.rows[bounds], name


async def test_each_reference_between_tables_leads_somewhere() -> None:
    """What oids refer to is there: columns to types, indexes to tables, constraints to indexes."""
    references = (
        ("pg_attribute", "attrelid", "pg_class"),
        ("pg_attribute", "atttypid", "pg_type"),
        ("pg_class", "relnamespace", "pg_namespace"),
        ("pg_class", "reltype", "pg_type"),
        ("pg_constraint", "conrelid", "pg_class"),
        ("pg_constraint", "confrelid", "pg_class"),
        ("pg_constraint", "conindid", "pg_class"),
        ("pg_index", "indexrelid", "pg_class"),
        ("pg_index", "indrelid", "pg_class"),
        ("pg_attrdef", "adrelid", "pg_class"),
        ("pg_type", "typnamespace", "pg_namespace"),
        ("pg_type", "typelem", "pg_type"),
        ("pg_type", "typarray", "pg_type"),
        ("pg_type", "typrelid", "pg_class"),
        ("pg_enum", "enumtypid", "pg_type"),
        ("pg_sequence", "seqrelid", "pg_class"),
        ("pg_rewrite", "ev_class", "pg_class"),
    )
    async with database_with_all() as database:
        for table, column, other in references:
            sql = (
                f"SELECT count(*) FROM {table} WHERE {column} <> 0"
                f" AND {column} NOT IN (SELECT oid FROM {other})"
            )
            result = await database.execute(sql)
            assert result.rows == [(0,)], (table, column)


@pytest.mark.nightly
def test_a_real_postgresql_has_the_same_relations() -> None:
    """The oracle is release 16; what it changed is listed."""
    try:
        with opened_postgres() as postgres:
            for (schema, name), data in relations().items():
                if name in CHANGED_IN_16:
                    continue
                outcome = postgres.run(f'SELECT * FROM {schema}."{name}" LIMIT 0')
                assert outcome.columns == tuple(data.names), name
    except NoOracle:
        pytest.skip("no PostgreSQL here")
