"""Routes that show what the statements of a database cost."""

from __future__ import annotations

from qserver.errors import InvalidRequest
from qserver.limits import LIST_LENGTH_DEFAULT, LIST_LENGTH_MAX
from qserver.query.statement_counting import MS
from qserver.query.statement_statistics import StatementNumbers
from qserver.web.admission import Admission
from qserver.web.description import statement_shapes as shapes
from qserver.web.description.statements_routes import ORDERS
from qserver.web.routes.history import limit_of
from qserver.web.service.service import Service


class InsightRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def get_v1_databases_database_statements(
        self, admission: Admission, database: str
    ) -> shapes.StatementsAnswer:
        plane, order = self._service.plane, admission.queries().get("order", ORDERS[0])
        if order not in ORDERS:
            raise InvalidRequest(f"order is one of {', '.join(ORDERS)}, not {order[:40]!r}")
        limit = limit_of(admission, LIST_LENGTH_DEFAULT, LIST_LENGTH_MAX)
        with await plane.database(admission.grant, database) as opened:
            found = await plane.statement_counts.rows(opened.id)
        listed = sorted(map(_shown, found), key=lambda each: each.queryid)
        listed.sort(key=lambda each: getattr(each, order), reverse=True)
        return shapes.StatementsAnswer(True, opened.name, listed[:limit])

    async def delete_v1_databases_database_statements(
        self, admission: Admission, database: str
    ) -> None:
        plane = self._service.plane
        with await plane.database(admission.grant, database) as opened:
            await plane.statement_counts.reset(opened.id)


def _shown(found: StatementNumbers) -> shapes.StatementCounts:
    return shapes.StatementCounts(
        str(found.number),
        found.text,
        found.calls,
        found.rows,
        found.seconds * MS,
        found.mean * MS,
        (found.least if found.calls else 0.0) * MS,
        found.most * MS,
        found.deviation * MS,
        found.cpu_seconds * MS,
        found.retries,
        found.conflicts,
        found.bytes_most,
        found.plans,
    )
