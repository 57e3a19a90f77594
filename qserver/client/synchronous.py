"""`Client`: one blocking call per request, over a persistent connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar

import httpx

from qserver.client import bulk, requests
from qserver.client.answers import Result, Row, TransactionResult
from qserver.client.caller import Body, Caller, JsonObject
from qserver.client.calls import Calls
from qserver.client.events import RowsOfStream
from qserver.client.failures import ended_by
from qserver.client.feed import Version, VersionsOfFeed
from qserver.client.live import Change, LiveResult, LiveRows
from qserver.client.reading import EndlessReader, Reader, StreamedResult
from qserver.client.requests import Kept, Parameters, Request, Statement, Text
from qserver.errors import QserverError

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


def at_once(work: Coroutine[Any, Any, Answer]) -> Answer:
    """The result of a coroutine whose steps block: it never suspends."""
    try:
        work.send(None)
    except StopIteration as ended:
        answer: Answer = ended.value
        return answer
    raise AssertionError("a step of `Client` blocks, and does not wait for anybody")


def _blocking(
    work: Callable[Arguments, Coroutine[Any, Any, Answer]],
) -> Callable[Arguments, Answer]:
    @wraps(work)
    def method(*given: Arguments.args, **named: Arguments.kwargs) -> Answer:
        return at_once(work(*given, **named))

    return method


class BlockingBody(Body):
    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(answer)
        self._pieces = answer.iter_bytes()

    async def piece(self) -> bytes | None:
        return next(self._pieces, None)

    async def close(self) -> None:
        self._answer.close()


class Client(Caller):
    """One server, one key and, if named, one database. Close it, or use it with `with`."""

    _http: httpx.Client
    _http_class = httpx.Client

    call = _blocking(Calls.call)
    query = _blocking(Calls.query)
    read = _blocking(Calls.read)
    transaction = _blocking(Calls.transaction)
    insert_rows = _blocking(Calls.insert_rows)
    insert_file = _blocking(Calls.insert_file)
    save_rows = _blocking(Calls.save_rows)
    open_transaction = _blocking(Calls.open_transaction)
    commit_transaction = _blocking(Calls.commit_transaction)
    roll_back_transaction = _blocking(Calls.roll_back_transaction)
    show_transaction = _blocking(Calls.show_transaction)
    changes_since = _blocking(Calls.changes_since)
    tables = _blocking(Calls.tables)
    databases = _blocking(Calls.databases)
    create_database = _blocking(Calls.create_database)
    keep_database = _blocking(Calls.keep_database)
    delete_database = _blocking(Calls.delete_database)
    versions = _blocking(Calls.versions)
    difference = _blocking(Calls.difference)
    restore_database = _blocking(Calls.restore_database)
    keys = _blocking(Calls.keys)
    create_key = _blocking(Calls.create_key)
    change_key = _blocking(Calls.change_key)
    revoke_key = _blocking(Calls.revoke_key)
    rotate_key = _blocking(Calls.rotate_key)
    organizations = _blocking(Calls.organizations)
    change_organization = _blocking(Calls.change_organization)
    open_session = _blocking(Calls.open_session)
    refresh_session = _blocking(Calls.refresh_session)
    end_session = _blocking(Calls.end_session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def stream(self, sql: Text, params: Parameters | None = None, **options: Any) -> Stream:
        """Stream rows, in memory that does not grow with the result.

        The options are `database`, `max_rows`, `timeout_ms`, `max_retries`, `max_affected`,
        `if_version`, `as_of`, `transaction`.
        """
        request = requests.stream(sql, params, self.database, options)
        return Stream(Reader(self, RowsOfStream(request)))

    def rows(self, table: str, **options: Any) -> Stream:
        """Stream the rows of a table.

        The options are `columns`, `where`, `params`, `order`, `limit`, `as_of`, `timeout_ms`,
        `database`.
        """
        given = {"database": self.database, **options}
        request = bulk.select(table, requests.EVENT_STREAM, **given)
        return Stream(Reader(self, RowsOfStream(request)))

    def begin(self, **options: Any) -> Transaction:
        """Open a transaction for the length of a `with`; options as of `open_transaction`."""
        return Transaction(self, options)

    def live(
        self,
        sql: Text,
        params: Parameters | None = None,
        *,
        retry_seconds: float | None = None,
        **options: Any,
    ) -> Live:
        """Keep the result of a query up to date: it yields each change, and has the rows.

        The options are `database`, `timeout_ms`, `every_ms`. After a lost connection it is opened
        again, for so many seconds, and the next change is what differs.
        """
        request = requests.stream(sql, params, self.database, {**options, "live": True})
        return Live(EndlessReader(self, LiveRows(request), self.trials(retry_seconds)))

    def changes(
        self,
        since: int,
        tables: Sequence[str] | None = None,
        database: str | None = None,
        *,
        retry_seconds: float | None = None,
    ) -> Feed:
        """Follow the changes of the database behind a version, as a `Version` at a time.

        After a lost connection it goes on behind the last one, for so many seconds.
        """
        behind = partial(requests.changes, tables=tables, database=database or self.database)
        rows = VersionsOfFeed(behind, since)
        return Feed(EndlessReader(self, rows, self.trials(retry_seconds)))

    async def _open(self, request: Request, kept: Kept | None = None) -> Body:
        made = self._http.build_request(**request.arguments_with(kept))
        return BlockingBody(self._http.send(made, stream=True))

    def _now(self) -> float:
        return time.monotonic()

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251


class Incoming(StreamedResult, Generic[Item]):
    """What a stream brings, as it arrives."""

    def __enter__(self) -> Self:
        at_once(self._reader.open())
        return self

    def __exit__(self, *exception: object) -> None:
        at_once(self._reader.close())

    def __iter__(self) -> Iterator[Item]:
        with closing(self.batches()) as batches:  # closes the stream if the loop is left
            for batch in batches:
                yield from batch

    def batches(self) -> Generator[list[Item], None, None]:
        """Lists of rows that arrived together."""
        with nullcontext() if self._reader.was_opened else self:
            while (batch := at_once(self._reader.receive())) is not None:
                if batch:
                    yield batch


class Stream(Incoming[Row]):
    """The rows of one result as they arrive: `with client.stream(…) as rows: for row in rows`.

    Leaving the `with` early closes the connection, and the server stops the query. A loop without a
    `with` opens the stream, and closes it when the loop ends or is left.
    """


class Live(LiveResult, Incoming[Change]):
    """A live query: `with client.live(…) as query: for change in query`.

    `rows` and `version` are there when it is open, and change with each `Change`. It never ends by
    itself: an error of the server, or of the connection, is raised.
    """


class Feed(Incoming[Version]):
    """The changes of a database: `with client.changes(since) as feed: for version in feed`.

    `version` is the last one that was read, and so the next `since`. It never ends by itself: an
    error of the server, or of the connection, is raised.
    """


class Transaction:
    """An open transaction: `with client.begin() as transaction: transaction.query(…)`.

    The end of the block commits it, an exception rolls it back. A commit that meets a conflict
    raises `SerializationFailure`: run the whole block again.
    """

    def __init__(self, client: Client, options: dict[str, Any]) -> None:
        self._client = client
        self._options = options
        self._is_over = False
        self.id = ""

    def __enter__(self) -> Self:
        self.id = (self._client.open_transaction(**self._options))["id"]
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._is_over:
            return
        try:
            if kind is None:
                self.commit()
        finally:
            if not self._is_over:
                with suppress(QserverError):  # the exception of the block, or the commit, matters
                    self.roll_back()

    def query(self, sql: Text, params: Parameters | None = None, **options: Any) -> Result:
        return self._client.query(sql, params, **options, transaction=self.id)

    def stream(self, sql: Text, params: Parameters | None = None, **options: Any) -> Stream:
        return self._client.stream(sql, params, **options, transaction=self.id)

    def together(self, statements: Sequence[Text | Statement], **options: Any) -> TransactionResult:
        """Run statements as one step: all or none of them."""
        return self._client.transaction(statements, **options, transaction=self.id)

    def record(self) -> JsonObject:
        """What it has done so far, and when it ends if nobody uses it."""
        return self._client.show_transaction(self.id)

    def commit(self) -> JsonObject:
        try:
            done = self._client.commit_transaction(self.id)
        except QserverError as error:
            self._is_over = ended_by(error)
            raise
        self._is_over = True
        return done

    def roll_back(self) -> None:
        self._is_over = True
        self._client.roll_back_transaction(self.id)
