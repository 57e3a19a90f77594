"""`Client`: one blocking call a request, over a connection that is kept open."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from typing import Any, Self

import httpx

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


class Client:
    """One server, one key and, if named, one database. Close it, or use it with `with`."""

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
            self._http = httpx.Client(
                base_url=self.url,
                headers=requests.headers_with(key),
                timeout=time_limits(silence_seconds),
            )

    def __repr__(self) -> str:
        return f"<client of {self.url}, database {self.database or 'of the key'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- data ------------------------------------------------------------------------------------

    def query(self, sql: str, params: Parameters | None = None, **options: Any) -> Result:
        """Run one statement. `options` are the API's own: max_rows, timeout_ms, dry_run, as_of …"""
        request = requests.query(sql, params, self.database, options)
        return result_of(self.call(request))

    def transaction(
        self, statements: Sequence[str | Statement], **options: Any
    ) -> TransactionResult:
        """Run the statements in order, all or nothing."""
        request = requests.transaction(statements, self.database, options)
        return transaction_of(self.call(request))

    def stream(self, sql: str, params: Parameters | None = None, **options: Any) -> Stream:
        """Rows as they come, in memory that does not grow with the result."""
        return Stream(self, requests.stream(sql, params, self.database, options))

    def tables(self) -> Record:
        """`database`, its `version`, and `tables`: columns, keys, indexes, foreign keys of each."""
        return record_of(self.call(requests.tables(self.database)))

    # --- control ---------------------------------------------------------------------------------

    def databases(self) -> list[Record]:
        return self._pages("databases")

    def create_database(self, name: str) -> Record:
        answer = self.call(requests.record("POST", "databases", name=name))
        return record_of(answer)

    def delete_database(self, name: str) -> None:
        self.call(requests.record("DELETE", "databases", name))

    def keys(self) -> list[Record]:
        return self._pages("keys")

    def create_key(
        self,
        name: str,
        scopes: Sequence[str] | None = None,
        databases: Sequence[str] | None = None,
        expires_in: int | None = None,
    ) -> Record:
        request = requests.record(
            "POST", "keys", name=name, scopes=scopes, databases=databases, expires_in=expires_in
        )
        return record_of(self.call(request))

    def revoke_key(self, key_id: str) -> None:
        self.call(requests.record("DELETE", "keys", key_id))

    def rotate_key(self, key_id: str, grace_seconds: int | None = None) -> Record:
        request = requests.record("POST", "keys", key_id, "rotate", grace_seconds=grace_seconds)
        return record_of(self.call(request))

    def open_session(
        self, database: str | None = None, scopes: Sequence[str] | None = None
    ) -> Record:
        """A token for 24 hours, made from the key: `["token"]` is shown this once."""
        answer = self.call(requests.record("POST", "session", database=database, scopes=scopes))
        return dict(answer["session"])

    def refresh_session(self) -> Record:
        """24 hours more, for a client whose key is a session's token."""
        return dict(self.call(requests.record("POST", "session", "refresh"))["session"])

    def end_session(self) -> None:
        self.call(requests.record("DELETE", "session"))

    # --- one request -----------------------------------------------------------------------------

    def call(self, request: Request) -> Record:
        """Send any request of the API; the object of its answer, or an error raised."""
        with trouble_named(self.url):
            answer = self._http.request(
                request.method,
                request.path,
                content=request.content,
                headers=request.headers,
            )
        return success_of(answer.status_code, answer.headers, answer.content)

    def _pages(self, path: str) -> list[Record]:
        answer = self.call(requests.page(path, None))
        records: list[Record] = list(answer[path])
        while answer.get("next_cursor"):
            answer = self.call(requests.page(path, answer["next_cursor"]))
            records += answer[path]
        return records


class Stream:
    """The rows of one result, while they come: `with client.stream(…) as rows: for row in rows`.

    Leaving the `with` early closes the connection, and the server stops the query. A loop over a
    stream that no `with` has opened opens it, and closes it when the loop ends or is left.
    """

    def __init__(self, client: Client, request: Request) -> None:
        self._client = client
        self._request = request
        self._rows = RowsOfStream()
        self._batches: Iterator[list[Row]] = iter(())
        self._open = ExitStack()
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

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            opening.enter_context(trouble_named(self._client.url))
            request = self._request
            answer = opening.enter_context(
                self._client._http.stream(
                    request.method,
                    request.path,
                    content=request.content,
                    headers=request.headers,
                )
            )
            self._batches = self._start(answer)
            self._open = opening.pop_all()
        self._opened = True
        return self

    def __exit__(self, *exception: Any) -> None:
        self._open.__exit__(*exception)

    def __iter__(self) -> Iterator[Row]:
        with closing(self.batches()) as batches:  # else a loop that is left would not close it
            for batch in batches:
                yield from batch

    def batches(self) -> Generator[list[Row], None, None]:
        """Rows that arrived together, together."""
        with nullcontext() if self._opened else self, trouble_named(self._client.url):
            yield from self._batches

    def _start(self, answer: httpx.Response) -> Iterator[list[Row]]:
        if not answer.headers.get("content-type", "").startswith(requests.EVENT_STREAM):
            body = answer.read()
            whole = result_of(success_of(answer.status_code, answer.headers, body))
            return iter([self._rows.take_whole(whole)])
        return self._until_columns(answer.iter_bytes())

    def _until_columns(self, pieces: Iterator[bytes]) -> Iterator[list[Row]]:
        """Read until the columns are known, so that they are before the first row is asked for."""
        for piece in pieces:
            first = list(self._rows.take(piece))
            if self._rows.columns or self._rows.summary is not None:
                return self._remaining(first, pieces)
        self._rows.end()
        raise AssertionError("a stream that ended has a summary or is an error")

    def _remaining(self, first: list[Row], pieces: Iterator[bytes]) -> Iterator[list[Row]]:
        if first:
            yield first
        for piece in pieces:
            batch = list(self._rows.take(piece))
            if batch:
                yield batch
        self._rows.end()
