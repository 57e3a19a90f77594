"""A statement with runs means what it means without: the same AST, the same answer, the same error.

`parse` reads long lists as runs only if it is asked to, so the long way is at hand for comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.functions.context import Context
from qserver.lexing.fingerprint import parameterize
from qserver.lexing.lexer import tokenize
from qserver.limits import STATEMENT_MEMORY_BYTES_MAX
from qserver.query.planning import make_plan, slots_of
from qserver.query.sql_database import SqlDatabase
from qserver.sql import Given, ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.parser import parse
from qserver.sql.positions import locate
from qserver.storage.transaction import Transaction
from tests.known_work import calls_of
from tests.lexing.long_lists import TEMPLATES, items, parameter_rows, texts
from tests.sql.databases import NOON, opened_sql
from tests.sql.test_parameterized_execution import SETUP


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except QserverError as error:
        return type(error), str(error), error.position


# --- the AST -------------------------------------------------------------------------------------


def spelled_out(node: Any, text: str) -> Any:
    """Return an AST with its runs replaced by their items."""
    if isinstance(node, tuple):
        found: list[Any] = []
        for each in node:
            if not isinstance(each, ast.Run):
                found.append(spelled_out(each, text))
                continue
            tokens = islice(tokenize(text, each.position), 0, 2 * each.count, 2)
            for at, token in enumerate(tokens):
                first = replace(each.first, position=token.start)
                if isinstance(first, ast.Literal):
                    found.append(replace(first, index=first.index + at))
                else:
                    assert isinstance(first.name, int)
                    found.append(replace(first, name=first.name + at))
        return tuple(found)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    if isinstance(node, ast.Values) and isinstance(node.slot, ast.Run):
        places = [
            each.start for each in tokenize(text, node.slot.position) if each.kind == "parameter"
        ]
        first, width = node.slot.first, len(node.rows[0])
        assert isinstance(first, ast.Parameter) and isinstance(first.name, int)
        every = [
            ast.Parameter(first.name + at, position=places[at]) for at in range(node.slot.count)
        ]
        rows = tuple(zip(*[iter(every)] * width, strict=True))
        return replace(node, rows=rows, repeated=False, slot=None)
    changes = {
        each.name: spelled_out(getattr(node, each.name), text) for each in fields(node) if each.init
    }
    return replace(node, **changes)


@pytest.mark.long
@given(texts() | parameter_rows())
@settings(max_examples=60, deadline=None)
def test_a_statement_has_the_same_ast_with_runs_and_without(sql: str) -> None:
    def parsed(runs: bool) -> Any:
        found = parse(sql, runs=runs)
        tree = spelled_out(found.statement, sql)
        return tree, found.literals, found.kinds, found.parameters

    assert outcome(lambda: parsed(True)) == outcome(lambda: parsed(False))


def test_a_run_begins_where_its_first_item_does() -> None:
    sql = f"SELECT 1 WHERE 1 IN (0, {items('7', 70)})"
    (run,) = [each for each in nodes_of(parse(sql, runs=True).statement) if type(each) is ast.Run]
    assert (run.position, run.first.position, run.count) == (sql.index("7"), sql.index("7"), 70)


# --- the answer ----------------------------------------------------------------------------------


async def short_way(database: SqlDatabase, sql: str, given: Given) -> Any:
    try:
        result = await database.execute(sql, given)
    except QserverError as error:
        return type(error), str(error), error.position
    return list(map(str, result.types)), sorted(map(repr, result.rows))


def long_way(database: SqlDatabase, sql: str, given: Given) -> Any:
    snapshot = database.database.snapshots.take()
    assert snapshot is not None
    now = datetime.fromtimestamp(NOON, UTC)
    context = Context(now, Random(0), lambda: None, STATEMENT_MEMORY_BYTES_MAX, lambda: 1)

    def answer() -> Any:
        literals = parameterize(sql).literals
        statement = parse(sql).statement
        plan = make_plan(statement, Literals(literals), snapshot.catalog, snapshot, None, given)
        run = plan.compiled.run(Transaction(snapshot), slots_of(plan, literals, given), context)
        rows = [row for page in run if page is not None for row in page]
        return list(map(str, plan.types)), sorted(map(repr, rows))

    try:
        return answer()
    except QserverError as error:
        locate(error, sql)
        return type(error), str(error), error.position


PLANNED = tuple(each for each in TEMPLATES if not each.startswith(("EXPLAIN", "CREATE")))


TABLE = """CREATE TABLE w (k INT PRIMARY KEY, n NUMERIC(6, 2) NOT NULL DEFAULT 1, s TEXT, d DATE,
    c VARCHAR(3) DEFAULT 'c')"""


async def compare(sql: str, values: list[Any]) -> None:
    async with opened_sql() as database:
        for each in (*SETUP, TABLE):
            await database.execute(each)
        numbers = [int(each) for each in re.findall(r"\$([0-9]+)", sql)]
        count = max(numbers, default=0) or sql.count("?")
        given = [values[at % len(values)] for at in range(min(count, 1000))] or None
        expected = long_way(database, sql, given)
        for _ in range(2 if "INSERT" not in sql else 1):
            assert await short_way(database, sql, given) == expected


VALUES = st.lists(st.sampled_from((1, 3, 7, 2**40, 1.5, None, "1", "x", "it's", True)), min_size=1)


EIGHTY = ", ".join(f"${number}" for number in range(1, 81))
TWOS = items("'2'", 70)
PATTERNS = items("'%t_s'", 1500)


@pytest.mark.long
@given(texts(PLANNED), VALUES)
@example(f"SELECT a FROM t WHERE a IN ('1', {TWOS}, 'x')", [1])
@example(f"SELECT a FROM t WHERE a IN ('1', {TWOS}, 'x') AND nothing = 1", [1])
@example(f"SELECT a FROM t WHERE s = $2 AND b IN ({EIGHTY})", [1])
@example(f"SELECT a FROM t WHERE b IN ({EIGHTY}) AND s = $2", [1, 2])
@example(f"SELECT 1 WHERE $1 IN ({EIGHTY})", [1, 2.5, "x", None])
@example(f"SELECT CASE a WHEN 99 THEN ARRAY[1, {items('70000', 70)}]::smallint[] END FROM t", [1])
@example(f"SELECT a FROM t WHERE b = $2 AND n IN ({EIGHTY})", [1.5, 1])
@example(f"SELECT 1 WHERE $1 IN ({EIGHTY})", [1, 2, 2.5])
@example(f"SELECT a FROM t WHERE s LIKE ANY (ARRAY['x', {PATTERNS}])", [1])
@settings(max_examples=40, deadline=None)
def test_a_statement_answers_the_same_with_runs_and_without(sql: str, values: list[Any]) -> None:
    trio.run(compare, sql, values)


KEYS = st.sampled_from((range(1, 1000), [1, 2], ["4", 5, None, 7], [1, "abc"], [1, "abcd", 2]))


@pytest.mark.long
@given(parameter_rows(), KEYS)
@settings(max_examples=40, deadline=None)
def test_rows_of_parameters_answer_the_same_as_rows_one_by_one(
    sql: str, values: Sequence[Any]
) -> None:
    trio.run(compare, sql, list(values))


async def test_the_plan_of_an_insert_does_not_depend_on_the_size_of_its_table() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE w (k INT)")
        sql = "INSERT INTO w VALUES " + ", ".join(f"(${number})" for number in range(1, 301))
        for _ in range(5):
            await database.execute(sql, list(range(300)))
        assert database.statistics().invalidated == 0


@pytest.mark.parametrize("list_of", ["a IN (0, {})", "a < ANY (ARRAY[0, {}])", "ARRAY[0, {}] = v"])
async def test_planning_takes_as_long_for_a_long_list_as_for_a_longer_one(list_of: str) -> None:
    async with opened_sql() as database:
        for each in SETUP:
            await database.execute(each)
        snapshot = database.database.snapshots.take()
        assert snapshot is not None

        def plan(count: int, item: str) -> int:
            sql = f"SELECT a FROM t WHERE {list_of.format(items(item, count))}"

            def work() -> None:
                parsed = parse(sql, runs=True)
                literals = Literals(parsed.literals)
                make_plan(parsed.statement, literals, snapshot.catalog, snapshot)

            work()  # what is made once and kept does not count
            return calls_of(work)

        assert plan(20_000, "7") < 1.3 * plan(2000, "7")
