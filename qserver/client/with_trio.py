"""`TrioClient`: the calls of `Client`, each with `await`, for programs that run on Trio."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

import httpx
import trio

from qserver.client import requests
from qserver.client.answers import (
    Result,
    Row,
    TransactionResult,
    record_of,
    result_of,
    success_of,
    transaction_of,
)
from qserver.client.events import RowsOfStream
from qserver.client.requests import Parameters, Request, Statement
from qserver.client.transport import SILENCE_SECONDS, time_limits, trouble_named

Record = dict[str, Any]


class TrioClient:
    """One server, one key and, if named, one database. Close it, or use it with `async with`."""

    def __init__(
        self,
        url: str,
        key: str | None,
        database: str | None = None,
        *,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.url = requests.checked_url(url)
        self.database = database
        with trouble_named(self.url):
            self._http = httpx.AsyncClient(
                base_url=self.url,
                headers=requests.headers_with(key),
                timeout=time_limits(silence_seconds),
            )

    def __repr__(self) -> str:
        return f"<client of {self.url}, database {self.database or 'of the key'}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    # --- data ------------------------------------------------------------------------------------

    async def query(self, sql: str, params: Parameters | None = None, **options: Any) -> Result:
        """Run one statement. `options` are the API's own: max_rows, timeout_ms, dry_run, as_of …"""
        request = requests.query(sql, params, self.database, options)
        return result_of(await self.call(request))

    async def transaction(
        self, statements: Sequence[str | Statement], **options: Any
    ) -> TransactionResult:
        """Run the statements in order, all or nothing."""
        request = requests.transaction(statements, self.database, options)
        return transaction_of(await self.call(request))

    def stream(self, sql: str, params: Parameters | None = None, **options: Any) -> TrioStream:
        """Rows as they come, in memory that does not grow with the result."""
        return TrioStream(self, requests.stream(sql, params, self.database, options))

    async def tables(self) -> Record:
        """`database`, its `version`, and `tables`: columns, keys, indexes, foreign keys of each."""
        return record_of(await self.call(requests.tables(self.database)))

    # --- control ---------------------------------------------------------------------------------

    async def databases(self) -> list[Record]:
        return await self._pages("databases")

    async def create_database(self, name: str) -> Record:
        answer = await self.call(requests.record("POST", "databases", name=name))
        return record_of(answer)

    async def delete_database(self, name: str) -> None:
        await self.call(requests.record("DELETE", "databases", name))

    async def keys(self) -> list[Record]:
        return await self._pages("keys")

    async def create_key(
        self,
        name: str,
        scopes: Sequence[str] | None = None,
        databases: Sequence[str] | None = None,
        expires_in: int | None = None,
    ) -> Record:
        request = requests.record(
            "POST", "keys", name=name, scopes=scopes, databases=databases, expires_in=expires_in
        )
        return record_of(await self.call(request))

    async def revoke_key(self, key_id: str) -> None:
        await self.call(requests.record("DELETE", "keys", key_id))

    async def rotate_key(self, key_id: str, grace_seconds: int | None = None) -> Record:
        request = requests.record("POST", "keys", key_id, "rotate", grace_seconds=grace_seconds)
        return record_of(await self.call(request))

    async def open_session(
        self, database: str | None = None, scopes: Sequence[str] | None = None
    ) -> Record:
        """A token for 24 hours, made from the key: `["token"]` is shown this once."""
        answer = await self.call(
            requests.record("POST", "session", database=database, scopes=scopes)
        )
        return dict(answer["session"])

    async def refresh_session(self) -> Record:
        """24 hours more, for a client whose key is a session's token."""
        answer = await self.call(requests.record("POST", "session", "refresh"))
        return dict(answer["session"])

    async def end_session(self) -> None:
        await self.call(requests.record("DELETE", "session"))

    # --- one request -----------------------------------------------------------------------------

    async def call(self, request: Request) -> Record:
        """Send any request of the API; the object of its answer, or an error raised."""
        with trouble_named(self.url):
            answer = await self._http.request(
                request.method,
                request.path,
                content=request.content,
                headers=request.headers,
            )
        return success_of(answer.status_code, answer.headers, answer.content)

    async def _pages(self, path: str) -> list[Record]:
        answer = await self.call(requests.page(path, None))
        records: list[Record] = list(answer[path])
        while answer.get("next_cursor"):
            answer = await self.call(requests.page(path, answer["next_cursor"]))
            records += answer[path]
        return records


class TrioStream:
    """The rows of one result, while they come: `async with client.stream(…) as rows: async for …`.

    Leaving it early closes the connection, and the server stops the query. It is an iterator and
    no generator, so a loop that is left leaves nothing behind that must be closed on its own; for
    the same reason the `async with` is needed: nobody else would close the connection.
    """

    def __init__(self, client: TrioClient, request: Request) -> None:
        self._client = client
        self._request = request
        self._rows = RowsOfStream()
        self._pieces: AsyncIterator[bytes] | None = None
        self._batch: list[Row] = []
        self._next = 0
        self._open = AsyncExitStack()
        self._opened = False

    @property
    def columns(self) -> tuple[str, ...]:
        return self._rows.columns

    @property
    def types(self) -> tuple[str, ...]:
        return self._rows.types

    @property
    def version(self) -> int | None:
        return self._rows.version

    @property
    def affected_rows(self) -> int:
        """Known when the stream has ended."""
        return int((self._rows.summary or {}).get("affected_rows", 0))

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            opening.enter_context(trouble_named(self._client.url))
            request = self._request
            answer = await opening.enter_async_context(
                self._client._http.stream(
                    request.method,
                    request.path,
                    content=request.content,
                    headers=request.headers,
                )
            )
            await self._start(answer, opening)
            self._open = opening.pop_all()
        self._opened = True
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._open.__aexit__(*exception)

    def __aiter__(self) -> Self:
        if not self._opened:
            raise RuntimeError(
                "the stream is not open: write `async with client.stream(…) as rows:`"
            )
        return self

    async def __anext__(self) -> Row:
        while self._next == len(self._batch):
            if self._pieces is None or not await self._receive(self._pieces):
                raise StopAsyncIteration
        row = self._batch[self._next]
        self._next += 1
        return row

    async def _start(self, answer: httpx.Response, opening: AsyncExitStack) -> None:
        """Read until the columns are known, so that they are before the first row is asked for."""
        if not answer.headers.get("content-type", "").startswith(requests.EVENT_STREAM):
            body = await answer.aread()
            whole = result_of(success_of(answer.status_code, answer.headers, body))
            self._batch = self._rows.take_whole(whole)
            return
        pieces = self._pieces = answer.aiter_bytes()
        opening.push_async_callback(self._leave, answer)
        while not self._rows.columns and self._rows.summary is None:
            await self._receive(pieces)

    async def _receive(self, pieces: AsyncIterator[bytes]) -> bool:
        """Take one more piece of the body; False at its end."""
        with trouble_named(self._client.url):
            piece = await anext(pieces, None)
        if piece is None:
            self._pieces = None
            self._rows.end()
            return False
        self._batch, self._next = list(self._rows.take(piece)), 0
        return True

    async def _leave(self, answer: httpx.Response) -> None:
        if self._pieces is not None:
            await _unwind(answer, self._pieces)


async def _unwind(answer: httpx.Response, pieces: AsyncIterator[bytes]) -> None:
    """End the reading of a body that was left early.

    httpx reads through generators within generators, and under Trio each must come to its end. So
    the connection is shut down, and then the rest asked for: what was received already, and then
    an error that runs through all of them. Nothing here waits for the other side.
    """
    connection = answer.extensions["network_stream"].get_extra_info("socket")
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the other side, or a read that failed, has closed it
    with trio.CancelScope(shield=True):
        try:
            while await anext(pieces, None) is not None:
                pass
        except httpx.HTTPError:
            pass
