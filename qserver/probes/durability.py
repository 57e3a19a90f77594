"""Probes of durability: stop a database, and recover another one from the same log."""

from __future__ import annotations

from typing import Final

from qserver.durability.memory import MemoryLog
from qserver.probes.run import Probe, Run
from qserver.probes.steps import changes, does, fails, gives, together

CATEGORY: Final = "durability"


async def committed_rows(run: Run) -> None:
    """Inserted, updated and deleted rows survive; nothing of a failed transaction does."""
    log = MemoryLog()
    async with run.reopened(log):
        await run.perform(
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b JSONB)"),
            changes(
                "INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, 200) AS s (n)", 200
            ),
            changes("""UPDATE t SET b = '{"k": [1, 2.50]}' WHERE id = 7""", 1),
            changes("DELETE FROM t WHERE id > 100", 100),
            together(changes("DELETE FROM t", 100), fails("SELECT 1 / 0", "22012")),
        )
    async with run.reopened(log):
        await run.perform(
            gives("SELECT count(*), min(id), max(id), count(b) FROM t", "100 | 1 | 100 | 1"),
            gives("SELECT a, b FROM t WHERE id = 7", 'row 7 | {"k": [1, 2.50]}'),
        )


async def committed_definitions(run: Run) -> None:
    """Types, constraints, indexes and views survive recovery."""
    log = MemoryLog()
    async with run.reopened(log):
        await run.perform(
            does("CREATE TYPE mood AS ENUM ('sad', 'happy')"),
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, m mood UNIQUE, n INTEGER CHECK (n > 0))"),
            does("CREATE INDEX t_n ON t (n)"),
            does("CREATE VIEW v AS SELECT n FROM t WHERE m = 'happy'"),
            changes("INSERT INTO t VALUES (1, 'happy', 5)", 1),
        )
    async with run.reopened(log):
        await run.perform(
            gives("SELECT n FROM v", "5"),
            fails("INSERT INTO t VALUES (2, 'happy', 1)", "23505"),
            fails("INSERT INTO t VALUES (2, 'sad', 0)", "23514"),
            gives("SELECT indexname FROM pg_indexes WHERE indexname = 't_n'", "t_n"),
        )


async def unfinished_transaction(run: Run) -> None:
    """A transaction that was open when the database stopped leaves nothing."""
    log = MemoryLog()
    async with run.reopened(log):
        await run.perform(
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)"),
            changes("INSERT INTO t VALUES (1, 10)", 1),
        )
        async with run.overlapping("T1") as (open_one,):
            await open_one.perform(
                changes("UPDATE t SET v = 99", 1), changes("INSERT INTO t VALUES (2, 99)", 1)
            )
    async with run.reopened(log):
        await run.perform(gives("SELECT * FROM t", "1 | 10"))


async def sequences_do_not_repeat(run: Run) -> None:
    """A sequence never repeats a number; gaps are allowed."""
    log = MemoryLog()
    given: list[int] = []
    for _ in range(3):
        async with run.reopened(log):
            await run.perform(does("CREATE TABLE IF NOT EXISTS t (id SERIAL PRIMARY KEY, a TEXT)"))
            result = await run.database.execute("INSERT INTO t (a) VALUES ('x') RETURNING id")
            given.append(result.rows[0][0])
    ascending = given == sorted(set(given))
    run.check("Numbers given in three lives", ascending, f"{given}")


PROBES: Final = (
    Probe(
        "recovery_rows",
        CATEGORY,
        "What was committed is there after recovery, and nothing else.",
        committed_rows,
    ),
    Probe(
        "recovery_definitions",
        CATEGORY,
        "Types, constraints, indexes and views survive recovery.",
        committed_definitions,
    ),
    Probe(
        "recovery_unfinished",
        CATEGORY,
        "A transaction that was under way when the database stopped leaves nothing.",
        unfinished_transaction,
    ),
    Probe(
        "recovery_sequences",
        CATEGORY,
        "Sequences never repeat a number across recoveries.",
        sequences_do_not_repeat,
    ),
)
