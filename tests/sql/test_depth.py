"""Statements may be long without end, and deep up to a limit; too deep is an error like others."""

from __future__ import annotations

import sys

import pytest

from qserver.errors import QserverError, StatementTooComplex
from qserver.sql import ast
from qserver.sql.binder import Bound, Literals, bind
from qserver.sql.expressions import And, Or
from qserver.sql.plan import Scan, Select
from qserver.sql.walk import everything
from qserver.values.types import INTEGER, SqlType
from tests.sql.binder.catalogs import TestCatalog
from tests.sql.binder.statements import define_text

A = ast.Name(("a",))
T = ast.TableRef(("t",))


def catalog_with_t() -> TestCatalog:
    catalog = TestCatalog()
    define_text(catalog, "create table t (a integer primary key, b text)")
    return catalog


def select(
    expression: ast.Expression, grouped: bool = False, where: ast.Expression | None = None
) -> ast.Query:
    group_by: tuple[ast.Expression, ...] = (A,) if grouped else ()
    return ast.Query(ast.Select((ast.Target(expression),), (T,), where=where, group_by=group_by))


def bind_query(query: ast.Query) -> Bound:
    return bind(query, Literals([]), catalog_with_t())


def types_of(bound: Bound) -> list[SqlType]:
    assert isinstance(bound.statement, Select)
    return [column.type for column in bound.statement.columns]


def chain(length: int, symbol: str, link: ast.Expression) -> ast.Expression:
    expression = link
    for _ in range(length):
        expression = ast.Operator(symbol, expression, link)
    return expression


def nested(depth: int) -> ast.Expression:
    expression: ast.Expression = A
    for _ in range(depth):
        expression = ast.Case(None, ((ast.Constant(True), expression),), None)
    return expression


def queries_in_queries(depth: int) -> ast.Query:
    query = select(A)
    for _ in range(depth):
        query = select(ast.ScalarQuery(query))
    return query


EQUAL = ast.Operator("=", A, A)


@pytest.mark.parametrize("symbol", ["and", "or"])
def test_ten_thousand_conditions_are_one_flat_condition(symbol: str) -> None:
    bound = bind_query(select(A, where=chain(10_000, symbol, EQUAL)))
    (flat,) = [node for node in everything(bound.statement) if isinstance(node, And | Or)]
    assert len(flat.operands) == 10_001


@pytest.mark.parametrize("grouped", [False, True])
def test_a_sum_of_ten_thousand_terms_is_bound(grouped: bool) -> None:
    assert types_of(bind_query(select(chain(10_000, "+", A), grouped))) == [INTEGER]


def test_a_list_of_ten_thousand_items_is_bound() -> None:
    items = tuple(ast.Literal(at, "integer") for at in range(10_000))
    bound = bind(
        select(A, where=ast.InList(A, items, False)), Literals([7] * 10_000), catalog_with_t()
    )
    assert types_of(bound) == [INTEGER]


def test_a_thousand_queries_are_united() -> None:
    body: ast.QueryBody = select(A).body
    for _ in range(1000):
        body = ast.SetOperation("union", True, body, select(A).body)
    assert types_of(bind_query(ast.Query(body))) == [INTEGER]


def test_five_hundred_tables_are_joined() -> None:
    source: ast.FromItem = T
    for at in range(500):
        source = ast.Join("cross", source, ast.TableRef(("t",), f"t{at}"))
    target = ast.Target(ast.Name(("t", "a")))
    bound = bind_query(ast.Query(ast.Select((target,), (source,))))
    assert types_of(bound) == [INTEGER]
    assert sum(isinstance(node, Scan) for node in everything(bound.statement)) == 501


@pytest.mark.parametrize("depth", [250, 1000, 20_000])
@pytest.mark.parametrize("grouped", [False, True])
def test_too_deep_an_expression_is_refused(depth: int, grouped: bool) -> None:
    with pytest.raises(StatementTooComplex, match="stack depth limit exceeded") as caught:
        bind_query(select(nested(depth), grouped))
    assert caught.value.code == "54001"


def test_a_hundred_levels_of_expressions_are_not_too_deep() -> None:
    assert types_of(bind_query(select(nested(100)))) == [INTEGER]
    assert types_of(bind_query(select(nested(100), grouped=True))) == [INTEGER]


def test_thirty_levels_of_queries_are_not_too_deep_and_three_hundred_are() -> None:
    bind_query(queries_in_queries(30))
    with pytest.raises(StatementTooComplex):
        bind_query(queries_in_queries(300))


def test_a_small_stack_is_noticed_before_it_breaks() -> None:
    """However deep the caller stands already, it is an error of the statement."""
    limit = sys.getrecursionlimit()

    def at_depth(levels: int) -> None:
        if levels:
            at_depth(levels - 1)
        else:
            bind_query(select(nested(240), grouped=True))

    with pytest.raises(QserverError):
        at_depth(limit // 2)
