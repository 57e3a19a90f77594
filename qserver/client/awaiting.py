"""`AsyncClient`: the calls of `Client`, each with `await`, on asyncio and on Trio.

Both loops have the few things that are needed here under the same names in anyio, by which httpx
waits, too. So there is one class, and `TrioClient` is its earlier name.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, Self, TypeVar

import anyio
import anyio.lowlevel
import httpx

from qserver.client.caller import Body
from qserver.client.calls import Calls
from qserver.client.feed import Version
from qserver.client.live import Change, LiveResult
from qserver.client.opening import Opener, TransactionSteps
from qserver.client.python_values import Row
from qserver.client.reading import Reader, StreamedResult
from qserver.client.requests import Kept, Request

Item = TypeVar("Item")

ROLL_BACK_SECONDS: Final = 1.0
"""How long a block that is cancelled waits for its rollback; else the server ends it when idle."""


class AsyncBody(Body):
    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(answer)
        self._pieces = answer.aiter_bytes()
        self._is_over = False

    async def piece(self) -> bytes | None:
        piece = await anext(self._pieces, None)
        self._is_over = piece is None
        return piece

    async def aclose(self) -> None:
        if not self._is_over:
            self._is_over = True
            await self._unwind()
        await self._answer.aclose()

    async def _unwind(self) -> None:
        """End the reading of a body that was left early.

        httpx reads through nested generators, and each must finish. So this shuts the
        connection down and reads the rest: the bytes received already, then an error that unwinds
        all generators. Nothing here waits for the server.
        """
        connection = self._answer.extensions["network_stream"].get_extra_info("socket")
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server, or a failed read, has closed it
        with anyio.CancelScope(shield=True):
            try:
                while await anext(self._pieces, None) is not None:
                    pass
            except httpx.HTTPError:
                pass


class AsyncIncoming(StreamedResult, Generic[Item]):
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


class AsyncStream(AsyncIncoming[Row]):
    """The rows of one result as they arrive: `async with client.stream(…) as rows: async for …`.

    Leaving the block early closes the connection, and the server stops the query. Nothing else
    closes it.
    """


class AsyncLive(LiveResult, AsyncIncoming[Change]):
    """A live query: `async with client.live(…) as query: async for change in query`.

    `rows` and `version` are there when it is open, and change with each `Change`. It never ends by
    itself: an error of the server, or of the connection, is raised.
    """


class AsyncFeed(AsyncIncoming[Version]):
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
        await anyio.lowlevel.checkpoint()
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


class AsyncTransaction(TransactionSteps[AsyncStream]):
    """An open transaction: `async with client.begin() as transaction: await transaction.query(…)`.

    The end of the block commits it, an exception rolls it back. A commit that meets a conflict
    raises `SerializationFailure`: run the whole block again.
    """

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self._end(kind)


class AsyncClient(Opener[AsyncStream, AsyncLive, AsyncFeed, AsyncTransaction], Calls):
    """One server, one key and, if named, one database. Close it, or use it with `async with`."""

    _http: httpx.AsyncClient
    _http_class = httpx.AsyncClient
    _stream, _live, _feed, _transaction = AsyncStream, AsyncLive, AsyncFeed, AsyncTransaction

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _open(self, request: Request, kept: Kept | None = None) -> Body:
        made = self._made(request.arguments_with(kept))
        return AsyncBody(await self._http.send(made, stream=True))

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
        return anyio.current_time()

    async def _pause(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    def _last_step(self) -> AbstractContextManager[object]:
        return anyio.move_on_after(ROLL_BACK_SECONDS, shield=True)


TrioStream = AsyncStream
TrioLive = AsyncLive
TrioFeed = AsyncFeed
TrioTransaction = AsyncTransaction
TrioClient = AsyncClient
