"""A data folder as a server changes it, step by step, and what was in it at each moment.

Each step takes a second of a clock that nothing else moves. Logs are open between the steps, so
their newest records are in the write-ahead log, until the server is started again.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from qserver.archive.listed import TABLE
from qserver.durability.branch_log import BranchLog
from qserver.durability.data_folder import DataFolder
from qserver.durability.kept import decode_outline, encode_outline
from qserver.durability.pinning import pin_in_log, unpin_in_log
from qserver.durability.port import CheckpointParts, Log
from qserver.durability.settling import save_newest
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER, TEXT
from tests.durability.histories import History

CONTROL: Final = "control"
Contents = dict[str, list[int]]
"""The rows of each database that is ready, by its id."""


class Site:
    def __init__(self, folder: Path) -> None:
        self.files = DataFolder(folder)
        self.clock = 1_000_000.0
        self.moments: list[tuple[float, Contents]] = []
        """What was there between two steps."""
        self.removed: dict[str, float] = {}
        """When files were removed."""
        self.parents: dict[str, str | None] = {}
        """Of all databases that have files."""
        self.ready: list[str] = []
        self._histories: dict[str, History] = {}
        self._snapshots: dict[str, dict[int, Snapshot]] = {}
        self._rows: dict[str, list[int]] = {}
        self._began: dict[str, int] = {}
        """By branch: with which version."""
        self._logs: dict[str, Log] = {}
        self._open: dict[str, AsyncExitStack] = {}
        self._made = 0

    async def start(self) -> None:
        await self._hold(CONTROL)
        self._histories[CONTROL] = self._history(None)
        transaction = Transaction(self._histories[CONTROL].snapshot)
        columns = [Column(name, TEXT) for name in ("id", "state", "branch_of", "name")]
        table = define_table(transaction.next_tree(), TABLE, columns, ["id"])
        transaction.define(table.key, table)
        await self._commit(CONTROL, transaction)
        self._tick()

    async def close(self) -> None:
        for name in sorted(self._open, key=self._line, reverse=True):
            await self._open.pop(name).aclose()
            del self._logs[name]

    async def restart(self) -> None:
        """The server ends and begins: what is in write-ahead logs moves to the files."""
        names = sorted(self._open, key=self._line)
        await self.close()
        for name in names:
            await self._hold(name)
        self._tick()

    # --- databases ---

    async def create(self) -> str:
        name = self._new_name()
        await self._list(name, "creating", None)
        await self._hold(name)
        self.parents[name] = None
        self._histories[name] = self._history(None)
        self._rows[name] = []
        transaction = Transaction(self._histories[name].snapshot)
        table = define_table(transaction.next_tree(), "t", [Column("id", INTEGER)], ["id"])
        transaction.define(table.key, table)
        await self._commit(name, transaction)
        await self._be_ready(name, None)
        return name

    async def write(self, name: str) -> None:
        history = self._histories[name]
        transaction = Transaction(history.snapshot)
        self._rows[name].append(len(self._rows[name]))
        transaction.put(history.snapshot.catalog.tables["t"], (self._rows[name][-1],))
        await self._commit(name, transaction)
        self._tick()

    async def branch(self, parent: str, back: int = 0) -> str:
        """Make a branch of the newest version, or of one so much older."""
        versions = sorted(self._snapshots[parent])
        version = versions[max(-1 - back, -len(versions))]
        name = self._new_name()
        await self._list(name, "creating", parent)
        kept = await pin_in_log(self._logs[parent], name, version)
        assert kept is not None, "only versions that are kept are in the list"
        await self.files.branch(name, parent, self._logs[parent], kept, version)
        await self._hold(name)
        snapshot = self._snapshots[parent][version]
        self._histories[name] = self._history(snapshot)
        self._snapshots[name] = {version: snapshot}
        self.parents[name], self._began[name] = parent, version
        self._rows[name] = [row[0] for row in _rows_of(snapshot)]
        await self._be_ready(name, parent)
        return name

    async def delete(self, name: str) -> None:
        self.ready.remove(name)
        if self._children(name):
            await self._list(name, "deleted", self.parents[name])
            history = self._histories[name]
            transaction = Transaction(history.snapshot)
            for row in self._rows[name]:
                transaction.delete(history.snapshot.catalog.tables["t"], (row,))
            await self._commit(name, transaction)
            await self.cut(name)
            return
        await self._remove(name)

    async def _remove(self, name: str) -> None:
        parent = self.parents[name]
        await self._list(name, "deleting", parent)
        await self._open.pop(name).aclose()
        del self._logs[name]
        await self.files.remove(name)
        self.removed[name] = self.clock
        del self.parents[name]
        self._tick()
        if parent is not None:
            await unpin_in_log(self._own(parent), name)
        await self._list(name, None, None)
        if parent is not None and parent not in self.ready and not self._children(parent):
            await self._remove(parent)

    async def checkpoint(self, name: str) -> None:
        await save_newest(self._logs[name])
        self._tick()

    async def cut(self, name: str) -> None:
        """Forget all records up to the newest version, as a database without history does."""
        for each in [name, *self._children(name)]:
            if self.parents.get(each) is not None:
                await self._stop_borrowing(each)
        version = await save_newest(self._logs[name])
        await self._logs[name].forget(version, [])
        self._snapshots[name] = {version: self._histories[name].snapshot}
        self._tick()

    async def _stop_borrowing(self, child: str) -> None:
        parent, log = self.parents[child], self._logs[child]
        assert isinstance(log, BranchLog) and parent is not None
        if log.base.borrows:
            after = log.base.borrowed_after
            while after < log.base.version:
                after = await log.copy_borrowed(after)
            await log.end_borrowing()
        own = self._own(parent)
        for version, outline in await own.load_outlines():
            kept = decode_outline(version, outline) if outline else None
            if kept is not None and child in kept.lent:
                kept.lent = [each for each in kept.lent if each != child]
                await own.change_checkpoints([], [(version, CheckpointParts(encode_outline(kept)))])

    # --- what is known ---

    def end_of(self, name: str) -> int:
        return self._histories[name].snapshot.version

    def root_of(self, name: str) -> str:
        return self._line(name)[0]

    def members(self) -> Iterable[str]:
        return [CONTROL, *sorted(self.parents)]

    def _children(self, name: str) -> list[str]:
        return [each for each, parent in self.parents.items() if parent == name]

    def _line(self, name: str) -> list[str]:
        parent = self.parents.get(name)
        return [*(self._line(parent) if parent is not None else []), name]

    def _new_name(self) -> str:
        self._made += 1
        return f"db_{self._made:03}"

    def _history(self, snapshot: Snapshot | None) -> History:
        return History(2, snapshot, lambda version: self.clock)

    def _own(self, name: str) -> Log:
        log = self._logs[name]
        return log.own if isinstance(log, BranchLog) else log

    async def _hold(self, name: str) -> None:
        stack = AsyncExitStack()
        self._logs[name] = await stack.enter_async_context(self.files.open(name))
        self._open[name] = stack

    async def _be_ready(self, name: str, parent: str | None) -> None:
        await self._list(name, "ready", parent)

    async def _list(self, name: str, state: str | None, parent: str | None) -> None:
        """Change what the control database says; without a state, forget it."""
        history = self._histories[CONTROL]
        transaction = Transaction(history.snapshot)
        table = history.snapshot.catalog.tables[TABLE]
        if state is None:
            transaction.delete(table, (name,))
        else:
            transaction.put(table, (name, state, parent, name))
        await self._commit(CONTROL, transaction)
        if state == "ready":
            self.ready.append(name)
        self._tick()

    async def _commit(self, name: str, transaction: Transaction) -> None:
        history = self._histories[name]
        history.commit(transaction)
        self._snapshots.setdefault(name, {})[history.snapshot.version] = history.snapshot
        await history.append_to(self._logs[name])

    def _tick(self) -> None:
        now = {name: list(self._rows[name]) for name in self.ready}
        self.moments.append((self.clock + 0.5, now))
        self.clock += 1.0


def _rows_of(snapshot: Snapshot) -> list[tuple[int, ...]]:
    table = snapshot.catalog.tables.get("t")
    return [] if table is None else [row for _, rows in snapshot.pages(table.id) for row in rows]
