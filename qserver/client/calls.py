"""The calls of both flavours, each written once: its requests, and what the answers mean.

A call needs nothing but a `Caller`, so `Client` can borrow it: it runs each of these coroutines at
once, where `AsyncClient` inherits them.

    keys ──► Request ──► flavour ──► answer ──► keys ──► Request (the next page) … ──► records
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO

from qserver.client import bulk, columns, requests
from qserver.client.answers import (
    Result,
    TransactionResult,
    record_of,
    result_of,
    success_of,
    transaction_of,
)
from qserver.client.bulk import Format, RowIn
from qserver.client.caller import Caller, JsonObject
from qserver.client.columns import Columns
from qserver.client.requests import Parameters, Request, Statement, Text
from qserver.client.transport import trouble_named


class Calls(Caller):
    """The calls as coroutines; `self` is whose call it is."""

    async def call(self: Caller, request: Request) -> JsonObject:
        """Send any request of the API; return the object of its answer, or raise its error."""
        return await self._ask(request)

    async def query(
        self: Caller,
        sql: Text,
        params: Parameters | None = None,
        *,
        into: type | None = None,
        **options: Any,
    ) -> Result:
        """Run one statement.

        With into=…, a dataclass, NamedTuple, msgspec.Struct or model of pydantic, the rows are
        objects of that class; a column that does not fit is named.

        The options are `database`, `max_rows`, `timeout_ms`, `max_retries`, `max_affected`,
        `dry_run`, `if_version`, `as_of`, `min_version`, `consistency`, `max_age_ms`,
        `idempotency_key`, `transaction`, `settings`.
        """
        given = self._options(options)
        answer = await self._ask(requests.query(sql, params, self.database, given))
        result = result_of(answer, self.values)
        return result if into is None else result.with_rows(into)

    async def read(
        self: Caller, sql: Text, params: Parameters | None = None, **options: Any
    ) -> Result:
        """Run a query by its URL, where a statement that writes is refused.

        A client with `cache_bytes` keeps the answer and its tag, and asks with the tag the next
        time: while no table that the query reads has changed, the server neither runs it nor sends
        its rows. `unchanged` of the result tells; its `version` is then the one at which it was
        read.

        The options are `database`, `max_rows`, `timeout_ms`, `as_of`, `min_version`,
        `consistency`, `max_age_ms`.
        """
        given = self._options(options)
        answer = await self._ask(requests.read(sql, params, self.database, given))
        return result_of(answer, self.values)

    async def arrow(
        self: Caller, sql: Text, params: Parameters | None = None, **options: Any
    ) -> Columns:
        """Run one query, and have its columns as Apache Arrow: many rows at once, fast.

        It needs pyarrow here and on the server. The options are those of `stream`.
        """
        columns.require()
        request = requests.arrow(sql, params, self.database, self._options(options))
        return await self._columns(request)

    async def rows_as_arrow(self: Caller, table: str, **options: Any) -> Columns:
        """The rows of a table, or some of them, as `arrow` has them. Options as of `rows`."""
        columns.require()
        given = {"database": self.database, **options}
        return await self._columns(bulk.select(table, requests.ARROW, **given))

    async def transaction(
        self: Caller, statements: Sequence[Text | Statement], **options: Any
    ) -> TransactionResult:
        """Run the statements in order, all or nothing.

        The options are `database`, `max_rows`, `timeout_ms`, `max_retries`, `max_affected`,
        `dry_run`, `if_version`, `as_of`, `min_version`, `consistency`, `max_age_ms`, `branch`,
        `idempotency_key`, `transaction`, `settings`.
        """
        request = requests.transaction(statements, self.database, self._options(options))
        return transaction_of(await self._ask(request), self.values)

    async def insert_rows(
        self: Caller,
        table: str,
        rows: Iterable[RowIn],
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> Result:
        """Insert rows in bulk, all or none; they are sent while they are made.

        Rows are mappings, or sequences with the values of `columns`. The options are `database`,
        `on_conflict` (`"error"`, `"ignore"` or `"update"`), `overriding` (`"system"`),
        `idempotency_key`.
        """
        given = {"database": self.database, **options}
        answer = await self._ask(bulk.insert(table, bulk.lines(rows, columns), "ndjson", **given))
        return result_of(answer)

    async def insert_file(
        self: Caller,
        table: str,
        file: BinaryIO,
        format: Format | None = None,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> Result:
        """Insert the rows of a file that is open for reading bytes, all or none.

        Its name tells the format: `csv`, `ndjson` or `json`. Only `columns` are taken, if given;
        the options are those of `insert_rows`.
        """
        given = {"database": self.database, "only": columns, **options}
        kind = format or bulk.format_of(getattr(file, "name", None))
        return result_of(await self._ask(bulk.insert(table, bulk.pieces_of(file), kind, **given)))

    async def save_rows(
        self: Caller, table: str, file: BinaryIO, format: Format | None = None, **options: Any
    ) -> int:
        """Write the rows of a table to a file; return the number of bytes. Options as of `rows`."""
        kind = format or bulk.format_of(getattr(file, "name", None))
        given = {"database": self.database, **options}
        request = bulk.select(table, bulk.MEDIA[kind], **given)
        saver = bulk.Saver(file, kind)
        with trouble_named(self.url):
            async with aclosing(await self._open(request)) as body:
                piece = await body.piece()
                media = body.headers.get("content-type", "")
                if bulk.is_failure(kind, body.status, media, piece or b""):
                    success_of(body.status, body.headers, (piece or b"") + await body.rest())
                while piece is not None:
                    saver.take(piece)
                    piece = await body.piece()
        saver.end()
        return saver.bytes

    async def copy_in(
        self: Caller, sql: str, data: BinaryIO | bytes | Iterable[bytes], **options: Any
    ) -> Result:
        """Insert rows by `COPY … FROM STDIN`, all or none.

        The data is bytes, a file that is open for reading them, or pieces of them, in the format
        that the statement says. The options are `database`, `transaction`, `idempotency_key`.
        """
        if isinstance(data, bytes):
            data = BytesIO(data)
        read = getattr(data, "read", None)
        pieces = data if read is None else iter(partial(read, bulk.PIECE_BYTES), b"")
        given = {"database": self.database, **options}
        return result_of(await self._ask(bulk.copy_in(sql, pieces, **given)))

    async def copy_out(self: Caller, sql: str, file: BinaryIO, **options: Any) -> int:
        """Write the data of `COPY … TO STDOUT` to a file; return the number of bytes.

        The options are `database`, `transaction`, `as_of`, `min_version`, `consistency`,
        `max_age_ms`, `timeout_ms`.
        """
        request, size = bulk.copy_out(sql, **{"database": self.database, **options}), 0
        with trouble_named(self.url):
            async with aclosing(await self._open(request)) as body:
                if body.status != 200 or body.headers.get("content-type", "") == requests.JSON:
                    success_of(body.status, body.headers, await body.rest())
                while (piece := await body.piece()) is not None:
                    size += file.write(piece)
        return size

    async def open_transaction(self: Caller, **options: Any) -> JsonObject:
        """Open a transaction that stays open between requests; its id is an option of other calls.

        The options are `database`, `read_only`, `as_of`, `min_version`, `idle_ms`, `settings`.
        """
        given = {"database": self.database, **options}
        return dict((await self._record("POST", "transaction", "open", **given))["transaction"])

    async def commit_transaction(self: Caller, transaction_id: str) -> JsonObject:
        """Commit an open transaction; `version` and `affected_rows` of the commit.

        After `ConnectionLost` call it again: for ten minutes the server tells what it did.
        """
        return record_of(await self._ask(requests.commit(transaction_id)))

    async def roll_back_transaction(self: Caller, transaction_id: str) -> None:
        await self._record("DELETE", "transaction", transaction_id)

    async def show_transaction(self: Caller, transaction_id: str) -> JsonObject:
        """`state`, `statements`, `rows_changed`, `bytes`, `expires_at` of an open transaction."""
        return dict((await self._record("GET", "transaction", transaction_id))["transaction"])

    async def changes_since(
        self: Caller,
        since: int,
        tables: Sequence[str] | None = None,
        database: str | None = None,
        limit: int | None = None,
        wait_ms: int | None = None,
    ) -> JsonObject:
        """Some `changes` behind a version; `next` is the next `since`, `newest` the newest version.

        With `wait_ms` it waits so long for the first.
        """
        where = database or self.database
        asked = requests.changes(since, tables, where, requests.JSON, limit=limit, wait_ms=wait_ms)
        return record_of(await self._ask(asked))

    async def tables(self: Caller) -> JsonObject:
        """`database`, its `version`, and `tables`: columns, keys, indexes, foreign keys of each."""
        return record_of(await self._ask(requests.tables(self.database)))

    async def databases(self: Caller) -> list[JsonObject]:
        """All databases that the key may use."""
        return await self._pages("databases", "databases")

    async def create_database(
        self: Caller, name: str, branch_of: str | None = None, as_of: int | str | None = None
    ) -> JsonObject:
        """Create a database; with `branch_of`, a branch of that one, as of now or `as_of`."""
        self.seen.forget(name)  # another database may have had it
        fields = {"name": name, "branch_of": branch_of, "as_of": as_of}
        return await self._record("POST", "databases", **fields)

    async def keep_database(self: Caller, name: str) -> JsonObject:
        """Keep a branch that a transaction has left, and that would be deleted."""
        return await self._record("PATCH", "databases", name, keep=True)

    async def delete_database(self: Caller, name: str) -> None:
        await self._record("DELETE", "databases", name)

    async def versions(self: Caller, name: str, most: int = 100) -> list[JsonObject]:
        """The newest versions of a database that its history has, newest first, at most so many."""
        path = ("databases", name, "versions")
        return (await self._pages("versions", *path, cursor="before", most=most))[:most]

    async def difference(
        self: Caller,
        name: str,
        since: int | str | None = None,
        until: int | str | None = None,
        tables: Sequence[str] | None = None,
        *,
        from_database: str | None = None,
    ) -> list[JsonObject]:
        """What differs between two versions of a database, or times; `until` is now by default.

        With `from_database`, from a version of that one, by default its newest: of a parent, a
        branch, or another relative.
        """
        asked = requests.comparison(since, until, tables, from_database)
        return await self._pages("changes", "databases", name, "diff", **asked)

    async def count_differences(
        self: Caller,
        name: str,
        since: int | str | None = None,
        until: int | str | None = None,
        tables: Sequence[str] | None = None,
        *,
        from_database: str | None = None,
    ) -> list[JsonObject]:
        """How many changes `difference` would list, of each table and kind."""
        asked = requests.comparison(since, until, tables, from_database, count="true")
        return await self._pages("counts", "databases", name, "diff", **asked)

    async def restore_database(
        self: Caller, name: str, as_of: int | str, *, if_version: int | None = None
    ) -> JsonObject:
        """Make a database what it was at a version or time; `version` is the new one.

        With `if_version`, only if no table has changed since: otherwise SerializationFailure.
        """
        asked = {"as_of": as_of, "if_version": if_version}
        return await self._record("POST", "databases", name, "restore", **asked)

    async def keys(self: Caller) -> list[JsonObject]:
        """All keys, without their secrets."""
        return await self._pages("keys", "keys")

    async def create_key(
        self: Caller,
        name: str,
        scopes: Sequence[str] | None = None,
        databases: Sequence[str] | None = None,
        expires_in: int | None = None,
        statements: Mapping[str, str] | None = None,
        bound: Sequence[str] | None = None,
    ) -> JsonObject:
        """Create a key that expires in `expires_in` seconds; only this answer has `["key"]`.

        With `statements`, SQL by name, it can run these and nothing else; every session of it has
        to bind the parameters in `bound`.
        """
        return await self._record(
            "POST",
            "keys",
            name=name,
            scopes=scopes,
            databases=databases,
            expires_in=expires_in,
            statements=statements,
            bound=bound,
        )

    async def change_key(
        self: Caller,
        key_id: str,
        *,
        name: str | None = None,
        scopes: Sequence[str] | None = None,
        databases: Sequence[str] | None = None,
        statements: Mapping[str, str] | None = None,
        bound: Sequence[str] | None = None,
    ) -> JsonObject:
        """Rename a key, take scopes or databases from it, or replace its statements, or the
        parameters that its sessions have to bind."""
        return await self._record(
            "PATCH",
            "keys",
            key_id,
            name=name,
            scopes=scopes,
            databases=databases,
            statements=statements,
            bound=bound,
        )

    async def revoke_key(self: Caller, key_id: str) -> None:
        await self._record("DELETE", "keys", key_id)

    async def rotate_key(self: Caller, key_id: str, grace_seconds: int | None = None) -> JsonObject:
        """A new secret for the key; the old one works for `grace_seconds` more."""
        return await self._record("POST", "keys", key_id, "rotate", grace_seconds=grace_seconds)

    async def open_session(
        self: Caller,
        database: str | None = None,
        scopes: Sequence[str] | None = None,
        bind: Mapping[str, Any] | None = None,
        allow_null: bool | None = None,
    ) -> JsonObject:
        """Create a token for 24 hours from the key; only this answer has `["token"]`.

        `bind` gives parameters of the key's statements values that the session cannot change; one
        that the key wants bound is None only with `allow_null`.
        """
        answer = await self._record(
            "POST", "session", database=database, scopes=scopes, bind=bind, allow_null=allow_null
        )
        return dict(answer["session"])

    async def refresh_session(self: Caller) -> JsonObject:
        """Extend the session by 24 hours, for a client whose key is a session's token."""
        return dict((await self._record("POST", "session", "refresh"))["session"])

    async def end_session(self: Caller) -> None:
        await self._record("DELETE", "session")

    async def organizations(self: Caller) -> list[JsonObject]:
        """All organizations, their limits and use, for a key of `default` with the scope admin."""
        return await self._pages("organizations", "organizations")

    async def change_organization(
        self: Caller,
        organization: str,
        tier: str | None = None,
        limits: Mapping[str, int | None] | None = None,
    ) -> JsonObject:
        """Change the tier of an organization, or limits of its own; None: what the tier says."""
        fields = {"tier": tier, "limits": None if limits is None else dict(limits)}
        return await self._record("PATCH", "organizations", organization, **fields)
