"""The logs of a service on the nodes of a replicated log."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from qserver.config import Settings
from qserver.durability.copy_mark import mark_as_copy
from qserver.durability.data_folder import DataFolder
from qserver.errors import LogTaken, first_of
from qserver.replication.nats.nodes import nodes_of
from qserver.replication.ownership import Ownership
from qserver.replication.replicated_folder import ReplicatedFolder
from qserver.replication.replicated_logs import ReplicatedLogs, Report


class Replicated:
    def __init__(self, settings: Settings, path: Path, report: Report, *, leads: bool) -> None:
        """`leads`: it is the first of several processes, or the only one."""
        assert settings.log is not None
        self._leads = leads
        self._settings = settings
        self._path = path
        self._report = report
        self._nodes = nodes_of(settings.log, settings.log_token or "", settings.log_copies)
        node = settings.node or _name_of_machine()
        self.ownership = Ownership(self._nodes, node, lambda: secrets.token_hex(8))
        files = DataFolder(path, syncs_appends=False)
        self.logs = ReplicatedLogs(
            files,
            self._nodes,
            lambda: f"{node}.{secrets.token_hex(8)}",
            report,
            append_seconds=settings.append_timeout_s,
        )
        self.logs.check_owner = self.ownership.check
        self.folder = ReplicatedFolder(files, self.logs)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve the logs during the block, if this node may; end it when it may not any more."""
        taken: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._nodes.run)
                cluster = await self.ownership.cluster()
                if self._leads:
                    await trio.to_thread.run_sync(mark_as_copy, self._path, cluster)
                await self.ownership.take(by_force=self._settings.take_over)
                await nursery.start(self.logs.run)
                nursery.start_soon(self.ownership.watch)
                yield
                nursery.cancel_scope.cancel()
        except* LogTaken as groups:
            taken = first_of(groups)
        if taken is not None:
            self._report("this node ends", taken)
            raise taken


def _name_of_machine() -> str:
    name = socket.gethostname().partition(".")[0]
    return "".join(each if each.isalnum() or each in "-_" else "-" for each in name) or "node"
