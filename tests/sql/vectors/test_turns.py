"""Scans over vectors yield, obey the limit on memory, and leave numpy alone until it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qserver.errors import OutOfMemory, QueryCanceled
from qserver.query.sql_database import SqlDatabase
from qserver.sql.vectors import scans
from tests.sql.databases import opened_sql
from tests.sql.test_execution import begun
from tests.sql.vectors.vectors import counted_chunks

ROWS = 20_000


async def with_rows(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL)")
    await database.execute(
        f"INSERT INTO t SELECT g, g % 5000, g % 7 FROM generate_series(1, {ROWS}) AS g"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(a), sum(b) FROM t",
        "SELECT b, count(*) FROM t GROUP BY b",
        "SELECT id FROM t WHERE a * b < 0",
        "SELECT id FROM t ORDER BY a LIMIT 5",
    ],
)
async def test_a_long_scan_yields_and_checks_the_deadline(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "ROWS_OF_STEP", 4)
    async with opened_sql() as database:
        await with_rows(database)
        with counted_chunks() as counts:
            for _ in range(3):  # by rows, or filled; filled; warm
                _, _, steps = begun(database, sql)
                assert None in list(steps)
                with pytest.raises(QueryCanceled):
                    await database.execute(sql, timeout_ms=0)
        assert counts["refused"] == 0 and sum(counts.values()) > 0


async def test_groups_count_as_memory() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        sql = "SELECT a % 2000, sum(b), count(*) FROM t GROUP BY a % 2000"
        for _ in range(2):
            await database.execute(sql)
        for bytes_most, fits in ((50_000, False), (1_000_000, True)):
            with counted_chunks() as counts:
                _, run, steps = begun(database, sql)
                run.context.memory_bytes_most = bytes_most
                if fits:
                    assert sum(map(len, filter(None, steps))) == 2000
                else:
                    with pytest.raises(OutOfMemory):
                        list(steps)
            assert counts["refused"] == 0 and counts["aggregated"] == fits


@pytest.mark.long
def test_numpy_is_not_imported_before_a_plan_uses_vectors() -> None:
    program = (
        "import sys, qserver.cli, qserver.web.app\n"
        "found = {'numpy', 'duckdb'} & set(sys.modules)\n"
        "sys.exit(str(found) if found else 0)"
    )
    root = Path(__file__).parent.parent.parent.parent
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
