"""The calls of both flavours, each as the requests that it takes; no I/O.

A call is a generator. It yields a `Request`, receives the object of the answer, and returns the
caller's result. A flavour sends the requests, and wraps these functions as methods:

    keys ──► Request ──► flavour ──► answer ──► keys ──► Request (the next page) … ──► records
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Generic, TypeAlias, TypeVar

import httpx

from qserver.client import bulk, requests
from qserver.client.answers import Result, TransactionResult, record_of, result_of, transaction_of
from qserver.client.bulk import Format, RowIn
from qserver.client.requests import Parameters, Request, Statement, Text
from qserver.client.result_cache import ResultCache
from qserver.client.retrying import Trials
from qserver.client.transport import SILENCE_SECONDS, time_limits, trouble_named

JsonObject = dict[str, Any]
Answer = TypeVar("Answer")
Call: TypeAlias = Generator[Request, JsonObject, Answer]
Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)


class Caller(Generic[Http]):
    """One server, one key and, if named, one database."""

    _http_class: type[Http]

    def __init__(
        self,
        url: str,
        key: str | None,
        database: str | None = None,
        *,
        silence_seconds: float = SILENCE_SECONDS,
        cache_bytes: int = 0,
        retry_seconds: float = 0.0,
    ) -> None:
        """`cache_bytes`: how much of the answers of `read` the client keeps, see there.

        `retry_seconds`: for how long a request that failed is sent again, see `retrying`.
        """
        self.retry_seconds = retry_seconds
        self.url = requests.checked_url(url)
        self.database = database
        self.cache = ResultCache(cache_bytes)
        with trouble_named(self.url):
            self._http: Http = self._http_class(
                base_url=self.url,
                headers=requests.headers_with(key, self.url),
                timeout=time_limits(silence_seconds),
            )

    def __repr__(self) -> str:
        return f"<client of {self.url}, database {self.database or 'of the key'}>"

    def trials(self, retry_seconds: float | None = None) -> Trials:
        """For one request or stream; without a time of its own it has the client's."""
        return Trials(self.retry_seconds if retry_seconds is None else retry_seconds)


# --- data ----------------------------------------------------------------------------------------


def query(
    client: Caller[Any], /, sql: Text, params: Parameters | None = None, **options: Any
) -> Call[Result]:
    """Run one statement.

    The options are `database`, `max_rows`, `timeout_ms`, `max_retries`, `max_affected`, `dry_run`,
    `if_version`, `as_of`, `idempotency_key`, `transaction`.
    """
    return result_of((yield requests.query(sql, params, client.database, options)))


def read(
    client: Caller[Any], /, sql: Text, params: Parameters | None = None, **options: Any
) -> Call[Result]:
    """Run a query by its URL, where a statement that writes is refused.

    A client with `cache_bytes` keeps the answer and its tag, and asks with the tag the next time:
    while no table that the query reads has changed, the server neither runs it nor sends its rows.
    `unchanged` of the result tells; its `version` is then the one at which it was read.

    The options are `database`, `max_rows`, `timeout_ms`, `as_of`.
    """
    return result_of((yield requests.read(sql, params, client.database, options)))


def transaction(
    client: Caller[Any], /, statements: Sequence[Text | Statement], **options: Any
) -> Call[TransactionResult]:
    """Run the statements in order, all or nothing.

    The options are `database`, `max_rows`, `timeout_ms`, `max_retries`, `max_affected`, `dry_run`,
    `if_version`, `as_of`, `branch`, `idempotency_key`, `transaction`.
    """
    return transaction_of((yield requests.transaction(statements, client.database, options)))


def insert_rows(
    client: Caller[Any],
    /,
    table: str,
    rows: Iterable[RowIn],
    columns: Sequence[str] | None = None,
    **options: Any,
) -> Call[Result]:
    """Insert rows in bulk, all or none; they are sent while they are made.

    Rows are mappings, or sequences with the values of `columns`. The options are `database`,
    `on_conflict` (`"error"`, `"ignore"` or `"update"`), `idempotency_key`.
    """
    given = {"database": client.database, **options}
    answer = yield bulk.insert(table, bulk.lines(rows, columns), "ndjson", **given)
    return result_of(answer)


def insert_file(
    client: Caller[Any],
    /,
    table: str,
    file: BinaryIO,
    format: Format | None = None,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> Call[Result]:
    """Insert the rows of a file that is open for reading bytes, all or none.

    Its name tells the format: `csv`, `ndjson` or `json`. Only `columns` are taken, if given; the
    options are those of `insert_rows`.
    """
    given = {"database": client.database, "only": columns, **options}
    kind = format or bulk.format_of(getattr(file, "name", None))
    return result_of((yield bulk.insert(table, bulk.pieces_of(file), kind, **given)))


def open_transaction(client: Caller[Any], /, **options: Any) -> Call[JsonObject]:
    """Open a transaction that stays open between requests; its id is an option of other calls.

    The options are `database`, `read_only`, `as_of`, `idle_ms`.
    """
    given = {"database": client.database, **options}
    return dict((yield requests.record("POST", "transaction", "open", **given))["transaction"])


def commit_transaction(_: Caller[Any], transaction_id: str) -> Call[JsonObject]:
    """Commit an open transaction; `version` and `affected_rows` of the commit.

    After `ConnectionLost` call it again: for ten minutes the server tells what it did.
    """
    return record_of((yield requests.commit(transaction_id)))


def roll_back_transaction(_: Caller[Any], transaction_id: str) -> Call[None]:
    yield requests.record("DELETE", "transaction", transaction_id)


def show_transaction(_: Caller[Any], transaction_id: str) -> Call[JsonObject]:
    """`state`, `statements`, `rows_changed`, `bytes` and `expires_at` of an open transaction."""
    return dict((yield requests.record("GET", "transaction", transaction_id))["transaction"])


def changes_since(
    client: Caller[Any],
    since: int,
    tables: Sequence[str] | None = None,
    database: str | None = None,
    limit: int | None = None,
    wait_ms: int | None = None,
) -> Call[JsonObject]:
    """Some `changes` behind a version; `next` is the next `since`, `newest` the newest version.

    With `wait_ms` it waits so long for the first.
    """
    where = database or client.database
    asked = requests.changes(since, tables, where, requests.JSON, limit=limit, wait_ms=wait_ms)
    return record_of((yield asked))


def tables(client: Caller[Any]) -> Call[JsonObject]:
    """`database`, its `version`, and `tables`: columns, keys, indexes, foreign keys of each."""
    return record_of((yield requests.tables(client.database)))


# --- control -------------------------------------------------------------------------------------


def databases(_: Caller[Any]) -> Call[list[JsonObject]]:
    """All databases that the key may use."""
    return (yield from _pages("databases"))


def create_database(
    _: Caller[Any],
    name: str,
    branch_of: str | None = None,
    as_of: int | str | None = None,
) -> Call[JsonObject]:
    """Create a database; with `branch_of`, a branch of that one, as it is now or was at `as_of`."""
    fields = {"name": name, "branch_of": branch_of, "as_of": as_of}
    return record_of((yield requests.record("POST", "databases", **fields)))


def keep_database(_: Caller[Any], name: str) -> Call[JsonObject]:
    """Keep a branch that a transaction has left, and that would be deleted."""
    return record_of((yield requests.record("PATCH", "databases", name, keep=True)))


def delete_database(_: Caller[Any], name: str) -> Call[None]:
    yield requests.record("DELETE", "databases", name)


def versions(_: Caller[Any], name: str, most: int = 100) -> Call[list[JsonObject]]:
    """The newest versions of a database that its history has, newest first, at most so many."""
    found: list[JsonObject] = []
    before: str | None = None
    while len(found) < most:
        answer = yield requests.listing("databases", name, "versions", before=before)
        found += answer["versions"]
        before = answer.get("next_cursor")
        if before is None:
            break
    return found[:most]


def difference(
    _: Caller[Any],
    name: str,
    since: int | str,
    until: int | str | None = None,
    tables: Sequence[str] | None = None,
) -> Call[list[JsonObject]]:
    """What differs between two versions of a database, or times; `until` is now by default."""
    found: list[JsonObject] = []
    cursor: str | None = None
    named = None if tables is None else ",".join(tables)
    while True:
        answer = yield requests.listing(
            "databases", name, "diff", from_=since, to=until, tables=named, cursor=cursor
        )
        found += answer["changes"]
        cursor = answer.get("next_cursor")
        if cursor is None:
            return found
        until = answer["to"]  # all pages compare the same two


def restore_database(_: Caller[Any], name: str, as_of: int | str) -> Call[JsonObject]:
    """Make a database what it was at a version or time; `version` is the new one."""
    return record_of((yield requests.record("POST", "databases", name, "restore", as_of=as_of)))


def keys(_: Caller[Any]) -> Call[list[JsonObject]]:
    """All keys, without their secrets."""
    return (yield from _pages("keys"))


def create_key(
    _: Caller[Any],
    name: str,
    scopes: Sequence[str] | None = None,
    databases: Sequence[str] | None = None,
    expires_in: int | None = None,
    statements: Mapping[str, str] | None = None,
    bound: Sequence[str] | None = None,
) -> Call[JsonObject]:
    """Create a key that expires in `expires_in` seconds; only this answer has `["key"]`.

    With `statements`, SQL by name, it can run these and nothing else; every session of it has to
    bind the parameters in `bound`.
    """
    answer = yield requests.record(
        "POST",
        "keys",
        name=name,
        scopes=scopes,
        databases=databases,
        expires_in=expires_in,
        statements=statements,
        bound=bound,
    )
    return record_of(answer)


def change_key(
    _: Caller[Any],
    key_id: str,
    *,
    name: str | None = None,
    scopes: Sequence[str] | None = None,
    databases: Sequence[str] | None = None,
    statements: Mapping[str, str] | None = None,
    bound: Sequence[str] | None = None,
) -> Call[JsonObject]:
    """Rename a key, take scopes or databases from it, or replace its statements, or the parameters
    that its sessions have to bind."""
    answer = yield requests.record(
        "PATCH",
        "keys",
        key_id,
        name=name,
        scopes=scopes,
        databases=databases,
        statements=statements,
        bound=bound,
    )
    return record_of(answer)


def revoke_key(_: Caller[Any], key_id: str) -> Call[None]:
    yield requests.record("DELETE", "keys", key_id)


def rotate_key(_: Caller[Any], key_id: str, grace_seconds: int | None = None) -> Call[JsonObject]:
    """A new secret for the key; the old one works for `grace_seconds` more."""
    answer = yield requests.record("POST", "keys", key_id, "rotate", grace_seconds=grace_seconds)
    return record_of(answer)


def open_session(
    _: Caller[Any],
    database: str | None = None,
    scopes: Sequence[str] | None = None,
    bind: Mapping[str, Any] | None = None,
    allow_null: bool | None = None,
) -> Call[JsonObject]:
    """Create a token for 24 hours from the key; only this answer has `["token"]`.

    `bind` gives parameters of the key's statements values that the session cannot change; one that
    the key wants bound is None only with `allow_null`.
    """
    answer = yield requests.record(
        "POST", "session", database=database, scopes=scopes, bind=bind, allow_null=allow_null
    )
    return dict(answer["session"])


def refresh_session(_: Caller[Any]) -> Call[JsonObject]:
    """Extend the session by 24 hours, for a client whose key is a session's token."""
    return dict((yield requests.record("POST", "session", "refresh"))["session"])


def end_session(_: Caller[Any]) -> Call[None]:
    yield requests.record("DELETE", "session")


def organizations(_: Caller[Any]) -> Call[list[JsonObject]]:
    """All organizations with their limits and use, for a key of `default` with the scope admin."""
    return (yield from _pages("organizations"))


def change_organization(
    _: Caller[Any],
    organization: str,
    tier: str | None = None,
    limits: Mapping[str, int | None] | None = None,
) -> Call[JsonObject]:
    """Change the tier of an organization, or limits of its own; None: what the tier says."""
    fields = {"tier": tier, "limits": None if limits is None else dict(limits)}
    return record_of((yield requests.record("PATCH", "organizations", organization, **fields)))


def _pages(path: str) -> Call[list[JsonObject]]:
    records: list[JsonObject] = []
    cursor: str | None = None
    while True:
        answer = yield requests.page(path, cursor)
        records += answer[path]
        cursor = answer.get("next_cursor")
        if not cursor:
            return records
