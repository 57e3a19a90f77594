"""Operational routes: health, metrics, tables, self-tests."""

from __future__ import annotations

from msgspec.structs import asdict

from qserver import __version__
from qserver.control.databases import OpenDatabase
from qserver.control.organizations import DEFAULT
from qserver.limits import LIST_LENGTH_MAX
from qserver.probes import catalogue, matrix, run_probe
from qserver.web.admission import Admission
from qserver.web.description import shapes
from qserver.web.service.service import Service, ServiceState
from qserver.web.service.together import Together
from qserver.web.statuses import RETRY_AFTER_SECONDS
from qserver.web.tables import describe_tables
from qserver.workloads.measuring import WORKLOAD


class UpkeepRoutes:
    def __init__(self, service: Service, together: Together) -> None:
        self._service = service
        self._together = together

    async def get_health(self, admission: Admission) -> tuple[shapes.HealthAnswer, int]:
        checks = await self._together.checks()
        well = all(check == "ok" for check in checks.values())
        if not well:
            admission.headers_out.append((b"retry-after", RETRY_AFTER_SECONDS))
        uptime = self._service.uptime_s()
        answer = shapes.HealthAnswer(well, "ok" if well else "fail", __version__, uptime, checks)
        return answer, 200 if well else 503

    async def get_ready(self, admission: Admission) -> tuple[shapes.ReadyAnswer, int]:
        state = await self._together.state()
        if state is ServiceState.READY:
            return shapes.ReadyAnswer(True, "ready"), 200
        admission.headers_out.append((b"retry-after", RETRY_AFTER_SECONDS))
        return shapes.ReadyAnswer(False, state.value), 503

    async def get_metrics(self, admission: Admission) -> bytes:
        """The organization `default` runs the server and sees all metrics; others, and a key that
        is limited to some databases, see only their own databases.
        """
        grant = admission.grant
        if grant.organization == DEFAULT and grant.database_ids is None:
            return await self._together.metrics(None)
        own, _ = await self._service.plane.records.list_page(grant, None, LIST_LENGTH_MAX)
        return await self._together.metrics(each.id for each in own if grant.may_use(each.id))

    async def get_tables(self, admission: Admission) -> shapes.TablesAnswer:
        name = admission.queries().get("database")
        if name is None:
            header = admission.headers.get(b"x-database")
            name = None if header is None else header.decode("latin-1")
        opened: OpenDatabase = await self._service.plane.database(admission.grant, name)
        with opened:
            snapshot = await opened.sql.wait_fresh(admission.freshness, admission.grant.deadline())
            described = await describe_tables(snapshot)
            return shapes.TablesAnswer(True, opened.name, snapshot.version, described)

    async def get_bench(self, admission: Admission) -> shapes.BenchAnswer:
        self._service.plane.owners.check_leader()  # one at a time
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
        return shapes.StorageAnswer(**asdict(await self._service.test_storage()))

    async def post_admin_reset(self, admission: Admission) -> shapes.ResetAnswer:
        wiped = await self._service.plane.reset(admission.grant, admission.request_id)
        return shapes.ResetAnswer(True, wiped.databases, wiped.tables_dropped, wiped.rows_deleted)
