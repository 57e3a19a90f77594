"""Relations hold for a query whose rows are known, and are able to fail."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from qserver.values.types import INTEGER, TEXT
from tests.differential.expressions import Visible
from tests.differential.kinds import cast_name
from tests.differential.metamorphic.answers import Answer, Row, exception_for, same_rows
from tests.differential.metamorphic.cases import ORDINARY, SAME, Case, Question, ask, outcome_of
from tests.differential.metamorphic.plain import ARRAYS, PART, PlainExpressions
from tests.differential.metamorphic.relations import RELATIONS, Subject
from tests.differential.metamorphic.replicas import ReplicasDiffer, opened_replicas
from tests.differential.metamorphic.shrinking import Shrinker
from tests.differential.metamorphic.varying import varied
from tests.differential.metamorphic.ways import Ways
from tests.sql.databases import opened_sql

DEFINITIONS = ("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT)",)
CHANGES = (
    "INSERT INTO t (id, a, b) VALUES (1, 1, 'x'), (2, NULL, 'y'), (3, 2, NULL), (4, 2, 'z')",
    "INSERT INTO t (id, a, b) VALUES (5, 2, 'z')",
    "UPDATE t SET a = 3 WHERE id = 4",
)
QUERY = "SELECT a, b, (a > 1) AS inside FROM t WHERE id > 0 AND " + PART
ROWS: list[Row] = [
    (1, "x", False),
    (None, "y", None),
    (2, None, True),
    (3, "z", True),
    (2, "z", True),
]


@pytest.mark.half
async def test_every_relation_holds_for_a_known_query_in_every_way() -> None:
    async with opened_replicas(Random(1)) as replicas:
        await replicas.define(DEFINITIONS)
        for sql in CHANGES:
            await replicas.change(sql)
        ways = Ways(replicas)
        assert same_rows((await ways.ordinary([QUERY])).rows, ROWS)
        questions = [Question(QUERY, "c1 < 3", 8, name, ORDINARY, "a > 1") for name in RELATIONS]
        questions += [replace(questions[0], way=way) for way in ways.by_name]
        for question in questions:
            outcome = await ask(ways, question)
            assert outcome.kind == "" and outcome.exception is None, outcome.difference


@pytest.mark.parametrize("name", RELATIONS)
def test_no_relation_holds_for_any_answer(name: str) -> None:
    """Of other rows, of fewer, and of nothing, at least one is noticed."""
    relation = RELATIONS[name]
    subject = Subject(QUERY, (INTEGER, TEXT, INTEGER), ROWS, "c1 < 3", 8, "a > 1")
    count = len(relation.scripts(subject))
    wrong: list[list[Row]] = [[], [(7,)], [(7, 7, 7)], [(7, 7, 7, 7)], ROWS[:1] * 9]
    held = []
    for rows in wrong:
        try:
            held.append(relation.holds(subject, [rows, *([[]] * (count - 1))]))
        except (IndexError, ValueError):  # not even the right number of columns
            held.append(False)
    assert not all(held)


async def test_a_difference_between_replicas_is_noticed_when_rows_change() -> None:
    async with opened_replicas(Random(1)) as replicas:
        await replicas.define(DEFINITIONS)
        await replicas.databases["bare"].execute("INSERT INTO t VALUES (9, 9, 'more')")
        with pytest.raises(ReplicasDiffer, match="0 rows are changed with keys, 1 in replica"):
            await replicas.change("UPDATE t SET a = 0 WHERE id = 9")


async def test_what_the_first_database_refuses_is_done_nowhere() -> None:
    async with opened_replicas(Random(1)) as replicas:
        await replicas.define(DEFINITIONS)
        for sql in (*CHANGES, CHANGES[1]):
            await replicas.change(sql)
        for name in ("keyed", "bare", "other"):
            found = await replicas.databases[name].execute("SELECT count(*) FROM t")
            assert found.rows == [(5,)]


def test_an_error_is_excused_by_a_named_exception_only() -> None:
    rows, division = Answer([(1,)], (INTEGER,)), Answer(error="22012")
    assert exception_for(rows, division) == "evaluation order"
    assert exception_for(division, Answer(error="21000")) == "evaluation order"
    assert exception_for(rows, Answer(error="57014")) == "time"
    removing = "removing elements from multidimensional arrays is not supported"
    assert exception_for(rows, Answer(error="0A000", message=removing)) == "evaluation order"
    ungrouped = Answer(error="42803")
    assert exception_for(rows, ungrouped, "no keys") == "keys"
    assert exception_for(rows, ungrouped, "without rules") is None
    assert exception_for(ungrouped, rows, "no keys") is None
    for code in ("42703", "XX000", "42P16", "0A000", "23505", "42803"):
        assert exception_for(rows, Answer(error=code)) is None
        assert exception_for(division, Answer(error=code)) is None


def test_literals_vary_where_that_leaves_the_shape_as_it_is() -> None:
    text = "SELECT 5, 'a'::text, t.c1, CAST(a AS varchar(7)), '1' FROM t WHERE a IN (3, 4)"
    text += " ORDER BY 1, 2"
    others = {varied(Random(seed), text) for seed in range(30)}
    assert len(others) > 20
    for other in others:
        assert "t.c1, CAST(a AS varchar(7)), '1' FROM t WHERE a IN (" in other
        assert other.endswith(" ORDER BY 1, 2")


def test_positions_do_not_vary_among_names_and_numbers_after_them_do() -> None:
    text = "SELECT a AS v0, b FROM t GROUP BY 1, t.b ORDER BY v0 DESC, 2 NULLS LAST, 1 ASC LIMIT 3"
    others = {varied(Random(seed), text) for seed in range(30)}
    before, _, _ = text.rpartition("3")
    assert len(others) > 5 and all(other.startswith(before) for other in others)


@pytest.mark.parametrize("kind", ARRAYS)
async def test_an_array_to_compare_with_is_one_of_its_type(kind: str) -> None:
    expressions = PlainExpressions(Random(1))
    texts = [expressions._membership(Visible("c", kind)) for _ in range(20)]
    async with opened_sql() as database:
        for text in texts:
            await database.execute(f"SELECT {text} FROM (SELECT NULL::{cast_name(kind)}) AS t(c)")


async def test_a_query_that_has_lost_a_column_of_its_order_is_not_compared_by_it() -> None:
    async with opened_replicas(Random(1)) as replicas:
        await replicas.define(DEFINITIONS)
        await replicas.change(CHANGES[0])
        ways = Ways(replicas)
        question = Question("SELECT a FROM t ORDER BY 1", "true", 0, SAME, ORDINARY)
        assert not (await ask(ways, replace(question, ordered_by=(2, 0)))).kind


@pytest.mark.long
async def test_a_failing_case_is_shrunk_to_what_makes_it_fail() -> None:
    """The question is one that has to fail: its predicate names a column that is not there."""
    definitions = (*DEFINITIONS, "CREATE TABLE other (id INT PRIMARY KEY)")
    text = "SELECT t.a, t.b FROM t JOIN t AS u ON t.id = u.id WHERE t.id > 1 AND u.b = 'z'"
    question = Question(text, "no_such_column > 1", 1, "partitioned", ORDINARY)
    case = Case(definitions, CHANGES, question, 1)
    before = await outcome_of(case)
    assert before.kind == "42703"
    shrunk = await Shrinker(400).shrink(case)
    assert (await outcome_of(shrunk)).kind == before.kind
    assert shrunk.changes == () and shrunk.definitions != definitions
    assert len(shrunk.question.text) < len(text)


async def test_the_memory_of_subqueries_does_not_outlive_a_statement() -> None:
    """Kept plans answer with the rows of today."""
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        await database.execute("INSERT INTO t VALUES (1, 1), (2, 5)")
        query = "SELECT id, (SELECT sum(u.a) FROM t AS u WHERE u.id <= t.id) FROM t ORDER BY id"
        assert (await database.execute(query)).rows == [(1, 1), (2, 6)]
        await database.execute("UPDATE t SET a = 10 WHERE id = 1")
        assert (await database.execute(query)).rows == [(1, 10), (2, 15)]
