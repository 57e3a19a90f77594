"""Opens the file of a database without a server, with the parent files whose pages it shares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio

from qserver.durability.branch_log import BranchLog, read_base
from qserver.durability.copy_mark import copy_of
from qserver.durability.data_folder import SUFFIX
from qserver.durability.port import Log
from qserver.durability.sqlite import SqliteLog, open_log
from qserver.durability.thread_pool import ThreadPool
from qserver.errors import DataCorrupted


class ParentMissing(DataCorrupted):
    """The operator's fault, or the disk's: the file of a branch's parent is missing."""

    name = "data_corrupted"

    def __init__(self, path: Path, parent: str) -> None:
        super().__init__(
            f"{path} is a branch, and the file of its parent, {parent}{SUFFIX}, is not there",
            hint="Put the file back, or restore a backup of the whole folder.",
        )
        self.parent = parent


class Opened(msgspec.Struct, frozen=True):
    log: Log
    own: SqliteLog
    """The file itself."""


@asynccontextmanager
async def open_with_parents(path: Path, threads: ThreadPool | None = None) -> AsyncIterator[Opened]:
    """Open a file, and for a branch its parents, which are in the same folder."""
    threads = threads or ThreadPool()
    syncs_appends = copy_of(path.parent) is None
    async with await open_log(path, threads, syncs_appends=syncs_appends) as own:
        base = read_base(own)
        if base is None:
            yield Opened(own, own)
            return
        above = path.with_name(f"{base.parent}{SUFFIX}")
        if not await trio.Path(above).exists():
            raise ParentMissing(path, base.parent)
        async with open_with_parents(above, threads) as parent:
            yield Opened(BranchLog(own, base, parent.log), own)
