"""`check` finds damage to kept checkpoints, to the log between them, and to what branches share."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from qserver.cli import main
from qserver.durability.branch_log import begin_branch
from qserver.durability.check import Report, check_file
from qserver.durability.checkpoint import Checkpoint, decode_checkpoint
from qserver.durability.kept import (
    KeptCheckpoint,
    RetentionRules,
    decode_outline,
    encode_numbers,
    encode_outline,
)
from qserver.durability.pages import encode_page
from qserver.durability.port import CheckpointParts, Log
from qserver.durability.saved_pages import SavedPages
from qserver.durability.sqlite import SqliteLog, open_log
from tests.durability.histories import History, run_step
from tests.storage.trees import leaf_of

KEEP_ALL = RetentionRules(horizon=0.0, log_bytes=0)


class Kepts:
    """A file with checkpoints of versions 2, 4 and 6, which all are kept, and version 7."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pages: dict[int, set[int]] = {}
        """The pages that each checkpoint wrote."""

    async def write(self, pinned: str | None = None) -> None:
        history, saved = History(2), SavedPages()
        async with await open_log(self.path) as log:
            for step in range(1, 8):
                rows = [(n, f"word {n} of {step}") for n in range(0, 300, step)]
                run_step(history, ("t", rows, "nothing"))
                await history.append_to(log)
                if step in (2, 4, 6):
                    await self._save(log, saved, history)
            if pinned is not None:
                await self.pin(log, pinned)

    async def _save(self, log: SqliteLog, saved: SavedPages, history: History) -> None:
        made = saved.begin(history.snapshot)
        pages = list(made.pages())
        self.pages[history.snapshot.version] = {number for number, _ in pages}
        await log.save_pages(pages)
        row = made.stored(KEEP_ALL, 1000 * history.snapshot.version)
        await log.save_checkpoint(history.snapshot.version, *row)
        saved.confirm(made)

    async def pin(self, log: Log, name: str, version: int = 4) -> KeptCheckpoint:
        """Pin a checkpoint for a branch that borrows, and nothing else."""
        kepts = [decode_outline(each, outline) for each, outline in await log.load_outlines()]
        for kept in kepts:
            kept.names = kept.lent = [name] if kept.version == version else []
            parts = CheckpointParts(encode_outline(kept))
            await log.change_checkpoints([], [(kept.version, parts)])
        return next(kept for kept in kepts if kept.names)

    def gone(self, version: int) -> list[int]:
        """The pages that a checkpoint has not, and the one before it has."""
        connection = sqlite3.connect(self.path)
        ((data,),) = connection.execute(
            "SELECT gone FROM checkpoints WHERE version = ?", (version,)
        )
        connection.close()
        return list(memoryview(data[4:]).cast("Q"))

    def change(self, text: str, *values: object) -> None:
        """Change the file behind the back of everything."""
        connection = sqlite3.connect(self.path)
        assert connection.execute(text, values).rowcount > 0
        connection.commit()
        connection.close()

    def flip(self, table: str, column: str, where: str) -> None:
        connection = sqlite3.connect(self.path)
        select = f"SELECT {column}, rowid FROM {table} WHERE {where}"
        data, row = connection.execute(select).fetchone()
        connection.close()
        changed = data[:10] + bytes([data[10] ^ 1]) + data[11:]
        self.change(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", changed, row)


@pytest.fixture
async def kepts(tmp_path: Path) -> Kepts:
    made = Kepts(tmp_path / "main.qserver")
    await made.write()
    return made


def said(report: Report) -> str:
    return "\n".join([*report.problems, *report.warnings])


async def test_sound_history_is_counted_and_nothing_is_said_of_it(kepts: Kepts) -> None:
    report = await check_file(kepts.path)
    assert said(report) == "" and report.leaked_bytes == 0
    assert (report.version, report.checkpoint, report.checkpoints) == (7, 6, 3)


async def test_the_share_that_is_done_grows_up_to_all(kepts: Kepts) -> None:
    shares: list[float] = []
    monkey = pytest.MonkeyPatch()
    monkey.setattr("qserver.durability.check.STEPS_BEFORE_YIELDING", 10)
    await check_file(kepts.path, shares.append)
    monkey.undo()
    assert shares == sorted(shares) and len(shares) > 20
    assert shares[0] < 0.1 and 0.8 < shares[-1] <= 1


def only_old(kepts: Kepts) -> int:
    """A page that the oldest checkpoint has and no other."""
    return next(page for page in kepts.gone(4) if page in kepts.pages[2])


async def wrong_page(kepts: Kepts) -> None:
    """A leaf that is whole, in its place, and not in order."""
    number = kepts.gone(4)[0]
    async with await open_log(kepts.path) as log:
        ((_, data),) = await log.load_pages(number - 1, 1)
        assert data[4:5] == b"L"
        length = 24
        keys = [(n,) for n in range(length, 0, -1)]
        leaf = leaf_of(keys, [(n, "a", "b") for (n,) in keys])
        await log.save_pages([(number, encode_page(leaf, number, lambda page: 0))])


DAMAGE: dict[str, tuple[Callable[[Kepts], None], str]] = {
    "a flipped bit in a page": (
        lambda kepts: kepts.flip("pages", "data", f"number = {only_old(kepts)}"),
        "the checkpoint of version 2: .* does not match its checksum",
    ),
    "a page that is missing": (
        lambda kepts: kepts.change("DELETE FROM pages WHERE number = ?", only_old(kepts)),
        "the checkpoint of version 2: .*page .* is missing",
    ),
    "a flipped bit in a checkpoint": (
        lambda kepts: kepts.flip("checkpoints", "data", "version = 4"),
        "the checkpoint of version 4: .*checksum",
    ),
    "another checkpoint's outline": (
        lambda kepts: kepts.change(
            "UPDATE checkpoints SET outline = ? WHERE version = 4",
            encode_outline(KeptCheckpoint(4, 40.0, 1, 4000)),
        ),
        "the checkpoint of version 4: what is kept beside it belongs to another one",
    ),
    "a gap in the log": (
        lambda kepts: kepts.change("DELETE FROM records WHERE version = 4"),
        "the log: version 5 follows 3, and what is between is missing",
    ),
    "a flipped bit in the log": (
        lambda kepts: kepts.flip("records", "data", "version = 3"),
        "the log: .*checksum",
    ),
    "needed pages that count as gone": (
        lambda kepts: kepts.change(
            "UPDATE checkpoints SET gone = ? WHERE version = 6",
            encode_numbers(6, [*kepts.gone(6)[1:], max(kepts.pages[6])]),
        ),
        "the checkpoint of version 6: one page that count as gone are needed",
    ),
    "needed pages that count as dead": (
        lambda kepts: kepts.change(
            "UPDATE checkpoints SET dead = ? WHERE version = 6",
            encode_numbers(6, sorted(kepts.pages[2] - {only_old(kepts)})[:2]),
        ),
        "the checkpoint of version 6: 2 pages that count as dead are needed",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
async def test_damage_to_history_is_found(kepts: Kepts, kind: str) -> None:
    plant, expected = DAMAGE[kind]
    plant(kepts)
    report = await check_file(kepts.path)
    assert not report.is_sound and report.version == 7, "the newest version is as it was"
    assert re.search(expected, report.problems[0]), report.problems
    assert len(report.problems) <= 2


async def test_a_damaged_outline_is_found(kepts: Kepts) -> None:
    kepts.flip("checkpoints", "outline", "version = 2")
    (problem,) = (await check_file(kepts.path)).problems
    assert problem.startswith("the outline of the checkpoint of version 2 does not match its check")


async def test_a_page_of_history_that_is_whole_and_wrong_is_found(kepts: Kepts) -> None:
    await wrong_page(kepts)
    report = await check_file(kepts.path)
    assert any(each.startswith("the checkpoint of version 2: t") for each in report.problems)


async def test_pages_that_nobody_needs_are_a_warning_with_their_bytes(kepts: Kepts) -> None:
    """Those of a checkpoint that was lost without a word, and one that nobody names."""
    number = kepts.gone(4)[0]
    kepts.change("DELETE FROM checkpoints WHERE version = 2")
    kepts.change(
        "UPDATE checkpoints SET gone = ?, outline = ? WHERE version = 4",
        encode_numbers(4, kepts.gone(4)[1:]),
        encode_outline(KeptCheckpoint(4, 40.0, max(kepts.pages[4]), 4000, len(kepts.gone(4)) - 1)),
    )
    size = len((await page(kepts, number))[1])
    report = await check_file(kepts.path)
    assert report.is_sound and report.leaked_bytes == size
    (warning,) = report.warnings
    assert warning.startswith(f"one page with {size:,} bytes are needed by nobody")


def test_the_command_prints_warnings_below_the_database_and_succeeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kepts = Kepts(tmp_path / "control.qserver")
    trio.run(kepts.write)
    kepts.change("DELETE FROM records WHERE version <= 3")
    assert main(["check", "--data", str(tmp_path)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "control: ok, version 7, 1 tables, 300 rows, history with 3 checkpoints"
    assert second.startswith("  warning: a checkpoint of version 2 is kept")


async def page(kepts: Kepts, number: int) -> tuple[int, bytes]:
    async with await open_log(kepts.path) as log:
        return (await log.load_pages(number - 1, 1))[0]


async def test_pages_that_will_stay_are_a_warning(kepts: Kepts) -> None:
    gone = kepts.gone(6)[2:]
    kepts.change(
        "UPDATE checkpoints SET gone = ?, outline = ? WHERE version = 6",
        encode_numbers(6, gone),
        encode_outline(KeptCheckpoint(6, 60.0, max(kepts.pages[6]), 6000, len(gone))),
    )
    report = await check_file(kepts.path)
    assert report.is_sound
    assert report.warnings == (
        "2 pages of the checkpoint of version 4 will stay when it is dropped",
    )


async def test_a_log_that_has_lost_its_beginning_is_a_warning(kepts: Kepts) -> None:
    kepts.change("DELETE FROM records WHERE version <= 3")
    report = await check_file(kepts.path)
    assert report.is_sound
    assert "a checkpoint of version 2 is kept, and the log begins with version 4" in said(report)


async def test_a_file_of_a_release_without_history_is_opened_and_sound(kepts: Kepts) -> None:
    """It has one checkpoint, with nothing beside it, and the records behind that."""
    kepts.change("DELETE FROM records WHERE version <= 6")
    kepts.change("DELETE FROM checkpoints WHERE version < 6")
    kepts.change("UPDATE checkpoints SET outline = x'', gone = x'', dead = x''")
    report = await check_file(kepts.path)
    assert report.is_sound and (report.version, report.checkpoints) == (7, 1)
    assert report.leaked_bytes > 0, "what was history is nobody's now"


# --- branches ------------------------------------------------------------------------------------


@pytest.fixture
async def family(tmp_path: Path) -> Kepts:
    """A parent, and a branch of its version 5."""
    parent = Kepts(tmp_path / "main.qserver")
    await parent.write("trial")
    async with await open_log(parent.path) as log:
        kept = await parent.pin(log, "trial")
        async with await open_log(tmp_path / "trial.qserver") as own:
            await begin_branch(own, log, "main", kept, 5)
    return parent


async def test_a_branch_is_checked_with_the_pages_of_its_parent(family: Kepts) -> None:
    report = await check_file(family.path.with_name("trial.qserver"))
    assert said(report) == "" and report.branch_of == "main"
    assert (report.version, report.checkpoint, report.checkpoints) == (5, 4, 1)
    assert said(await check_file(family.path)) == ""


async def test_a_branch_whose_pages_the_parent_does_not_hold_is_found(family: Kepts) -> None:
    branch = family.path.with_name("trial.qserver")
    async with await open_log(family.path) as log:
        await family.pin(log, "other")
    (problem,) = (await check_file(branch)).problems
    assert problem.startswith("main, of which it is a branch, keeps no checkpoint for it")
    async with await open_log(family.path) as log:
        await family.pin(log, "trial", version=6)
    problems = (await check_file(branch)).problems
    assert "keeps another checkpoint for it, that of version 6" in problems[0]
    assert "does not hold" in problems[1]


async def test_a_shared_page_that_is_damaged_is_found_in_the_branch(family: Kepts) -> None:
    async with await open_log(family.path) as log:
        stored = await log.load_checkpoint(4)
    assert stored is not None
    checkpoint = decode_checkpoint(*stored)
    assert isinstance(checkpoint, Checkpoint)
    root = next(root for tree in checkpoint.trees.values() for root in tree.roots if root)
    family.change("DELETE FROM pages WHERE number = ?", root)
    report = await check_file(family.path.with_name("trial.qserver"))
    assert f"page {root} is missing" in said(report) and not report.is_sound


async def test_what_a_crash_leaves_of_a_branch_is_no_damage(family: Kepts) -> None:
    """Its file without a checkpoint, or a pin without its file: the next start undoes both."""
    branch = family.path.with_name("trial.qserver")
    connection = sqlite3.connect(branch)
    connection.execute("DELETE FROM checkpoints")
    connection.execute("DELETE FROM records")
    connection.commit()
    connection.close()
    branch.with_name("trial.qserver-mark").unlink()
    report = await check_file(branch)
    assert report.is_sound and "the next start removes it" in said(report)
    branch.unlink()
    report = await check_file(family.path)
    assert report.is_sound
    assert report.warnings == (
        "a checkpoint of version 4 is kept for the branch trial, which is not there",
    )
