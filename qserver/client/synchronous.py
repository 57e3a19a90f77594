"""`Client`: one blocking call per request, over a persistent connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from functools import partial, wraps
from itertools import chain
from typing import Any, ParamSpec, Self, TypeVar, cast

import httpx

from qserver.client import bulk, requests
from qserver.client.answers import Result, Row, TransactionResult
from qserver.client.caller import Body, Caller, JsonObject
from qserver.client.calls import Calls
from qserver.client.events import EndlessStream, RowsOfStream, StreamedResult
from qserver.client.failures import ended_by
from qserver.client.feed import Version, VersionsOfFeed
from qserver.client.live import Change, LiveResult, LiveRows
from qserver.client.requests import Kept, Parameters, Request, Statement, Text
from qserver.client.retrying import Trials
from qserver.client.transport import trouble_named
from qserver.errors import QserverError

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


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
        return Stream(self, requests.stream(sql, params, self.database, options))

    def rows(self, table: str, **options: Any) -> Stream:
        """Stream the rows of a table.

        The options are `columns`, `where`, `params`, `order`, `limit`, `as_of`, `timeout_ms`,
        `database`.
        """
        given = {"database": self.database, **options}
        return Stream(self, bulk.select(table, requests.EVENT_STREAM, **given))

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
        return Live(self, request, self.trials(retry_seconds))

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
        return Feed(self, behind, since, self.trials(retry_seconds))

    async def _open(self, request: Request, kept: Kept | None = None) -> Body:
        made = self._http.build_request(**request.arguments_with(kept))
        return BlockingBody(self._http.send(made, stream=True))

    def _now(self) -> float:
        return time.monotonic()

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251


class Stream(StreamedResult):
    """The rows of one result as they arrive: `with client.stream(…) as rows: for row in rows`.

    Leaving the `with` early closes the connection, and the server stops the query. A loop without a
    `with` opens the stream, and closes it when the loop ends or is left.
    """

    def __init__(self, client: Client, request: Request, rows: RowsOfStream | None = None) -> None:
        super().__init__(rows)
        self._client = client
        self._request = request
        self._batches: Iterator[list[Row]] = iter(())
        self._open = ExitStack()
        self._opened = False

    def __enter__(self) -> Self:
        trials = self._client.trials()
        while True:
            try:
                self._connect(self._rows)
                break
            except QserverError as error:
                at_once(self._client._pause_after(error, self._request, trials))
                self._rows = self._rows.resumed()
        self._opened = True
        return self

    def _connect(self, rows: RowsOfStream) -> None:
        with ExitStack() as opening:
            opening.enter_context(trouble_named(self._client.url))
            stream = self._client._http.stream(**self._request.arguments_with())
            self._batches = self._start(opening.enter_context(stream), rows)
            self._open = opening.pop_all()

    def __exit__(self, *exception: Any) -> None:
        self._open.__exit__(*exception)

    def __iter__(self) -> Iterator[Row]:
        with closing(self.batches()) as batches:  # closes the stream if the loop is left
            for batch in batches:
                yield from batch

    def batches(self) -> Generator[list[Row], None, None]:
        """Lists of rows that arrived together."""
        with nullcontext() if self._opened else self, trouble_named(self._client.url):
            yield from filter(None, self._batches)

    def _start(self, answer: httpx.Response, rows: RowsOfStream) -> Iterator[list[Row]]:
        if not rows.comes_in_events(answer.headers):
            return iter([rows.take_whole(answer.status_code, answer.headers, answer.read())])
        pieces = answer.iter_bytes()
        first: list[Row] = []
        while not rows.has_begun:
            first = rows.take(next(pieces, None))
        return chain([first], map(rows.take, chain(pieces, [None])))


class Endless(Stream):
    """A stream that never ends by itself; a broken one is opened again, where it was."""

    _rows: EndlessStream

    def __init__(
        self, client: Client, request: Request, rows: EndlessStream, trials: Trials
    ) -> None:
        super().__init__(client, request, rows)
        self._trials = trials

    def batches(self) -> Generator[list[Any], None, None]:
        with nullcontext() if self._opened else self:
            while True:
                try:
                    with trouble_named(self._client.url):
                        for item in chain.from_iterable(self._batches):
                            self._trials.succeed()
                            if self._rows.seen(item):
                                yield [item]
                    return
                except QserverError as error:
                    self._reconnect(error)

    def _reconnect(self, error: QserverError) -> None:
        while True:
            at_once(self._client._pause_after(error, self._request, self._trials))
            rows = self._rows.resumed()
            try:
                self._open.close()
                self._connect(rows)
            except QserverError as failure:
                error = failure
            else:
                self._rows = rows
                return


class Live(LiveResult, Endless):
    """A live query: `with client.live(…) as query: for change in query`.

    `rows` and `version` are there when it is open, and change with each `Change`. It never ends by
    itself: an error of the server, or of the connection, is raised.
    """

    def __init__(self, client: Client, request: Request, trials: Trials) -> None:
        super().__init__(client, request, LiveRows(), trials)

    def __iter__(self) -> Iterator[Change]:
        return cast(Iterator[Change], super().__iter__())


class Feed(Endless):
    """The changes of a database: `with client.changes(since) as feed: for version in feed`.

    `version` is the last one that was read, and so the next `since`. It never ends by itself: an
    error of the server, or of the connection, is raised.
    """

    def __init__(
        self,
        client: Client,
        behind: Callable[[int], Request],
        since: int,
        trials: Trials,
    ) -> None:
        super().__init__(client, behind(since), VersionsOfFeed(since), trials)
        self._behind = behind

    def __iter__(self) -> Iterator[Version]:
        return cast(Iterator[Version], super().__iter__())

    def _connect(self, rows: RowsOfStream) -> None:
        assert rows.version is not None, "a feed begins with one"
        self._request = self._behind(rows.version)
        super()._connect(rows)


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
