"""Every relation and function of the catalogs is asked in every way that tools ask; none fails.

What it may raise is an error of SQL: a type that has no order, an object that is not there. Of
functions the answers are compared with PostgreSQL's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product
from typing import Any, Final

import pytest

from qserver.errors import QserverError
from qserver.query.catalog.data import RelationData, relations
from qserver.query.sql_database import SqlDatabase
from tests.differential.engines import NoOracle, Outcome, Postgres, Qserver, opened_postgres
from tests.query.catalog.test_relations import SCHEMA, database_with_all
from tests.sampling import sampled

RELATIONS: Final = sorted(".".join(each) for each in relations())

ARGUMENTS: Final = {
    "oid": (
        "'people'::regclass",
        "'people_pkey'::regclass",
        "'shop.totals'::regclass",
        "10",
        "23",
        "0",
    ),
    "regclass": ("'people'", "'people_pkey'", "'shop.totals'", "0", "4000000000"),
    "text": ("'people'", "'nothing_such'", "'SELECT'", "'USAGE'"),
    "name": ("current_user", "'pg_monitor'", "'nothing_such'"),
    "integer": ("1", "0", "-1"),
    "smallint": ("1", "99"),
    "boolean": ("true",),
    '"char"': ("'r'",),
}
FUNCTIONS: Final = """
    SELECT proname, (SELECT string_agg(format_type(t, NULL), ',') FROM unnest(proargtypes) t)
    FROM pg_proc WHERE pronamespace = 11 AND prokind = 'f' AND NOT proretset
    AND provolatile IN ('s', 'i') AND pronargs BETWEEN 1 AND 3
    AND proname ~ '^(pg_|has_|to_reg|col_|obj_|shobj|format_type|acldefault)' ORDER BY 1, 2
"""
DIFFERENT: Final = frozenset(
    {
        *(
            "pg_identify_object",
            "pg_get_replica_identity_index",
            "pg_sequence_parameters",
        ),  # NULL and no row for odd oids
        *("pg_get_viewdef", "pg_get_ruledef"),  # a view is shown as it was written
        *("pg_describe_object", "has_sequence_privilege", "has_type_privilege"),  # other errors
        *("has_table_privilege", "has_any_column_privilege", "has_column_privilege"),
        *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size"),
        *("pg_relation_filepath", "pg_relation_filenode", "pg_tablespace_location"),
        *("pg_get_serial_sequence", "pg_column_is_updatable", "format_type", "pg_timezone_names"),
        *("to_regtype", "pg_stat_get_live_tuples", "pg_tablespace_size", "pg_settings_get_flags"),
        *("pg_stat_get_blocks_hit", "pg_stat_get_blocks_fetched", "pg_stat_get_numscans"),
    }
)
"""Functions whose answers have reasons of their own to be other ones; see docs/sql.md."""
CALLS_MAX: Final = 40


def _asked(data: RelationData) -> Iterator[tuple[str, bool]]:
    """Yield statements, and whether each takes a value of a column as its parameter."""
    name = f'{data.schema}."{data.name}"'
    yield f"SELECT * FROM {name} LIMIT 1", False
    yield f"SELECT count(*) FROM {name}", False
    indexed = {column for columns, _ in data.indexes for column in columns} | set(data.key)
    for column, kind, *_ in data.columns:
        yield f'SELECT "{column}" FROM {name} ORDER BY "{column}" LIMIT 1', False
        if column in indexed or column.endswith("name"):
            yield f'SELECT "{column}" FROM {name} WHERE "{column}" = $1', True
        if kind == "oid":
            yield f'SELECT y.relname FROM {name} x JOIN pg_class y ON y.oid = x."{column}"', False


@pytest.mark.parametrize("relation", sampled(RELATIONS, 8))
async def test_a_relation_answers_however_it_is_asked(relation: str) -> None:
    schema, name = relation.split(".")
    data = relations()[schema, name]
    async with database_with_all() as database:
        first = await database.execute(f'SELECT * FROM {schema}."{name}" LIMIT 1')
        values = dict(zip(first.columns, first.rows[0] if first.rows else (), strict=False))
        for sql, has_parameter in _asked(data):
            column = sql.split('"')[1]
            await _answers(database, sql, _text(values.get(column)), has_parameter)
            if has_parameter:
                await _answers(database, sql, None, True)


def _text(value: Any) -> str | None:
    if isinstance(value, tuple):
        return "{" + ",".join(map(str, value)) + "}"
    return None if value is None else str(value)


async def _answers(database: SqlDatabase, sql: str, value: str | None, has_parameter: bool) -> None:
    try:
        await database.execute(sql, [value] if has_parameter else None, timeout_ms=60_000)
    except QserverError as error:
        assert error.code in ("42883", "42804"), f"{sql}: {error}"


def _calls(postgres: Postgres) -> Iterator[str]:
    """Yield calls with what is there, what is not, and NULL."""
    for name, types in postgres.run(FUNCTIONS).rows:
        assert name is not None and types is not None
        parameters = types.split(",")
        if name in DIFFERENT or not ARGUMENTS.keys() >= set(parameters):
            continue
        choices = [[*ARGUMENTS[each], "NULL"] for each in parameters]
        for values in islice(product(*choices), CALLS_MAX):
            casts = [f"{value}::{kind}" for value, kind in zip(values, parameters, strict=True)]
            yield f"SELECT {name}({', '.join(casts)})"


def _told(outcome: Outcome) -> str:
    told = str(outcome.error or outcome.rows).replace("postgres", "qserver")
    return re.sub(r"\b[1-9]\d{4,}\b", "…", told)


@pytest.mark.nightly
async def test_functions_of_the_catalog_answer_as_postgresql() -> None:
    try:
        with opened_postgres() as postgres:
            for sql in SCHEMA:
                postgres.run(sql)
            async with database_with_all() as database:
                here = Qserver(database)
                different = []
                for sql in _calls(postgres):
                    found, wanted = await here.run(sql), postgres.run(sql)
                    if found.error == "42883" != wanted.error or wanted.error == "XX000":
                        continue  # a function that there is not, or no answer to compare
                    if _told(found) != _told(wanted):
                        different.append(f"{sql}: {_told(found)}, PostgreSQL {_told(wanted)}")
    except NoOracle:
        pytest.skip("there is no PostgreSQL here")
    assert "\n".join(different) == ""
