"""`check` finds what checksums cannot, and says nothing of data that are sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from qserver.durability.check import PROBLEMS_MAX, check, check_file
from qserver.durability.check_snapshot import problems_of
from qserver.durability.recovery import recover
from qserver.durability.restoring import restore
from qserver.durability.saved_pages import SavedPages
from qserver.durability.sqlite import SqliteLog, open_log
from qserver.errors import DataCorrupted, DataInUse, DataUnknown, LogFailed
from qserver.storage.btree import branch_of
from qserver.storage.page import EMPTY, Leaf, Tree
from qserver.storage.ranges import Range, RangedTree, laid_over
from qserver.storage.snapshot import Snapshot
from tests.durability.histories import History, run_step, same, save
from tests.sql.databases import opened_sql
from tests.storage.databases import ranges_of
from tests.storage.trees import build, leaf_of


def filled(rows: int = 200, shards: int = 2) -> History:
    history = History(shards)
    run_step(history, ("t", [(number, f"word {number}") for number in range(rows)], "nothing"))
    run_step(history, ("u", [(number, None) for number in range(5)], "nothing"))
    return history


async def write(log: SqliteLog, history: History, snapshot: Snapshot | None = None) -> None:
    await history.append_to(log)
    await save(log, SavedPages(), snapshot or history.snapshot)


def with_tree(
    snapshot: Snapshot, name: str, change: Callable[[Tree], Tree], at: int = 0
) -> Snapshot:
    """The snapshot with the root of one range of a tree changed, by the name of the tree."""
    (number,) = [
        each for each, _ in snapshot.trees.items() if snapshot.catalog.name_of_tree(each) == name
    ]
    tree = snapshot.trees.tree(number)
    roots = list(tree.roots)
    roots[at] = change(roots[at])
    return with_ranges(snapshot, number, RangedTree(tree.ranges, tuple(roots), tree.lows))


def with_ranges(snapshot: Snapshot, number: int, tree: RangedTree) -> Snapshot:
    trees = snapshot.trees.changed({number: tree})
    return Snapshot(snapshot.version, snapshot.time, snapshot.catalog, trees, snapshot.shards)


def entries(tree: Tree) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    keys, values = [], []
    stack = [tree]
    while stack:
        page = stack.pop()
        if isinstance(page, Leaf):
            keys += page.keys
            values += page.values
        else:
            stack += reversed(page.children)
    return keys, values


def without_first(tree: Tree) -> Tree:
    keys, values = entries(tree)
    return build(keys[1:], values[1:])


def twice(tree: Tree) -> Tree:
    leaf = leaf_of([(1,), (1,)], [(1, "a", "a1"), (1, "a", "a1")])
    return leaf if isinstance(tree, Leaf) else branch_of([(5,)], [leaf, leaf_of([(2,)], [(2,)])])


def shortened(tree: Tree) -> Tree:
    keys, values = entries(tree)
    return build(keys, [values[0][:-1], *values[1:]])


def misfiled(tree: Tree) -> Tree:
    keys, values = entries(tree)
    return build(keys, [values[1], values[0], *values[2:]])


async def test_sound_data_are_reported_as_sound(tmp_path: Path) -> None:
    history = filled()
    async with await open_log(tmp_path / "data") as log:
        await write(log, history)
        run_step(history, ("t", [(7, "seven")], "nothing"))
        await history.append_to(log)
        report = await check(log, log)
    assert report.is_sound and report.problems == ()
    assert (report.version, report.checkpoint, report.ranges) == (3, 2, 8)
    assert report.rows == {"t": 200, "u": 5} and report.log_bytes > 0 and report.pages > 10
    assert str(report).endswith("no problem") and "205 rows" in str(report)
    assert await check_file(tmp_path / "data") == report


STATEMENTS = (
    "CREATE SEQUENCE s START 5",
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE TABLE p (id SERIAL PRIMARY KEY, name TEXT UNIQUE, at TIMESTAMPTZ DEFAULT now())",
    "CREATE TABLE c (p_id INTEGER REFERENCES p, m mood, amount NUMERIC(10, 2), tags TEXT[])",
    "CREATE INDEX c_by_amount ON c (amount DESC, m)",
    "INSERT INTO p (name) SELECT 'name ' || n FROM generate_series(1, 300) AS g (n)",
    "INSERT INTO c SELECT id, 'glad', id * 1.5, ARRAY[name, NULL] FROM p",
    "CREATE VIEW v AS SELECT name, amount FROM p JOIN c ON p.id = c.p_id",
    "ALTER TABLE p ADD COLUMN more INTEGER DEFAULT 7",
    "ALTER TABLE c DROP COLUMN tags",
    "UPDATE c SET amount = NULL, m = 'sad' WHERE p_id % 3 = 0",
    "DELETE FROM c WHERE p_id > 250",
    "SELECT nextval('s')",
)
QUESTIONS = (
    "SELECT count(*), sum(amount), max(more) FROM p JOIN c ON p.id = c.p_id",
    "SELECT * FROM v WHERE amount > 300 ORDER BY amount",
    "SELECT * FROM c WHERE m = 'sad' ORDER BY p_id LIMIT 3",
)


async def test_what_sql_has_made_is_sound_and_the_same_from_a_checkpoint(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        async with opened_sql(log) as database:
            for statement in STATEMENTS:
                await database.execute(statement)
            before = [(await database.execute(question)).rows for question in QUESTIONS]
            await database.database.checkpoint()
        assert await log.read(0, 10) == []
        report = await check(log, log)
        async with opened_sql(log) as database:
            after = [(await database.execute(question)).rows for question in QUESTIONS]
            numbers = (await database.execute("SELECT nextval('s')")).rows
    assert report.problems == () and report.rows == {"p": 300, "c": 250}
    assert before == after and len(before[1]) > 10
    assert numbers[0][0] > 5, "no number is given out twice"


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("t", twice, "t: keys do not ascend"),
        ("t", shortened, "has 2 values, not 3"),
        ("t", misfiled, "is filed under"),
        ("t", lambda tree: EMPTY, "entries for"),
        ("t_by_word", without_first, "t_by_word: there is no entry for row"),
        ("t_by_word", lambda tree: EMPTY, "t_by_word: there is no entry for row"),
        ("t_unique_other", twice, "do not ascend"),
    ],
)
async def test_what_is_whole_and_wrong_is_found(
    tmp_path: Path, name: str, change: Callable[[Tree], Tree], problem: str
) -> None:
    history = filled()
    wrong = with_tree(history.snapshot, name, change)
    async with await open_log(tmp_path / "data") as log:
        await write(log, history, wrong)
        report = await check(log, log)
    assert not report.is_sound
    assert any(problem in each for each in report.problems), report.problems
    assert len(report.problems) <= PROBLEMS_MAX + 1


def ranges_of_t() -> tuple[Snapshot, int, RangedTree]:
    with ranges_of(80, 20):
        snapshot = filled().snapshot
    number = snapshot.catalog.tables["t"].id
    tree = snapshot.trees.tree(number)
    assert len(tree.ranges) == 3
    assert [each for each in problems_of(snapshot) if each] == []
    return snapshot, number, tree


def test_a_row_in_the_wrong_range_is_found() -> None:
    snapshot, number, tree = ranges_of_t()
    low, other = tree.lows
    for lows in (((low[0] + 1,), other), (low, (other[0] - 1,))):
        roots = list(tree.roots)
        wrong = with_ranges(snapshot, number, laid_over(number, lows, roots, 0, snapshot.shards))
        assert any("do not belong there" in each for each in problems_of(wrong) if each)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda ranges: (*ranges[:-1], replace(ranges[-1], shard=2)), "belongs to no shard"),
        (lambda ranges: (*ranges[:-1], replace(ranges[-1], high=(999,))), "leave gaps"),
        (lambda ranges: (replace(ranges[0], low=(0,)), *ranges[1:]), "leave gaps"),
        (lambda ranges: (ranges[0], replace(ranges[1], high=(150,)), ranges[2]), "leave gaps"),
    ],
)
def test_ranges_that_do_not_fit_are_found(
    change: Callable[[tuple[Range, ...]], tuple[Range, ...]], problem: str
) -> None:
    snapshot, number, tree = ranges_of_t()
    wrong = with_ranges(snapshot, number, RangedTree(change(tree.ranges), tree.roots, tree.lows))
    assert any(problem in each for each in problems_of(wrong) if each)


def test_ranges_in_another_order_are_found() -> None:
    snapshot, number, tree = ranges_of_t()
    swapped = laid_over(number, tree.lows[::-1], list(tree.roots), 0, snapshot.shards)
    problems = [each for each in problems_of(with_ranges(snapshot, number, swapped)) if each]
    assert any("not in order" in each for each in problems)


def test_a_tree_of_no_table_is_found() -> None:
    snapshot = filled().snapshot
    stray = laid_over(99, (), [build([(1,)], [(1,)])], 0, 2)
    lost = with_ranges(snapshot, 99, stray)
    assert [each for each in problems_of(lost) if each] == ["tree 99 belongs to no table"]


def test_a_leaf_outside_of_its_bounds_is_found() -> None:
    snapshot = filled(shards=1).snapshot
    moved = with_tree(
        snapshot,
        "u",
        lambda tree: branch_of(
            [(3,)],
            [
                leaf_of([(0,), (4,)], [(0, None, None), (4, None, None)]),
                leaf_of([(3,)], [(3, None, None)]),
            ],
        ),
    )
    assert any("do not belong there" in each for each in problems_of(moved) if each)


async def test_damage_is_a_problem_and_not_a_traceback(tmp_path: Path) -> None:
    history = filled()
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await write(log, history)
        pages = await log.load_pages(0, 1000)
        await log.save_pages([(pages[3][0], pages[4][1])])
        report = await check(log, log)
    assert not report.is_sound and report.version == history.snapshot.version
    assert "does not match its checksum" in report.problems[0]


async def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DataCorrupted, match="does not exist"):
        await check_file(tmp_path / "nothing")
    with pytest.raises(LogFailed, match="cannot be copied"):
        await restore(tmp_path / "nothing", tmp_path / "data")
    assert not (tmp_path / "nothing").exists() and not (tmp_path / "data").exists()


# --- backups -------------------------------------------------------------------------------------


async def test_what_is_restored_is_a_checked_copy_and_never_replaces_anything(
    tmp_path: Path,
) -> None:
    history = filled()
    copy, back = tmp_path / "data", tmp_path / "back"
    async with await open_log(copy) as log:
        await write(log, history)
    before = copy.read_bytes()
    report = await restore(copy, back)
    assert report.is_sound and report.version == 2
    assert copy.read_bytes() == before, "a backup is only read"
    with pytest.raises(DataInUse, match="exists already"):
        await restore(copy, back)
    async with await open_log(back) as log:
        assert same((await recover(log, 1)).snapshot, history.snapshot)
    assert names_in(tmp_path) == ["back", "back-mark", "data", "data-mark"]


async def test_an_unsound_backup_is_not_restored(tmp_path: Path) -> None:
    history = filled()
    wrong = with_tree(history.snapshot, "t_by_word", without_first)
    async with await open_log(tmp_path / "data") as log:
        await write(log, history, wrong)
    with pytest.raises(DataCorrupted, match="no entry for row"):
        await restore(tmp_path / "data", tmp_path / "back")
    (tmp_path / "stranger").write_text("x" * 200)
    with pytest.raises(DataUnknown):
        await restore(tmp_path / "stranger", tmp_path / "back")
    assert names_in(tmp_path) == ["data", "data-mark", "stranger"]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
