"""What has_table_privilege and its kin answer, and what they refuse to answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from qserver.query.sql_database import SqlDatabase
from tests.differential.engines import NoOracle, Outcome, Qserver, opened_postgres
from tests.sql.databases import opened_sql

ANSWERS = """
true
    has_table_privilege('qserver','w','select')
    has_table_privilege('w','SELECT, insert with grant option')
    has_table_privilege('w_pkey','select')
    has_any_column_privilege('w','references')
    has_column_privilege('w','n','select')
    has_column_privilege('w',(-1)::int2,'select')
    has_column_privilege('w','ctid','select')
    has_schema_privilege('public','create')
    has_database_privilege(current_database(),'temp')
    has_database_privilege(current_database(),'temporary,connect,create')
    has_function_privilege('lower(text)','execute')
    has_language_privilege('sql','usage')
    has_type_privilege('int4','usage')
    has_tablespace_privilege('pg_default','create')
    has_parameter_privilege('work_mem','set')
    has_parameter_privilege('nope_x','set')
    has_parameter_privilege('work_mem','alter system')
    pg_has_role('qserver','member')
    pg_has_role('qserver','usage with grant option')
    pg_has_role('qserver','set')
    pg_has_role(10::oid,'member')
    pg_has_role(77::oid,'member')
    pg_has_role('qserver','qserver','usage')
    has_schema_privilege('public','usage with grant option')

false
    has_table_privilege('public','w','select')
    has_table_privilege(0::oid,'w','select')
    has_table_privilege(77::oid,'w','select')
    has_table_privilege('w','rule')

null
    has_table_privilege(99999::oid,'select')
    has_column_privilege('w',7::int2,'select')
    has_column_privilege(99999::oid,'n','select')
    has_column_privilege(99999::oid,1::int2,'select')
    has_schema_privilege(99999::oid,'create')
    has_database_privilege(9999::oid,'temp')
    has_function_privilege(99999::oid,'execute')
    has_language_privilege(99999::oid,'usage')
    has_type_privilege(99999::oid,'usage')
    has_tablespace_privilege(99999::oid,'create')
    has_server_privilege(99999::oid,'usage')
    has_foreign_data_wrapper_privilege(99999::oid,'usage')
    has_table_privilege(null::text,'select')
    has_table_privilege('w',null)
    has_table_privilege('nobody',null::text,'select')

22023
    has_table_privilege('w','selekt')
    has_table_privilege('w','usage')
    has_table_privilege('w','')
    has_table_privilege('w',' ,select')
    has_any_column_privilege('w','delete')
    has_column_privilege('w','n','delete')
    has_schema_privilege('public','select')
    has_database_privilege(current_database(),'select')
    has_function_privilege('lower(text)','usage')
    has_language_privilege('sql','create')
    has_type_privilege('int4','create')
    has_tablespace_privilege('pg_default','usage')
    has_parameter_privilege('work_mem','usage')
    pg_has_role('qserver','select')
    has_table_privilege('w','update,bogus')

22P02
    has_function_privilege('lower','execute')

3D000
    has_database_privilege('nope','temp')

3F000
    has_table_privilege('zz.y','select')
    has_schema_privilege('nope','create')

42703
    has_column_privilege('w','x','select')

42704
    has_table_privilege('nobody','w','select')
    has_language_privilege('nope','usage')
    has_type_privilege('nope','usage')
    has_tablespace_privilege('nope','create')
    has_server_privilege('nope','usage')
    has_foreign_data_wrapper_privilege('nope','usage')
    pg_has_role('nobody','member')
    pg_has_role('nobody','qserver','usage')
    pg_has_role('public','qserver','usage')
    pg_has_role('qserver','public','usage')

42809
    has_sequence_privilege('w','usage')

42883
    has_function_privilege('nope(text)','execute')

42P01
    has_table_privilege('zz','select')
"""
"""Of each answer or code of an error, the calls that have it."""
TABLE = "create table w (id int primary key, n text)"


def _calls() -> Iterator[tuple[str, str]]:
    answer = ""
    for line in filter(None, ANSWERS.splitlines()):
        if line.startswith(" "):
            yield answer, line.strip()
        else:
            answer = line


def _answer(outcome: Outcome) -> str:
    if outcome.error is not None:
        return outcome.error
    ((value,),) = outcome.rows
    return "null" if value is None else {"t": "true", "f": "false"}[value]


async def test_privileges_are_answered_and_refused_as_in_postgresql() -> None:
    async with opened_sql() as database:
        own = Qserver(database)
        await own.run(TABLE)
        for answer, call in _calls():
            assert _answer(await own.run(f"select {call}")) == answer, call


async def test_a_parameter_and_a_column_of_a_table_are_asked_about_as_constants_are() -> None:
    async with opened_sql() as database:
        await database.execute(TABLE)
        sql = "select has_table_privilege($1::text, $2::text)"
        for given, wanted in ((["w", "select"], True), ([None, "select"], None)):
            assert await _one(database, sql, given) == wanted
        sql = "select bool_and(has_column_privilege('w', attname, 'select')) from pg_attribute"
        assert await _one(database, f"{sql} where attrelid = 'w'::regclass", []) is True


async def _one(database: SqlDatabase, sql: str, given: Sequence[str | None]) -> object:
    return (await database.execute(sql, list(given))).rows[0][0]


@pytest.mark.nightly
def test_postgresql_answers_so() -> None:
    try:
        with opened_postgres() as postgres:
            postgres.reset()
            postgres.run(TABLE)
            for answer, call in _calls():
                asked = call.replace("'qserver'", "'postgres'")
                assert _answer(postgres.run(f"select {asked}")) == answer, call
    except NoOracle as error:
        pytest.skip(f"there is no PostgreSQL package for this platform: {error}")
