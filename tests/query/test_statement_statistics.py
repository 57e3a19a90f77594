"""Statements are counted by a normal form that shows no value, in bounded memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.lexing.fingerprint import parameterize
from qserver.limits import (
    STATEMENT_TEXT_COUNTED_LENGTH_MAX,
    STATEMENTS_COUNTED_MAX,
)
from qserver.query import statement_statistics
from qserver.query.statement_statistics import (
    STATEMENTS_COUNTED_BYTES_MAX,
    DatabaseStatements,
    StatementStatistics,
    added,
    normal_form,
)


def form_of(sql: str) -> str:
    return normal_form(parameterize(sql).fingerprint)


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT * FROM t WHERE a = 1 AND b = 'x'", "SELECT * FROM t WHERE a = $1 AND b = $2"),
        ("SELECT 1 + $2, 'x'", "SELECT $3 + $2, $4"),
        ("SELECT a  FROM\n\tt -- a secret\n;", "SELECT a FROM t"),
        ("SELECT /* a 'secret' */ 1", "SELECT $1"),
        ("SELECT /* a /* secret */ secret */ 1", "SELECT $1"),
        ("SELECT a -- secret\r, 1", "SELECT a , $1"),
        ('SELECT "--a", 1', 'SELECT "--a", $1'),
        (f"SELECT 1 /* {'secret ' * 10_000} */", "SELECT $1"),
        ("SET app.token TO secret, 'secret'", "SET app.token TO $1"),
        ("set local app.token = secret", "set local app.token = $1"),
        ("ALTER ROLE qserver SET app.token TO secret", "ALTER ROLE qserver SET app.token TO $1"),
        ("SET TRANSACTION READ ONLY", "SET TRANSACTION READ ONLY"),
        ("UPDATE t SET a = b", "UPDATE t SET a = b"),
        ("SELECT a IN (1, 2,3), ARRAY[1, 2]", "SELECT a IN ($1, ...), ARRAY[$2, ...]"),
        ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES ($1, $2)"),
        ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", "INSERT INTO t VALUES ($1), ..."),
    ],
)
def test_a_normal_form_has_numbers_for_literals_and_no_comments(sql: str, shown: str) -> None:
    assert form_of(sql) == shown


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_no_literal_and_no_comment_shows_in_a_normal_form(text: str) -> None:
    quoted, line = text.replace("'", "''"), text.replace("\n", " ").replace("\r", " ")
    sql = f"SELECT 'secret{quoted}', 1 -- secret{line}\n, E'secret' FROM t /* secret */"
    assert form_of(sql) == "SELECT $1, $2 , $3 FROM t"


def test_a_long_statement_is_cut_and_still_told_from_others() -> None:
    database = StatementStatistics().of("acme", "db")
    names = ", ".join(f"a{number}" for number in range(10_000))
    found = {database.counter_of(f"SELECT {names}, {last}") for last in "bc"}
    texts = {counter.numbers.text for counter in found}
    assert len(found) == 2 and len(texts) == 1
    assert all(len(text) == STATEMENT_TEXT_COUNTED_LENGTH_MAX for text in texts)


def run(database: DatabaseStatements, sql: str, times: int = 1) -> None:
    """Count some runs as a cursor does."""
    counter = database.counter_of(sql)
    for _ in range(times):
        counter.samples.append((0.001, 1, 10))
        if len(counter.samples) > counter.room:
            counter.settle(Ended(), 0.001, 1)


class Ended:
    """A cursor that has ended."""

    waited = 0.0
    context: Any = None
    plan: Any = None


def calls_of(database: DatabaseStatements) -> dict[str, int]:
    return {each.text: each.calls for each in database.rows()}


def test_every_run_is_counted_whenever_somebody_looks() -> None:
    database = StatementStatistics().of("acme", "db")
    for times in (1, 500, 3):
        run(database, "SELECT 1", times)
        assert len(database.rows()) == 1
    (found,) = database.rows()
    assert (found.calls, found.rows, found.bytes_most) == (504, 504, 10)
    assert found.seconds == pytest.approx(0.504) and found.deviation == pytest.approx(0, abs=1e-6)


def test_samples_of_a_statement_are_few() -> None:
    database = StatementStatistics().of("acme", "db")
    run(database, "SELECT 1", 1000)
    assert len(database.counter_of("SELECT 1").samples) <= statement_statistics.SAMPLES_ROOM


def test_the_least_used_statements_of_an_organization_go() -> None:
    every = StatementStatistics()
    mine, other = every.of("acme", "one"), every.of("other", "two")
    run(other, "SELECT others")
    run(mine, "SELECT often", 50)
    for number in range(STATEMENTS_COUNTED_MAX + 10):
        run(mine, f"SELECT a{number}")
    found = calls_of(mine)
    assert found["SELECT often"] == 50
    assert len(found) <= STATEMENTS_COUNTED_MAX
    assert calls_of(other) == {"SELECT others": 1}


def test_memory_is_taken_from_who_has_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_statistics, "STATEMENTS_COUNTED_BYTES_MAX", 1_000_000)
    every = StatementStatistics()
    small, large = every.of("small", "one"), every.of("large", "two")
    for number in range(50):
        run(small, f"SELECT s{number}")
    for number in range(1000):
        run(large, f"SELECT l{number}")
    assert len(small.rows()) == 50
    assert 50 < len(large.rows()) < 1000
    assert every.bytes <= 1_000_000 < STATEMENTS_COUNTED_BYTES_MAX


def test_a_dropped_statement_comes_back_with_its_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan is kept and leads to the counter, so nothing looks for the statement again."""
    monkeypatch.setattr(statement_statistics, "STATEMENTS_COUNTED_MAX", 10)
    database = StatementStatistics().of("acme", "db")
    run(database, "SELECT kept by a plan")
    counter = database.counter_of("SELECT kept by a plan")
    for number in range(20):
        run(database, f"SELECT a{number}", 2)
    assert "SELECT kept by a plan" not in calls_of(database)
    counter.samples.append((0.001, 1, 10))
    assert len(counter.samples) > counter.room
    counter.settle(Ended(), 0.001, 1)
    assert calls_of(database)["SELECT kept by a plan"] == 1


def test_a_deleted_database_leaves_nothing() -> None:
    every = StatementStatistics()
    run(every.of("acme", "db"), "SELECT 1")
    every.forget("db")
    every.forget("db")
    assert every.bytes == 0 and every.find("db") is None


def test_numbers_of_several_processes_are_added() -> None:
    parts = []
    for seconds in (0.001, 0.004):
        database = StatementStatistics().of("acme", "db")
        database.counter_of("SELECT 1").samples.append((seconds, 2, 3))
        parts.append(database.rows())
    (found,) = added(parts)
    assert (found.calls, found.rows, found.least, found.most) == (2, 4, 0.001, 0.004)
    assert found.mean == pytest.approx(0.0025) and found.deviation == pytest.approx(0.0015)
