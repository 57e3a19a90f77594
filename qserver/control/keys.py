"""API keys: made, listed, narrowed, rotated, revoked.

A key gives nothing that it lacks: not a scope, not a database, not a longer life. Nor does it touch
a key that may do more than itself: rotating such a key would take its rights, revoking it would
lock others out. Options that are omitted when a key is made come from the key that makes it.

A key with statements can run these and nothing else, see `statement_texts`. It has no scope of its
own; those that its statements need decide who may make, change, rotate and revoke it.

The last key with the scope admin that neither expires nor is limited to databases cannot be revoked
or narrowed: no key could ever make another. Make its successor first, or rotate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from qserver.control.access import Access, no_database, not_among_its_databases
from qserver.control.describing import described
from qserver.control.owners import Owners
from qserver.control.records import ADMIN, Grant, KeyRecord, KeyState
from qserver.control.requests import (
    Page,
    checked_key_name,
    checked_scopes,
    checked_seconds,
    require,
)
from qserver.control.scram import verifier_of
from qserver.control.statement_texts import (
    Statements,
    check_texts,
    checked_must_bind,
    lacks_one_of,
    lost_parameters,
    needed_scopes,
    read_bound,
    read_statements,
    stored,
)
from qserver.control.store import Store
from qserver.control.tokens import SHOWN_LENGTH, Mint, digest
from qserver.errors import Forbidden, InvalidRequest, NotFound
from qserver.limits import (
    KEY_GRACE_SECONDS_MAX,
    KEY_KEPT_SECONDS,
    KEY_LIFE_SECONDS_MAX,
    KEYS_OF_ORGANIZATION_MAX,
)
from qserver.query.sql_database import Statement

_COLUMNS: Final = (
    "id, organization_id, name, scopes, databases, prefix, created_at, expires_at, revoked_at,"
    " statements, bound"
)
_ALIVE: Final = "revoked_at is null and (expires_at is null or expires_at > $2)"


class Key(msgspec.Struct, frozen=True):
    """A row of the table; `databases` are ids.

    A key with `statements` has no scopes; `scopes` are those that its statements need.
    """

    id: str
    organization_id: str
    name: str
    scopes: tuple[str, ...]
    databases: tuple[str, ...] | None
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    statements: str | None = None
    bound: tuple[str, ...] | None = None

    @property
    def database_ids(self) -> frozenset[str] | None:
        return None if self.databases is None else frozenset(self.databases)

    @property
    def opens_everything(self) -> bool:
        """Return whether an organization with this key can always make more keys."""
        return ADMIN in self.scopes and self.databases is None and self.expires_at is None

    def state(self, now: datetime) -> KeyState:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


class Keys:
    def __init__(
        self,
        store: Store,
        access: Access,
        owners: Owners,
        mint: Mint,
        ended: Callable[[str], None] = lambda key_id: None,
    ) -> None:
        """`ended` is called with the id of a key that was just revoked, or lost a statement."""
        self._ended = ended
        self._store = store
        self._access = access
        self._owners = owners
        self._mint = mint

    # --- reading ---

    async def list_page(
        self, grant: Grant, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[KeyRecord], str | None]:
        """Return a page of the organization's keys, oldest first, and the next cursor."""
        require(grant, "keys")
        page = Page("key", cursor, limit)
        rows = await self._store.rows(
            f"select {_COLUMNS} from keys where organization_id = $1 and id > $2"
            " order by id limit $3",
            grant.organization_id,
            page.after,
            page.length + 1,
        )
        names = await self._names(grant)
        return page.cut(rows, lambda row: self._record(Key(*row), names))

    async def find(self, grant: Grant, key_id: str) -> KeyRecord:
        require(grant, "keys")
        return self._record(await self._find(grant, key_id), await self._names(grant))

    async def _find(self, grant: Grant, key_id: str) -> Key:
        rows = await self._store.rows(
            f"select {_COLUMNS} from keys where organization_id = $1 and id = $2",
            grant.organization_id,
            key_id,
        )
        if not rows:
            raise NotFound(f"there is no key {key_id!r}", hint="GET /v1/keys lists them.")
        return Key(*rows[0])

    async def _names(self, grant: Grant) -> dict[str, str]:
        rows = await self._store.rows(
            "select id, name from databases where organization_id = $1", grant.organization_id
        )
        return dict(rows)

    def _record(self, key: Key, names: dict[str, str]) -> KeyRecord:
        """Return the record of a key. Databases that are gone are no longer named."""
        databases = key.databases
        if databases is not None:
            databases = tuple(sorted(names[each] for each in databases if each in names))
        statements = None if key.statements is None else read_statements(key.statements)
        return KeyRecord(
            key.id,
            key.organization_id,
            key.name,
            key.scopes if statements is None else (),
            databases,
            key.state(self._store.now()),
            key.prefix,
            key.created_at,
            key.expires_at,
            key.revoked_at,
            None if statements is None else {name: each.sql for name, each in statements.items()},
            None if statements is None else tuple(key.bound or ()),
        )

    # --- making ---

    async def create(
        self,
        grant: Grant,
        name: str,
        scopes: Iterable[str] | None = None,
        databases: Iterable[str] | None = None,
        expires_in: float | None = None,
        statements: Mapping[str, str] | None = None,
        bound: Sequence[str] | None = None,
    ) -> tuple[KeyRecord, str]:
        """Make a key; return it and its secret, which is never shown again.

        `databases` are names or ids. None, there or for the other options: as the key that makes
        it. A key with `statements` and without `databases` is for the default database; every
        session of it has to bind the parameters in `bound`.
        """
        require(grant, "keys")
        checked_key_name(name)
        found: Statements | None = None
        if statements is not None:
            if scopes is not None:
                raise InvalidRequest(
                    "a key with statements has no scopes",
                    detail="It can run its statements and nothing else.",
                )
            check_texts(statements)
            databases = [grant.database] if databases is None else tuple(databases)
            ids = self._limit(grant, await self._names(grant), databases)
            assert ids is not None, "they were given"
            found = await described(self._access, self._owners, grant, ids, statements)
            scopes = needed_scopes(found)
        must_bind = None if bound is None else checked_must_bind(found, bound)
        wanted = checked_scopes(grant.scopes if scopes is None else scopes)
        if not grant.has_all(wanted):
            lacking = ", ".join(scope for scope in wanted if not grant.has(scope))
            raise Forbidden(f"a key cannot give what it lacks: {lacking}")
        async with self._store.changing(grant):
            await self._check_room(grant)
            names = await self._names(grant)
            ids = self._limit(grant, names, databases)
            expires_at = await self._expiry(grant, expires_in)
            statement, key, secret = self.insertion(
                grant.organization_id,
                name,
                wanted,
                ids,
                expires_at,
                statements=None if found is None else stored(found),
                bound=must_bind,
            )
            await self._store.write(statement)
        return self._record(key, names), secret

    async def _check_room(self, grant: Grant) -> None:
        alive = await self._store.count(
            f"select count(*) from keys where organization_id = $1 and {_ALIVE}",
            grant.organization_id,
            self._store.now(),
        )
        if alive >= KEYS_OF_ORGANIZATION_MAX:
            raise InvalidRequest(
                f"an organization has at most {KEYS_OF_ORGANIZATION_MAX} active keys",
                hint="Revoke one that is not needed.",
            )

    def _limit(
        self, grant: Grant, names: dict[str, str], databases: Iterable[str] | None
    ) -> tuple[str, ...] | None:
        if databases is None:
            return None if grant.database_ids is None else tuple(sorted(grant.database_ids))
        ids = _ids_of(names, databases)
        for database_id in ids:
            if not grant.may_use(database_id):
                raise not_among_its_databases(names[database_id])
        return ids

    async def _expiry(self, grant: Grant, expires_in: float | None) -> datetime | None:
        """Return when a new key expires: not after the one that makes it."""
        own = (await self._find(grant, grant.key_id)).expires_at
        if expires_in is None:
            return own
        checked_seconds("expires_in", expires_in, 1, KEY_LIFE_SECONDS_MAX)
        expires_at = self._store.from_now(expires_in)
        if own is not None and own < expires_at:
            raise Forbidden(
                "a key cannot give a longer life than its own",
                detail=f"It expires at {own.isoformat()}.",
            )
        return expires_at

    def insertion(
        self,
        organization_id: str,
        name: str,
        scopes: tuple[str, ...],
        databases: tuple[str, ...] | None,
        expires_at: datetime | None,
        secret: str | None = None,
        statements: str | None = None,
        bound: tuple[str, ...] | None = None,
    ) -> tuple[Statement, Key, str]:
        """Return a new key, the statement that stores it, and its secret, new if none is given."""
        secret = secret or self._mint.key()
        verifier = verifier_of(secret, self._mint.salt())
        now = self._store.now()
        key = Key(
            self._mint.id("key", now.timestamp()),
            organization_id,
            name,
            scopes,
            databases,
            secret[:SHOWN_LENGTH],
            now,
            expires_at,
            None,
            statements,
            bound,
        )
        statement = Statement(
            f"insert into keys ({_COLUMNS}, digest, scram)"
            " values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            [*msgspec.structs.astuple(key), digest(secret), verifier.to_bytes()],
        )
        return statement, key, secret

    def record_of_new(self, key: Key) -> KeyRecord:
        return self._record(key, {})

    # --- changing ---

    async def change(
        self,
        grant: Grant,
        key_id: str,
        *,
        name: str | None = None,
        scopes: Iterable[str] | None = None,
        databases: Iterable[str] | None = None,
        statements: Mapping[str, str] | None = None,
        bound: Sequence[str] | None = None,
    ) -> KeyRecord:
        """Rename a key, or take scopes or databases from it. None leaves a field unchanged.

        `statements` replace those of a key that has statements; another key cannot get any. `bound`
        replaces the parameters that its sessions have to bind: those that lack one end.
        """
        require(grant, "keys")
        if name is not None:
            checked_key_name(name)
        wanted = None if scopes is None else checked_scopes(scopes)
        found: Statements | None = None
        if statements is not None:
            check_texts(statements)
            found = await self._described(grant, key_id, statements)
            wanted = needed_scopes(found)
        async with self._store.changing(grant):
            key = await self._find_changeable(grant, key_id)
            if scopes is not None and key.statements is not None:
                raise InvalidRequest("a key with statements has no scopes")
            names = await self._names(grant)
            changed = msgspec.structs.replace(
                key,
                name=name or key.name,
                scopes=key.scopes if wanted is None else wanted,
                databases=key.databases if databases is None else _ids_of(names, databases),
                statements=key.statements if found is None else stored(found),
                bound=_must_bind(key, found, bound),
            )
            _check_narrower(key, changed)
            if not changed.opens_everything:
                await self._check_not_last(key)
            await self._store_changed(key, changed, found)
        return self._record(changed, names)

    async def _store_changed(self, key: Key, changed: Key, found: Statements | None) -> None:
        """Store a changed key, with its new statements, and end what they leave without a
        parameter or a statement."""
        update = Statement(
            "update keys set name = $2, scopes = $3, databases = $4, statements = $5,"
            " bound = $6 where id = $1",
            [
                key.id,
                changed.name,
                changed.scopes,
                changed.databases,
                changed.statements,
                changed.bound,
            ],
        )
        before = _statements_of(key) or {}
        lost = frozenset() if found is None else lost_parameters(before, found)
        ends = await self._ends_of_sessions(key, lost)
        await self._store.write(update, *ends)
        if found is not None and lacks_one_of(found, before):
            self._ended(key.id)

    async def _ends_of_sessions(self, key: Key, lost: frozenset[str]) -> list[Statement]:
        """Return what ends the sessions that bind a parameter which a statement has lost."""
        if not lost:
            return []
        rows = await self._store.rows(
            "select id, bound from sessions where key_id = $1 and bound is not null", key.id
        )
        ended = [name for name, bound in rows if not lost.isdisjoint(read_bound(bound))]
        return [Statement("delete from sessions where id = any($1)", [ended])] if ended else []

    async def _described(
        self, grant: Grant, key_id: str, statements: Mapping[str, str]
    ) -> Statements:
        """Describe new statements of a key in its remaining databases."""
        key = await self._find_changeable(grant, key_id)
        if key.statements is None:
            raise InvalidRequest(
                "an ordinary key cannot be limited to statements", hint="Make a new key."
            )
        names = await self._names(grant)
        left = [each for each in key.databases or () if each in names]
        if not left:
            raise InvalidRequest("the databases of the key are gone", hint="Make a new key.")
        return await described(self._access, self._owners, grant, left, statements)

    async def revoke(self, grant: Grant, key_id: str) -> None:
        """End a key, and with it its sessions, from this moment on. Repeating it is no error."""
        require(grant, "keys")
        async with self._store.changing(grant):
            key = await self._find(grant, key_id)
            if key.revoked_at is None:
                check_covered(grant, key.scopes, key.database_ids)
                await self._check_not_last(key)
            await self._store.write(self._revocation(key))  # again: every process has to have it
            self._ended(key.id)

    async def rotate(
        self, grant: Grant, key_id: str, grace_seconds: float = 0
    ) -> tuple[KeyRecord, str]:
        """Make a key like the old one with a new secret; the old one ends after the grace."""
        require(grant, "keys")
        checked_seconds("grace_seconds", grace_seconds, 0, KEY_GRACE_SECONDS_MAX)
        async with self._store.changing(grant):
            key = await self._find_changeable(grant, key_id)
            await self._check_room(grant)
            names = await self._names(grant)
            insertion, successor, secret = self.insertion(
                key.organization_id,
                key.name,
                key.scopes,
                key.databases,
                key.expires_at,
                statements=key.statements,
                bound=key.bound,
            )
            await self._store.write(insertion, self._end_after(key, grace_seconds))
            if grace_seconds == 0:
                self._ended(key.id)
        return self._record(successor, names), secret

    def _end_after(self, key: Key, grace_seconds: float) -> Statement:
        if grace_seconds == 0:
            return self._revocation(key)
        end = self._store.from_now(grace_seconds)
        if key.expires_at is not None:
            end = min(end, key.expires_at)
        return Statement("update keys set expires_at = $2 where id = $1", [key.id, end])

    def _revocation(self, key: Key) -> Statement:
        revoked_at = key.revoked_at or self._store.now()
        return Statement("update keys set revoked_at = $2 where id = $1", [key.id, revoked_at])

    async def _find_changeable(self, grant: Grant, key_id: str) -> Key:
        key = await self._find(grant, key_id)
        check_covered(grant, key.scopes, key.database_ids)
        state = key.state(self._store.now())
        if state != "active":
            raise InvalidRequest(f"the key is {state}", hint="Make a new one.")
        return key

    async def _check_not_last(self, key: Key) -> None:
        if not key.opens_everything:
            return
        others = await self._store.count(
            "select count(*) from keys where organization_id = $1 and id <> $2"
            " and revoked_at is null and expires_at is null and databases is null"
            " and 'admin' = any(scopes)",
            key.organization_id,
            key.id,
        )
        if others == 0:
            raise Forbidden(
                "this is the last key of the organization that can make other keys for ever",
                hint="Make another key with the scope admin first, or rotate this one.",
            )

    async def sweep(self) -> None:
        """Remove keys that have been dead for long."""
        await self._store.write(
            Statement(
                "delete from keys where revoked_at < $1 or expires_at < $1",
                [self._store.from_now(-KEY_KEPT_SECONDS)],
            )
        )


def _ids_of(names: dict[str, str], databases: Iterable[str]) -> tuple[str, ...]:
    by_name = {name: database_id for database_id, name in names.items()}
    ids = set()
    for wanted in databases:
        database_id = by_name.get(wanted) or (wanted if wanted in names else None)
        if database_id is None:
            raise no_database(wanted)
        ids.add(database_id)
    if not ids:
        raise InvalidRequest("a key that is limited to databases needs at least one")
    return tuple(sorted(ids))


def check_covered(
    grant: Grant, scopes: tuple[str, ...], database_ids: frozenset[str] | None
) -> None:
    """Refuse to touch a key, or what is made from it, that may do more than the caller's."""
    if not grant.has_all(scopes) or not grant.may_use_all(database_ids):
        raise Forbidden(
            "that key may do more than this one",
            hint="Use a key that has all its scopes and databases.",
        )


def _statements_of(key: Key) -> Statements | None:
    return None if key.statements is None else read_statements(key.statements)


def _must_bind(
    key: Key, found: Statements | None, bound: Sequence[str] | None
) -> tuple[str, ...] | None:
    """The parameters that sessions have to bind: as given, or as they were, if they still can."""
    wanted = key.bound if bound is None else bound
    if wanted is None:
        return None
    return checked_must_bind(_statements_of(key) if found is None else found, wanted)


def _check_narrower(key: Key, changed: Key) -> None:
    wider = (
        key.statements is None
        and ADMIN not in key.scopes
        and not set(key.scopes).issuperset(changed.scopes)
    )
    if key.databases is not None:
        wider = wider or not set(key.databases).issuperset(changed.databases or ())
    if wider:
        raise InvalidRequest("a key can only be narrowed", hint="Make a new key instead.")
