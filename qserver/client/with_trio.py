"""`TrioClient`: the calls of `Client`, each with `await`, for programs that run on Trio."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar

import httpx
import trio

from qserver.client import bulk, requests
from qserver.client.answers import Result, Row, TransactionResult
from qserver.client.caller import Body, JsonObject
from qserver.client.calls import Calls
from qserver.client.events import RowsOfStream
from qserver.client.failures import ended_by
from qserver.client.feed import Version, VersionsOfFeed
from qserver.client.live import Change, LiveResult, LiveRows
from qserver.client.reading import EndlessReader, Reader, StreamedResult
from qserver.client.requests import Kept, Parameters, Request, Statement, Text
from qserver.errors import QserverError

Item = TypeVar("Item")

ROLL_BACK_SECONDS: Final = 1.0
"""How long a block that is cancelled waits for its rollback; else the server ends it when idle."""


class TrioBody(Body):
    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(answer)
        self._pieces = answer.aiter_bytes()
        self._is_over = False

    async def piece(self) -> bytes | None:
        piece = await anext(self._pieces, None)
        self._is_over = piece is None
        return piece

    async def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            await self._unwind()
        await self._answer.aclose()

    async def _unwind(self) -> None:
        """End the reading of a body that was left early.

        httpx reads through nested generators, and under Trio each must finish. So this shuts the
        connection down and reads the rest: the bytes received already, then an error that unwinds
        all generators. Nothing here waits for the server.
        """
        connection = self._answer.extensions["network_stream"].get_extra_info("socket")
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server, or a failed read, has closed it
        with trio.CancelScope(shield=True):
            try:
                while await anext(self._pieces, None) is not None:
                    pass
            except httpx.HTTPError:
                pass


class TrioClient(Calls):
    """One server, one key and, if named, one database. Close it, or use it with `async with`."""

    _http: httpx.AsyncClient
    _http_class = httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    def stream(self, sql: Text, params: Parameters | None = None, **options: Any) -> TrioStream:
        """Stream rows, in memory that does not grow with the result.

        The options are `database`, `max_rows`, `timeout_ms`, `max_retries`, `max_affected`,
        `if_version`, `as_of`, `transaction`.
        """
        request = requests.stream(sql, params, self.database, options)
        return TrioStream(Reader(self, RowsOfStream(request)))

    def rows(self, table: str, **options: Any) -> TrioStream:
        """Stream the rows of a table.

        The options are `columns`, `where`, `params`, `order`, `limit`, `as_of`, `timeout_ms`,
        `database`.
        """
        given = {"database": self.database, **options}
        request = bulk.select(table, requests.EVENT_STREAM, **given)
        return TrioStream(Reader(self, RowsOfStream(request)))

    def begin(self, **options: Any) -> TrioTransaction:
        """Open a transaction for the length of a `async with`; options as of `open_transaction`."""
        return TrioTransaction(self, options)

    def live(
        self,
        sql: Text,
        params: Parameters | None = None,
        *,
        retry_seconds: float | None = None,
        **options: Any,
    ) -> TrioLive:
        """Keep the result of a query up to date: it yields each change, and has the rows.

        The options are `database`, `timeout_ms`, `every_ms`. After a lost connection it is opened
        again, for so many seconds, and the next change is what differs.
        """
        request = requests.stream(sql, params, self.database, {**options, "live": True})
        return TrioLive(EndlessReader(self, LiveRows(request), self.trials(retry_seconds)))

    def changes(
        self,
        since: int,
        tables: Sequence[str] | None = None,
        database: str | None = None,
        *,
        retry_seconds: float | None = None,
    ) -> TrioFeed:
        """Follow the changes of the database behind a version, as a `Version` at a time.

        After a lost connection it goes on behind the last one, for so many seconds.
        """
        behind = partial(requests.changes, tables=tables, database=database or self.database)
        rows = VersionsOfFeed(behind, since)
        return TrioFeed(EndlessReader(self, rows, self.trials(retry_seconds)))

    async def _open(self, request: Request, kept: Kept | None = None) -> Body:
        made = self._made(request.arguments_with(kept))
        return TrioBody(await self._http.send(made, stream=True))

    def _made(self, arguments: dict[str, Any]) -> httpx.Request:
        """Make a request whose body is sent in pieces, if it has pieces.

        httpx would put a generator around them, and nobody closes it if the server answers early.
        """
        content = arguments["content"]
        if content is None or isinstance(content, bytes):
            return self._http.build_request(**arguments)
        pieces = _Pieces(iter(content))
        made = self._http.build_request(**{**arguments, "content": pieces})
        made.stream = pieces
        return made

    def _now(self) -> float:
        return trio.current_time()

    async def _pause(self, seconds: float) -> None:
        await trio.sleep(seconds)


class TrioIncoming(StreamedResult, Generic[Item]):
    """What a stream brings, as it arrives.

    An iterator, not a generator: leaving a loop leaves nothing open that needs its own close.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self._batch: Iterator[Item] = iter(())

    async def __aenter__(self) -> Self:
        await self._reader.open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._reader.close()

    def __aiter__(self) -> Self:
        if not self._reader.was_opened:
            raise RuntimeError(
                "the stream is not open: write `async with client.stream(…) as rows:`"
            )
        return self

    async def __anext__(self) -> Item:
        while True:
            for item in self._batch:
                return item
            batch = await self._reader.receive()
            if batch is None:
                raise StopAsyncIteration
            self._batch = iter(batch)


class TrioStream(TrioIncoming[Row]):
    """The rows of one result as they arrive: `async with client.stream(…) as rows: async for …`.

    Leaving the block early closes the connection, and the server stops the query. Nothing else
    closes it.
    """


class TrioLive(LiveResult, TrioIncoming[Change]):
    """A live query: `async with client.live(…) as query: async for change in query`.

    `rows` and `version` are there when it is open, and change with each `Change`. It never ends by
    itself: an error of the server, or of the connection, is raised.
    """


class TrioFeed(TrioIncoming[Version]):
    """The changes of a database: `async with client.changes(…) as feed: async for version in feed`.

    `version` is the last one that was read, and so the next `since`. It never ends by itself: an
    error of the server, or of the connection, is raised.
    """


class _Pieces(httpx.AsyncByteStream):
    """Pieces one after the other; others run in between. Not a generator: nothing needs a close."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


class TrioTransaction:
    """An open transaction: `async with client.begin() as transaction: await transaction.query(…)`.

    The end of the block commits it, an exception rolls it back. A commit that meets a conflict
    raises `SerializationFailure`: run the whole block again.
    """

    def __init__(self, client: TrioClient, options: dict[str, Any]) -> None:
        self._client = client
        self._options = options
        self._is_over = False
        self.id = ""

    async def __aenter__(self) -> Self:
        self.id = (await self._client.open_transaction(**self._options))["id"]
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if self._is_over:
            return
        try:
            if kind is None:
                await self.commit()
        finally:
            if not self._is_over:
                # The exception of the block, or the commit, matters; it may be a cancellation.
                with trio.move_on_after(ROLL_BACK_SECONDS, shield=True), suppress(QserverError):
                    await self.roll_back()

    async def query(self, sql: Text, params: Parameters | None = None, **options: Any) -> Result:
        return await self._client.query(sql, params, **options, transaction=self.id)

    def stream(self, sql: Text, params: Parameters | None = None, **options: Any) -> TrioStream:
        return self._client.stream(sql, params, **options, transaction=self.id)

    async def together(
        self, statements: Sequence[Text | Statement], **options: Any
    ) -> TransactionResult:
        """Run statements as one step: all or none of them."""
        return await self._client.transaction(statements, **options, transaction=self.id)

    async def record(self) -> JsonObject:
        """What it has done so far, and when it ends if nobody uses it."""
        return await self._client.show_transaction(self.id)

    async def commit(self) -> JsonObject:
        try:
            done = await self._client.commit_transaction(self.id)
        except QserverError as error:
            self._is_over = ended_by(error)
            raise
        self._is_over = True
        return done

    async def roll_back(self) -> None:
        self._is_over = True
        await self._client.roll_back_transaction(self.id)
