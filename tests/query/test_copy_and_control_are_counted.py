"""COPY, and what controls transactions, are statements in pg_stat_statements."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.pgwire.serving import in_thread, serving
from tests.web.served import message
from tests.web.served import serving as serving_http
from tests.web.statements.test_statements_counted import ask, counted, run

ROWS = 2500
FIELDS = "calls, rows, total_exec_time, cpu_time"
SECONDS = 2.0
"""In which a client has nothing to send."""


def _copied(url: str, clock: list[float]) -> dict[str, Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table t (id int primary key, n text)")
        for first in (0, ROWS):
            with connection.cursor().copy("COPY t (id, n) FROM STDIN") as into:
                for number in range(first, first + ROWS):
                    into.write_row((number, "secret"))
        with connection.transaction(), connection.cursor().copy("copy t from stdin") as into:
            into.write_row((-1, "secret"))
            clock[0] += SECONDS
        with (
            pytest.raises(psycopg.errors.UniqueViolation),
            connection.cursor().copy("copy t (id) from stdin") as into,
        ):
            into.write_row((-1,))
        for _ in range(2):
            asked = "COPY (SELECT * FROM t WHERE n = 'secret') TO STDOUT"
            with connection.cursor().copy(asked) as out:
                assert len(list(out.rows())) == 2 * ROWS + 1
        with connection.transaction(), connection.cursor().copy("COPY t TO STDOUT CSV") as out:
            assert b"".join(out).count(b"\n") == 2 * ROWS + 1
        asked = f"select query, {FIELDS} from pg_stat_statements"
        return {text: rest for text, *rest in connection.execute(asked.encode()).fetchall()}


async def test_copy_over_the_wire_is_counted_once_with_all_its_rows() -> None:
    async with serving() as served:
        found = await in_thread(_copied, served.url, served.clock)
    assert found["COPY t (id, n) FROM STDIN"] == [2, 2 * ROWS, 0.0, 0.0]
    assert found["copy t from stdin"] == [1, 1, 1000 * SECONDS, 0.0]
    assert "copy t (id) from stdin" not in found, "what fails does not count"
    assert found["COPY (SELECT * FROM t WHERE n = $1) TO STDOUT"] == [2, 4 * ROWS + 2, 0.0, 0.0]
    assert found["COPY t TO STDOUT CSV"] == [1, 2 * ROWS + 1, 0.0, 0.0]
    ran = [text for text, (calls, *_) in found.items() if calls]
    assert not [text for text in ran if text.startswith(("INSERT", "SELECT *"))]


async def test_copy_over_http_is_counted_once_with_all_its_rows() -> None:
    async with serving_http() as opened:
        await run(opened, "CREATE TABLE t (id int PRIMARY KEY)")
        body = b"".join(b"%d\n" % number for number in range(ROWS))
        into = await ask(opened, message("POST", "/v1/copy?sql=COPY+t+FROM+STDIN", body))
        out = await ask(opened, message("GET", "/v1/copy?sql=COPY+t+TO+STDOUT"), "GET")
        assert (into.status, out.status, out.body.count(b"\n")) == (200, 200, ROWS)
        found = await counted(opened)
        for text in ("COPY t FROM STDIN", "COPY t TO STDOUT"):
            assert found[text] == {"calls": 1, "rows": ROWS}
        others = [text for text, each in found.items() if each["calls"] and "INSERT" in text]
        assert not others


def _controlled(url: str) -> dict[str, int]:
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(40):
            for sql in (
                *("BEGIN", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "COMMIT"),
                *("START TRANSACTION READ ONLY", "ROLLBACK", "PREPARE p AS SELECT 1", "EXECUTE p"),
                *("DEALLOCATE p", "SHOW work_mem", "SET work_mem = '1MB'", "COMMIT"),
            ):
                connection.execute(sql.encode())
        found = connection.execute("SELECT query, calls FROM pg_stat_statements WHERE calls > 0")
        return dict(found.fetchall())


async def test_statements_that_control_transactions_are_counted_as_in_postgresql() -> None:
    async with serving() as served:
        found = await in_thread(_controlled, served.url)
    counted_40_times = (
        *("BEGIN", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "COMMIT", "ROLLBACK"),
        *("START TRANSACTION READ ONLY", "SHOW work_mem", "SET work_mem = $1", "SELECT $1"),
    )
    assert found == dict.fromkeys(counted_40_times, 40)
