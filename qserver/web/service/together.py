"""What several processes answer as one service: metrics, health, readiness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import trio

from qserver.archive.status import BackupStatus, statuses_in
from qserver.config import IN_MEMORY
from qserver.control.owners import Owners
from qserver.errors import QserverError
from qserver.web.service.service import Service, ServiceState


class Together:
    """Asks all processes of a machine; with one, only that."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._owners: Owners = service.plane.owners
        self._owners.answer("metrics", self._metrics_here)
        self._owners.answer("checks", service.checks)
        self._owners.answer("state", self._state_here)

    @property
    def _is_alone(self) -> bool:
        """A node speaks for itself, too: whoever asks wants to know which of them to use."""
        return self._owners.is_alone or not self._owners.shares_files

    async def metrics(self, own_ids: Iterable[str] | None) -> bytes:
        """Return a page for Prometheus: of the whole server, or of some databases."""
        wanted = None if own_ids is None else sorted(own_ids)
        if self._is_alone:
            return await self._metrics_here(wanted)
        found = await self._owners.try_all("metrics", wanted)
        pages = {at: page for at, page in found.items() if isinstance(page, bytes)}
        from qserver.web.service.exposition import merged_text

        return merged_text(pages, is_labelled=own_ids is None)

    async def _metrics_here(self, own_ids: Sequence[str] | None) -> bytes:
        # The first time it takes 20 ms, for which others must not wait.
        await trio.to_thread.run_sync(import_module, "qserver.web.service.exposition")
        from qserver.web.service import exposition

        service = self._service
        databases = service.databases.statistics()
        if own_ids is not None:
            return exposition.databases_text(
                tuple(each for each in databases if each.id in own_ids)
            )
        return exposition.server_text(
            service.metrics,
            databases,
            service.uptime_s(),
            service.counters,
            service.pages.statistics(),
            service.plane.space.statistics(),
            len(service.live_queries),
            len(service.feed_readers),
            service.plane.open_transactions.statistics(),
            () if service.replicas is None else service.replicas.replica_statistics(),
            service.streams(),
            None if service.postgres is None else service.postgres(),
            await trio.to_thread.run_sync(self._backups),
            service.world.now(),
        )

    def _backups(self) -> list[BackupStatus]:
        """Return what the continuous backups of the folder say; one of several processes does."""
        data = self._service.settings.data
        return statuses_in(Path(data)) if self._owners.is_leader and data != IN_MEMORY else []

    async def checks(self) -> dict[str, str]:
        """Return the checks of the service; the trouble of a process is named with its number."""
        if self._is_alone:
            return await self._service.checks()
        checks = {"control": "ok", "databases": "ok", "storage": "ok", "processes": "ok"}
        for process, found in (await self._owners.try_all("checks")).items():
            if isinstance(found, QserverError):
                checks["processes"] = found.message
                continue
            for part, state in found.items():
                if state != "ok":
                    checks[part] = f"process {process}: {state}"
        return checks

    async def state(self) -> ServiceState:
        """Return whether all processes are ready."""
        state = self._service.state
        if self._is_alone or state is not ServiceState.READY:
            return state
        found = await self._owners.try_all("state")
        is_ready = all(each == ServiceState.READY.value for each in found.values())
        return ServiceState.READY if is_ready else ServiceState.STARTING

    async def _state_here(self) -> str:
        return self._service.state.value

    def __repr__(self) -> str:
        return f"what all see of {self._owners!r}"
