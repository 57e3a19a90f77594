"""Probes of history and branches: the database as it was, and as it could have been."""

from __future__ import annotations

from typing import Final

from qserver.durability.branch_log import BranchLog, begin_branch, read_base
from qserver.durability.memory import MemoryLog
from qserver.errors import HistoryTooOld, QserverError
from qserver.probes.run import Probe, Run
from qserver.probes.steps import changes, does, gives
from qserver.query.sql_database import Statement
from qserver.storage.snapshot_changes import snapshot_changes

CATEGORY: Final = "history"
HISTORY_SECONDS: Final = 3600.0
READ: Final = Statement("SELECT * FROM t ORDER BY id")


async def older_versions(run: Run) -> None:
    """Each version can be read as it was, while newer ones are written."""
    run.database.database.keep_history(HISTORY_SECONDS)
    await run.perform(
        does("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)"),
        changes("INSERT INTO t VALUES (1, 10), (2, 20)", 2),
        changes("UPDATE t SET v = 11 WHERE id = 1", 1),
        does("DROP TABLE t"),
    )
    for version, expected in ((2, [(1, 10), (2, 20)]), (3, [(1, 11), (2, 20)])):
        (result,) = (await run.database.transaction([READ], as_of=version)).results
        run.check(
            f"SELECT * FROM t, as of version {version}", result.rows == expected, f"{result.rows}"
        )


async def too_old(run: Run) -> None:
    """Without history only the newest version can be read."""
    await run.perform(does("CREATE TABLE t (id INTEGER PRIMARY KEY)"), does("DROP TABLE t"))
    try:
        found = str((await run.database.transaction([READ], as_of=1)).results)
    except HistoryTooOld as error:
        found = error.code
    run.check("SELECT * FROM t, as of version 1", found == HistoryTooOld.code, found)


async def listed_versions(run: Run) -> None:
    """The versions that are kept are listed with the tables that they touched."""
    database = run.database.database
    database.keep_history(HISTORY_SECONDS)
    await run.perform(
        does("CREATE TABLE t (id INTEGER PRIMARY KEY)"), changes("INSERT INTO t VALUES (1), (2)", 2)
    )
    listed = await database.history.versions(None, 10)
    found = [(each.version, each.tables, each.rows_changed) for each in listed]
    run.check("Versions, newest first", found == [(2, ["t"], 2), (1, ["t"], 0)], f"{found}")


async def differences(run: Run) -> None:
    """The difference of two versions is net, in either direction."""
    database = run.database.database
    database.keep_history(HISTORY_SECONDS)
    await run.perform(
        does("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)"),
        changes("INSERT INTO t VALUES (1, 10)", 1),
        changes("INSERT INTO t VALUES (2, 20)", 1),
        changes("UPDATE t SET v = 11", 2),
        changes("DELETE FROM t WHERE id = 2", 1),
    )
    old, new = await database.snapshot_at(2), await database.wait_durable_snapshot()
    for before, after, expected in ((old, new, (1, 11)), (new, old, (1, 10))):
        found = [each[2].after for each in snapshot_changes(before, after) if each is not None]
        what = f"From version {before.version} to {after.version}"
        run.check(what, found == [expected], f"{found}")


async def restored(run: Run) -> None:
    """A restore is a new version like an older one, and can be undone by another."""
    database = run.database.database
    database.keep_history(HISTORY_SECONDS)
    await run.perform(
        does("CREATE TABLE t (id SERIAL PRIMARY KEY, v INTEGER)"),
        changes("INSERT INTO t (v) VALUES (10), (20)", 2),
    )
    good = (await database.wait_durable_snapshot()).version
    await run.perform(does("DROP TABLE t"))
    made, _ = await database.restore_version(good)
    run.check("Restore", made == good + 2, f"version {made}, as version {good}")
    await run.perform(gives("SELECT v FROM t ORDER BY v", "10", "20"))
    result = await run.database.execute("INSERT INTO t (v) VALUES (30) RETURNING id")
    run.check("The next number", result.rows[0][0] > 2, f"{result.rows}")
    await database.restore_version(good + 1)
    try:
        found = str((await run.database.execute("SELECT * FROM t")).rows)
    except QserverError as error:
        found = error.code
    run.check("SELECT * FROM t, after the restore is undone", found == "42P01", found)


async def branches(run: Run) -> None:
    """A branch shares the pages of its parent, and both change apart."""
    database, own = run.database.database, MemoryLog()
    await run.perform(
        does("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)"),
        changes("INSERT INTO t SELECT n, n FROM generate_series(1, 1000) AS g (n)", 1000),
    )
    await database.checkpoint()
    version = (await database.wait_durable_snapshot()).version
    kept = await database.pin_checkpoint("branch", version)
    assert kept is not None, "it is the newest"
    await begin_branch(own, database.log, "parent", kept, version)
    base = read_base(own)
    assert base is not None, "it was just written"
    pages = [number for number, _ in await own.load_pages(0, 10)]
    run.check("Pages that the branch has of its own", not pages, f"{len(pages)}")
    async with run.reopened(BranchLog(own, base, database.log)):
        await run.perform(
            changes("DELETE FROM t WHERE id > 10", 990), gives("SELECT count(*) FROM t", "10")
        )
    await run.perform(gives("SELECT count(*) FROM t", "1000"), changes("UPDATE t SET v = 0", 1000))
    await database.checkpoint()
    async with run.reopened(BranchLog(own, base, database.log)):
        await run.perform(gives("SELECT count(*), sum(v) FROM t", "10 | 55"))


PROBES: Final = (
    Probe(
        "history_as_of",
        CATEGORY,
        "`as_of` reads the database as it was at an older version or time.",
        older_versions,
    ),
    Probe(
        "history_too_old",
        CATEGORY,
        "A version that is not kept is refused with QS004.",
        too_old,
    ),
    Probe(
        "history_versions",
        CATEGORY,
        "Versions are listed with their time and the tables that they touched.",
        listed_versions,
    ),
    Probe(
        "history_diff",
        CATEGORY,
        "Two versions are compared, net, in either direction.",
        differences,
    ),
    Probe(
        "history_restore",
        CATEGORY,
        "A database is made what it was, as a new version that can be undone.",
        restored,
    ),
    Probe(
        "branches",
        CATEGORY,
        "A branch begins as another database, shares its pages, and changes apart from it.",
        branches,
    ),
)
