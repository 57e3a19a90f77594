"""Probes of isolation: one for each anomaly of the literature, provoked by a real interleaving.

The transactions overlap exactly as a weaker isolation level would need to let the anomaly through.
The names in brackets are from Adya's thesis and from the papers by Berenson and others, and by
Fekete, O'Neil and O'Neil.

A conflict is 40001 at the commit, because these transactions run with `max_retries` 0; the server
would retry an ordinary request, and its client would never see the conflict.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from qserver.probes.open_transaction import OpenTransaction
from qserver.probes.run import Probe, Run
from qserver.probes.steps import SqlStep, changes, does, gives

CATEGORY: Final = "isolation"
CONFLICT: Final = "40001"
TWO_ROWS: Final = (
    does("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL)"),
    changes("INSERT INTO t VALUES (1, 10), (2, 20)", 2),
)


def reads(row: int, value: int) -> SqlStep:
    return gives(f"SELECT v FROM t WHERE id = {row}", str(value))


def writes(row: int, value: int) -> SqlStep:
    return changes(f"UPDATE t SET v = {value} WHERE id = {row}", 1)


def finally_(*rows: str) -> SqlStep:
    return gives("SELECT v FROM t ORDER BY id", *rows)


@asynccontextmanager
async def two_rows(run: Run, *rows: str) -> AsyncIterator[list[OpenTransaction]]:
    """Make the table, begin two transactions, and check the rows when both have ended."""
    await run.perform(*TWO_ROWS)
    async with run.overlapping("T1", "T2") as both:
        yield both
    await run.perform(finally_(*rows))


async def dirty_write(run: Run) -> None:
    await run.perform(*TWO_ROWS)
    async with run.overlapping("T1", "T2") as (first, second):
        await first.perform(writes(1, 11))
        await second.perform(writes(1, 12), writes(2, 22))
        await second.commit()
        await first.perform(writes(2, 21))
        await first.commit(may_conflict=True)
    await run.perform(
        gives("SELECT min(v - id * 10) = max(v - id * 10) FROM t", "t"),
        gives("SELECT count(*) FROM t WHERE v - id * 10 IN (1, 2)", "2"),
    )


async def aborted_read(run: Run) -> None:
    async with two_rows(run, "10", "20") as (first, second):
        await first.perform(writes(1, 101))
        await second.perform(reads(1, 10))
        await first.roll_back()
        await second.perform(reads(1, 10))
        await second.commit()


async def intermediate_read(run: Run) -> None:
    async with two_rows(run, "11", "20") as (first, second):
        await first.perform(writes(1, 101))
        await second.perform(reads(1, 10))
        await first.perform(writes(1, 11))
        await first.commit()
        await second.perform(reads(1, 10))
        await second.commit()


async def circular_information_flow(run: Run) -> None:
    async with two_rows(run, "11", "20") as (first, second):
        await first.perform(writes(1, 11))
        await second.perform(writes(2, 22))
        await first.perform(reads(2, 20))
        await second.perform(reads(1, 10))
        await first.commit()
        await second.commit(code=CONFLICT)


async def observed_transaction_vanishes(run: Run) -> None:
    await run.perform(*TWO_ROWS)
    async with run.overlapping("T1", "T2") as (first, second):
        await first.perform(writes(1, 11), writes(2, 19))
        await second.perform(writes(1, 12))
        await first.commit()
        async with run.overlapping("T3") as (third,):
            await third.perform(reads(1, 11))
            await second.perform(writes(2, 18))
            await second.commit(code=CONFLICT)
            await third.perform(reads(2, 19), reads(1, 11))
            await third.commit()


async def lost_update(run: Run) -> None:
    async with two_rows(run, "11", "20") as (first, second):
        await first.perform(reads(1, 10))
        await second.perform(reads(1, 10))
        await first.perform(writes(1, 11))
        await second.perform(writes(1, 11))
        await first.commit()
        await second.commit(code=CONFLICT)


async def non_repeatable_read(run: Run) -> None:
    async with two_rows(run, "12", "20") as (first, second):
        await first.perform(reads(1, 10))
        await second.perform(writes(1, 12))
        await second.commit()
        await first.perform(reads(1, 10))
        await first.commit()


async def read_skew(run: Run) -> None:
    async with two_rows(run, "12", "18") as (first, second):
        await first.perform(reads(1, 10))
        await second.perform(writes(1, 12), writes(2, 18))
        await second.commit()
        await first.perform(reads(2, 20))
        await first.commit()


async def read_skew_with_write(run: Run) -> None:
    async with two_rows(run, "12", "18") as (first, second):
        await first.perform(reads(1, 10))
        await second.perform(writes(1, 12), writes(2, 18))
        await second.commit()
        await first.perform(changes("DELETE FROM t WHERE v = 20", 1))
        await first.commit(code=CONFLICT)


async def phantom(run: Run) -> None:
    await run.perform(*TWO_ROWS)
    counts = gives("SELECT count(*) FROM t WHERE v >= 20", "1")
    async with run.overlapping("T1", "T2") as (first, second):
        await first.perform(counts)
        await second.perform(changes("INSERT INTO t VALUES (3, 30)", 1))
        await second.commit()
        await first.perform(counts, gives("SELECT id FROM t ORDER BY id", "1", "2"))
        await first.commit()
    await run.perform(gives("SELECT count(*) FROM t WHERE v >= 20", "2"))


async def phantom_that_decides(run: Run) -> None:
    """T1 writes because some rows are absent; meanwhile T2 inserts one."""
    async with two_rows(run, "10", "20", "35") as (first, second):
        await first.perform(gives("SELECT id FROM t WHERE v BETWEEN 30 AND 40"))
        await second.perform(changes("INSERT INTO t VALUES (3, 35)", 1))
        await second.commit()
        await first.perform(writes(1, 0))
        await first.commit(code=CONFLICT)


async def predicate_many_preceders(run: Run) -> None:
    async with two_rows(run, "20", "30") as (first, second):
        await first.perform(changes("UPDATE t SET v = v + 10", 2))
        await second.perform(changes("DELETE FROM t WHERE v = 20", 1))
        await first.commit()
        await second.commit(code=CONFLICT)


async def write_skew(run: Run) -> None:
    """Two doctors are on call; each leaves because the other is there."""
    await run.perform(
        does("CREATE TABLE doctors (name TEXT PRIMARY KEY, on_call BOOLEAN NOT NULL)"),
        changes("INSERT INTO doctors VALUES ('Ada', true), ('Bob', true)", 2),
    )
    both = gives("SELECT on_call FROM doctors WHERE name IN ('Ada', 'Bob')", "t", "t")
    async with run.overlapping("T1", "T2") as (first, second):
        await first.perform(both)
        await second.perform(both)
        await first.perform(changes("UPDATE doctors SET on_call = false WHERE name = 'Ada'", 1))
        await second.perform(changes("UPDATE doctors SET on_call = false WHERE name = 'Bob'", 1))
        await first.commit()
        await second.commit(code=CONFLICT)
    await run.perform(gives("SELECT name FROM doctors WHERE on_call", "Bob"))


async def write_skew_by_predicate(run: Run) -> None:
    """Each inserts a booking because the hour is free; the rows themselves differ."""
    await run.perform(
        does("CREATE TABLE bookings (id INTEGER PRIMARY KEY, room INTEGER, hour INTEGER)"),
        changes("INSERT INTO bookings VALUES (1, 7, 8)", 1),
    )
    free = gives("SELECT count(*) FROM bookings WHERE room = 7 AND hour = 9", "0")
    async with run.overlapping("T1", "T2") as (first, second):
        await first.perform(free, changes("INSERT INTO bookings VALUES (2, 7, 9)", 1))
        await second.perform(free, changes("INSERT INTO bookings VALUES (3, 7, 9)", 1))
        await second.commit()
        await first.commit(code=CONFLICT)
    await run.perform(gives("SELECT count(*) FROM bookings WHERE room = 7 AND hour = 9", "1"))


async def read_only_anomaly(run: Run) -> None:
    """Fekete's: a report sees the deposit but not the withdrawal, which then pays no penalty."""
    await run.perform(
        does("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL)"),
        changes("INSERT INTO t VALUES (1, 0), (2, 0)", 2),
    )
    async with run.overlapping("withdrawal", "deposit") as (withdrawal, deposit):
        await withdrawal.perform(gives("SELECT sum(v) FROM t", "0"))
        await deposit.perform(reads(2, 0), writes(2, 20))
        await deposit.commit()
        async with run.overlapping("report") as (report,):
            await report.perform(finally_("0", "20"))
            await report.commit()
        await withdrawal.perform(writes(1, -11))  # 10 and a penalty: the sum falls below 0
        await withdrawal.commit(code=CONFLICT)
    await run.perform(finally_("0", "20"))


async def long_fork(run: Run) -> None:
    """Two writes, two readers: both must see them in the same order."""
    await run.perform(*TWO_ROWS)
    async with run.overlapping("W1", "W2") as (first, second):
        await first.perform(writes(1, 11))
        await second.perform(writes(2, 21))
        await first.commit()
        async with run.overlapping("R1") as (early,):
            await early.perform(reads(1, 11))
            await second.commit()
            async with run.overlapping("R2") as (late,):
                await late.perform(reads(2, 21), reads(1, 11))
                await early.perform(reads(2, 20))
                await late.commit()
                await early.commit()
    await run.perform(finally_("11", "21"))


async def disjoint_writes_commit(run: Run) -> None:
    """Transactions on different rows do not conflict."""
    async with two_rows(run, "11", "21") as (first, second):
        await first.perform(reads(1, 10), writes(1, 11))
        await second.perform(reads(2, 20), writes(2, 21))
        await first.commit()
        await second.commit()


async def own_writes_are_seen(run: Run) -> None:
    await run.perform(*TWO_ROWS)
    async with run.overlapping("T1", "T2") as (first, second):
        await first.perform(writes(1, 11), reads(1, 11))
        await first.perform(changes("DELETE FROM t WHERE id = 2", 1), finally_("11"))
        await second.perform(finally_("10", "20"))
        await first.commit()
        await second.commit()


async def definition_during_transaction(run: Run) -> None:
    """T1 inserts a row while an index is made that would lack the row."""
    await run.perform(*TWO_ROWS)
    async with run.overlapping("T1") as (first,):
        await first.perform(changes("INSERT INTO t VALUES (3, 30)", 1))
        await run.perform(does("CREATE INDEX t_v ON t (v)"))
        await first.commit(code=CONFLICT)
    await run.perform(
        changes("INSERT INTO t VALUES (3, 30)", 1), gives("SELECT id FROM t WHERE v = 30", "3")
    )


PROBES: Final = (
    Probe(
        "dirty_write", CATEGORY, "No mixture of two transactions' writes stays [G0].", dirty_write
    ),
    Probe("aborted_read", CATEGORY, "Nobody reads what is then rolled back [G1a].", aborted_read),
    Probe(
        "intermediate_read",
        CATEGORY,
        "Nobody reads a value that its writer has replaced before committing [G1b].",
        intermediate_read,
    ),
    Probe(
        "circular_information_flow",
        CATEGORY,
        "Two transactions never each miss or each see the other's write [G1c].",
        circular_information_flow,
    ),
    Probe(
        "observed_transaction_vanishes",
        CATEGORY,
        "A transaction that was seen stays seen, with all of its writes [OTV].",
        observed_transaction_vanishes,
    ),
    Probe("lost_update", CATEGORY, "No update is overwritten unseen [P4].", lost_update),
    Probe(
        "non_repeatable_read",
        CATEGORY,
        "A row that is read twice is the same twice [P2].",
        non_repeatable_read,
    ),
    Probe("read_skew", CATEGORY, "Two rows are read as of one moment [A5A, G-single].", read_skew),
    Probe(
        "read_skew_with_write",
        CATEGORY,
        "Nor does a transaction write by what it has read of two moments [G-single].",
        read_skew_with_write,
    ),
    Probe("phantom", CATEGORY, "Rows that others insert do not appear half-way [P3].", phantom),
    Probe(
        "phantom_that_decides",
        CATEGORY,
        "A write that relied on rows being absent fails when they come [P3].",
        phantom_that_decides,
    ),
    Probe(
        "predicate_many_preceders",
        CATEGORY,
        "A DELETE by condition notices that the condition's rows have changed [PMP].",
        predicate_many_preceders,
    ),
    Probe(
        "write_skew",
        CATEGORY,
        "Two who rely on each other cannot both leave [G2-item].",
        write_skew,
    ),
    Probe(
        "write_skew_by_predicate",
        CATEGORY,
        "Nor can two insert what each found absent [G2].",
        write_skew_by_predicate,
    ),
    Probe(
        "read_only_anomaly",
        CATEGORY,
        "What a report has seen is never contradicted by a later commit [Fekete 2004].",
        read_only_anomaly,
    ),
    Probe("long_fork", CATEGORY, "All readers agree on the order of two writes.", long_fork),
    Probe(
        "disjoint_writes_commit",
        CATEGORY,
        "Overlapping transactions on different rows both commit.",
        disjoint_writes_commit,
    ),
    Probe(
        "own_writes_are_seen",
        CATEGORY,
        "A transaction sees its own writes, and nobody else does.",
        own_writes_are_seen,
    ),
    Probe(
        "definition_during_transaction",
        CATEGORY,
        "A definition that changes under a transaction is a conflict.",
        definition_during_transaction,
    ),
)
