"""Results that are longer than an answer may be, and rows that are read as they are fetched."""

from __future__ import annotations

import pytest

from qserver import dbapi
from qserver.dbapi import Connection, cursor

SERIES = "SELECT n, n::numeric AS d FROM generate_series(1, 5000) n"


@pytest.fixture
def short_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "ROWS_OF_ANSWER_MAX", 1000)


@pytest.mark.usefixtures("short_answers")
@pytest.mark.parametrize("sql", [SERIES, f"({SERIES})", f"WITH t AS ({SERIES}) TABLE t"])
def test_a_long_result_is_read_to_its_end(connection: Connection, sql: str) -> None:
    one = connection.cursor()
    one.execute(sql)
    assert one.rowcount == 5000
    assert one.description is not None and one.description[1][:2] == ("d", "numeric")
    rows = one.fetchall()
    assert (len(rows), rows[0], rows[-1][0]) == (5000, (1, 1), 5000)


@pytest.mark.usefixtures("short_answers")
def test_what_writes_is_not_run_twice(connection: Connection) -> None:
    one = connection.cursor()
    one.execute("CREATE TABLE t (n INTEGER)")
    one.execute(f"INSERT INTO t SELECT n FROM ({SERIES}) s RETURNING n")
    assert one.rowcount == 5000
    one.execute("WITH new AS (INSERT INTO t SELECT 1 FROM t RETURNING n) SELECT n FROM new")
    assert one.rowcount == 5000
    assert one.execute("SELECT count(*) FROM t").fetchall() == [(10_000,)]


@pytest.mark.parametrize("autocommit", [False, True])
def test_rows_come_as_they_are_fetched(connection: Connection, autocommit: bool) -> None:
    connection.autocommit = autocommit
    streaming = connection.cursor(streaming=True)
    streaming.execute(SERIES)
    assert streaming.rowcount == -1
    assert streaming.fetchone() == (1, 1)
    assert len(streaming.fetchmany(10)) == 10
    other = connection.cursor()
    assert other.execute("SELECT 1").fetchall() == [(1,)]  # waits for the rest, which is kept
    assert next(streaming) == (12, 12)
    connection.commit()
    assert len(streaming.fetchall()) == 5000 - 12
    assert streaming.fetchone() is None


def test_a_stream_that_is_left_stops_nobody(connection: Connection) -> None:
    for _ in range(3):
        with connection.cursor(streaming=True) as streaming:
            streaming.execute("SELECT n FROM generate_series(1, 100000000) n")
            assert streaming.fetchone() == (1,)
    streaming = connection.cursor(streaming=True)
    streaming.execute("SELECT n FROM generate_series(1, 100000000) n")
    streaming.execute("SELECT 2")
    assert streaming.fetchall() == [(2,)]
    connection.rollback()


def test_an_error_on_the_way_is_raised_where_rows_are_fetched(connection: Connection) -> None:
    streaming = connection.cursor(streaming=True)
    with pytest.raises(dbapi.DataError):
        streaming.execute("SELECT 1 / (n - 4000) FROM generate_series(1, 5000) n").fetchall()
    connection.rollback()
    streaming.execute("CREATE TABLE t (n INTEGER)")
    assert streaming.description is None
