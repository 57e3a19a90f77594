"""Sessions: tokens for a day, made from a key, with at most the key's rights.

    made ──► + 24 hours ──► each refresh: 24 hours more, up to 30 days after it was made
                            never past the end of its key

A session is good as long as its key is: `access` checks both. So revoking a key needs no change to
its sessions; they are dead, and the sweep removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from qserver.control.access import Access
from qserver.control.keys import check_covered
from qserver.control.records import Grant, ListedSession, SessionRecord
from qserver.control.requests import Page, checked_scopes, require
from qserver.control.statement_texts import checked_bound
from qserver.control.store import Store
from qserver.control.tokens import Mint, digest
from qserver.errors import Forbidden, InvalidRequest, NotFound
from qserver.limits import (
    SESSION_KEPT_SECONDS,
    SESSION_LIFE_SECONDS_MAX,
    SESSION_SECONDS,
    SESSIONS_OF_KEY_MAX,
    SESSIONS_OF_STATEMENT_KEY_MAX,
)
from qserver.query.sql_database import Statement

_DAY: Final = timedelta(seconds=SESSION_SECONDS)
_LIFE: Final = timedelta(seconds=SESSION_LIFE_SECONDS_MAX)


class Sessions:
    def __init__(
        self,
        store: Store,
        access: Access,
        mint: Mint,
        ended: Callable[[str], None] = lambda session_id: None,
    ) -> None:
        """`ended` is called with the id of a session that has just been deleted."""
        self._ended = ended
        self._store = store
        self._access = access
        self._mint = mint

    async def create(
        self,
        grant: Grant,
        database: str | None = None,
        scopes: Iterable[str] | None = None,
        bind: Mapping[str, Any] | None = None,
        allow_null: bool = False,
    ) -> tuple[SessionRecord, str]:
        """Make a session of a key; return it and its token, which is never shown again.

        `database` limits it to one, `scopes` to some; None for all that the key has. `bind` gives
        parameters of the key's statements their values, for as long as the session lives; NULL for
        one that the key wants bound only with `allow_null`.
        """
        if grant.session_id is not None:
            raise Forbidden(
                "a session cannot make a session", hint="Send the key, or refresh the session."
            )
        wanted = _scopes_of(grant, scopes)
        bound, bound_text = checked_bound(grant, bind, allow_null)
        name, database_id = await self._database(grant, database)
        async with self._store.changing(grant):
            await self._check_room(grant)
            now = self._store.now()
            record = SessionRecord(
                self._mint.id("ses", now.timestamp()),
                grant.key_id,
                wanted,
                name,
                now,
                _earlier(now + _DAY, await self._end_of_key(grant)),
                bound or None,
            )
            token = self._mint.session_token()
            await self._store.write(_insertion(record, database_id, token, bound_text))
        return record, token

    async def _database(self, grant: Grant, wanted: str | None) -> tuple[str, str | None]:
        """Return the name of the session's database, and its id if the session is limited to it."""
        if wanted is None:
            return grant.database, None
        with await self._access.database(grant, wanted) as opened:
            return opened.name, opened.id

    async def _check_room(self, grant: Grant) -> None:
        alive = await self._store.count(
            "select count(*) from sessions where key_id = $1 and expires_at > $2",
            grant.key_id,
            self._store.now(),
        )
        most = SESSIONS_OF_KEY_MAX if grant.statements is None else SESSIONS_OF_STATEMENT_KEY_MAX
        if alive >= most:
            raise InvalidRequest(
                f"a key has at most {most} sessions at once",
                hint="Use a session that is there, or end one.",
            )

    async def refresh(self, grant: Grant) -> SessionRecord:
        """Extend the session by 24 hours, within its bounds, and return it."""
        session_id = _session_of(grant)
        async with self._store.changing(grant):
            ((scopes, created_at, expires_at),) = await self._store.rows(
                "select scopes, created_at, expires_at from sessions where id = $1", session_id
            )
            latest = _earlier(created_at + _LIFE, await self._end_of_key(grant))
            expires_at = max(expires_at, min(expires_at + _DAY, latest))
            await self._store.write(
                Statement(
                    "update sessions set expires_at = $2 where id = $1", [session_id, expires_at]
                )
            )
        return SessionRecord(
            session_id,
            grant.key_id,
            scopes,
            grant.database,
            created_at,
            expires_at,
            grant.bound or None,
        )

    async def delete(self, grant: Grant) -> None:
        session_id = _session_of(grant)
        async with self._store.changing(grant):
            await self._delete(session_id)

    # --- those of the organization ---

    async def list_page(
        self, grant: Grant, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[ListedSession], str | None]:
        """Return a page of the organization's sessions that live, oldest first, and the next
        cursor."""
        require(grant, "keys")
        page = Page("ses", cursor, limit)
        rows = await self._store.rows(
            "select s.id, s.key_id, k.name, s.scopes, d.name, s.created_at, s.expires_at"
            " from sessions s join keys k on k.id = s.key_id"
            " left join databases d on d.id = s.database_id"
            " where k.organization_id = $1 and s.id > $2 and s.expires_at > $4"
            " and k.revoked_at is null and (k.expires_at is null or k.expires_at > $4)"
            " order by s.id limit $3",
            grant.organization_id,
            page.after,
            page.length + 1,
            self._store.now(),
        )
        return page.cut(rows, lambda row: ListedSession(*row))

    async def end(self, grant: Grant, session_id: str) -> None:
        """End a session of the organization, from this moment on."""
        require(grant, "keys")
        async with self._store.changing(grant):
            rows = await self._store.rows(
                "select k.scopes, k.databases from sessions s join keys k on k.id = s.key_id"
                " where k.organization_id = $1 and s.id = $2",
                grant.organization_id,
                session_id,
            )
            if not rows:
                raise NotFound(
                    f"there is no session {session_id!r}", hint="GET /v1/sessions lists them."
                )
            ((scopes, databases),) = rows
            check_covered(grant, scopes, None if databases is None else frozenset(databases))
            await self._delete(session_id)

    async def _delete(self, session_id: str) -> None:
        await self._store.write(Statement("delete from sessions where id = $1", [session_id]))
        self._ended(session_id)

    async def _end_of_key(self, grant: Grant) -> datetime | None:
        ((expires_at,),) = await self._store.rows(
            "select expires_at from keys where id = $1", grant.key_id
        )
        return expires_at  # type: ignore[no-any-return]

    async def sweep(self) -> None:
        """Remove sessions that have been dead for a while."""
        long_ago = self._store.from_now(-SESSION_KEPT_SECONDS)
        await self._store.write(
            Statement(
                "delete from sessions where expires_at < $1 or key_id in"
                " (select id from keys where revoked_at < $1 or expires_at < $1)",
                [long_ago],
            )
        )


def _scopes_of(grant: Grant, scopes: Iterable[str] | None) -> tuple[str, ...]:
    """Return the scopes of a new session; one of a key with statements has none."""
    if grant.statements is not None:
        if scopes is not None:
            raise InvalidRequest("a session of a key with statements has no scopes")
        return ()
    wanted = checked_scopes(grant.scopes if scopes is None else scopes)
    if not grant.has_all(wanted):
        lacking = ", ".join(scope for scope in wanted if not grant.has(scope))
        raise Forbidden(f"a session cannot have what its key lacks: {lacking}")
    return wanted


def _insertion(record: SessionRecord, database_id: str | None, token: str, bound: str) -> Statement:
    return Statement(
        "insert into sessions"
        " (id, key_id, digest, scopes, database_id, created_at, expires_at, bound)"
        " values ($1, $2, $3, $4, $5, $6, $7, $8)",
        [
            record.id,
            record.key_id,
            digest(token),
            record.scopes,
            database_id,
            record.created_at,
            record.expires_at,
            bound if record.bound else None,
        ],
    )


def _session_of(grant: Grant) -> str:
    if grant.session_id is None:
        raise Forbidden(
            "this is a key, not a session", hint="Send the token that POST /v1/session gave."
        )
    return grant.session_id


def _earlier(time: datetime, other: datetime | None) -> datetime:
    return time if other is None else min(time, other)
