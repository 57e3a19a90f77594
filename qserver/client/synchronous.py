"""`Client`: one blocking call per request, over a persistent connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar

import httpx

from qserver.client.caller import Body
from qserver.client.calls import Calls
from qserver.client.feed import Version
from qserver.client.live import Change, LiveResult
from qserver.client.opening import Opener, OpenTransaction, TransactionSteps
from qserver.client.python_values import Row
from qserver.client.reading import StreamedResult
from qserver.client.requests import Kept, Request

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

    async def aclose(self) -> None:
        self._answer.close()


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


class Transaction(OpenTransaction[Stream]):
    """An open transaction: `with client.begin() as transaction: transaction.query(…)`.

    The end of the block commits it, an exception rolls it back. A commit that meets a conflict
    raises `SerializationFailure`: run the whole block again.
    """

    query = _blocking(TransactionSteps.query)
    together = _blocking(TransactionSteps.together)
    record = _blocking(TransactionSteps.record)
    commit = _blocking(TransactionSteps.commit)
    roll_back = _blocking(TransactionSteps.roll_back)

    def __enter__(self) -> Self:
        at_once(TransactionSteps._begin(self))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        at_once(TransactionSteps._end(self, kind))


class Client(Opener[Stream, Live, Feed, Transaction]):
    """One server, one key and, if named, one database. Close it, or use it with `with`."""

    _http: httpx.Client
    _http_class = httpx.Client
    _stream, _live, _feed, _transaction = Stream, Live, Feed, Transaction

    call = _blocking(Calls.call)
    query = _blocking(Calls.query)
    read = _blocking(Calls.read)
    arrow = _blocking(Calls.arrow)
    rows_as_arrow = _blocking(Calls.rows_as_arrow)
    transaction = _blocking(Calls.transaction)
    insert_rows = _blocking(Calls.insert_rows)
    insert_file = _blocking(Calls.insert_file)
    save_rows = _blocking(Calls.save_rows)
    copy_in = _blocking(Calls.copy_in)
    copy_out = _blocking(Calls.copy_out)
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
    count_differences = _blocking(Calls.count_differences)
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

    async def _open(self, request: Request, kept: Kept | None = None) -> Body:
        made = self._http.build_request(**request.arguments_with(kept))
        return BlockingBody(self._http.send(made, stream=True))

    def _now(self) -> float:
        return time.monotonic()

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251

    def _last_step(self) -> AbstractContextManager[object]:
        return nullcontext()
