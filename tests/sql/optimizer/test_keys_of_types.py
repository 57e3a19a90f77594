"""A key of any type is looked up: by a literal, by a value of its type, by texts in a list."""

from __future__ import annotations

import pytest

from qserver.sql.explain import explain
from qserver.sql.optimizer import optimize
from qserver.sql.statistics import Sizes
from tests.sql.binder.catalogs import TestCatalog
from tests.sql.binder.statements import bind_text, define_text

VALUES = {
    "boolean": "true",
    "smallint": "1",
    "integer": "1",
    "bigint": "1",
    "numeric": "1",
    "numeric(8, 2)": "1",
    "real": "1",
    "double precision": "1",
    "text": "a",
    "varchar": "a",
    "varchar(30)": "a",
    "char(3)": "a",
    "name": "a",
    "date": "2030-01-01",
    "timestamp": "2030-01-01",
    "timestamp(3)": "2030-01-01",
    "timestamptz": "2030-01-01",
    "time": "12:00",
    "interval": "1 day",
    "uuid": "00000000-0000-0000-0000-000000000007",
    "bytea": "a",
}
CONDITIONS = (
    "k = '{value}'",
    "'{value}' = k",
    "k = '{value}'::{type}",
    "k IN ('{value}', '{value}'::{type})",
    "k = $1",
    "k = $1::{type}",
    "k = (SELECT k FROM u)",
)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("type_name", VALUES)
def test_a_key_is_looked_up(type_name: str, condition: str) -> None:
    catalog = TestCatalog()
    for table in ("t", "u"):
        assert define_text(catalog, f"CREATE TABLE {table} (k {type_name} PRIMARY KEY)")
    where = condition.format(value=VALUES[type_name], type=type_name)
    bound = bind_text(catalog, f"SELECT * FROM t WHERE {where}").statement
    assert any(
        "Key Lookup on t" in line for line in explain(optimize(bound, Sizes(lambda table: 100)))
    )
