"""Probes of streams: rows leave as they are computed, from one version, while a client reads."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import Final

from qserver.engine.channels import Listener
from qserver.engine.feed import StatedChange
from qserver.probes.run import Probe, Run
from qserver.probes.steps import changes, does, fails, gives, together
from qserver.sql import Rows
from qserver.storage.changes import Change

CATEGORY: Final = "streaming"
ROWS: Final = 3000
TABLE: Final = (
    does("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL)"),
    changes(f"INSERT INTO t SELECT n, 0 FROM generate_series(1, {ROWS}) AS s (n)", ROWS),
)
ENDLESS: Final = "SELECT n FROM generate_series(1, 1000000000000) AS s (n)"
"""More rows than any client could hold or wait for."""


async def first_row_at_once(run: Run) -> None:
    """The statement never ends, but its first rows arrive."""
    stream = await run.database.stream(ENDLESS)
    first = await anext(stream)
    await stream.aclose()
    found = f"{len(first)} rows in the first page, from {first[0][0]}"
    run.check(f"{ENDLESS}, first page", first[0] == (1,) and len(first) < 100_000, found)


async def one_version(run: Run) -> None:
    """Every row changes, and more are inserted, while the stream is read."""
    await run.perform(*TABLE)
    stream = await run.database.stream("SELECT id, v FROM t")
    rows = list(await anext(stream))
    await run.perform(
        changes("UPDATE t SET v = 1", ROWS),
        changes(f"INSERT INTO t VALUES ({ROWS + 1}, 1)", 1),
    )
    async for page in stream:
        rows += page
    changed = sum(v for _, v in rows)
    distinct = len({row_id for row_id, _ in rows})
    found = f"{len(rows)} rows, {distinct} of them distinct, {changed} changed"
    run.check("The stream's rows", (len(rows), distinct, changed) == (ROWS, ROWS, 0), found)
    await run.perform(gives("SELECT count(*), sum(v) FROM t", f"{ROWS + 1} | {ROWS + 1}"))


async def closing_early(run: Run) -> None:
    """A client that leaves ends the statement; other clients notice nothing."""
    stream = await run.database.stream(ENDLESS)
    await anext(stream)
    await stream.aclose()
    left = [page async for page in stream]
    run.check("Pages after the end", left == [], f"{len(left)} pages")
    await run.perform(gives("SELECT 1", "1"))


async def stream_of_changes(run: Run) -> None:
    """A statement that changes rows commits before it streams them."""
    await run.perform(*TABLE)
    stream = await run.database.stream("DELETE FROM t WHERE id <= ? RETURNING id", [2])
    rows = sorted([row for page in [page async for page in stream] for row in page])
    run.check("Rows of DELETE … RETURNING", rows == [(1,), (2,)], f"{rows}")
    await run.perform(gives("SELECT min(id) FROM t", "3"))


async def error_in_the_middle(run: Run) -> None:
    """An error after many rows arrives after those rows."""
    sql = "SELECT 1 / (2000 - n) FROM generate_series(1, 3000) AS s (n)"
    await run.perform(fails(sql, "22012"))
    stream = await run.database.stream(sql)
    rows = 0
    code = "none"
    try:
        async for page in stream:
            rows += len(page)
    except Exception as error:
        code = getattr(error, "code", repr(error))
    run.check(sql, code == "22012" and 0 < rows < 2000, f"{rows} rows, then error {code}")


async def live_query(run: Run) -> None:
    """Changes of a live query lead to the result at the version that it names."""
    await run.perform(*TABLE)
    for sql in ("SELECT id, v FROM t WHERE v > 0", "SELECT count(*), sum(v) FROM t"):
        live = await run.database.live(sql, lines_of=lambda _: _lines)
        result: Counter[bytes] = Counter()
        async for page in live.rows:
            live.first(lines := live.lines(page))
            result.update(lines)
        live.begin()
        await run.perform(changes("UPDATE t SET v = v + 1 WHERE id < 10", 9))
        async with aclosing(live.changes()) as told:
            async for deleted, inserted in told:
                result.subtract(deleted)
                result.update(inserted)
        await live.close()
        expected = Counter(_lines((await run.database.execute(sql)).rows))
        run.check(f"{sql}, followed", +result == expected, f"{expected.total()} rows")


async def change_feed(run: Run) -> None:
    """The feed has each version once, in order, and the statement of a definition."""
    database = run.database.database
    since = database.feed.newest()
    database.feed.open()
    try:
        await _follow(run, since)
    finally:
        database.feed.close()


async def _follow(run: Run, since: int) -> None:
    database = run.database.database
    await run.perform(*TABLE, changes("UPDATE t SET v = 1 WHERE id = 1", 1))
    newest = (await database.wait_durable_snapshot()).version
    versions: list[int] = []
    told: list[Change] = []
    async with aclosing(database.feed.after(since, database.catch_up)) as feed:
        while not versions or versions[-1] < newest:
            version = await anext(feed)
            versions.append(version.version)
            told.extend(await version.changes())
    expected = list(range(since + 1, newest + 1))
    run.check("Versions of the feed", versions == expected, f"{versions}")
    stated = [each.statement for each in told if isinstance(each, StatedChange)]
    run.check("Its definitions", stated == [TABLE[0].sql], f"{stated}")
    found = [each.op for each in told[1:]]
    expected_ops = ["insert"] * ROWS + ["update"]
    run.check("Its changes of rows", found == expected_ops, f"{len(found)} changes")


async def notifications(run: Run) -> None:
    """A listener hears what was committed, once and in order, and nothing of what was not."""
    listener = Listener(lambda: None)
    listener.listen(run.database.database.channels, frozenset({"news"}))
    try:
        await run.perform(
            does("NOTIFY news, 'first'"),
            does("SELECT pg_notify('news', 'second')"),
            does("NOTIFY other, 'elsewhere'"),
            fails("SELECT pg_notify('news', 'never'), 1 / 0", "22012"),
            together(does("NOTIFY news, 'third'"), does("NOTIFY news, 'third'")),
            fails("LISTEN news", "0A000"),
        )
        heard = []
        while (each := listener.take()) is not None:
            heard.append(each.payload)
        run.check("Heard of the channel", heard == ["first", "second", "third"], f"{heard}")
    finally:
        listener.close()


def _lines(rows: Rows) -> list[bytes]:
    return [repr(row).encode() for row in rows]


PROBES: Final = (
    Probe(
        "stream_first_row",
        CATEGORY,
        "The first rows leave before the statement has ended.",
        first_row_at_once,
    ),
    Probe(
        "stream_one_version",
        CATEGORY,
        "A stream reads one version from its first row to its last, while others write.",
        one_version,
    ),
    Probe("stream_close", CATEGORY, "A stream that is closed early ends at once.", closing_early),
    Probe(
        "stream_changes",
        CATEGORY,
        "INSERT, UPDATE and DELETE with RETURNING can be streamed.",
        stream_of_changes,
    ),
    Probe(
        "stream_error",
        CATEGORY,
        "An error in the middle of a stream ends it, after the rows before it.",
        error_in_the_middle,
    ),
    Probe(
        "live_query",
        CATEGORY,
        "A live query tells each change of its result, from rows that changed or by comparing.",
        live_query,
    ),
    Probe(
        "change_feed",
        CATEGORY,
        "The feed of changes has every version once and in order, with its rows and definitions.",
        change_feed,
    ),
    Probe(
        "listen_notify",
        CATEGORY,
        "Listeners hear what NOTIFY and pg_notify tell, when it is committed, once and in order.",
        notifications,
    ),
)
