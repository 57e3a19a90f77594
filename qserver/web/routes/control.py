"""The control plane's routes: sessions, databases, keys, organizations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import asdict

from qserver.config import history_seconds
from qserver.control.branches import Origin
from qserver.control.held_list import HeldTransaction
from qserver.control.records import (
    DatabaseFacts,
    DatabaseRecord,
    KeyRecord,
    OrganizationOverview,
    SessionRecord,
)
from qserver.errors import Forbidden, HistoryTooOld, InvalidRequest
from qserver.sql import json_of
from qserver.web.admission import Admission
from qserver.web.callers import caller_of
from qserver.web.description import organization_shapes, shapes
from qserver.web.routes.bodies import body_of
from qserver.web.service.service import Service
from qserver.web.statements.as_of import as_of_given


class ControlRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._plane = service.plane

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._service.world.now(), UTC)

    # --- sessions ---

    async def post_v1_session(self, admission: Admission) -> shapes.SessionAnswer:
        wanted = await body_of(admission, shapes.SessionRequest)
        record, token = await self._plane.sessions.create(
            admission.grant,
            wanted.database,
            _tuple(wanted.scopes),
            None if wanted.bind is UNSET else wanted.bind,
            wanted.allow_null,
        )
        return shapes.SessionAnswer(True, _session(record, token, record.created_at))

    async def post_v1_session_refresh(self, admission: Admission) -> shapes.SessionAnswer:
        record = await self._plane.sessions.refresh(admission.grant)
        return shapes.SessionAnswer(True, _session(record, None, self._now()))

    async def get_v1_sessions(self, admission: Admission) -> organization_shapes.SessionsAnswer:
        found, cursor = await self._plane.sessions.list_page(
            admission.grant, admission.queries().get("cursor"), admission.number("limit")
        )
        listed = [organization_shapes.ListedSession(**asdict(each)) for each in found]
        return organization_shapes.SessionsAnswer(True, listed, cursor)

    async def delete_v1_sessions_session_id(self, admission: Admission, session_id: str) -> None:
        await self._plane.sessions.end(admission.grant, session_id)

    async def delete_v1_session(self, admission: Admission) -> None:
        await self._plane.sessions.delete(admission.grant)

    # --- databases ---

    async def get_v1_databases(self, admission: Admission) -> shapes.DatabasesAnswer:
        found, cursor = await self._plane.records.list_page(
            admission.grant, admission.queries().get("cursor"), admission.number("limit")
        )
        databases = []
        for record in found:
            _, facts = await self._plane.records.find(admission.grant, record.id)
            databases.append(shapes.Database(**_database(record, facts)))
        return shapes.DatabasesAnswer(True, databases, cursor)

    async def post_v1_databases(self, admission: Admission) -> shapes.DatabaseAnswer:
        wanted = await body_of(admission, shapes.DatabaseRequest)
        record = await self._made(admission, wanted.name, _origin(wanted))
        return await self._shown(admission, record.id)

    async def _made(self, admission: Admission, name: str, origin: Origin | None) -> DatabaseRecord:
        try:
            return await self._plane.records.create(admission.grant, name, origin)
        except HistoryTooOld as error:
            error.is_gone = True
            raise

    async def get_v1_databases_database(
        self, admission: Admission, database: str
    ) -> shapes.DatabaseAnswer:
        return await self._shown(admission, database)

    async def patch_v1_databases_database(
        self, admission: Admission, database: str
    ) -> shapes.DatabaseAnswer:
        wanted = await body_of(admission, shapes.DatabaseChange)
        if wanted == shapes.DatabaseChange():
            hint = "Send `name`, `history`, `replicas` or `keep`."
            raise InvalidRequest("nothing is to change", hint=hint)
        history = None if wanted.history is None else _history(wanted.history)
        if wanted.keep:
            database = (await self._plane.records.keep(admission.grant, database)).id
        if wanted.name is not None:
            record = await self._plane.records.rename(admission.grant, database, wanted.name)
            database = record.id
        if history is not None:
            await self._plane.records.keep_history(admission.grant, database, history)
        if wanted.replicas is not UNSET:
            await self._plane.records.set_replicas(admission.grant, database, wanted.replicas)
        return await self._shown(admission, database)

    async def delete_v1_databases_database(self, admission: Admission, database: str) -> None:
        await self._plane.records.delete(admission.grant, database)

    async def _shown(self, admission: Admission, database: str) -> shapes.DatabaseAnswer:
        record, facts = await self._plane.records.find(admission.grant, database)
        return shapes.DatabaseAnswer(**_database(record, facts))

    # --- keys ---

    async def get_v1_keys(self, admission: Admission) -> shapes.KeysAnswer:
        found, cursor = await self._plane.keys.list_page(
            admission.grant, admission.queries().get("cursor"), admission.number("limit")
        )
        return shapes.KeysAnswer(True, [shapes.Key(**_key(each)) for each in found], cursor)

    async def post_v1_keys(self, admission: Admission) -> shapes.KeyAnswer:
        wanted = await body_of(admission, shapes.KeyRequest)
        record, secret = await self._plane.keys.create(
            admission.grant,
            wanted.name,
            _tuple(wanted.scopes),
            _tuple(wanted.databases),
            wanted.expires_in,
            wanted.statements,
            _tuple(wanted.bound),
        )
        return shapes.KeyAnswer(**_key(record), key=secret)

    async def get_v1_keys_key_id(self, admission: Admission, key_id: str) -> shapes.KeyAnswer:
        return shapes.KeyAnswer(**_key(await self._plane.keys.find(admission.grant, key_id)))

    async def patch_v1_keys_key_id(self, admission: Admission, key_id: str) -> shapes.KeyAnswer:
        wanted = await body_of(admission, shapes.KeyChange)
        record = await self._plane.keys.change(
            admission.grant,
            key_id,
            name=wanted.name,
            scopes=_tuple(wanted.scopes),
            databases=_tuple(wanted.databases),
            statements=wanted.statements,
            bound=_tuple(wanted.bound),
        )
        return shapes.KeyAnswer(**_key(record))

    async def delete_v1_keys_key_id(self, admission: Admission, key_id: str) -> None:
        await self._plane.keys.revoke(admission.grant, key_id)

    async def post_v1_keys_key_id_rotate(
        self, admission: Admission, key_id: str
    ) -> shapes.KeyAnswer:
        wanted = await body_of(admission, shapes.RotateRequest)
        record, secret = await self._plane.keys.rotate(
            admission.grant, key_id, wanted.grace_seconds
        )
        return shapes.KeyAnswer(**_key(record), key=secret)

    # --- open transactions of all keys ---

    async def get_v1_transactions(
        self, admission: Admission
    ) -> organization_shapes.HeldTransactionsAnswer:
        found = await self._plane.held_list.every(admission.grant)
        return organization_shapes.HeldTransactionsAnswer(True, list(map(_held, found)))

    async def delete_v1_transactions_id(self, admission: Admission, id: str) -> None:
        await self._plane.held_list.end(admission.grant, id)

    # --- organizations ---

    async def get_v1_organization(
        self, admission: Admission
    ) -> organization_shapes.OrganizationAnswer:
        found = await self._plane.organizations.overview(admission.grant)
        return organization_shapes.OrganizationAnswer(**_organization(found))

    async def get_v1_organizations(
        self, admission: Admission
    ) -> organization_shapes.OrganizationsAnswer:
        found, cursor = await self._plane.organizations.list_page(
            admission.grant, admission.queries().get("cursor"), admission.number("limit")
        )
        listed = [organization_shapes.Organization(**_organization(each)) for each in found]
        return organization_shapes.OrganizationsAnswer(True, listed, cursor)

    async def patch_v1_organizations_organization(
        self, admission: Admission, organization: str
    ) -> organization_shapes.OrganizationAnswer:
        wanted = await body_of(admission, organization_shapes.OrganizationChange)
        tier = wanted.tier if isinstance(wanted.tier, str) else None
        limits = _given(wanted.limits)
        if tier is None and not limits:
            raise InvalidRequest("the request changes nothing", hint="Send tier, limits, or both.")
        found = await self._plane.organizations.change(admission.grant, organization, tier, limits)
        return organization_shapes.OrganizationAnswer(**_organization(found))

    async def post_v1_signup(self, admission: Admission) -> organization_shapes.SignupAnswer:
        if not self._service.settings.open_signup:
            raise Forbidden(
                "signup is closed on this server",
                hint="Its operator can set QSERVER_OPEN_SIGNUP=1.",
            )
        wanted = await body_of(admission, shapes.SignupRequest)
        settings = self._service.settings
        caller = caller_of(admission.client, admission.headers, trusted=settings.trust_forwarded)
        self._plane.take_signup(caller)
        _, database, key, secret = await self._plane.organizations.signup(wanted.organization)
        grant = await self._plane.authenticate(secret)
        organization = await self._plane.organizations.overview(grant)
        return organization_shapes.SignupAnswer(
            True,
            organization_shapes.Organization(**_organization(organization)),
            shapes.Database(**_database(*await self._plane.records.find(grant, database.id))),
            secret,
            key.id,
            self._urls(admission),
        )

    def _urls(self, admission: Admission) -> dict[str, str]:
        """The configured URLs, or else the host of this request."""
        settings = self._service.settings
        scheme = admission.request.scheme
        host = admission.headers.get(b"host", b"localhost").decode("latin-1")
        here = f"{scheme}://{host}"
        return {"data": settings.data_url or here, "control": settings.control_url or here}


def _tuple(given: list[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)


def _session(record: SessionRecord, token: str | None, now: datetime) -> shapes.Session:
    return shapes.Session(
        id=record.id,
        token_type="Bearer",
        expires_in=round((record.expires_at - now).total_seconds()),
        expires_at=record.expires_at,
        created_at=record.created_at,
        key_id=record.key_id,
        scopes=list(record.scopes),
        database=record.database,
        token=UNSET if token is None else token,
        bind=UNSET if record.bound is None else _exactly(record.bound),
    )


def _exactly(bound: Mapping[str, Any]) -> dict[str, Any]:
    """The values as JSON that is ready, so that a number with a point stays a number."""
    return {name: Raw(json_of(value).encode()) for name, value in bound.items()}


def _database(record: DatabaseRecord, facts: DatabaseFacts) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "organization": record.organization,
        "state": record.state,
        "created_at": record.created_at,
        "replicas": record.replicas,
        **({} if record.branch_of is None else _branch(record)),
        **asdict(facts),
    }


def _origin(wanted: shapes.DatabaseRequest) -> Origin | None:
    """What a new database is to be a branch of, if of any."""
    if wanted.branch_of is None:
        if wanted.as_of is not None:
            raise InvalidRequest(
                "as_of is for a branch", hint="Name the database it is to begin as: branch_of."
            )
        return None
    return Origin(wanted.branch_of, None if wanted.as_of is None else as_of_given(wanted.as_of))


def _history(given: int | str) -> float:
    """How long older versions are to be kept, in seconds."""
    try:
        return history_seconds(str(given))
    except ValueError as error:
        raise InvalidRequest(f"history {given!r} is wrong: {error}") from None


def _branch(record: DatabaseRecord) -> dict[str, Any]:
    return {
        "branch_of": record.branch_of,
        "branch_version": UNSET if record.branch_version is None else record.branch_version,
        "expires_at": record.expires_at,
    }


def _key(record: KeyRecord) -> dict[str, Any]:
    fields = asdict(record)
    del fields["organization_id"]
    if record.statements is None:
        del fields["statements"], fields["bound"]
    return fields


def _held(found: HeldTransaction) -> organization_shapes.HeldTransaction:
    fields = asdict(found)
    del fields["database_id"]
    for name in ("created_at", "expires_at"):
        fields[name] = datetime.fromtimestamp(fields[name], UTC)
    return organization_shapes.HeldTransaction(**fields)


def _organization(found: OrganizationOverview) -> dict[str, Any]:
    return {**asdict(found), "limits": asdict(found.limits), "use": asdict(found.use)}


def _given(change: Any) -> dict[str, int | None]:
    """The limits that a request changes."""
    fields = {} if change is UNSET else asdict(change)
    return {name: value for name, value in fields.items() if value is not UNSET}
