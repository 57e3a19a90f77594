"""Operational routes: health, metrics, tables, self-tests."""

from __future__ import annotations

from importlib import import_module

import trio
from msgspec.structs import asdict

from qserver import __version__
from qserver.control.databases import OpenDatabase
from qserver.control.organizations import DEFAULT
from qserver.limits import LIST_LENGTH_MAX
from qserver.probes import catalogue, matrix, run_probe
from qserver.web.admission import Admission
from qserver.web.description import shapes
from qserver.web.service.service import Service, ServiceState
from qserver.web.service.storage_test import storage_test
from qserver.web.statuses import RETRY_AFTER_SECONDS
from qserver.web.tables import describe_tables
from qserver.workloads.measuring import WORKLOAD


class UpkeepRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def get_health(self, admission: Admission) -> tuple[shapes.HealthAnswer, int]:
        checks = await self._service.checks()
        well = all(check == "ok" for check in checks.values())
        if not well:
            admission.headers_out.append((b"retry-after", RETRY_AFTER_SECONDS))
        uptime = self._service.uptime_s()
        answer = shapes.HealthAnswer(well, "ok" if well else "fail", __version__, uptime, checks)
        return answer, 200 if well else 503

    async def get_ready(self, admission: Admission) -> tuple[shapes.ReadyAnswer, int]:
        state = self._service.state
        if state is ServiceState.READY:
            return shapes.ReadyAnswer(True, "ready"), 200
        admission.headers_out.append((b"retry-after", RETRY_AFTER_SECONDS))
        return shapes.ReadyAnswer(False, state.value), 503

    async def get_metrics(self, admission: Admission) -> bytes:
        """The organization `default` runs the server and sees all metrics; others, and a key that
        is limited to some databases, see only their own databases.
        """
        service, grant = self._service, admission.grant
        # The first time it takes 20 ms, for which others must not wait.
        await trio.to_thread.run_sync(import_module, "qserver.web.service.exposition")
        from qserver.web.service import exposition

        databases = service.databases.statistics()
        if grant.organization == DEFAULT and grant.database_ids is None:
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
            )
        own, _ = await service.plane.records.list_page(grant, None, LIST_LENGTH_MAX)
        own_ids = {each.id for each in own if grant.may_use(each.id)}
        return exposition.databases_text(tuple(each for each in databases if each.id in own_ids))

    async def get_tables(self, admission: Admission) -> shapes.TablesAnswer:
        name = admission.queries().get("database")
        if name is None:
            header = admission.headers.get(b"x-database")
            name = None if header is None else header.decode("latin-1")
        opened: OpenDatabase = await self._service.plane.database(admission.grant, name)
        with opened:
            snapshot = await opened.database.wait_durable_snapshot()
            described = await describe_tables(snapshot)
            return shapes.TablesAnswer(True, opened.name, snapshot.version, described)

    async def get_bench(self, admission: Admission) -> shapes.BenchAnswer:
        numbers = {name: admission.number(name) for name in ("duration_ms", "clients", "seed")}
        report = await self._service.bench.run(
            admission.queries().get("workload") or WORKLOAD,
            world=self._service.world,
            **{name: number for name, number in numbers.items() if number is not None},
        )
        return shapes.BenchAnswer(**asdict(report))

    async def get_capabilities(self, admission: Admission) -> shapes.CapabilitiesAnswer:
        return shapes.CapabilitiesAnswer(**asdict(catalogue()), capabilities=matrix())

    async def get_capabilities_name(self, admission: Admission, name: str) -> shapes.ProbeAnswer:
        result = await run_probe(name, self._service.world)
        return shapes.ProbeAnswer(**asdict(result), success=result.status == "pass")

    async def get_storage_test(self, admission: Admission) -> shapes.StorageAnswer:
        return shapes.StorageAnswer(**asdict(await storage_test(self._service.logs)))

    async def post_admin_reset(self, admission: Admission) -> shapes.ResetAnswer:
        wiped = await self._service.plane.reset(admission.grant, admission.request_id)
        return shapes.ResetAnswer(True, wiped.databases, wiped.tables_dropped, wiped.rows_deleted)
