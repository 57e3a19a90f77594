"""Every function of the catalog answers, whatever it is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.errors import QserverError
from qserver.functions import catalog_functions, objects, server
from qserver.functions.registry import Function, TableFunction
from qserver.query.catalog.functions import FUNCTIONS
from qserver.values.types import REG_KINDS, TEXT_KINDS, Kind, SqlType
from tests.catalog.test_relations import database_with_all

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
    assert names == set(FUNCTIONS)


@pytest.mark.long
async def test_each_function_answers_or_raises_an_error_of_sql() -> None:
    async with database_with_all() as database:
        for sql in [call for each in SIGNATURES for call in _calls(each)]:
            for _ in range(2):  # the second time by a kept plan
                try:
                    await database.execute(sql)
                except QserverError as error:
                    assert error.code[:2] in ("42", "22", "3F", "0A"), (sql, error)


def _calls(each: Function | TableFunction) -> list[str]:
    schema = "information_schema" if each.name.startswith("_pg") else "pg_catalog"
    lists = [_values(parameter) for parameter in each.parameters]
    width = max(map(len, lists), default=1)
    calls = []
    for at in range(width):
        arguments = ", ".join(values[min(at, len(values) - 1)] for values in lists)
        calls.append(f"SELECT * FROM {schema}.{each.name}({arguments})")
    return calls
