"""Every function of the catalog answers, whatever it is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.errors import QserverError, UndefinedFunction
from qserver.functions import catalog_functions, objects, server
from qserver.functions.json.json_records import POPULATING
from qserver.functions.registry import Function, TableFunction
from qserver.functions.resolve import (
    is_aggregate,
    is_function,
    is_table_function,
    is_window_function,
)
from qserver.pgwire.binary_format import binary_reader, binary_writer
from qserver.pgwire.text_format import text_writer
from qserver.query.catalog.data import recorded_by, recorded_rows, relations
from qserver.query.catalog.functions import FUNCTIONS
from qserver.query.sql_database import SqlDatabase
from qserver.values.casts import cast_function
from qserver.values.object_names import ObjectName
from qserver.values.types import REG_KINDS, TEXT, TEXT_KINDS, Kind, SqlType
from tests.query.catalog.test_relations import database_with_all

SIGNATURES: tuple[Any, ...] = (
    *catalog_functions.FUNCTIONS,
    *catalog_functions.TABLE_FUNCTIONS,
    *objects.FUNCTIONS,
    *server.FUNCTIONS,
    *server.TABLE_FUNCTIONS,
)


def _values(sql_type: SqlType) -> list[str]:
    """Return arguments of a type: NULL, something known, something unknown."""
    kind = sql_type.kind
    if kind in (Kind.OID, *REG_KINDS):
        shown = f"::{sql_type}"
        known = [f"(SELECT oid FROM pg_class WHERE relname = '{name}'){shown}" for name in KNOWN]
        return [f"NULL{shown}", f"0{shown}", f"4000000000{shown}", *known, f"23{shown}"]
    if kind is Kind.RECORD:
        return ["NULL::pg_type"]
    if kind is Kind.ARRAY or kind is Kind.ANYARRAY:
        return ["'{}'::text[]" if kind is Kind.ANYARRAY else f"'{{}}'::{sql_type}", "NULL"]
    if kind in (*TEXT_KINDS, Kind.NAME, Kind.INTERNAL_CHAR, Kind.PG_NODE_TREE):
        return [f"NULL::{sql_type}", f"'people'::{sql_type}", f"''::{sql_type}"]
    if kind is Kind.BOOLEAN:
        return ["true"]
    return [f"NULL::{sql_type}", f"1::{sql_type}", f"(-1)::{sql_type}"]


KNOWN = ("people", "people_pkey", "orders_idx", "totals", "people_id_seq", "pg_class")


def test_every_signature_has_its_function() -> None:
    names = {*(each.name for each in catalog_functions.FUNCTIONS)}
    names |= {*(each.name for each in catalog_functions.TABLE_FUNCTIONS)}
    assert names | {catalog_functions.ROW_VERSION.name} == set(FUNCTIONS)


@pytest.mark.long
async def test_each_function_answers_or_raises_an_error_of_sql() -> None:
    async with database_with_all() as database:
        for sql in [call for each in SIGNATURES for call in _calls(each)]:
            for _ in range(2):  # the second time by a kept plan
                try:
                    result = await database.execute(sql)
                except QserverError as error:
                    assert error.code[:2] in ("42", "22", "3F", "3D", "0A"), (sql, error)
                    continue
                for row in result.rows:
                    for value, sql_type in zip(row, result.types, strict=True):
                        _check_sent(sql, value, sql_type)


def _check_sent(sql: str, value: Any, sql_type: SqlType) -> None:
    """What a client reads, as text and in binary, is a value of the type that was announced."""
    if value is None or sql_type.kind is Kind.VOID:
        return
    text, packed = text_writer(sql_type)(value), binary_writer(sql_type)(value)
    if sql_type.kind in REG_KINDS:
        assert (packed, type(value)) == (int(value).to_bytes(4, "big"), ObjectName), sql
    elif sql_type.kind not in (Kind.RECORD, Kind.ANYARRAY):
        assert cast_function(TEXT, sql_type)(text.decode()) == value, (sql, text)
        read = binary_reader(sql_type)(packed)
        assert read == value or str(read) == text.decode(), (sql, read)


async def test_the_number_of_a_file_is_a_number_wherever_it_goes() -> None:
    async with database_with_all() as database:
        sql = "SELECT f, f::text, array[f], to_json(f) FROM pg_relation_filenode('people') f"
        result = await database.execute(sql)
        number = str(int(result.rows[0][0]))
        sent = [
            text_writer(kind)(each) for each, kind in zip(result.rows[0], result.types, strict=True)
        ]
        assert [each.decode() for each in sent] == [number, number, f"{{{number}}}", f'"{number}"']
        view = await database.execute("SELECT pg_relation_filenode('shop.totals')")
        assert view.rows == [(None,)]


def _calls(each: Function | TableFunction) -> list[str]:
    schema = "information_schema" if each.name.startswith("_pg") else "pg_catalog"
    lists = [_values(parameter) for parameter in each.parameters]
    width = max(map(len, lists), default=1)
    calls = []
    for at in range(width):
        arguments = ", ".join(values[min(at, len(values) - 1)] for values in lists)
        calls.append(f"SELECT * FROM {schema}.{each.name}({arguments})")
    return calls


async def test_a_function_with_rules_of_its_own_may_have_its_schema() -> None:
    async with database_with_all() as database:
        asked = (
            "SELECT pg_catalog.pg_typeof(1)::text,"
            " (pg_catalog.jsonb_populate_record(NULL::people, '{\"id\": 7}')).id"
        )
        assert (await database.execute(asked)).rows == [("integer", 7)]
        with pytest.raises(UndefinedFunction):
            await database.execute("SELECT pg_catalog.nullif(1, 2)")


async def _code(database: SqlDatabase, sql: str) -> str:
    try:
        await database.execute(sql)
    except QserverError as error:
        return error.code
    return ""


@pytest.mark.long
async def test_every_function_is_found_in_pg_catalog_as_it_is_without() -> None:
    names = relations()["pg_catalog", "pg_proc"].names
    found: dict[str, str] = {}
    for row in recorded_rows("pg_proc"):
        each = dict(zip(names, row, strict=True))
        if each["pronamespace"] == 11 and is_known(each["proname"]):
            types = ["int" if oid == 2276 else shown(oid) for oid in each["proargtypes"]]
            arguments = ", ".join(f"NULL::{name}" for name in types)
            found.setdefault(each["proname"], f'"{each["proname"]}"({arguments})')
    async with database_with_all() as database:
        for name, call in found.items():
            code = await _code(database, f"SELECT {call} LIMIT 0")
            assert await _code(database, f"SELECT pg_catalog.{call} LIMIT 0") == code, name
            code = await _code(database, f"SELECT * FROM {call} LIMIT 0")
            assert await _code(database, f"SELECT * FROM pg_catalog.{call} LIMIT 0") == code, name
    assert len(found) > 400


def is_known(name: str) -> bool:
    kinds = (is_function, is_aggregate, is_table_function, is_window_function)
    return name in POPULATING or name == "pg_typeof" or any(each(name) for each in kinds)


def shown(oid: int) -> str:
    return str(recorded_by("pg_type", "oid")[oid][0][1])


async def test_an_index_of_a_catalog_has_its_definition() -> None:
    async with database_with_all() as database:
        sql = (
            "SELECT pg_get_indexdef(2662), pg_get_indexdef(2662, 0, true),"
            " pg_get_indexdef(2663, 2, false), pg_get_indexdef(2663, 3, false)"
        )
        wanted = "CREATE UNIQUE INDEX pg_class_oid_index ON {}pg_class USING btree (oid)"
        shown = wanted.format("pg_catalog."), wanted.format("")
        assert (await database.execute(sql)).rows == [(*shown, "relnamespace", "")]
        sql = "SELECT count(*) FROM pg_index WHERE pg_get_indexdef(indexrelid) IS NULL"
        assert (await database.execute(sql)).rows == [(0,)]
