"""Parameters: their types come from the caller, or from where they stand."""

from __future__ import annotations

import pytest

from qserver.errors import QserverError
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    NUMERIC,
    TEXT,
    VARCHAR,
    SqlType,
    array_of,
)
from tests.sql.binder.catalogs import TestCatalog
from tests.sql.binder.printing import printed
from tests.sql.binder.statements import bind_text, define_text


def catalog_with_t() -> TestCatalog:
    catalog = TestCatalog()
    define_text(
        catalog, "create table t (a integer primary key, b varchar(5), c numeric(5,2), d date)"
    )
    return catalog


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("select * from t where a = $1", {1: INTEGER}),
        ("select * from t where d > $1 and b = $2", {1: DATE, 2: TEXT}),
        ("select * from t where a in ($1, $2)", {1: INTEGER, 2: INTEGER}),
        ("select * from t where a = any ($1)", {1: array_of(INTEGER)}),
        ("select $1", {1: TEXT}),
        ("select $1::integer, $1", {1: INTEGER}),
        ("select $1 + 1.5", {1: NUMERIC}),
        ("select coalesce($1, d) from t", {1: DATE}),
        ("select case when $1 then 1 end", {1: BOOLEAN}),
        ("select a from t limit $1 offset $2", {1: BIGINT, 2: BIGINT}),
        ("insert into t values ($1, $2, $3)", {1: INTEGER, 2: VARCHAR, 3: NUMERIC}),
        ("update t set b = :name where a = :id", {"name": VARCHAR, "id": INTEGER}),
        ("select 1 union select $1", {1: INTEGER}),
    ],
)
def test_the_place_of_a_parameter_says_its_type(sql: str, types: dict[int | str, SqlType]) -> None:
    assert bind_text(catalog_with_t(), sql).parameters == types


def test_a_declared_type_is_kept_and_cast_from() -> None:
    bound = bind_text(catalog_with_t(), "select a from t where c = $1", {1: INTEGER})
    assert bound.parameters == {1: INTEGER}
    assert "{$1 -> numeric}" in printed(bound.statement)


def test_a_declared_type_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(QserverError, match="operator does not exist: date = integer"):
        bind_text(catalog_with_t(), "select a from t where d = $1", {1: INTEGER})


def test_a_parameter_without_a_value_does_not_exist() -> None:
    with pytest.raises(QserverError, match=r"there is no parameter \$2") as caught:
        bind_text(catalog_with_t(), "select $1, $2", {1: None})
    assert caught.value.code == "42P02"
    assert caught.value.position == 12


def test_a_parameter_may_be_null_and_a_literal_may_not() -> None:
    bound = bind_text(catalog_with_t(), "select $1::integer, 1")
    assert printed(bound.statement).startswith("select #1: int4 integer?, ?column? integer\n")


def test_a_value_for_a_column_is_checked_for_its_size_once() -> None:
    bound = bind_text(catalog_with_t(), "insert into t (a, b) values (1, $1)")
    assert "{$1 -> character varying(5)}" in printed(bound.statement)
