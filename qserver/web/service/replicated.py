"""The logs of a service on the nodes of a replicated log."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from qserver.config import Settings
from qserver.control.nodes.handover import Handover
from qserver.durability.copy_mark import mark_as_copy
from qserver.durability.data_folder import DataFolder
from qserver.errors import LogTaken, first_of
from qserver.replication.nats.nodes import nodes_of
from qserver.replication.ownership import Ownership
from qserver.replication.replicated_folder import ReplicatedFolder
from qserver.replication.replicated_logs import ReplicatedLogs, Report
from qserver.web.service.node import ClusterNode
from qserver.web.service.service import Service

SHARED = "several, as nodes"
"""The owner of a log whose databases are shared by nodes with leases."""


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
        self.node: ClusterNode | None = None
        """Of several that share the databases; otherwise this server has all of them."""
        if settings.link is not None:
            self.node = ClusterNode(settings, node, path, self._nodes, report)
        owner = node if self.node is None else SHARED
        self.ownership = Ownership(self._nodes, owner, lambda: secrets.token_hex(8))
        files = DataFolder(path, syncs_appends=False)
        self.logs = ReplicatedLogs(
            files,
            self._nodes,
            lambda: f"{node}.{secrets.token_hex(8)}",
            report,
            append_seconds=settings.append_timeout_s,
        )
        self.logs.check_owner = self._check_owner
        self.folder = ReplicatedFolder(files, self.logs)

    async def _check_owner(self, root: str) -> Callable[[], bool]:
        """Without leases: whoever is no owner any more sees that, and ends."""
        await self.ownership.check()
        return lambda: True

    def attend(self, service: Service) -> None:
        """Let the service have what it needs to know of the log, and the other way round."""
        self.logs.root_of = service.plane.root_of
        service.streams = self.logs.statistics
        service.plane.remove_gone = self.logs.copies.remove_gone
        if self.node is None:
            return
        handover = Handover(self.node.membership, self.node.owners, service.databases, self.logs)
        self.logs.check_owner = handover.may_open
        self.node.attend(service, handover)

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
                if self.node is None:
                    yield
                else:
                    async with self.node.running():
                        nursery.start_soon(self.node.watch)
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
