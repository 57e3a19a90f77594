"""Columns that are saved with their pages: scans read them, and answer as rows do."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.branch_log import BranchLog, begin_branch, read_base
from qserver.durability.check import check_file
from qserver.durability.column_numbers import PENDING, column_number, page_of
from qserver.durability.kept import decode_outline
from qserver.durability.memory import MemoryLog
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import StoredPage
from qserver.durability.saved_columns import encode_column
from qserver.durability.seal import sealed
from qserver.durability.sqlite import open_log
from qserver.engine.world import OrdinaryWorld
from qserver.errors import LogFailed
from qserver.limits import PAGE_ENTRIES_BUILT
from qserver.query.scratch import scratch_database
from qserver.query.sql_database import SqlDatabase
from qserver.storage.columns import Chunk
from qserver.values.vector_families import INTEGER, ColumnVector
from qserver.values.vectors import vector_of
from tests.patience import PATIENCE_SECONDS, PAUSE_SECONDS
from tests.sampling import examples
from tests.sql.databases import NOON, opened_sql
from tests.sql.vectors.queries import TABLE, Writer
from tests.sql.vectors.vectors import answer, both, tiny_chunks

ROWS = 10_000
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b NUMERIC(12, 2), c TEXT, d DATE)"
COLUMNS = 5
ALL = 1_000_000_000
ROWS_OF_PAGE = PAGE_ENTRIES_BUILT**2
FILL = (
    "INSERT INTO t SELECT n, n % 7, n % 1000 / 100.0, 'word ' || n % 5, DATE '2020-01-01' + n % 90"
    " FROM generate_series({}, {}) n"
)
SUM = "SELECT sum(a), sum(b), min(d), count(*) FROM t WHERE c <> 'word 3'"


def columns_in(log: MemoryLog) -> dict[int, int]:
    """The bytes of all saved columns, by number."""
    return {number: len(data) for number, data in log._pages.items() if page_of(number) != number}


@contextmanager
def counted_fills() -> Iterator[Counter[str]]:
    """Count the columns that are made of rows."""
    counts: Counter[str] = Counter()
    original = Chunk._fill

    def fill(*given: Any) -> None:
        counts["filled"] += 1
        original(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chunk, "_fill", fill)
        yield counts


async def loaded(log: MemoryLog, rows: int = ROWS) -> None:
    async with opened_sql(log) as database:
        await database.execute(CREATE)
        await database.execute(FILL.format(1, rows))
        await database.database.checkpoint()


async def test_the_first_scan_after_a_start_reads_no_leaf_of_a_table_that_was_loaded() -> None:
    log = MemoryLog()
    await loaded(log)
    async with opened_sql(log) as database:
        with counted_fills() as counts:
            await database.execute(f"EXPLAIN {SUM}")  # planning samples a few leaves
            loads = database.database.page_cache.loads
            over_vectors = await answer(database, SUM)
            assert not counts
            assert database.database.page_cache.loads == loads
    async with opened_sql(log) as database:
        assert over_vectors == (await both(database, SUM))[1]


async def test_what_is_loaded_in_pieces_is_saved_when_it_is_whole() -> None:
    """A page to which rows are still added is not saved with each checkpoint."""
    log = MemoryLog()
    await loaded(log, 1)
    async with opened_sql(log) as database:
        for start in range(2, ROWS, 1000):
            await database.execute(FILL.format(start, start + 999))
            await database.database.checkpoint()
            assert len(columns_in(log)) <= COLUMNS * (1 + (start + 1000) // ROWS_OF_PAGE)
    assert len(columns_in(log)) >= COLUMNS * (ROWS // ROWS_OF_PAGE - 1)


async def test_updates_here_and_there_write_no_columns_again() -> None:
    log = MemoryLog()
    await loaded(log)
    written = Counter[str]()
    save_pages = log.save_pages

    async def counted(pages: list[StoredPage]) -> None:
        for number, data in pages:
            written["columns" if page_of(number) != number else "pages"] += len(data)
        await save_pages(pages)

    log.save_pages = counted  # type: ignore[method-assign, assignment]
    chance = Random(1)
    async with opened_sql(log) as database:
        for _ in range(5):
            for _ in range(20):
                number = chance.randint(1, ROWS)
                await database.execute("UPDATE t SET a = a + 1 WHERE id = $1", [number])
            await database.execute(SUM)  # which fills vectors of the new pages
            await database.database.checkpoint()
    assert written["pages"] > 0
    assert written["columns"] <= written["pages"] / 20


async def test_columns_that_a_scan_has_filled_are_saved_once_their_page_has_stayed() -> None:
    log = MemoryLog()
    await loaded(log)
    async with opened_sql(log) as database:
        for number in range(1, ROWS, 300):
            await database.execute("UPDATE t SET a = 1 WHERE id = $1", [number])
        await database.database.checkpoint()
        assert not columns_in(log), "all of them were of pages that changed"
        await database.execute(SUM)
        expected = await answer(database, SUM)
        await database.database.checkpoint()
        saved = columns_in(log)
        assert len(saved) > COLUMNS * 2
        await database.execute(SUM)
        await database.database.checkpoint()
        assert columns_in(log) == saved, "they are saved once"
    async with opened_sql(log) as database:
        with counted_fills() as counts:
            assert await answer(database, SUM) == expected
        assert not counts


@pytest.mark.parametrize("kind", ["cut", "changed", "of another page", "of another release"])
async def test_a_column_that_cannot_be_used_is_made_of_its_rows_again(kind: str) -> None:
    log, reports = MemoryLog(), []
    await loaded(log)
    numbers = sorted(columns_in(log))
    for number, other in zip(numbers, numbers[1:] + numbers[:1], strict=True):
        data = log._pages[number]
        assert data[4:6] == b"\x97\x01", "an array of seven, and the format"
        log._pages[number] = {
            "cut": data[:-1],
            "changed": data[:20] + bytes([data[20] ^ 4]) + data[21:],
            "of another page": log._pages[other],
            "of another release": sealed(b"\x97\x02" + data[6:], number),
        }[kind]
    world = OrdinaryWorld(lambda: NOON, Random(0), lambda *given: reports.append(given))
    async with scratch_database(world, log=log) as database:
        over_vectors, by_rows = await both(database, SUM)
        assert over_vectors == by_rows
        is_damage = kind != "of another release"
        assert [text for text, _ in reports] == ["a saved column cannot be read"] * is_damage
        await database.execute(SUM)  # the first time, rows may be cheaper
        assert database.database.pages.trouble is None, "no answer was wrong or missing"
        await database.database.checkpoint()
    async with opened_sql(log) as database:
        with counted_fills() as counts:
            assert await answer(database, SUM) == by_rows
        assert not counts, "what was filled has taken the place of what was damaged"


async def test_columns_go_with_their_pages() -> None:
    log = MemoryLog()
    await loaded(log)
    assert columns_in(log)
    async with opened_sql(log) as database:
        await database.execute("DELETE FROM t WHERE id > 100")
        await database.database.checkpoint()
        await database.database.checkpoint()
        assert not columns_in(log)


async def test_columns_go_with_their_pages_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data.qserver"
    async with await open_log(path) as log:
        async with opened_sql(log) as database:
            await database.execute(CREATE)
            await database.execute(FILL.format(1, ROWS))
            await database.database.checkpoint()
        before = await log.page_sizes(-(1 << 63), 1000)
        assert before[0][0] < 0
    assert (await check_file(path)).problems == ()
    async with await open_log(path) as log:
        async with opened_sql(log) as database:
            await database.execute("DELETE FROM t WHERE id > 100")
            await database.database.checkpoint()
            await database.database.checkpoint()
        assert (await log.page_sizes(-(1 << 63), 1000))[0][0] >= 0
    report = await check_file(path)
    assert (report.problems, report.warnings) == ((), ())


class DyingLog(MemoryLog):
    """Nothing is written any more after a number of columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns

    async def save_pages(self, pages: Any) -> None:
        for number, data in pages:
            if page_of(number) != number:
                self.columns -= 1
            if self.columns < 0:
                raise LogFailed("the power is off")
            await super().save_pages([(number, data)])


def opened_in_trouble(log: MemoryLog) -> AbstractAsyncContextManager[SqlDatabase]:
    """What the database reports is expected."""
    return scratch_database(OrdinaryWorld(lambda: NOON, Random(0), lambda *_: None), log=log)


async def loaded_and_cut(log: DyingLog) -> None:
    """Load rows, and end before all columns are there."""
    async with opened_in_trouble(log) as database:
        await database.execute(CREATE)
        await database.execute(FILL.format(1, ROWS))
        with pytest.raises(LogFailed):
            await database.database.checkpoint()


async def all_are_there(log: MemoryLog) -> None:
    """Wait until a checkpointer has made all columns, though nobody has asked it to."""
    with trio.fail_after(PATIENCE_SECONDS):
        while PENDING in log._pages:  # noqa: ASYNC110 - the checkpointer gets on, by itself
            await trio.sleep(PAUSE_SECONDS)


@pytest.mark.parametrize("columns", [0, 1, 7])
async def test_a_crash_before_the_last_column_loses_nothing(columns: int) -> None:
    log = DyingLog(columns)
    await loaded_and_cut(log)
    assert len(columns_in(log)) == columns
    log.columns = 1000
    async with opened_sql(log) as database:
        expected = (await both(database, SUM))[1]
        for _ in range(2):
            assert await answer(database, SUM) == expected
        await database.database.checkpoint()
        assert len(columns_in(log)) > COLUMNS * 2
        pages = {page_of(number) for number in columns_in(log)}
        assert pages <= {number for number in log._pages if number > 0}
    async with opened_sql(log) as database:
        assert await answer(database, SUM) == expected


@pytest.mark.parametrize("columns", [0, 1, 7])
async def test_columns_that_a_process_has_not_made_the_next_one_makes(columns: int) -> None:
    whole, log = MemoryLog(), DyingLog(columns)
    await loaded(whole)
    await loaded_and_cut(log)
    assert len(columns_in(log)) == columns
    log.columns = len(columns_in(whole)) - columns // COLUMNS * COLUMNS
    async with opened_sql(log):
        with counted_fills() as counts:
            await all_are_there(log)
        assert not counts, "nobody has asked for them"
    assert log.columns == 0, "those of whole pages are not made again"
    assert columns_in(log) == columns_in(whole)


async def test_rows_that_cannot_be_read_do_not_stop_others_from_getting_columns() -> None:
    whole, log = MemoryLog(), DyingLog(0)
    await loaded(whole)
    await loaded_and_cut(log)
    log.columns = 1000
    log._pages[1] = log._pages[1][:-1]
    async with opened_in_trouble(log):
        await all_are_there(log)
    assert {page_of(each) for each in columns_in(whole)} - {
        page_of(each) for each in columns_in(log)
    } == {min(page_of(each) for each in columns_in(whole))}


@pytest.mark.parametrize("note", [b"", sealed(b"\xc0", PENDING)])
async def test_a_note_that_cannot_be_read_costs_columns_alone(note: bytes) -> None:
    log = MemoryLog()
    await loaded(log)
    columns = columns_in(log)
    log._pages[PENDING] = note
    async with opened_sql(log) as database:
        assert await answer(database, SUM) == (await both(database, SUM))[1]
        await database.execute(FILL.format(ROWS + 1, 2 * ROWS))
        await database.database.checkpoint()
    assert len(columns_in(log)) > len(columns) and PENDING not in log._pages


class Unfinished(MemoryLog):
    """Pages are saved, and no checkpoint."""

    fails = True

    async def save_checkpoint(self, *given: Any) -> None:
        if self.fails:
            raise LogFailed("the power is off")
        await super().save_checkpoint(*given)


async def test_the_note_of_a_first_checkpoint_that_failed_ends_with_the_next() -> None:
    log = Unfinished()
    async with opened_in_trouble(log) as database:
        await database.execute(CREATE)
        await database.execute(FILL.format(1, ROWS))
        with pytest.raises(LogFailed):
            await database.database.checkpoint()
        await database.execute("DELETE FROM t WHERE id > 10")
    assert PENDING in log._pages
    log.fails = False
    async with opened_sql(log) as database:
        await database.database.checkpoint()
    assert PENDING not in log._pages


@pytest.mark.half
async def test_a_branch_reads_the_columns_of_its_parent_and_saves_its_own() -> None:
    log, own = MemoryLog(), MemoryLog()
    await loaded(log)
    (version, outline), *_ = reversed(await log.load_outlines())
    kept = decode_outline(version, outline)
    await begin_branch(own, log, "parent", kept, version)
    base = read_base(own)
    assert base is not None
    branch = BranchLog(own, base, log)
    async with opened_sql(branch) as database:
        with counted_fills() as counts:
            over_vectors = await answer(database, SUM)
        assert not counts
        assert over_vectors == (await both(database, SUM))[1]
        await database.execute("UPDATE t SET a = a + 1 WHERE id = 3")
        await database.execute(FILL.format(ROWS + 1, 2 * ROWS))
        for _ in range(3):
            await database.execute(SUM)
            await database.database.checkpoint()
    assert columns_in(own)
    assert all(page_of(number) > base.last_page for number in columns_in(own))
    async with opened_sql(branch) as database:
        with counted_fills() as counts:
            over_vectors = await answer(database, SUM)
        assert not counts
        assert over_vectors == (await both(database, SUM))[1]


# --- check ---------------------------------------------------------------------------------------


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "data.qserver"
    async with await open_log(path) as log, opened_sql(log) as database:
        await database.execute(CREATE)
        await database.execute(FILL.format(1, ROWS))
        await database.database.checkpoint()
    report = await check_file(path)
    assert (report.problems, report.warnings) == ((), ())
    return path


def change(path: Path, text: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(text, values).rowcount == 1


def a_column(path: Path) -> tuple[int, bytes]:
    with closing(sqlite3.connect(path)) as connection:
        found: tuple[int, bytes] = connection.execute(
            "SELECT max(number), data FROM pages WHERE number < -1"
        ).fetchone()
    return found


async def test_check_warns_of_damaged_columns(path: Path) -> None:
    number, data = a_column(path)
    change(path, "UPDATE pages SET data = ? WHERE number = ?", data[:-1] + b"?", number)
    report = await check_file(path)
    assert report.problems == ()
    (warning,) = report.warnings
    assert warning.startswith("1 saved columns are damaged")


async def test_check_finds_a_column_that_is_whole_and_wrong(path: Path) -> None:
    number, data = a_column(path)
    page, wanted = page_of(number), ColumnVector(0, INTEGER)
    assert number == column_number(page, wanted)
    wrong = encode_column(page, ROWS_OF_PAGE, wanted, vector_of(list(range(ROWS_OF_PAGE)), wanted))
    change(path, "UPDATE pages SET data = ? WHERE number = ?", wrong, number)
    assert len(wrong) == len(data)
    report = await check_file(path)
    assert report.problems == (f"column 0 of page {page} has other values than its rows",)


async def test_check_finds_columns_of_a_leaf(path: Path) -> None:
    leaf = column_number(1, ColumnVector(0, INTEGER))
    data = encode_column(1, PAGE_ENTRIES_BUILT, ColumnVector(0, INTEGER), None)
    change(path, "INSERT INTO pages VALUES (?, ?)", leaf, data)
    report = await check_file(path)
    assert len(report.problems) == 1 and "columns of page 1" in report.problems[0]


async def test_check_warns_of_columns_that_nobody_will_forget(path: Path) -> None:
    number, data = a_column(path)
    async with await open_log(path) as log, opened_sql(log) as database:
        for sql in ("DELETE FROM t WHERE id > 100", "UPDATE t SET a = 1", "UPDATE t SET a = 2"):
            await database.execute(sql)
            await database.database.checkpoint()
    change(path, "INSERT INTO pages VALUES (?, ?)", number, data)
    report = await check_file(path)
    assert report.problems == () and report.leaked_bytes == len(data)
    assert "needed by nobody" in report.warnings[0]


# --- a model -------------------------------------------------------------------------------------

STEPS = st.lists(
    st.sampled_from(
        [
            *["insert"] * 3,
            "update",
            "delete",
            "alter",
            *["save"] * 3,
            "restart",
            "cut",
            "damage",
            *["ask"] * 3,
        ]
    ),
    min_size=5,
    max_size=30,
)


@pytest.mark.long
@settings(max_examples=examples(120))
@given(st.integers(0, 2**32), STEPS, st.sampled_from([0, 5_000, 1 << 20]))
def test_whatever_happens_scans_answer_as_rows_do(
    seed: int, steps: list[str], vector_bytes: int
) -> None:
    with tiny_chunks():
        trio.run(Machine(seed, vector_bytes).run, [*steps, "save", "restart", "ask", "ask"])


class Machine:
    def __init__(self, seed: int, vector_bytes: int) -> None:
        self.chance = Random(seed)
        self.log = DyingLog(ALL)
        self.writer = Writer(self.chance)
        self.vector_bytes = vector_bytes
        self.rows = 0

    async def run(self, steps: list[str]) -> None:
        async with self._opened() as database:
            await database.execute(TABLE)
            await self._do(database, "insert")
        at = 0
        while at < len(steps):
            self.log.columns = ALL
            async with self._opened() as database:
                while at < len(steps) and steps[at] not in ("restart", "cut"):
                    await self._do(database, steps[at])
                    at += 1
                if steps[at : at + 1] == ["cut"]:
                    self.log.columns = self.chance.randint(0, 20)
                    with suppress(LogFailed):
                        await database.database.checkpoint()
            at += 1

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[SqlDatabase]:
        async with opened_in_trouble(self.log) as database:
            database.database.page_cache.vectors.bytes_max = self.vector_bytes
            yield database

    async def _do(self, database: SqlDatabase, step: str) -> None:
        chance = self.chance
        first = chance.randint(0, self.rows)
        match step:
            case "insert":
                count = chance.choice((1, 10, 150))
                await database.execute(self.writer.rows(self.rows, count))
                self.rows += count
            case "update":
                some = f"id BETWEEN {first} AND {first + chance.choice((0, 5, 100))}"
                await database.execute(f"UPDATE t SET i4 = 5, tx = 'new', n2 = 1.5 WHERE {some}")
            case "delete":
                await database.execute(f"DELETE FROM t WHERE id = {first}")
            case "alter":
                scale = chance.choice((2, 3, 4))
                await answer(
                    database, f"ALTER TABLE t ALTER n2 TYPE NUMERIC({scale + 10}, {scale})"
                )
            case "save":
                await database.database.checkpoint()
            case "damage":
                for number in columns_in(self.log):
                    if chance.random() < 0.3:
                        self.log._pages[number] = self.log._pages[number][:-1]
            case "ask":
                for _ in range(3):
                    sql = self.writer.query()
                    over_vectors, by_rows = await both(database, sql, self.writer.parameters)
                    assert over_vectors == by_rows, (sql, self.writer.parameters)


async def test_the_model_reads_columns_that_are_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    load_columns = LoggedPages.load_columns

    def counted(*given: Any) -> Any:
        nonlocal read
        found = load_columns(*given)
        read += len(found)
        return found

    monkeypatch.setattr(LoggedPages, "load_columns", counted)
    with tiny_chunks():
        machine = Machine(7, 1 << 20)
        await machine.run(["insert", "save", "restart", "ask", "ask", "update", "save", "ask"])
    assert read > 20
