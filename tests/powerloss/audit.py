"""Does a folder hold what a process had promised, and nothing by halves?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from qserver.durability.check import check
from qserver.durability.data_folder import COMPANIONS, DataFolder
from qserver.durability.files import beside
from qserver.durability.recovery import recover
from qserver.durability.sqlite import open_log
from qserver.errors import QserverError
from qserver.storage.snapshot import Snapshot
from tests.powerloss.family import Family
from tests.powerloss.worker import FILLING


@dataclass(slots=True)
class Promises:
    """The lines that a worker wrote, up to a moment."""

    rows: dict[str, set[int]] = field(default_factory=dict)
    """Of each database that was made and was not to be removed."""
    leaving: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    copies: set[str] = field(default_factory=set)
    family: Family = field(default_factory=Family)
    count: int = 0

    def hear(self, text: str) -> None:
        for line in text.splitlines():
            self.count += 1
            match line.split():
                case ["made", name]:
                    self.rows[name] = set()
                case ["row", name, number]:
                    self.rows.setdefault(name, set()).add(int(number))  # made, and not told so
                case ["removing", name]:
                    del self.rows[name]
                    self.leaving.add(name)
                case ["removed", name]:
                    self.leaving.discard(name)
                    self.gone.add(name)
                case ["family", *words]:
                    self.family.hear(words)
                case ["copied"] | ["restored"]:
                    self.copies.add(line)
                case _:
                    pass  # what the commands say to people


def exists(path: Path) -> bool:
    """A look at a file system in memory, for which no thread is needed."""
    return path.exists()


async def audit(folder: Path, promises: Promises) -> list[str]:
    """What is wrong with a folder that `worker` had, started as a server would start it."""
    data = DataFolder(folder / "data")
    problems = []
    for name in promises.gone:
        left = [end for end in COMPANIONS if exists(beside(data.file_of(name), end))]
        if left:
            problems.append(f"{name} was removed, and its files {left} are there again")
    for name in promises.rows:
        if not exists(data.file_of(name)):
            problems.append(f"{name} was made, and its file is gone")
    for name in data.names():
        if name not in promises.leaving:
            rows = promises.rows.get(name)
            problems += [
                f"{name}: {problem}" for problem in await _audit_file(data.file_of(name), rows)
            ]
    problems += await _audit_copies(folder, promises)
    return problems


async def _audit_copies(folder: Path, promises: Promises) -> list[str]:
    """A backup appears whole or not at all; a restored folder gets the control database last."""
    problems = []
    for promise, place in (("copied", "place/copy"), ("restored", "back/data")):
        data = DataFolder(folder / place)
        names = data.names() if exists(folder / place) else []
        if promise in promises.copies or (promise == "copied" and exists(folder / place)):
            problems += [f"{place} lacks {name}" for name in promises.rows.keys() - set(names)]
        if promise == "restored" and "control" in names:
            problems += [f"{place} lacks {name}" for name in promises.rows.keys() - set(names)]
        for name in names:
            for problem in await _audit_file(data.file_of(name), promises.rows.get(name)):
                problems.append(f"{place}, {name}: {problem}")
    return problems


async def _audit_file(path: Path, promised: set[int] | None) -> list[str]:
    try:
        async with await open_log(path) as log:
            report = await check(log, log)
            if not report.is_sound:
                return list(report.problems)
            return list(_audit_snapshot((await recover(log, 2)).snapshot, promised))
    except QserverError as error:
        return [f"{type(error).__name__}: {error}, {error.detail}"]


def _audit_snapshot(snapshot: Snapshot, promised: set[int] | None) -> Iterator[str]:
    if not snapshot.catalog.tables:
        if promised is not None:
            yield "its tables are gone"
        return
    left, right, total = (_rows(snapshot, name) for name in ("left", "right", "total"))
    written = {number for number in left if number >= 0}
    if len(left) - len(written) != FILLING:
        yield f"of the first rows {len(left) - len(written)} are there"
    if written != right.keys():
        yield f"transactions {sorted(written ^ right.keys())} are there by halves"
    if total != {0: str(len(written))}:
        yield f"there are {len(written)} transactions, and the count is {total}"
    if promised is not None and promised - written:
        yield f"transactions {sorted(promised - written)} were acknowledged and are gone"


def _rows(snapshot: Snapshot, table: str) -> dict[int, object]:
    tree = snapshot.catalog.tables[table].id
    return {
        key[0]: row[1]
        for keys, rows in snapshot.pages(tree)
        for key, row in zip(keys, rows, strict=True)
    }
