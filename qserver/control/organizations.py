"""Organizations: own databases and keys, and have their requests counted.

    creating: organization, `main` ──► `main` can be opened ──► ready: with the first key

An organization is made with its first database and its first key. All three become good in one
commit at the end. The next start or sweep undoes what was cut short before that, because no client
has a key to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from msgspec.json import encode

from qserver.control.background_tasks import BackgroundTasks
from qserver.control.database_records import DatabaseRecords, with_state
from qserver.control.keys import Keys
from qserver.control.owners import Owners
from qserver.control.rates import Rates
from qserver.control.records import (
    SCOPES,
    DatabaseRecord,
    Grant,
    KeyRecord,
    Organization,
    OrganizationOverview,
    Use,
)
from qserver.control.requests import Page, checked_name, require
from qserver.control.shares import Shares, changed_own, read_own
from qserver.control.space import Space
from qserver.control.store import Store
from qserver.control.tokens import Mint, digest
from qserver.errors import (
    AlreadyExists,
    ChangeUnconfirmed,
    Forbidden,
    InvalidRequest,
    NotFound,
    QserverError,
    UniqueViolation,
)
from qserver.limits import ORGANIZATIONS_MAX
from qserver.query.sql_database import Statement

DEFAULT: Final = "default"
MAIN: Final = "main"
_COLUMNS: Final = "id, name, tier, limits, created_at"
_COUNT: Final = "select count(*) from organizations"
_SET_READY: Final = "update organizations set state = 'ready' where id = $1"
_IS_READY: Final = "select 1 from organizations where id = $1 and state = 'ready'"
_LIVING_KEYS: Final = """select count(*) from keys where organization_id = $1
    and revoked_at is null and (expires_at is null or expires_at > $2)"""
_LIVING_SESSIONS: Final = """select count(*) from sessions s join keys k on k.id = s.key_id
    where k.organization_id = $1 and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > $2) and s.expires_at > $2"""


class Organizations:
    def __init__(
        self,
        store: Store,
        databases: DatabaseRecords,
        owners: Owners,
        keys: Keys,
        rates: Rates,
        background_tasks: BackgroundTasks,
        mint: Mint,
        space: Space,
        shares: Shares,
    ) -> None:
        self._store = store
        self._databases = databases
        self._owners = owners
        self._keys = keys
        self._rates = rates
        self._background_tasks = background_tasks
        self._mint = mint
        self._space = space
        self._shares = shares
        self.count_open: Callable[[str], tuple[int, int, int]] = lambda organization_id: (0, 0, 0)
        """Counts an organization's open transactions, feeds and live queries."""
        owners.answer("in_use", self.in_use)

    async def overview(self, grant: Grant) -> OrganizationOverview:
        return await self._overview(grant.organization_id)

    async def _overview(self, organization_id: str) -> OrganizationOverview:
        now = self._store.now()
        ((_, name, tier, own, created_at),) = await self._store.rows(
            f"select {_COLUMNS} from organizations where id = $1", organization_id
        )
        share = self._shares.share(organization_id, tier, own)
        databases = await self._store.count(
            "select count(*) from databases where organization_id = $1 and state <> 'deleted'",
            organization_id,
        )
        found = await self._owners.try_all("in_use", organization_id, tier, own)
        in_use = [each for each in found.values() if not isinstance(each, QserverError)]
        use = Use(
            self._rates.count(organization_id),
            databases,
            await self._store.count(_LIVING_KEYS, organization_id, now),
            await self._store.count(_LIVING_SESSIONS, organization_id, now),
            await self._space.stored_bytes(organization_id),
            await self._databases.count_branches(organization_id),
            *map(sum, zip(*in_use, strict=True)),
        )
        return OrganizationOverview(organization_id, name, tier, created_at, share.limits, use)

    async def in_use(self, organization_id: str, tier: str, own: str | None) -> list[int]:
        """Return what an organization uses of this process."""
        share = self._shares.share(organization_id, tier, own)
        return [share.memory.held, share.connections, *self.count_open(organization_id)]

    # --- other organizations, for keys of `default` ---

    async def list_page(
        self, grant: Grant, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[OrganizationOverview], str | None]:
        """Return a page of all organizations, oldest first, and the next cursor."""
        _require_operator(grant)
        page = Page("org", cursor, limit)
        rows = await self._store.rows(
            "select id from organizations where id > $1 and state = 'ready' order by id limit $2",
            page.after,
            page.length + 1,
        )
        overviews = {each: await self._overview(each) for (each,) in rows[: page.length]}
        return page.cut(rows, lambda row: overviews[row[0]])

    async def change(
        self, grant: Grant, id_or_name: str, tier: str | None, limits: Mapping[str, int | None]
    ) -> OrganizationOverview:
        """Change an organization's tier, and limits of its own; None: what the tier says."""
        _require_operator(grant)
        async with self._store.changing(grant):
            rows = await self._store.rows(
                f"select {_COLUMNS} from organizations where (id = $1 or name = $1)"
                " and state = 'ready' order by id = $1 desc limit 1",
                id_or_name,
            )
            if not rows:
                raise NotFound(
                    f"there is no organization {id_or_name!r}",
                    hint="GET /v1/organizations lists them.",
                )
            organization_id, name, tier_before, own, _ = rows[0]
            if name == DEFAULT and tier not in (None, tier_before):
                raise InvalidRequest(
                    "the tier of `default` is a setting of the server",
                    hint="Set QSERVER_DEFAULT_TIER.",
                )
            made = changed_own(read_own(own), limits)
            await self._store.write(
                Statement(
                    "update organizations set tier = $2, limits = $3 where id = $1",
                    [organization_id, tier or tier_before, encode(made).decode()],
                )
            )
        return await self._overview(organization_id)

    # --- creation ---

    async def signup(self, name: str) -> tuple[Organization, DatabaseRecord, KeyRecord, str]:
        """Make an organization of the free tier, its database `main`, its first key and secret."""
        checked_name("an organization", name)
        return await self._background_tasks.run(lambda: self._create(name, "free"))

    async def _create(
        self, name: str, tier: str, secret: str | None = None
    ) -> tuple[Organization, DatabaseRecord, KeyRecord, str]:
        async with self._store.changing():
            organization, database = await self._begin(name, tier)
            try:
                await self._databases.open_once(database)
                return await self._complete(organization, database, secret)
            except QserverError:
                await self._undo(organization.id)
                raise

    async def _begin(self, name: str, tier: str) -> tuple[Organization, DatabaseRecord]:
        count = await self._store.count(_COUNT)
        if count >= ORGANIZATIONS_MAX:
            raise InvalidRequest(f"this server has {ORGANIZATIONS_MAX} organizations already")
        self._shares.note_organizations(count + 1)
        now = self._store.now()
        organization = Organization(self._mint.id("org", now.timestamp()), name, tier, now)
        process = self._owners.process_for(organization.id, name)
        insertion, database = self._databases.insertion(
            organization.id, name, MAIN, process=self._owners.leader if name == DEFAULT else process
        )
        try:
            await self._store.write(_insertion(organization, now), insertion)
        except UniqueViolation:
            raise AlreadyExists(f"there is an organization {name!r} already") from None
        return organization, database

    async def _complete(
        self, organization: Organization, database: DatabaseRecord, secret: str | None
    ) -> tuple[Organization, DatabaseRecord, KeyRecord, str]:
        insertion, key, secret = self._keys.insertion(
            organization.id, "first key", SCOPES, None, None, secret
        )
        try:
            await self._store.write(
                insertion,
                Statement("update databases set state = 'ready' where id = $1", [database.id]),
                Statement(_SET_READY, [organization.id]),
            )
        except ChangeUnconfirmed:  # nobody gets the secret later: it is answered if it is good
            if not await self._store.rows(_IS_READY, organization.id):
                raise
        record = self._keys.record_of_new(key)
        return organization, with_state(database, "ready"), record, secret

    async def _undo(self, organization_id: str) -> None:
        await self._databases.undo(organization_id)
        await self._store.write(
            Statement("delete from organizations where id = $1", [organization_id])
        )

    # --- at the start, and now and then ---

    async def undo_cut_short(self) -> None:
        """Remove organizations whose creation was cut short; who makes one has the lock."""
        async with self._store.changing():
            for (organization_id,) in await self._store.rows(
                "select id from organizations where state = 'creating'"
            ):
                await self._undo(organization_id)

    async def ensure_default(self, tier: str, first_key: str | None) -> str | None:
        """Ensure that the organization `default` exists, with this tier and this key.

        Returns the secret of a key that had to be made. An unknown `first_key` is added to the
        existing keys; a revoked one stays revoked.
        """
        await self.count()
        rows = await self._store.rows("select id, tier from organizations where name = $1", DEFAULT)
        if not rows:
            _, _, _, secret = await self._create(DEFAULT, tier, first_key)
            return None if first_key else secret
        ((organization_id, tier_before),) = rows
        if tier_before != tier:
            await self._store.write(
                Statement(
                    "update organizations set tier = $2 where id = $1", [organization_id, tier]
                )
            )
        if first_key is not None:
            await self._add_key(organization_id, first_key)
        return None

    async def count(self) -> None:
        """Note how many organizations there are."""
        self._shares.note_organizations(await self._store.count(_COUNT))

    async def _add_key(self, organization_id: str, secret: str) -> None:
        if not await self._store.rows("select 1 from keys where digest = $1", digest(secret)):
            insertion, _, _ = self._keys.insertion(
                organization_id, "key of the settings", SCOPES, None, None, secret
            )
            await self._store.write(insertion)


def _require_operator(grant: Grant) -> None:
    """Raise unless the key is one of whoever runs the server."""
    require(grant, "admin")
    if grant.organization != DEFAULT:
        raise Forbidden(
            "this needs a key of the organization `default`",
            hint="GET /v1/organization shows your own.",
        )


def _insertion(organization: Organization, now: datetime) -> Statement:
    return Statement(
        "insert into organizations (id, name, tier, state, created_at)"
        " values ($1, $2, $3, 'creating', $4)",
        [organization.id, organization.name, organization.tier, now],
    )
