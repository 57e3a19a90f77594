"""Expressions of definitions, bound alone: DEFAULT, CHECK, indexes."""

from __future__ import annotations

import pytest

from qserver.errors import QserverError
from qserver.sql.binder import Clause, Literals, bind_expression
from qserver.sql.bound import Expression
from qserver.sql.parser import parse_expression
from qserver.values.types import INTEGER, varchar
from tests.sql.binder.catalogs import TestCatalog
from tests.sql.binder.printing import text
from tests.sql.binder.statements import define_text


def bound(sql: str, clause: Clause, with_table: bool = True) -> Expression:
    catalog = TestCatalog()
    define_text(catalog, "create table t (a integer primary key, b varchar(5))")
    parsed = parse_expression(sql)
    table = catalog.tables["t"] if with_table else None
    literals = Literals(parsed.literals, fixed=True)
    return bind_expression(parsed.expression, literals, catalog, clause, table, source=7)


@pytest.mark.parametrize(
    ("sql", "clause", "expected"),
    [
        ("a > 5 and b <> 'x'", Clause.CHECK, "((#7.0 > 5) and ((#7.1? as text) <> 'x'))"),
        ("lower(b)", Clause.INDEX, "lower((#7.1? as text))"),
        ("b is not null", Clause.INDEX_PREDICATE, "(#7.1? is not null)"),
        ("a * 2", Clause.GENERATED, "(#7.0 * 2)"),
        ("1 + 1", Clause.DEFAULT, "(1 + 1)"),
    ],
)
def test_an_expression_is_over_the_row_of_its_table(
    sql: str, clause: Clause, expected: str
) -> None:
    assert text(bound(sql, clause)) == expected


@pytest.mark.parametrize(
    ("sql", "clause", "code", "message"),
    [
        ("a", Clause.DEFAULT, "0A000", "cannot use column reference in DEFAULT expression"),
        ("(select 1)", Clause.DEFAULT, "0A000", "cannot use subquery in DEFAULT expression"),
        (
            "sum(1)",
            Clause.DEFAULT,
            "42803",
            "aggregate functions are not allowed in DEFAULT expressions",
        ),
        ("(select 1) = a", Clause.CHECK, "0A000", "cannot use subquery in check constraint"),
        (
            "count(*) = 1",
            Clause.CHECK,
            "42803",
            "aggregate functions are not allowed in check constraints",
        ),
        (
            "row_number() over () = 1",
            Clause.CHECK,
            "42P20",
            "window functions are not allowed in check constraints",
        ),
        (
            "a + 1",
            Clause.CHECK,
            "42804",
            "argument of CHECK must be type boolean, not type integer",
        ),
        ("nope > 1", Clause.CHECK, "42703", 'column "nope" does not exist'),
        (
            "generate_series(1, 2)",
            Clause.DEFAULT,
            "0A000",
            "set-returning functions are not allowed in DEFAULT expressions",
        ),
    ],
)
def test_what_a_definition_cannot_have_is_refused(
    sql: str, clause: Clause, code: str, message: str
) -> None:
    with pytest.raises(QserverError) as caught:
        bound(sql, clause)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_a_default_is_assigned_to_its_column() -> None:
    parsed = parse_expression("5")
    value = bind_expression(
        parsed.expression,
        Literals(parsed.literals, fixed=True),
        TestCatalog(),
        Clause.DEFAULT,
        column=("b", varchar(5)),
    )
    assert text(value) == "'5'"


def test_a_default_of_another_type_is_refused() -> None:
    parsed = parse_expression("true")
    with pytest.raises(QserverError, match='column "a" is of type integer but expression is'):
        bind_expression(
            parsed.expression,
            Literals(parsed.literals, fixed=True),
            TestCatalog(),
            Clause.DEFAULT,
            column=("a", INTEGER),
        )
