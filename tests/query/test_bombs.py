"""Whatever one client sends, the loop is given back often, and memory has an end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.query.bombs import (
    BEAT_SECONDS_MAX,
    EXPRESSIONS,
    GREEDY,
    HELD,
    PARAMETERS,
    STATEMENTS,
    TABLES,
    explode,
)
from tests.sql.databases import opened_sql

pytestmark = pytest.mark.usefixtures("collector_settled")

WRONG = {"22P02", "22003", "22007", "22023"}
"""Some values are refused for what they are, before or after they are found to be long."""


@pytest.mark.parametrize("of", ["expressions", "statements"])
async def test_bombs_let_the_heart_beat_and_end(of: str) -> None:
    bombs = {name: f"SELECT {each} FROM few" for name, each in EXPRESSIONS.items()}
    beats: dict[str, float] = {}
    async with opened_sql() as database:
        for statement in TABLES:
            await database.execute(statement)
        for name, sql in (bombs if of == "expressions" else STATEMENTS).items():
            end, beats[name] = await explode(database, sql, timeout_ms=400)
            code = end.split(" ")[0]
            assert code in {"finished", "57014", "54000", "53200", *WRONG}, f"{name}: {end}"
            if name in ("truncate", "drop"):
                break  # nothing is left to explode
    worst = max(beats, key=beats.__getitem__)
    print(f"the worst of {len(beats)} bombs: {worst}, {beats[worst] * 1000:.0f} ms")
    assert beats[worst] < BEAT_SECONDS_MAX, worst


@pytest.mark.parametrize("in_a_transaction", [False, True])
async def test_parameters_let_the_heart_beat_and_end(in_a_transaction: bool) -> None:
    beats: dict[str, float] = {}
    async with opened_sql() as database:
        for statement in TABLES:
            await database.execute(statement)
        await database.execute("CREATE TABLE sink (x TEXT)")
        for name, (sql, parameters) in PARAMETERS.items():
            if in_a_transaction:
                sql = f"INSERT INTO sink {sql}"
            given = parameters()
            end, beats[name] = await explode(database, sql, 2_000, given)
            code = end.split(" ")[0]
            assert code in {"finished", "57014", "54000", "53200", *WRONG}, f"{name}: {end}"
    worst = max(beats, key=beats.__getitem__)
    print(f"the worst of {len(beats)} bombs: {worst}, {beats[worst] * 1000:.0f} ms")
    assert beats[worst] < BEAT_SECONDS_MAX, worst


async def test_what_a_statement_held_is_freed_while_the_heart_beats() -> None:
    beats: dict[str, float] = {}
    async with opened_sql() as database:
        for statement in TABLES[:4]:
            await database.execute(statement)
        for name, sql in HELD.items():
            end, beats[name] = await explode(database, sql, timeout_ms=60_000)
            assert end in ("finished", "53200"), f"{name}: {end}"
    worst = max(beats, key=beats.__getitem__)
    print(f"the worst of {len(beats)} bombs: {worst}, {beats[worst] * 1000:.0f} ms")
    assert beats[worst] < BEAT_SECONDS_MAX, worst


async def test_a_commit_of_many_rows_lets_the_heart_beat() -> None:
    async with opened_sql() as database:
        for statement in TABLES:
            await database.execute(statement)
        end, worst = await explode(database, "UPDATE many SET b = b + 1", timeout_ms=60_000)
        assert end == "finished"
        count = await database.execute("SELECT count(*), sum(b) FROM many")
    assert count.rows == [(100_000, 49_950_000 + 100_000)]
    assert worst < BEAT_SECONDS_MAX


def test_statements_that_want_all_memory_are_refused_and_get_little() -> None:
    command = [sys.executable, "-m", "tests.query.bombs"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    *ends, peak = run.stdout.splitlines()
    for name, end in zip(GREEDY, ends, strict=True):
        assert end in (f"{name}: 53200", f"{name}: 54000", f"{name}: 57014"), end
    print(f"{peak} MiB at most")
    assert int(peak) < 1024


async def test_foreign_keys_of_many_rows_let_the_heart_beat() -> None:
    beats: dict[str, float] = {}
    async with opened_sql() as database:
        await database.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        await database.execute("INSERT INTO parent SELECT i FROM generate_series(1, 5) AS s(i)")
        await database.execute(
            "CREATE TABLE child (id INTEGER PRIMARY KEY,"
            " parent INTEGER REFERENCES parent ON DELETE SET NULL)"
        )
        for sql in (
            "INSERT INTO child SELECT i, 1 + i % 2 FROM generate_series(1, 30000) AS s(i)",
            "UPDATE child SET parent = 3",
            "UPDATE child SET id = -id",
            "DELETE FROM parent WHERE id = 3",
        ):
            end, beats[sql] = await explode(database, sql, timeout_ms=60_000)
            assert end == "finished", sql
        left = await database.execute("SELECT count(*), count(parent), max(id) FROM child")
    assert left.rows == [(30_000, 0, -1)]
    worst = max(beats, key=beats.__getitem__)
    assert beats[worst] < BEAT_SECONDS_MAX, worst
