"""Probes of transactions: all or nothing, and isolation from concurrent writers."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import trio

from qserver.durability.memory import MemoryLog
from qserver.engine.work import run as run_steps
from qserver.errors import QserverError, SerializationFailure, TooManyAffected, UniqueViolation
from qserver.limits import ANSWER_STORED_SECONDS
from qserver.probes.run import Probe, Run
from qserver.probes.steps import changes, does, fails, gives, together
from qserver.query.bulk import BulkInsert, RowBatch
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import Once, RunOptions, Statement

CATEGORY: Final = "transactions"
CLIENTS: Final = 16
INCREMENTS: Final = 8
COUNTER: Final = (
    does("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"),
    changes("INSERT INTO counter VALUES (1, 0)", 1),
)


async def retry_of_conflicts(run: Run) -> None:
    """Two increments overlap: the server runs the second again on the first one's result."""
    await run.perform(*COUNTER)
    increment = gives("UPDATE counter SET n = n + 1 RETURNING n", "1")
    async with run.overlapping("T1", "T2", max_retries=4) as (first, second):
        await first.perform(increment)
        await second.perform(increment)  # its snapshot is older than T1's commit
        await first.commit()
        retries = await second.commit()
    run.check("T2 was run again", retries >= 1, f"{retries} retries")
    await run.perform(gives("SELECT n FROM counter", "2"))


async def turn_after_retries(run: Run) -> None:
    """A transaction ends under any contention: after its retries it gets an exclusive commit."""
    await run.perform(*COUNTER)
    done = 0

    async def increment_often() -> None:
        nonlocal done
        for _ in range(INCREMENTS):
            async with run.overlapping("T", max_retries=1) as (transaction,):
                await transaction.perform(does("UPDATE counter SET n = n + 1"))
                await transaction.commit()
            done += 1

    async with trio.open_nursery() as nursery:
        for _ in range(CLIENTS // 4):
            nursery.start_soon(increment_often)
    await run.perform(gives("SELECT n FROM counter", str(done)))
    exclusive = run.database.database.statistics().gateway.exclusive
    run.check("Some of them needed an exclusive commit", exclusive > 0, f"{exclusive} of them")


async def hot_counter(run: Run) -> None:
    """Many clients increment one row at once; each acknowledged increment is applied once."""
    await run.perform(*COUNTER)
    done = 0

    async def increment_often() -> None:
        nonlocal done
        for _ in range(INCREMENTS):
            result = await run.database.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
            done += result.affected_rows

    async with trio.open_nursery() as nursery:
        for _ in range(CLIENTS):
            nursery.start_soon(increment_often)
    expected = CLIENTS * INCREMENTS
    run.check(f"{CLIENTS} clients at once", done == expected, f"{done} increments acknowledged")
    await run.perform(gives("SELECT n FROM counter", str(expected)))


async def transfers_keep_the_sum(run: Run) -> None:
    """Transfers and audits run at the same time: no audit sees half a transfer."""
    await run.perform(
        does(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER CHECK (balance >= 0))"
        ),
        changes("INSERT INTO accounts SELECT n, 100 FROM generate_series(0, 7) AS s (n)", 8),
    )
    sums: list[int] = []

    async def transfer(client: int) -> None:
        for at in range(INCREMENTS):
            giver, taker = (client + at) % 8, (client + 3 * at + 1) % 8
            async with run.overlapping(f"client {client}", max_retries=2) as (transaction,):
                await transaction.perform(
                    does("UPDATE accounts SET balance = balance - 5 WHERE id = ?", [giver]),
                    does("UPDATE accounts SET balance = balance + 5 WHERE id = ?", [taker]),
                )
                await transaction.commit()
            found = await run.database.execute("SELECT sum(balance)::INTEGER FROM accounts")
            sums.append(found.rows[0][0])

    async with trio.open_nursery() as nursery:
        for client in range(4):
            nursery.start_soon(transfer, client)
    run.check("Every audit finds 800", set(sums) == {800}, f"sums {sorted(set(sums))}")
    await run.perform(gives("SELECT sum(balance) FROM accounts", "800"))


async def recency(run: Run) -> None:
    """Every request sees the writes that were acknowledged before it began."""
    await run.perform(*COUNTER)
    stale = 0
    for expected in range(1, 51):
        written = await run.database.execute("UPDATE counter SET n = n + 1")
        read = await run.database.execute("SELECT n FROM counter")
        stale += read.rows != [(expected,)] or read.version < written.version
    run.check("50 writes, each followed by a read", stale == 0, f"{stale} stale reads")


async def exactly_once(run: Run) -> None:
    """A change that is sent again is applied once, and answered the same, also after a restart."""
    log = MemoryLog()
    increment = [Statement("UPDATE counter SET n = n + 1")]
    once = Once(b"key", b"request", ANSWER_STORED_SECONDS, lambda results, _: (b"version ", b""))
    async with run.reopened(log):
        await run.perform(*COUNTER)
        first = (await run.database.transaction(increment, once=once)).answered
    async with run.reopened(log):
        again = (await run.database.transaction(increment, once=once)).answered
        assert first is not None and again is not None
        same = again.replayed and again.text == first.text and not first.replayed
        run.check("The same request again", same, again.text.decode())
        await run.perform(gives("SELECT n FROM counter", "1"))
        other = msgspec.structs.replace(once, fingerprint=b"other")
        try:
            await run.database.transaction(increment, once=other)
            code = "no error"
        except QserverError as error:
            code = error.code
        run.check("Another request with its key", code == "QS032", code)


async def dry_runs(run: Run) -> None:
    """A dry run shows each row that would change, a cascade's too, and changes none."""
    await run.perform(
        does("CREATE TABLE parents (id INTEGER PRIMARY KEY)"),
        does(
            "CREATE TABLE children"
            " (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parents ON DELETE CASCADE)"
        ),
        changes("INSERT INTO parents VALUES (1), (2)", 2),
        changes("INSERT INTO children VALUES (10, 1), (11, 1), (12, 2)", 3),
    )
    statement = Statement("DELETE FROM parents WHERE id = 1")
    tried = await run.database.transaction([statement], dry_run=True)
    assert tried.diff is not None
    gone = [each.before for each in tried.diff.changes if each.op == "delete"]
    run.check("DELETE, as a dry run", gone == [(10, 1), (11, 1), (1,)], f"{gone} would go")
    await run.perform(
        gives("SELECT count(*) FROM parents", "2"), gives("SELECT count(*) FROM children", "3")
    )


async def open_transactions(run: Run) -> None:
    """A transaction stays open between requests: savepoints, its own snapshot, a conflict."""
    database = run.database
    await run.perform(*COUNTER)
    first, second = await database.open(), await database.open()

    async def inside(transaction: OpenTransaction, sql: str) -> list[Any]:
        outcome = await database.inside(transaction, [Statement(sql)], RunOptions())
        return [row[0] for row in outcome.results[0].rows]

    for transaction in (first, second):
        found = await inside(transaction, "UPDATE counter SET n = n + 1 RETURNING n")
        run.check("UPDATE in each of two open transactions", found == [1], f"n is {found}")
    await inside(first, "SAVEPOINT a")
    await inside(first, "DELETE FROM counter")
    await inside(first, "ROLLBACK TO a")
    found = await inside(first, "SELECT n FROM counter")
    run.check("ROLLBACK TO a savepoint before a DELETE", found == [1], f"n is {found}")
    await run.perform(gives("SELECT n FROM counter", "0"))
    await run_steps(database.committing(first, RunOptions()))
    await run.perform(gives("SELECT n FROM counter", "1"))
    try:
        await run_steps(database.committing(second, RunOptions()))
    except SerializationFailure as error:
        run.check("COMMIT of the second", True, error.message)
    else:
        run.check("COMMIT of the second", False, "no conflict")
    await run.perform(gives("SELECT n FROM counter", "1"))
    for transaction in (first, second):
        transaction.release()


async def rows_in_bulk(run: Run) -> None:
    """Rows come in bulk: all of them, or the number of the first that is wrong."""
    await run.perform(does("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT DEFAULT 'none')"))
    transaction = await run.database.open()
    try:
        insert = BulkInsert(run.database, transaction, "t", "update", RunOptions())
        await insert.add(RowBatch(("a", "b"), [(1, "one"), (2, None)], 1))
        await insert.add(RowBatch(("a",), [(3,), (1,)], 3))
        await insert.commit()
        count = insert.affected_rows
        run.check("four rows, two of them with one key", count == 4, f"{count} affected")
    finally:
        transaction.release()
    await run.perform(gives("SELECT * FROM t ORDER BY a", "1 | one", "2 | NULL", "3 | none"))
    transaction = await run.database.open()
    try:
        insert = BulkInsert(run.database, transaction, "t", "error", RunOptions())
        await insert.add(RowBatch(("a",), [(4,), (5,), (2,), (6,)], 1))
    except UniqueViolation as error:
        run.check("four rows, the third with a key that is taken", error.row == 3, error.message)
    else:
        run.check("four rows, the third with a key that is taken", False, "no error")
    finally:
        transaction.release()
    await run.perform(gives("SELECT count(*) FROM t", "3"))


async def rows_in_bulk_once(run: Run) -> None:
    """The answer of rows in bulk is stored by their commit; who comes second conflicts with it."""
    await run.perform(does("CREATE TABLE t (a INTEGER PRIMARY KEY)"))
    database, name = run.database, b"bulk"
    both = [await database.open(), await database.open()]
    try:
        for number, transaction in enumerate(both):
            database.stored_answer(transaction.transaction, name)
            insert = BulkInsert(database, transaction, "t", "error", RunOptions())
            await insert.add(RowBatch(("a",), [(number,)], 1))
            answer = name, database.new_answer(b"fingerprint", b"version ", b"")
            try:
                version = await insert.commit(answer=answer)
            except SerializationFailure as error:
                run.check("the same request at once", number == 1, error.message)
            else:
                run.check("rows with their answer", number == 0, f"version {version}")
    finally:
        for transaction in both:
            transaction.release()
    snapshot = await database.database.wait_durable_snapshot()
    stored = database.stored_answer(snapshot, name)
    found = "none" if stored is None else stored.text.decode()
    run.check("the stored answer", found == f"version {snapshot.version}", found)
    await run.perform(gives("SELECT a FROM t", "0"))


async def bound_on_changes(run: Run) -> None:
    """With max_affected, a statement that would change more rows is refused as a whole."""
    await run.perform(
        does("CREATE TABLE t (a INTEGER)"),
        changes("INSERT INTO t SELECT generate_series(1, 9)", 9),
    )
    statement = Statement("DELETE FROM t WHERE a > 3")
    try:
        await run.database.transaction([statement], max_affected=5)
    except TooManyAffected as error:
        run.check("DELETE of 6 rows, 5 allowed", True, error.message)
    else:
        run.check("DELETE of 6 rows, 5 allowed", False, "no error")
    await run.perform(gives("SELECT count(*) FROM t", "9"))
    await run.database.transaction([statement], max_affected=6)
    await run.perform(gives("SELECT count(*) FROM t", "3"))


async def bound_to_a_version(run: Run) -> None:
    """With if_version, a request is refused if a table that it touches has changed since."""
    await run.perform(*COUNTER, does("CREATE TABLE other (a INTEGER)"))
    read = (await run.database.execute("SELECT n FROM counter")).version
    await run.perform(changes("INSERT INTO other VALUES (1)", 1))
    increment = [Statement("UPDATE counter SET n = n + 1")]
    done = await run.database.transaction(increment, if_version=read)
    run.check("another table has changed", done.version > read, f"version {done.version}")
    for what, statements in (
        ("the table has changed: UPDATE", increment),
        ("the table has changed: SELECT", [Statement("SELECT n FROM counter")]),
    ):
        try:
            await run.database.transaction(statements, if_version=read)
        except SerializationFailure as error:
            run.check(what, not error.retryable, error.message)
        else:
            run.check(what, False, "no error")
    await run.perform(gives("SELECT n FROM counter", "1"))


async def known_results(run: Run) -> None:
    """That a result still holds is known without running the query, until its table changes."""
    await run.perform(*COUNTER, does("CREATE TABLE other (a INTEGER)"))
    seen: list[Any] = []

    def is_known(basis: Any) -> bool:
        seen.append(basis)
        return len(seen) > 1 and seen[-1] == seen[-2]

    async def read() -> str:
        query = Statement("SELECT n FROM counter")
        found = await run.database.read(query, RunOptions(), is_known)
        return "known" if found is None else f"n = {found.results[0].rows[0][0]}"

    outcomes = [await read(), await read()]
    await run.perform(changes("INSERT INTO other VALUES (1)", 1), does("DROP TABLE other"))
    outcomes.append(await read())
    await run.perform(changes("UPDATE counter SET n = 1", 1))
    outcomes.append(await read())
    expected = ["n = 0", "known", "known", "n = 1"]
    run.check("Four reads", outcomes == expected, ", ".join(outcomes))


PROBES: Final = (
    Probe(
        "transaction",
        CATEGORY,
        "Statements of one request run in order and see what those before them did.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"),
            together(
                changes("INSERT INTO t VALUES (1, 1), (2, 2)", 2),
                changes("UPDATE t SET n = n * 10", 2),
                gives("SELECT sum(n) FROM t", "30"),
                changes("DELETE FROM t WHERE id = 1", 1),
            ),
            gives("SELECT * FROM t", "2 | 20"),
        ),
    ),
    Probe(
        "atomicity",
        CATEGORY,
        "A transaction of which one statement fails leaves nothing behind.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"),
            changes("INSERT INTO t VALUES (1, 1)", 1),
            together(
                changes("UPDATE t SET n = 99", 1),
                changes("INSERT INTO t VALUES (2, 2)", 1),
                fails("INSERT INTO t VALUES (1, 1)", "23505"),
            ),
            gives("SELECT * FROM t", "1 | 1"),
            together(changes("DELETE FROM t", 1), fails("SELECT broken FROM t", "42703")),
            gives("SELECT * FROM t", "1 | 1"),
        ),
    ),
    Probe(
        "savepoints",
        CATEGORY,
        "SAVEPOINT, ROLLBACK TO and RELEASE undo a part of a transaction's statements.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY)"),
            together(
                changes("INSERT INTO t VALUES (1)", 1),
                does("SAVEPOINT a"),
                changes("DELETE FROM t", 1),
                does("SAVEPOINT b"),
                changes("INSERT INTO t VALUES (2)", 1),
                does("RELEASE b"),
                does("ROLLBACK TO a"),
                changes("INSERT INTO t VALUES (3)", 1),
            ),
            gives("SELECT sum(id) FROM t", "4"),
            together(does("SAVEPOINT a"), changes("DELETE FROM t", 2), fails("RELEASE b", "3B001")),
            gives("SELECT sum(id) FROM t", "4"),
        ),
    ),
    Probe(
        "open_transactions",
        CATEGORY,
        "A transaction stays open between requests, with savepoints; its commit is serializable.",
        open_transactions,
    ),
    Probe(
        "bulk_rows",
        CATEGORY,
        "Rows in bulk are one transaction; the first bad one is named, and nothing is applied.",
        rows_in_bulk,
    ),
    Probe(
        "bulk_rows_once",
        CATEGORY,
        "Rows in bulk with an Idempotency-Key are applied once, however often they are sent.",
        rows_in_bulk_once,
    ),
    Probe(
        "dry_run",
        CATEGORY,
        "A dry run answers with what would change, and changes nothing.",
        dry_runs,
    ),
    Probe(
        "max_affected",
        CATEGORY,
        "A request that would change more rows than it allows itself changes none.",
        bound_on_changes,
    ),
    Probe(
        "if_version",
        CATEGORY,
        "A request runs only if no table that it touches has changed since a version.",
        bound_to_a_version,
    ),
    Probe(
        "transaction_control_refused",
        CATEGORY,
        "BEGIN, COMMIT and ROLLBACK are refused clearly: a request is a transaction.",
        (
            fails("BEGIN", "25001"),
            fails("COMMIT", "25001"),
            fails("ROLLBACK", "25001"),
            fails("SAVEPOINT s", "25P01"),
        ),
    ),
    Probe(
        "retry_of_conflicts",
        CATEGORY,
        "A transaction that met a conflict is run again on the newest data, by the server.",
        retry_of_conflicts,
    ),
    Probe(
        "turn_after_retries",
        CATEGORY,
        "Under any contention a transaction ends: after its retries nobody else may commit.",
        turn_after_retries,
    ),
    Probe(
        "hot_counter",
        CATEGORY,
        "One row incremented by many clients at once loses no increment.",
        hot_counter,
    ),
    Probe(
        "transfers_keep_the_sum",
        CATEGORY,
        "Concurrent transfers between rows on several shards, audited while they run.",
        transfers_keep_the_sum,
    ),
    Probe(
        "recency",
        CATEGORY,
        "Strict serializability: a read sees every write that was answered before it began.",
        recency,
    ),
    Probe(
        "exactly_once",
        CATEGORY,
        "A request with an Idempotency-Key is applied once, however often it is sent.",
        exactly_once,
    ),
    Probe(
        "query_etag",
        CATEGORY,
        "GET /v1/query has an ETag that holds until a table that the query reads changes.",
        known_results,
    ),
)
