"""Literals: looking at a value pins it, and only then."""

from __future__ import annotations

import pytest

from qserver.sql.binder import Literals, RepeatedLiteralPinned, bind
from qserver.sql.binder.expressions.literals import RepeatedLiterals
from qserver.sql.expressions import Slot
from qserver.sql.parser import parse
from qserver.sql.plan import Values
from tests.sql.binder.catalogs import TestCatalog
from tests.sql.binder.statements import bind_text, define_text


def catalog_with_t() -> TestCatalog:
    catalog = TestCatalog()
    define_text(catalog, "create table t (a integer primary key, b varchar(5), c numeric)")
    return catalog


def test_asking_for_a_value_pins_the_literal() -> None:
    literals = Literals([10, 20])
    assert literals.in_fingerprint == frozenset()
    assert literals.value(1) == 20
    assert literals.in_fingerprint == {1}


def test_literals_of_a_definition_pin_nothing() -> None:
    literals = Literals([10], fixed=True)
    assert literals.value(0) == 10
    assert literals.in_fingerprint == frozenset()


def test_a_literal_that_stands_for_many_has_no_value() -> None:
    with pytest.raises(RepeatedLiteralPinned):
        RepeatedLiterals().value(0)


@pytest.mark.parametrize(
    ("sql", "pinned"),
    [
        ("select a + 1 from t where b = 'x' limit 5", set()),
        ("select a, b from t order by 2", {0}),
        ("select b, count(*) from t group by 1", {0}),
        ("select cast(b as varchar(3)), 'x' from t", {0}),
        ("select c::numeric(5, 2) from t", {0, 1}),
        ("select a + 1 from t group by a + 1", {0, 1}),
        ("select a + 1 from t group by a", set()),
        ("select count(*) filter (where a = 1), count(*) filter (where a = 2) from t", set()),
        ("select distinct a + 1 from t order by a + 1", {0, 1}),
        ("select -5, -2147483647", set()),
        ("select -2147483648", {0}),
    ],
)
def test_what_a_plan_depends_on_is_pinned(sql: str, pinned: set[int]) -> None:
    assert bind_text(catalog_with_t(), sql).in_fingerprint == pinned


def test_rows_of_values_that_are_parameterized_as_one_literal_become_slots_by_column() -> None:
    bound = bind_text(catalog_with_t(), "insert into t values (1, 'a', 1), (-2, null, 2.5)")
    values = bound.statement.plan
    assert isinstance(values, Values) and values.repeated and values.slot == 0
    (row,) = values.items
    slots = [item for item in row if isinstance(item, Slot)]
    assert [slot.name for slot in slots] == [0, 1, 2]
    assert all(slot.nullable for slot in slots)


def test_a_view_over_parameterized_rows_has_the_rows_themselves() -> None:
    catalog = catalog_with_t()
    define_text(catalog, "create view v as select * from (values (1, 'x'), (2, null)) as v(n, s)")
    parsed = parse("select s from v where n = 7")
    bound = bind(parsed.statement, Literals(parsed.literals), catalog)
    assert bound.in_fingerprint == frozenset()
    assert [view.name for view in bound.views] == ["v"]
