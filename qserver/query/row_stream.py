"""Streams a statement's rows as they come, for results too large to hold as a whole.

A stream is an asynchronous iterator of pages over a cursor. It holds its snapshot, so it shows one
version from the first row to the last, however long the client takes. It is a class and not an
asynchronous generator, so that only `aclose` and the last page end it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import trio

from qserver.engine.work import Step, before, run
from qserver.engine.yielding import yield_to_others
from qserver.lexing.fingerprint import parameterize
from qserver.query.body import open_reading
from qserver.query.cursor import END, Cursor, Heading, rows_at_once
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import Request, RequestContext
from qserver.query.results import Result
from qserver.query.sequence_values import NeedsSequenceValues
from qserver.query.settings.values import Settings
from qserver.query.statement_statistics import StatementCounter
from qserver.sql import Rows
from qserver.storage.snapshot import Snapshot
from qserver.values.zones import InSessionZone


class RowStream:
    """`async for page in stream`: lists of rows, none of them empty.

    `new_cursor` makes the cursor, and makes it again if the statement has to begin again. `begun`
    is the first one, if there is one already.
    """

    def __init__(
        self,
        new_cursor: Callable[[], Cursor],
        request: Request,
        version: int,
        affected_rows: int = 0,
        *,
        committed: bool = False,
        tag: str = "",
        begun: Cursor | None = None,
    ) -> None:
        self._new_cursor = new_cursor
        self._request = request
        self._zone = request.zone
        if begun is None:
            with InSessionZone(self._zone):
                begun = new_cursor()
        self._cursor = begun
        self.columns = self._cursor.heading.columns
        self.types = self._cursor.heading.types
        self.version = version
        self.affected_rows = affected_rows
        self.tag = tag
        """The words of its tag, where the text does not tell them: of EXECUTE and FETCH."""
        self.committed = committed
        """Are these rows of committed changes? Then only the reader may end the stream early."""
        self.ended = False
        self.counter: StatementCounter | None = None
        """Counts its run, if it is part of another statement: of COPY."""
        self._seconds = 0.0
        """In which it has run."""
        self._given = 0
        self._skip = 0
        self._first: Rows | None = None
        """A page that was computed ahead."""
        self._needs: NeedsSequenceValues | None = None
        """What it has met that it has to wait for."""

    def count_as(self, text: str) -> None:
        """Count its run as that of the statement which it is part of."""
        counters = self._request.environment.statements
        if counters is not None:
            self.counter = counters.counter_of(parameterize(text).fingerprint)

    def __aiter__(self) -> RowStream:
        return self

    async def __anext__(self) -> Rows:
        while not self.ended:
            page = await self.step()
            if page is not None:
                return page
        raise StopAsyncIteration

    async def step(self) -> Rows | None:
        """Continue for at most one page; None if there is no page yet, or no more."""
        await before(self._request.deadline, yield_to_others)
        page: Rows | None = await run(RowStream.stepping(self))
        return page

    def stepping(self) -> Generator[Step, Any, Rows | None]:
        """Return the steps of `step`, which let nobody else run: see `pause`."""
        if self.ended:
            return None
        if self._first is not None:
            first, self._first = self._first, None
            return first
        needs, self._needs = self._needs, None
        page: Any = None
        try:
            if needs is None:
                now = self._request.environment.now
                began = now()
                with InSessionZone(self._zone):
                    page = self._cursor.step()
                self._seconds += max(0.0, now() - began)
        except NeedsSequenceValues as met:
            needs = met
        except Exception:
            self._undo()
            raise
        if needs is not None:
            yield partial(self._request.supply, needs)
            needs = None  # it leads to this frame
            self._cursor.context.release()
            self._request.notices = None
            self._undo()
            with InSessionZone(self._zone):
                self._cursor = self._new_cursor()  # the same rows come again, and are skipped
            self._skip = self._given
            return None
        if page is END:
            if self.counter is not None:
                self._cursor.heading = Heading(counter=self.counter)
            self._cursor.count(self._seconds, self._given)
            self._end()
            return None
        if page and self._skip:
            page, self._skip = page[self._skip :], max(0, self._skip - len(page))
        if not page:
            return None
        self._given += len(page)
        return page  # type: ignore[no-any-return]

    def go_on_after(
        self,
        given: int,
        page: Rows | None,
        needs: NeedsSequenceValues | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Go on where its first cursor is, which has given so many rows: with a page, or a wait."""
        self._seconds = seconds
        self._given, self._first, self._needs = given + len(page or ()), page or None, needs

    def _undo(self) -> None:
        """Take back what the statement has done to its session: it fails, or begins again."""

    async def begin(self) -> None:
        """Compute the first page, and raise its error here."""
        try:
            while not self.ended and self._first is None:
                self._first = await self.step()
        except BaseException:
            self._cursor.close()
            self._end()
            raise

    def _end(self) -> None:
        self.ended = True
        self._request.give_back_unused()
        self._cursor.context.release()

    def reader_was_away(self, seconds: float) -> None:
        """Extend the deadline by the time that the client took to read."""
        self._request.extend(seconds)

    def go_on_for(self, request: Request) -> None:
        """Give it the time of another request, which wants its next rows."""
        self._request.take_time_of(request)

    def begin_again(self) -> Request:
        """Give it all of its time anew, after a pause; return what its owner may cancel."""
        self._request.begin_again()
        return self._request

    def pause(self) -> Step:
        """Return what is to be yielded between two pages, so that others can run."""
        return self._request.pause()

    def close(self) -> None:
        self._cursor.close()
        self._end()

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()


class ReadingStream(RowStream):
    """The rows of a reading statement that is a transaction of its own.

    What it sets for the transaction, as `set_config(…, true)` does, ends with its last row; an
    error takes back everything that it has set.
    """

    def __init__(
        self,
        statement: PreparedStatement,
        snapshot: Snapshot,
        request: Request,
        begun: Cursor | None,
        before: Settings | None,
    ) -> None:
        self._session = request.session
        if before is None and self._session is not None:
            before = self._session.settings
        self._before = before

        def new_cursor() -> Cursor:
            return open_reading(statement, snapshot, request, RequestContext(request, snapshot))

        super().__init__(new_cursor, request, snapshot.version, begun=begun)

    def _undo(self) -> None:
        if self._session is not None and self._before is not None:
            self._session.settings = self._before

    def _end(self) -> None:
        super()._end()
        if self._session is not None:
            self._session.end_local()


class ResultStream(RowStream):
    """The rows of a statement that has come to its end."""

    def __init__(self, result: Result, snapshot: Snapshot, request: Request) -> None:
        self._request, self._snapshot = request, snapshot
        self.columns, self.types, self.version = result.columns, result.types, result.version
        self.affected_rows, self.tag, self.committed = result.affected_rows, result.tag, True
        self.ended, self.counter = False, None
        self._first = result.rows or None
        self._given = len(result.rows)

    async def step(self) -> Rows | None:
        await before(self._request.deadline, yield_to_others)
        page: Rows | None = await run(self.stepping())
        return page

    def stepping(self) -> Generator[Step, Any, Rows | None]:
        yield from ()
        first, self._first = self._first, None
        if first is None and not self.ended:
            if self.counter is not None:
                context = RequestContext(self._request, self._snapshot)
                Cursor(rows_at_once([]), context, heading=Heading(counter=self.counter)).count(
                    0.0, self._given
                )
            self._end()
        return first

    def _end(self) -> None:
        self.ended = True
        self._request.give_back_unused()

    def close(self) -> None:
        self._end()


def stream_of(result: Result, snapshot: Snapshot, request: Request) -> RowStream:
    """Return a stream of known rows."""
    request.note_committed()
    return ResultStream(result, snapshot, request)


def reading_stream(
    statement: PreparedStatement,
    snapshot: Snapshot,
    request: Request,
    begun: Cursor | None = None,
    before: Settings | None = None,
) -> RowStream:
    """Return a stream of the rows of a reading statement, as they are found.

    `begun`: its cursor, if it has begun, and `before`: the settings of its session until then.
    """
    return ReadingStream(statement, snapshot, request, begun, before)
