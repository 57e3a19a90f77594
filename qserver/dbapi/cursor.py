"""A cursor: one statement after the other, and the rows of the last one.

    execute ──► the rows in one answer ──► up to 100,000
           └──► a read with more: asked again, as a stream; the rows are read to their end
    execute of a streaming cursor ──► a stream; the rows are read as they are fetched

An open transaction runs one request after the other, so a stream that is not read to its end would
stop it for ever: before the next request of the connection, the rest is read into memory.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Protocol, Self

from qserver.client import Statement, Stream
from qserver.client.answers import Result
from qserver.client.python_values import Row
from qserver.client.requests import Parameters
from qserver.dbapi.exceptions import (
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    errors_of_pep_249,
)
from qserver.dbapi.many_rows import requests_of
from qserver.dbapi.type_objects import Column, column_of
from qserver.lexing.pieces import first_words

ROWS_OF_ANSWER_MAX: Final = 100_000
"""More come only in a stream."""

_READS: Final = frozenset({"select", "values", "table", "with"})
_WRITES: Final = re.compile(r"\b(?:insert|update|delete|merge)\b", re.IGNORECASE)
_ENDS: Final = frozenset({("rollback",), ("abort",)})
_FILLERS: Final = frozenset({"work", "transaction"})


class Session(Protocol):
    """What a cursor needs of its connection."""

    @property
    def autocommit(self) -> bool: ...

    @property
    def in_transaction(self) -> bool: ...

    @property
    def closed(self) -> bool: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def run(self, sql: str, params: Parameters | None, **options: Any) -> Result: ...

    def stream(self, sql: str, params: Parameters | None) -> Stream: ...

    def run_together(self, statements: Sequence[Statement]) -> int: ...

    def rolled_back_by_statement(self) -> None: ...

    def wait_for(self, cursor: Cursor | None) -> None: ...


class Cursor:
    """Runs statements of a connection, and holds the rows of the last one."""

    lastrowid: None = None
    """Rows have no such id: use RETURNING."""

    def __init__(self, connection: Session, *, streaming: bool = False) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: tuple[Column, ...] | None = None
        self.rowcount = -1
        self.rownumber: int | None = None
        self.closed = False
        self._streaming = streaming
        self._rows: deque[Row] = deque()
        self._stream: Stream | None = None
        self._batches: Iterator[list[Row]] = iter(())

    def __repr__(self) -> str:
        return f"<cursor of {self.connection!r}, {len(self._rows)} rows to fetch>"

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Run a statement; `for row in cursor.execute(…)` reads its rows."""
        self._begin()
        if isinstance(parameters, str | bytes):
            raise ProgrammingError("parameters are a sequence or a mapping, not one text")
        words = first_words(operation, 3)
        if self._streaming and words[:1] and words[0] in _READS:
            self._open_stream(operation, parameters)
            return self
        if _may_run_twice(operation, words):
            result = self.connection.run(operation, parameters, max_rows=ROWS_OF_ANSWER_MAX)
            if result.truncated:
                self._open_stream(operation, parameters)
                self.read_rest()
                self.rowcount = len(self._rows)
                return self
        else:
            result = self.connection.run(operation, parameters)
        if tuple(word for word in words if word not in _FILLERS) in _ENDS:
            self.connection.rolled_back_by_statement()
        self._rows.extend(result.rows)
        if result.columns or result.rows:
            self._describe(result.columns, result.types)
            self.rowcount = len(result.rows)
        else:
            self.rowcount = result.affected_rows
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Self:
        """Run a statement with many parameters, all or none of them; rows are not kept.

        INSERT … VALUES is sent with many rows at a time.
        """
        self._begin()
        requests = requests_of(operation, seq_of_parameters)
        first = next(requests, None)
        second = next(requests, None)
        if first is None:
            self.rowcount = 0
        elif second is None:
            self.rowcount = self.connection.run_together(first)
        else:
            self.rowcount = self._run_all(chain((first, second), requests))
        return self

    def _run_all(self, requests: Iterable[Sequence[Statement]]) -> int:
        """Several requests are one transaction: the open one, or one for them alone."""
        ends_here = self.connection.autocommit and not self.connection.in_transaction
        self.connection.begin()
        try:
            affected = sum(map(self.connection.run_together, requests))
            if ends_here:
                self.connection.commit()
        except BaseException:
            if ends_here:
                self.connection.rollback()
            raise
        return affected

    def fetchone(self) -> Row | None:
        self._check_result()
        if not self._rows:
            self._read_some(1)
        if not self._rows:
            return None
        self._count(1)
        return self._rows.popleft()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        self._check_result()
        size = self.arraysize if size is None else size
        self._read_some(size)
        found = [self._rows.popleft() for _ in range(min(size, len(self._rows)))]
        self._count(len(found))
        return found

    def fetchall(self) -> list[Row]:
        self._check_result()
        self.read_rest()
        found, self._rows = list(self._rows), deque()
        self._count(len(found))
        return found

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def nextset(self) -> None:
        """A statement has one result."""
        self._check_open()

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> None:
        raise NotSupportedError("there are no stored procedures; functions are called by SELECT")

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Of PEP 249; the server needs none."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Of PEP 249; the server needs none."""

    def close(self) -> None:
        if not self.closed:
            self._leave_stream()
            self._rows.clear()
            self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read_rest(self) -> None:
        """Read the rest of a stream into memory."""
        self._read_some(None)

    def _begin(self) -> None:
        self._check_open()
        self._leave_stream()
        self._rows.clear()
        self.description, self.rowcount, self.rownumber = None, -1, None

    def _open_stream(self, operation: str, parameters: Parameters | None) -> None:
        stream = self.connection.stream(operation, parameters)
        with errors_of_pep_249():
            stream.__enter__()
        self._stream, self._batches = stream, stream.batches()
        self.connection.wait_for(self)
        self._describe(stream.columns, stream.types)

    def _read_some(self, wanted: int | None) -> None:
        """Read until there are so many rows, or to the end."""
        if self._stream is None:
            return
        with errors_of_pep_249():
            try:
                while wanted is None or len(self._rows) < wanted:
                    batch = next(self._batches, None)
                    if batch is None:
                        break
                    self._rows.extend(batch)
                else:
                    return
            except BaseException:
                self._leave_stream()
                raise
        self._leave_stream()

    def _leave_stream(self) -> None:
        """Close the stream; a query that was not read to its end ends."""
        stream, self._stream = self._stream, None
        if stream is not None:
            self._batches = iter(())
            self.connection.wait_for(None)
            with errors_of_pep_249():
                stream.__exit__()

    def _describe(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self.description = tuple(map(column_of, columns, types))
        self.rownumber = 0

    def _count(self, rows: int) -> None:
        self.rownumber = (self.rownumber or 0) + rows

    def _check_open(self) -> None:
        if self.closed or self.connection.closed:
            raise InterfaceError("the cursor is closed")

    def _check_result(self) -> None:
        self._check_open()
        if self.description is None:
            raise ProgrammingError("there are no rows to fetch: the last statement returned none")


def _may_run_twice(operation: str, words: tuple[str, ...]) -> bool:
    """Whether it changes no row: one whose result is too long for an answer can be streamed."""
    if operation.lstrip().startswith("("):
        return _WRITES.search(operation) is None
    return bool(words) and words[0] in _READS and _WRITES.search(operation) is None
