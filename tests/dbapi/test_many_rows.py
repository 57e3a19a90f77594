"""`executemany`: which rows are sent together; the effect is that of one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from qserver import dbapi, limits
from qserver.dbapi import Connection, cursor, many_rows
from qserver.dbapi.many_rows import requests_of, values_row_of
from tests.dbapi.served import client_of, connected
from tests.web.contract.servers import Server

TOGETHER = [
    (
        "INSERT INTO t VALUES (?, ?)",
        [(1, 2), (3, 4)],
        "INSERT INTO t VALUES ($1, $2), ($3, $4)",
        b"[1,2,3,4]",
    ),
    (
        "insert into s.t (a, b) values ($2, $1 + 1);",
        [(1, 2), (3, 4)],
        "insert into s.t (a, b) values ($1, $2 + 1), ($3, $4 + 1);",
        b"[2,1,4,3]",
    ),
    (
        "INSERT INTO t (a) VALUES (lower(:name::text)) ON CONFLICT (a) DO NOTHING",
        [{"name": "A"}, {"name": "B"}],
        "INSERT INTO t (a) VALUES (lower($1::text)), (lower($2::text)) ON CONFLICT (a) DO NOTHING",
        b'["A","B"]',
    ),
    (
        "INSERT INTO t VALUES ('?', \"?\", ?, DEFAULT, $$ $1 $$) -- ?",
        [(1,), (None,)],
        "INSERT INTO t VALUES ('?', \"?\", $1, DEFAULT, $$ $1 $$), "
        "('?', \"?\", $2, DEFAULT, $$ $1 $$) -- ?",
        b"[1,null]",
    ),
    (
        "INSERT INTO t VALUES ($1, $1)",
        [(1,), (2,)],
        "INSERT INTO t VALUES ($1, $2), ($3, $4)",
        b"[1,1,2,2]",
    ),
]
APART = [
    "INSERT INTO t VALUES (?, (SELECT max(a) FROM t))",
    "INSERT INTO t VALUES (?) RETURNING a",
    "INSERT INTO t VALUES (?) ON CONFLICT (a) DO UPDATE SET b = 1",
    "INSERT INTO t VALUES (?), (?)",
    "INSERT INTO t SELECT * FROM (VALUES (?)) v",
    "INSERT INTO t VALUES (1)",
    "INSERT INTO t VALUES (?, $1)",
    "INSERT INTO t VALUES (?",
    "INSERT INTO t DEFAULT VALUES",
    "WITH x AS (SELECT ?) INSERT INTO t VALUES (?)",
    "UPDATE t SET a = ? WHERE b = ?",
    "",
]


@pytest.mark.parametrize(("sql", "rows", "text", "params"), TOGETHER)
def test_rows_of_an_insert_are_put_together(sql: str, rows: Any, text: str, params: bytes) -> None:
    [[statement]] = requests_of(sql, rows)
    assert statement.sql == text
    assert bytes(statement.params) == params  # type: ignore[arg-type]


@pytest.mark.parametrize("sql", APART)
def test_what_could_see_the_rows_before_it_stays_apart(sql: str) -> None:
    assert values_row_of(sql) is None


def test_requests_are_bounded() -> None:
    wide = f"INSERT INTO t VALUES ({', '.join(['?'] * 100)})"
    requests = list(requests_of(wide, [[1] * 100] * 700))
    statements = [statement for request in requests for statement in request]
    assert len(statements) == 3  # 327 rows of 100 parameters
    long = list(requests_of("INSERT INTO t VALUES (?)", [["x" * 700_000]] * 10))
    assert [len(request) for request in long] == [1, 1, 1, 1]
    many = list(requests_of("UPDATE t SET a = ?", [[1]] * 2500))
    assert [len(request) for request in many] == [1000, 1000, 500]


@pytest.mark.parametrize("given", [(1,), (1, 2, 3), "ab", {"a": 1}])
def test_a_row_with_other_parameters_is_refused(given: Any) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="row 2"):
        list(requests_of("INSERT INTO t VALUES (?, ?)", [(1, 2), given]))
    with pytest.raises(dbapi.ProgrammingError, match="row 1"):
        list(requests_of("INSERT INTO t VALUES (:a, :b)", [given]))


def test_what_is_sent_together_is_what_a_server_takes() -> None:
    """A client may be of another release than its server, so it has its own bounds."""
    assert many_rows.PARAMETERS_MAX <= limits.PARAMETERS_MAX
    assert many_rows.STATEMENTS_MAX <= limits.TRANSACTION_STATEMENTS_MAX
    assert many_rows.REQUEST_BYTES_MAX < limits.REQUEST_BODY_BYTES_MAX
    assert cursor.ROWS_OF_ANSWER_MAX <= limits.ANSWER_ROWS_MAX


@pytest.mark.parametrize("autocommit", [False, True])
def test_all_rows_arrive_or_none(
    server: Server, database: str, autocommit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_rows, "ROWS_MAX", 7)
    monkeypatch.setattr(many_rows, "STATEMENTS_MAX", 3)
    with client_of(server, database) as client, connected(server, database) as connection:
        client.query("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        connection.autocommit = autocommit
        cursor = connection.cursor()
        insert = "INSERT INTO t VALUES (?, ?)"
        cursor.executemany(insert, ((n, str(n)) for n in range(100)))
        assert (cursor.rowcount, cursor.description) == (100, None)
        connection.commit()
        for sql, rows in (
            (insert, [(n, "x") for n in range(200, 90, -1)]),
            ("UPDATE t SET a = a + ?", [(n,) for n in (1000, 1, 2, 3, -5000, 1 << 31)]),
        ):
            with pytest.raises(dbapi.DatabaseError):
                cursor.executemany(sql, rows)
            assert connection.in_transaction is not autocommit
            connection.rollback()
            assert client.query("SELECT count(*), sum(a) FROM t").rows == [(100, 4950)]
        cursor.executemany("UPDATE t SET b = $2 WHERE a = $1", [(n, "new") for n in range(20)])
        assert cursor.rowcount == 20
        cursor.executemany("DELETE FROM t WHERE a = ?", [])
        assert cursor.rowcount == 0
        connection.commit()
        assert client.query("SELECT count(*) FROM t WHERE b = 'new'").rows == [(20,)]


def test_conflicts_are_ignored_in_the_order_of_rows(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)")
    rows = [(1, 1), (2, 2), (1, 3), (3, 4), (2, 5)]
    cursor.executemany("INSERT INTO t VALUES (?, ?) ON CONFLICT DO NOTHING", rows)
    assert cursor.rowcount == 3
    cursor.executemany(
        "INSERT INTO t VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = excluded.b", rows
    )
    assert cursor.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, 3), (2, 5), (3, 4)]
