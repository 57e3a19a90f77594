"""Reads a stream of either flavour: opens it, takes what arrives, opens it again where it may.

request ──► Body ──► pieces ──► RowsOfStream ──► rows that arrived together ──► a loop of the caller
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qserver.client.caller import Body, Caller
from qserver.client.events import EndlessStream, RowsOfStream
from qserver.client.retrying import Trials
from qserver.client.transport import trouble_named
from qserver.errors import QserverError


class Reader:
    """One stream, from its opening to its end."""

    def __init__(self, caller: Caller, rows: RowsOfStream) -> None:
        self.rows = rows
        self.was_opened = False
        self._caller = caller
        self._body: Body | None = None
        self._first: list[Any] = []

    async def open(self) -> None:
        await self._connect(self._caller.trials())
        self.was_opened = True

    async def receive(self) -> list[Any] | None:
        """The rows that arrived together, perhaps none; None is the end."""
        if self._first:
            first, self._first = self._first, []
            return first
        assert self._body is not None, "it was opened"
        with trouble_named(self._caller.url):
            piece = await self._body.piece()
        rows = self.rows.take(piece)
        return None if piece is None else rows

    async def close(self) -> None:
        if self._body is not None:
            with trouble_named(self._caller.url):
                await self._body.aclose()

    async def _connect(self, trials: Trials) -> None:
        """Open the stream, where it was if it broke, as often as the trials allow."""
        while True:
            rows = self.rows.resumed()
            try:
                await self.close()
                self._first = await self._begin(rows)
            except QserverError as error:
                self.rows.request = await self._caller._next_try(error, rows.request, trials)
            else:
                self.rows = rows
                self._note()
                return

    def _note(self) -> None:
        self._caller.seen.note(self.rows.request.versions_of, self.rows.version)

    async def _begin(self, rows: RowsOfStream) -> list[Any]:
        """Send the request, and read until the stream has begun; the rows that came with that."""
        first: list[Any] = []
        with trouble_named(self._caller.url):
            request = self._caller.seen.with_token(rows.request)
            body = self._body = await self._caller._open(request)
            try:
                if not rows.comes_in_events(body.headers):
                    return rows.take_whole(body.status, body.headers, await body.rest())
                while not rows.has_begun:
                    first = rows.take(await body.piece())
            except BaseException:
                await body.aclose()
                raise
        return first


class EndlessReader(Reader):
    """A stream that never ends by itself; a broken one is opened again, where it was."""

    rows: EndlessStream

    def __init__(self, caller: Caller, rows: EndlessStream, trials: Trials) -> None:
        super().__init__(caller, rows)
        self._trials = trials
        self._arrived: Iterator[Any] = iter(())

    async def receive(self) -> list[Any]:
        """One item: only what the caller got counts when a broken stream goes on."""
        while True:
            for item in self._arrived:
                self._trials.succeed()
                is_something = self.rows.seen(item)
                self._note()
                if is_something:
                    return [item]
            try:
                arrived = await super().receive()
            except QserverError as error:
                await self._caller._next_try(error, self.rows.request, self._trials)
                await self._connect(self._trials)
            else:
                assert arrived is not None, "its end is a failure"
                self._arrived = iter(arrived)


class StreamedResult:
    """The properties of a streamed result, for both flavours."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def columns(self) -> tuple[str, ...]:
        return self._reader.rows.columns

    @property
    def types(self) -> tuple[str, ...]:
        return self._reader.rows.types

    @property
    def version(self) -> int | None:
        return self._reader.rows.version

    @property
    def affected_rows(self) -> int:
        """Known when the stream has ended."""
        return int((self._reader.rows.summary or {}).get("affected_rows", 0))

    @property
    def truncated(self) -> bool:
        """Whether there were more rows than `max_rows`; known when the stream has ended."""
        return bool((self._reader.rows.summary or {}).get("truncated", False))
