"""What a call opens, for both flavours: streams, live queries, feeds and transactions.

Each flavour names its own classes of them, and so its calls have the types of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from qserver.client import bulk, requests
from qserver.client.answers import Result, TransactionResult
from qserver.client.caller import Caller, JsonObject
from qserver.client.calls import Calls
from qserver.client.events import RowsOfStream
from qserver.client.failures import ended_by
from qserver.client.feed import VersionsOfFeed
from qserver.client.live import LiveRows
from qserver.client.reading import EndlessReader, Reader, StreamedResult
from qserver.client.requests import Parameters, Statement, Text
from qserver.errors import QserverError

StreamT = TypeVar("StreamT", bound=StreamedResult)
LiveT = TypeVar("LiveT", bound=StreamedResult)
FeedT = TypeVar("FeedT", bound=StreamedResult)
TransactionT = TypeVar("TransactionT", bound="OpenTransaction[Any]")


class Opener(Caller, Generic[StreamT, LiveT, FeedT, TransactionT]):
    """The calls whose results are for a block of the caller."""

    _stream: type[StreamT]
    _live: type[LiveT]
    _feed: type[FeedT]
    _transaction: type[TransactionT]

    def stream(self, sql: Text, params: Parameters | None = None, **options: Any) -> StreamT:
        """Stream rows, in memory that does not grow with the result.

        The options are `database`, `max_rows`, `timeout_ms`, `max_retries`, `max_affected`,
        `if_version`, `as_of`, `min_version`, `consistency`, `max_age_ms`, `transaction`,
        `settings`.
        """
        request = requests.stream(sql, params, self.database, self._options(options))
        return self._stream(Reader(self, RowsOfStream(request, self.values)))

    def rows(self, table: str, **options: Any) -> StreamT:
        """Stream the rows of a table.

        The options are `columns`, `where`, `params`, `order`, `limit`, `as_of`, `min_version`,
        `consistency`, `max_age_ms`, `timeout_ms`, `database`.
        """
        given = {"database": self.database, **options}
        request = bulk.select(table, requests.EVENT_STREAM, **given)
        return self._stream(Reader(self, RowsOfStream(request, self.values)))

    def begin(self, **options: Any) -> TransactionT:
        """Open a transaction for the length of a block; options as of `open_transaction`."""
        return self._transaction(self, options)

    def live(
        self,
        sql: Text,
        params: Parameters | None = None,
        *,
        retry_seconds: float | None = None,
        **options: Any,
    ) -> LiveT:
        """Keep the result of a query up to date: it yields each change, and has the rows.

        The options are `database`, `timeout_ms`, `every_ms`, `min_version`, `consistency`,
        `max_age_ms`. After a lost connection it is opened again, for so many seconds, and the next
        change is what differs.
        """
        given = {**self._options(options), "live": True}
        request = requests.stream(sql, params, self.database, given)
        rows = LiveRows(request, self.values)
        return self._live(EndlessReader(self, rows, self.trials(retry_seconds)))

    def changes(
        self,
        since: int,
        tables: Sequence[str] | None = None,
        database: str | None = None,
        *,
        retry_seconds: float | None = None,
    ) -> FeedT:
        """Follow the changes of the database behind a version, as a `Version` at a time.

        After a lost connection it goes on behind the last one, for so many seconds.
        """
        behind = partial(requests.changes, tables=tables, database=database or self.database)
        rows = VersionsOfFeed(behind, since)
        return self._feed(EndlessReader(self, rows, self.trials(retry_seconds)))


class OpenTransaction(Generic[StreamT]):
    """What an open transaction of either flavour is; its steps are `TransactionSteps`."""

    def __init__(self, client: Opener[StreamT, Any, Any, Any], options: dict[str, Any]) -> None:
        self._client = client
        self._options = options
        self._is_over = False
        self.id = ""

    def stream(self, sql: Text, params: Parameters | None = None, **options: Any) -> StreamT:
        return self._client.stream(sql, params, **options, transaction=self.id)


class TransactionSteps(OpenTransaction[StreamT]):
    """The steps as coroutines; `self` is whose step it is, as in `Calls`."""

    async def query(
        self: OpenTransaction[Any], sql: Text, params: Parameters | None = None, **options: Any
    ) -> Result:
        return await Calls.query(self._client, sql, params, **options, transaction=self.id)

    async def together(
        self: OpenTransaction[Any], statements: Sequence[Text | Statement], **options: Any
    ) -> TransactionResult:
        """Run statements as one step: all or none of them."""
        return await Calls.transaction(self._client, statements, **options, transaction=self.id)

    async def record(self: OpenTransaction[Any]) -> JsonObject:
        """What it has done so far, and when it ends if nobody uses it."""
        return await Calls.show_transaction(self._client, self.id)

    async def commit(self: OpenTransaction[Any]) -> JsonObject:
        try:
            done = await Calls.commit_transaction(self._client, self.id)
        except QserverError as error:
            self._is_over = ended_by(error)
            raise
        self._is_over = True
        where = self._options.get("database") or self._client.database or ""
        self._client.seen.note(where, done.get("version"))
        return done

    async def roll_back(self: OpenTransaction[Any]) -> None:
        self._is_over = True
        await Calls.roll_back_transaction(self._client, self.id)

    async def _begin(self: OpenTransaction[Any]) -> None:
        self.id = (await Calls.open_transaction(self._client, **self._options))["id"]

    async def _end(self: OpenTransaction[Any], kind: object) -> None:
        """Commit at the end of the block, or roll back after an exception of this kind."""
        if self._is_over:
            return
        try:
            if kind is None:
                await TransactionSteps.commit(self)
        finally:
            if not self._is_over:
                # The exception of the block, or the commit, matters; it may be a cancellation.
                with self._client._last_step(), suppress(QserverError):
                    await TransactionSteps.roll_back(self)
