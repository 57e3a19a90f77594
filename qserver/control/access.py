"""Resolves a token to a Grant and a name to an open database, on every request.

    token ─► cached? ─► Grant                        both caches hold what was true at one version
       └──► digest ─► SQL ─► Grant                   of the control database, and are emptied when
    name ─► cached? ─► id ─► open? ─► OpenDatabase   that version has changed: a revoked key fails
       └──► SQL ───────┘       └──► opened           on the very next request, whoever revoked it

The durable version is one number that is available without waiting, so a request costs one
comparison here. Time is checked besides: an expiry changes no version.

A name is looked up and its database registered as wanted at one and the same version, with no wait
in between. A deletion changes the version first and closes the database afterwards; so it finds
every host, and no request opens a deleted database again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from math import inf
from typing import Any, Final

import msgspec

from qserver.control.databases import Databases, OpenDatabase
from qserver.control.owners import OwnedElsewhere, Owners
from qserver.control.records import Grant
from qserver.control.shares import Shares
from qserver.control.statement_texts import Statements, check_bound, read_bound, read_statements
from qserver.control.store import Store
from qserver.control.tokens import SESSION_PREFIX, digest, is_token
from qserver.errors import (
    DatabaseMoved,
    DatabaseUnavailable,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unauthorized,
)
from qserver.limits import GRANTS_KEPT_MAX, KEYS_OF_ORGANIZATION_MAX
from qserver.storage.snapshot import Snapshot

_KEY_COLUMNS: Final = (
    "k.organization_id, o.name, o.tier, o.limits, k.id, k.scopes, k.databases, k.expires_at,"
    " k.revoked_at, k.statements, k.bound"
)
_FIND_KEY: Final = f"""select {_KEY_COLUMNS}, null, null, null, null, null
    from keys k join organizations o on o.id = k.organization_id where k.digest = $1"""
_FIND_SESSION: Final = f"""select {_KEY_COLUMNS}, s.id, s.scopes, s.database_id,
    s.expires_at, s.bound
    from sessions s join keys k on k.id = s.key_id
    join organizations o on o.id = k.organization_id where s.digest = $1"""
_FIND_KEY_BY_ID: Final = _FIND_KEY.replace("k.digest = $1", "k.id = $1")


class _Found(msgspec.Struct, frozen=True):
    """A row of either query; the last five are a session's."""

    organization_id: str
    organization: str
    tier: str
    limits: str | None
    key_id: str
    key_scopes: Sequence[str]
    databases: Sequence[str] | None
    key_expires_at: datetime | None
    revoked_at: datetime | None
    statements: str | None
    must_bind: Sequence[str] | None
    session_id: str | None
    session_scopes: Sequence[str] | None
    session_database: str | None
    session_expires_at: datetime | None
    bound: str | None


class Access:
    def __init__(
        self,
        store: Store,
        databases: Databases,
        now: Callable[[], float],
        shares: Shares,
        owners: Owners,
    ) -> None:
        self._store = store
        self._owners = owners
        self._databases = databases
        self._shares = shares
        self._now = now
        self._snapshot: Snapshot | None = None
        """For which the caches are true; without one they are empty."""
        self._grants: dict[str, Grant] = {}
        self._grants_of_keys: dict[str, Grant] = {}
        """By the ids of keys, which are no secrets: only for who has proved a key."""
        self._names: dict[tuple[str, str], tuple[str, str, int, bool]] = {}
        """Organization and name, or id, to id, name, the process that owns it, and whether this one
        may follow it."""
        self._statements: dict[str, Statements] = {}
        """Statements of keys, decoded."""

    # --- tokens ---

    def grant_nowait(self, token: str) -> Grant | None:
        """Return what a token allows, if that is cached and surely still true."""
        take_snapshot = self._store.take_snapshot
        if take_snapshot() is not self._snapshot and not self._caches_are_good():
            return None
        grant = self._grants.get(token)
        if grant is None:
            return None
        expires_at = grant.expires_at
        return grant if expires_at == inf or expires_at > self._now() else None

    def moment_nowait(self) -> Snapshot | None:
        """Return what stands for all that is allowed now, as cached: it is another once that may
        have changed. Only time changes more: it ends grants that expire.
        """
        if self._store.take_snapshot() is not self._snapshot and not self._caches_are_good():
            return None
        return self._snapshot

    async def authenticate(self, token: str) -> Grant:
        """Return what a token allows; raise Unauthorized, which says why, if it allows nothing."""
        grant = self.grant_nowait(token)
        if grant is not None:
            return grant
        if not is_token(token):
            raise Unauthorized(
                "this is neither a key nor the token of a session",
                hint="Send the header Authorization: Bearer svc_k_…",
            )
        is_session = token.startswith(SESSION_PREFIX)
        text = _FIND_SESSION if is_session else _FIND_KEY
        result = await self._store.read_here(text, digest(token))
        if not result.rows:
            raise _unknown(is_session)
        found = _Found(*result.rows[0])
        self._check_alive(found)
        grant = await self._grant(found)
        if result.version == self._store.version() and self._caches_are_good():
            if len(self._grants) >= GRANTS_KEPT_MAX:
                self._grants.clear()
            self._grants[token] = grant
        return grant

    def grant_of_key_nowait(self, key_id: str) -> Grant | None:
        """Return what a key allows that its owner has proved, as `grant_nowait` does."""
        grant = self._grants_of_keys.get(key_id) if self._caches_are_good() else None
        return grant if grant is not None and grant.expires_at > self._now() else None

    async def authenticate_key(self, key_id: str) -> Grant:
        """Return what a key allows that its owner has proved; raise Unauthorized for nothing."""
        grant = self.grant_of_key_nowait(key_id)
        if grant is not None:
            return grant
        result = await self._store.read_here(_FIND_KEY_BY_ID, key_id)
        if not result.rows:
            raise _unknown(False)
        found = _Found(*result.rows[0])
        self._check_alive(found)
        grant = await self._grant(found)
        if result.version == self._store.version() and self._caches_are_good():
            if len(self._grants_of_keys) >= GRANTS_KEPT_MAX:
                self._grants_of_keys.clear()
            self._grants_of_keys[key_id] = grant
        return grant

    async def verifier_of_key(self, key_id: str) -> bytes | None:
        """Return what checks a proof of a key (see `scram`): empty if there is no such key.

        None for a key of an earlier release, of which only a digest is stored.
        """
        result = await self._store.read_here("select scram from keys where id = $1", key_id)
        return result.rows[0][0] if result.rows else b""

    def _check_alive(self, found: _Found) -> None:
        what = "the key" if found.session_id is None else "the key of this session"
        now = self._store.now()
        if found.revoked_at is not None:
            raise Unauthorized(f"{what} was revoked", hint="Use another key.")
        if found.key_expires_at is not None and found.key_expires_at <= now:
            raise Unauthorized(f"{what} has expired", hint="Use another key.")
        if found.session_expires_at is not None and found.session_expires_at <= now:
            raise Unauthorized("this session has expired", hint="Make a new one with the key.")

    async def _grant(self, found: _Found) -> Grant:
        statements = self._statements_of(found)
        bound = read_bound(found.bound)
        if statements is not None:
            must_bind = () if found.session_id is None else found.must_bind or ()
            check_bound(statements, bound, must_bind)
        limit = None if found.databases is None else frozenset(found.databases)
        if found.session_database is not None:
            own = frozenset([found.session_database])
            limit = own if limit is None else limit & own
        ends = [
            end.timestamp()
            for end in (found.key_expires_at, found.session_expires_at)
            if end is not None
        ]
        return Grant(
            found.organization_id,
            found.organization,
            found.tier,
            found.key_id,
            found.session_id,
            _narrowed(found) if statements is None else frozenset(),
            limit,
            await self._default_database(limit),
            min(ends, default=inf),
            statements,
            bound,
            self._shares.share(found.organization_id, found.tier, found.limits),
            tuple(found.must_bind or ()),
        )

    def _statements_of(self, found: _Found) -> Statements | None:
        """Return the statements of a key: one object for all its sessions."""
        text = found.statements
        if text is None:
            return None
        known = self._statements.get(text)
        if known is None:
            known = read_statements(text)
            if len(self._statements) >= KEYS_OF_ORGANIZATION_MAX:
                self._statements.clear()
            self._statements[text] = known
        return known

    async def _default_database(self, limit: frozenset[str] | None) -> str:
        """Return `main` if it may be used, else the first of those that may be."""
        if limit is None:
            return "main"
        found = await self._store.read_here(
            "select name from databases where id = any($1) order by name = 'main' desc, name"
            " limit 1",
            sorted(limit),
        )
        return str(found.rows[0][0]) if found.rows else "main"

    # --- databases ---

    def database_nowait(self, grant: Grant, name: str | None) -> OpenDatabase | None:
        """Return an open database by name or id, if the caches show that the grant allows it.

        Raise OwnedElsewhere if they show that it is another's.
        """
        take_snapshot = self._store.take_snapshot
        if take_snapshot() is not self._snapshot and not self._caches_are_good():
            return None
        wanted = grant.database if name is None else name
        known = self._names.get((grant.organization_id, wanted))
        if known is None or not (grant.database_ids is None or grant.may_use(known[0])):
            return None
        opened = self._databases.use_nowait(known[0])
        if opened is not None:
            opened.name = known[1]
        elif known[2] != self._owners.process:
            raise self._elsewhere(known)
        return opened

    async def database(self, grant: Grant, name: str | None) -> OpenDatabase:
        """Return a database by name or id, opened; raise OwnedElsewhere if it is another's."""
        while True:
            known = await self._place(grant, name)
            database_id, name_now, owner, _ = known
            if owner != self._owners.process:
                raise self._elsewhere(known)
            placed = self._owners.version
            try:
                opened = await self._databases.use(database_id)
            except DatabaseMoved:
                if self._owners.version == placed:
                    raise
                continue  # another node has it by now
            opened.name = name_now
            return opened

    async def check_related(self, grant: Grant, *names: str) -> None:
        """Raise InvalidRequest unless databases are of one family: one process has them all.

        Those that the grant may not use are refused as by `database`.
        """
        ids = {(await self._place(grant, name))[0] for name in names}
        if len({family for _, _, family in await self.places(ids)}) > 1:
            raise InvalidRequest(
                f"{' and '.join(map(repr, names))} share no history",
                hint="Only a database and its branches, and theirs, can be compared.",
            )

    async def _place(self, grant: Grant, name: str | None) -> tuple[str, str, int, bool]:
        """Return what is cached about a database that the grant may use, now or soon."""
        wanted = grant.database if name is None else name
        while (known := self._known(grant.organization_id, wanted)) is None:
            await self._look_up(grant, wanted)  # the version may have changed meanwhile
        if not grant.may_use(known[0]):
            raise not_among_its_databases(wanted)
        return known

    async def places(self, database_ids: Iterable[str]) -> Sequence[tuple[str, str, str]]:
        """Return the ids, names and families of databases, in the order of their ids."""
        found = await self._store.read_here(
            "select id, name, family from databases where id = any($1)"
            " and state in ('creating', 'ready') order by id",
            sorted(database_ids),
        )
        return found.rows

    async def whole(self, database_id: str) -> OpenDatabase | None:
        """Return a database of this process that has a whole file, opened; None if it is gone.

        Nobody removes the file meanwhile, see above.
        """
        text = "select 1 from databases where id = $1 and state in ('ready', 'deleted')"
        while (found := await self._store.read_here(text, database_id)).rows:
            if found.version == self._store.version():
                return await self._databases.use(database_id)
        return None

    def _elsewhere(self, known: tuple[str, str, int, bool]) -> OwnedElsewhere:
        database_id, name, owner, follows = known
        return self._owners.elsewhere(owner, database_id if follows else None, name)

    def forget_places(self) -> None:
        """Owners may have changed."""
        self._names.clear()

    def _known(self, organization_id: str, wanted: str) -> tuple[str, str, int, bool] | None:
        return self._names.get((organization_id, wanted)) if self._caches_are_good() else None

    async def _look_up(self, grant: Grant, wanted: str) -> None:
        """Cache which database is meant; raise NotFound if the organization has none such."""
        for column in ("name", "id"):
            result = await self._store.read_here(
                "select id, name, family, state, replicas from databases"
                f" where organization_id = $1 and {column} = $2",
                grant.organization_id,
                wanted,
            )
            if result.rows:
                break
        else:
            raise _missing(grant, wanted)
        database_id, name, family, state, replicas = result.rows[0]
        if state in ("deleting", "deleted"):
            raise _missing(grant, wanted)
        if not grant.may_use(database_id):
            raise not_among_its_databases(wanted)
        if state == "creating":
            raise DatabaseUnavailable(f"database {wanted} is being made", hint="Try again.")
        if result.version == self._store.version() and self._caches_are_good():
            if len(self._names) >= GRANTS_KEPT_MAX:
                self._names.clear()
            owner = self._owners.owner_of(family)
            follows = self._owners.follows(family, replicas)
            self._names[grant.organization_id, wanted] = (database_id, name, owner, follows)

    def _caches_are_good(self) -> bool:
        """Return whether the caches, empty or not, match the control database now."""
        snapshot = self._store.take_snapshot()
        if snapshot is not self._snapshot:
            self._grants.clear()
            self._grants_of_keys.clear()
            self._names.clear()
            self._snapshot = snapshot
        return snapshot is not None

    def __repr__(self) -> str:
        return f"{len(self._grants)} grants and {len(self._names)} names of databases, cached"


def no_database(wanted: Any) -> NotFound:
    return NotFound(f"there is no database {wanted!r}", hint="GET /v1/databases lists them.")


def _missing(grant: Grant, wanted: str) -> NotFound | Forbidden:
    """A key with statements does not learn which other databases there are."""
    return no_database(wanted) if grant.statements is None else not_among_its_databases(wanted)


def not_among_its_databases(wanted: str) -> Forbidden:
    return Forbidden(
        f"this key may not use the database {wanted!r}",
        hint="Name one of the databases that the key is limited to, or use another key.",
    )


def _narrowed(found: _Found) -> frozenset[str]:
    """Return the scopes of a session: those that it was given and that its key still has."""
    of_key = frozenset(found.key_scopes)
    if found.session_scopes is None:
        return of_key
    if "admin" in of_key:
        return frozenset(found.session_scopes)
    return of_key & frozenset(found.session_scopes)


def _unknown(is_session: bool) -> Unauthorized:
    if is_session:
        return Unauthorized("no session has this token", hint="It may have ended; make a new one.")
    return Unauthorized("no key has this secret", hint="Look whether it came whole.")
