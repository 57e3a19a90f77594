"""One backup of a changing folder, killed and started again, in an order that a seed draws.

Nothing runs by itself: the folder changes between the backup's calls of its target, which may fail,
or be the last of a process. While files are copied, segments go on in between. At the end each
moment up to the last one that was called saved must be restored with its rows.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import trio

from qserver.archive.continuous import Continuous, Options
from qserver.archive.layout import complete, generations_in, ranges_of
from qserver.archive.listed import databases_in
from qserver.archive.objects import OWNER, TargetAway
from qserver.archive.restoring import Restoring, Wanted
from qserver.archive.status import StatusFile
from qserver.durability.branch_files import open_with_parents
from qserver.durability.data_folder import DataFolder
from qserver.durability.recovery import recover
from qserver.errors import InvalidRequest
from tests.archive.databases import MemoryObjects
from tests.archive.site import CONTROL, Contents, Site

KEEP_SECONDS: Final = 100_000.0


class Killed(Exception):
    """The process has ended here."""


class Cut(msgspec.Struct):
    """Something was taken from a log before it was copied: from when until when is unknown."""

    root: str
    at: float
    since: float
    until: float = inf


class TurnsObjects(MemoryObjects):
    """Lets others have a turn before each save, and ends the process at some."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self._net = net

    def save(self, name: str, data: bytes) -> None:
        if name != OWNER:
            trio.from_thread.run(self._net.turn, name)
        fate = self._net.random.random()
        if fate < self._net.deaths / 2:
            raise Killed
        if fate > 1 - self._net.failures:
            raise TargetAway("memory is away")
        super().save(name, data)
        if fate < self._net.deaths:
            raise Killed


class Net:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.folder = folder
        (folder / "data").mkdir()
        self.site = Site(folder / "data")
        self.objects = TurnsObjects(self)
        self.deaths = self.random.choice([0.0, 0.02, 0.1])
        self.failures = self.random.choice([0.0, 0.1])
        self.cuts: list[Cut] = []
        self.looks: list[float] = []
        """Up to when all was saved, each time."""
        self.said: list[str] = []
        self._base_seconds = self.random.choice([20.0, 60.0, inf])
        self._backup: Continuous | None = None
        self._status: StatusFile | None = None
        self._is_sending = False

    async def run(self, steps: int) -> None:
        await self.site.start()
        for _ in range(3):
            await self.change()
        for _ in range(steps):
            step = self.random.choice([self.change, self.change, self.send, self.copy, self.kill])
            if step != self.kill or self.random.random() < 0.3:
                await self._alive(step)
        self.deaths = self.failures = 0.0
        for _ in range(4):  # a copy of a family is in the segment after it
            await self._alive(self.copy)
            await self._alive(self.send)
        await self.site.close()

    async def _alive(self, step: object) -> None:
        assert callable(step)
        try:
            await step()
        except* (Killed, TargetAway):  # the first step needs the target
            self._end()
            self._is_sending = False

    # --- the backup ---

    async def backup(self) -> Continuous:
        if self._backup is None:
            self._status = StatusFile(self.folder / "data", "memory")
            backup = Continuous(
                self.folder / "data",
                self.objects,
                self._status,
                Options(1.0, KEEP_SECONDS, self._base_seconds),
                self.now,
                self._chance,
                self.said.append,
                "a test",
            )
            await backup.begin()
            self._backup = backup
            self.said.append(f"{self.site.clock} began")
        return self._backup

    async def send(self) -> None:
        backup = await self.backup()
        if self._is_sending:
            return
        self._is_sending = True
        is_all = await backup.send()
        self._is_sending = False
        status = backup.status()
        if status.until and is_all:
            self.looks.append(status.until)
            for cut in self.cuts:
                if cut.until == inf and cut.at < status.until:
                    cut.until = inf if cut.root in status.copied_anew else status.until

    async def copy(self) -> None:
        backup = await self.backup()
        with suppress(InvalidRequest):
            await backup.copy()

    async def kill(self) -> None:
        self._end()

    def _end(self) -> None:
        self.said.append(f"{self.site.clock} killed")
        if self._status is not None:
            self._status.close()
        self._backup = self._status = None

    async def turn(self, name: str) -> None:
        """Before an object is saved."""
        while self.random.random() < 0.3:
            await self.change()
        if ("/files/" in name or "/manifest" in name) and self.random.random() < 0.3:
            await self.send()

    def now(self) -> float:
        return self.site.clock

    def _chance(self) -> str:
        return f"{self.random.randrange(1 << 16):04x}"

    # --- the folder ---

    async def change(self) -> None:
        site, ready = self.site, self.site.ready
        kind = self.random.choice(["create", *["write"] * 6, "branch", "delete", "cut", "other"])
        before = site.clock
        name = self.random.choice(ready) if ready else None
        if name is None or (kind == "create" and len(ready) < 6):
            name = await site.create()
        elif kind == "branch" and len(ready) < 6:
            name = await site.branch(name, self.random.choice([0, 0, 1, 3]))
        elif kind == "delete":
            self._note_cut(name)
            await site.delete(name)
        elif kind == "cut":
            name = self.random.choice([name, CONTROL])
            self._note_cut(name)
            await site.cut(name)
        elif kind == "other":
            await (site.restart() if self.random.random() < 0.5 else site.checkpoint(name))
        else:
            await site.write(name)
        self.said.append(f"{before} {kind} {name}")

    def _note_cut(self, name: str) -> None:
        """What was not saved of a log is lost with it."""
        root = self.site.root_of(name)
        self.cuts.append(Cut(root, self.site.clock, max(self.looks, default=0.0)))

    # --- the verdict ---

    async def verdict(self, count: int) -> None:
        """Restore some of the moments, and the newest; all that fits together must be there."""
        generations = generations_in(self.objects.keys())
        ranges = ranges_of(generations)
        first, last = complete(generations)[0].begins, max(self.looks)
        saved = [at for at, _ in self.site.moments if first <= at <= last]
        for moment in saved:
            is_listed = any(begin <= moment <= end for begin, end in ranges)
            assert is_listed or self._is_idle(moment, ranges[-1][1]), f"{moment} is not in {ranges}"
        listed = [at for at in saved if at <= ranges[-1][1]]
        for moment in sorted(self.random.sample(listed, min(count, len(listed)))):
            await self._judge(moment)
        await self._judge(None)

    def _is_idle(self, moment: float, until: float) -> bool:
        """Return whether nothing was written between the end of the target and a moment."""
        return until < moment and self._expected(moment) == self._expected(until)

    async def _judge(self, moment: float | None) -> None:
        folder = self.folder / f"restored-{moment}"
        try:
            restored = await Restoring(self.objects, folder, lambda what: lambda share: None).run(
                Wanted(moment)
            )
        except InvalidRequest as error:
            assert moment is not None and "was cut after" in error.message, f"{moment}: {error!r}"
            assert self._is_cut(moment), f"{moment}: {error.message}"
            return
        found, given = await contents_of(folder), moment
        if moment is None:
            moment = max(self.looks)
            if any("was cut after" in warning for warning in restored.warnings):
                assert self._is_cut(moment)
                return
        self._compare(found, moment, restored.warnings)
        if found:
            await self._judge_one(self.random.choice(sorted(found)), given, found)

    async def _judge_one(self, name: str, moment: float | None, found: Contents) -> None:
        """Restore one database, which reads no more than it needs: it has the same rows."""
        folder = self.folder / f"restored-{moment}-{name}"
        await Restoring(self.objects, folder, lambda what: lambda share: None).run(
            Wanted(moment, name)
        )
        one = await contents_of(folder)
        assert one[name] == found[name], f"{moment} {name}: {one[name]}, not {found[name]}"

    def _is_cut(self, moment: float) -> bool:
        return any(each.since <= moment <= each.until for each in self.cuts)

    def _compare(self, found: Contents, moment: float, warnings: list[str]) -> None:
        expected = self._expected(moment)
        for name, rows in expected.items():
            if found.get(name) != rows:
                assert any(f"({name})" in warning for warning in warnings), f"{moment} {name}"
                removed = self.site.removed.get(name, inf)
                looks = [each for each in self.looks if each <= removed]
                is_gone = not any(moment <= each <= removed for each in looks)
                assert is_gone, f"{moment} {name}: {found.get(name)}, not {rows}"
                since = max((each for each in looks if each <= moment), default=0.0)
                least = self._expected(since).get(name, []) if since else []
                some = found.get(name, [])
                assert least == rows[: len(least)] == some[: len(least)], (
                    f"{moment} {name}: {some}, at {since}: {least}"
                )
                assert some == rows[: len(some)], f"{moment} {name}: {some}"
        assert found.keys() <= expected.keys(), f"{moment}: {found.keys()}"

    def _expected(self, moment: float) -> Contents:
        return max(
            ((at, rows) for at, rows in self.site.moments if at <= moment), key=lambda each: each[0]
        )[1]


async def contents_of(folder: Path) -> Contents:
    """What is in the files of a folder that nobody serves."""
    files = DataFolder(folder)
    found: Contents = {}
    for name, listed in (await databases_in(files.file_of(CONTROL))).items():
        if listed.state != "ready":
            continue
        async with open_with_parents(files.file_of(name)) as opened:
            snapshot = (await recover(opened.log, 2)).snapshot
            table = snapshot.catalog.tables.get("t")
            pages = [] if table is None else snapshot.pages(table.id)
            found[name] = sorted(row[0] for _, rows in pages for row in rows)
    return found
