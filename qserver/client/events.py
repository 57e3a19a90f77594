"""Parses server-sent events from bytes as they arrive, and reads a query's events.

    bytes ─► EventReader.feed ─► Event(kind, data) ─► RowsOfStream.take ─► rows

`EventReader` buffers at most one incomplete event. It knows the part of the format that the API
uses: lines that end in LF (or CRLF), `event`, `data` and comments; it ignores `id`.

A stream ends with exactly one `done` or `error`. A stream without either was cut off, and its rows
are not the whole result: that raises `ConnectionLost`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from qserver.client.answers import result_of, row_of, success_of
from qserver.client.failures import ConnectionLost, error_from, unexpected_answer
from qserver.client.python_values import Row, Values, row_converter
from qserver.client.requests import EVENT_STREAM, Request

# A row is one event; the server's own limits keep rows far below this.
EVENT_BYTES_MAX: Final = 256 * 1024 * 1024


class Event(NamedTuple):
    kind: bytes
    data: bytes


class EventReader:
    """Assembles events from pieces of bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[Event]:
        text = self._rest + piece
        blocks = _without_returns(text) if b"\r" in text else text.split(b"\n\n")
        self._rest = blocks.pop()
        if len(self._rest) > EVENT_BYTES_MAX:
            raise unexpected_answer(200, self._rest)
        for block in blocks:
            event = _event_of(block)
            if event is not None:
                yield event


class RowsOfStream:
    """The state of one streamed result: its columns, then rows, then its end."""

    def __init__(self, request: Request, values: Values = "json") -> None:
        self.request = request
        """What opens it."""
        self.values: Values = values
        self.columns: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()
        self.version: int | None = None
        self.summary: Mapping[str, Any] | None = None
        """The data of `done`; None while rows may still come."""
        self._reader = EventReader()
        self._converted: Callable[[Row], Row] | None = None

    @property
    def has_begun(self) -> bool:
        """Are the columns known? A stream reads this far before the first row is requested."""
        return bool(self.columns) or self.summary is not None

    def resumed(self) -> RowsOfStream:
        """The state of a stream that is sent again after this one broke."""
        return RowsOfStream(self.request, self.values)

    def comes_in_events(self, headers: Mapping[str, str]) -> bool:
        """False: the answer does not stream, and its body is for `take_whole`."""
        return headers.get("content-type", "").startswith(EVENT_STREAM)

    def take(self, piece: bytes | None) -> list[Row]:
        """The rows that this piece of the body completes; None is the end of the body."""
        if piece is None:
            self.end()
            return []
        rows: list[Row] = []
        for event in self._reader.feed(piece):
            rows += self.event(event)
        return rows

    def event(self, event: Event) -> list[Row]:
        """The rows of one event."""
        kind, data = event
        if kind == b"row":
            return [self.row(data)]
        if kind == b"columns":
            head = decoded(data)
            self.columns = tuple(head["columns"])
            self.types = tuple(head.get("types", ()))
            if self.values == "python":
                self._converted = row_converter(self.types)
            self.version = head.get("version")
        elif kind == b"done":
            self.summary = decoded(data)
        elif kind == b"error":
            body = decoded(data)
            raise error_from(body.get("error", body))
        return []

    def row(self, data: bytes) -> Row:
        """The row that an event has."""
        row = row_of(decoded(data), self.columns)
        return row if self._converted is None else self._converted(row)

    def take_whole(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Row]:
        """The rows of an answer that did not stream."""
        result = result_of(success_of(status, headers, body), self.values)
        self.columns, self.types, self.version = result.columns, result.types, result.version
        self.summary = {"row_count": len(result.rows), "affected_rows": result.affected_rows}
        return result.rows

    def end(self) -> None:
        if self.summary is None:
            raise ConnectionLost(
                "the stream ended before the result did",
                hint="The rows so far are not the whole result; run the query again.",
            )


class EndlessStream(RowsOfStream, ABC):
    """The state of a stream that goes on until the reader leaves: each of its ends is a failure."""

    ended: ClassVar[str]
    """What a reader is told when the stream ends."""
    go_on: ClassVar[str]
    """How it goes on."""

    @abstractmethod
    def resumed(self) -> EndlessStream: ...

    @abstractmethod
    def seen(self, item: Any) -> bool:
        """The caller is about to get the item; returns whether there is anything in it.

        Only what the caller got counts when a broken stream goes on.
        """

    def take_whole(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Row]:
        super().take_whole(status, headers, body)  # raises, if it is an error
        raise unexpected_answer(status, body)

    def end(self) -> None:
        raise ConnectionLost(self.ended, hint=self.go_on)


def _without_returns(text: bytes) -> list[bytes]:
    # A CR may be the last byte of a piece: keep it until its LF arrives.
    kept = b"\r" if text.endswith(b"\r") else b""
    blocks = text.removesuffix(b"\r").replace(b"\r\n", b"\n").split(b"\n\n")
    blocks[-1] += kept
    return blocks


def _event_of(block: bytes) -> Event | None:
    kind, data = b"message", []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"event":
            kind = value.strip()
        elif name == b"data":
            data.append(value.removeprefix(b" "))
    return Event(kind, b"\n".join(data)) if data else None


def decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise unexpected_answer(200, data) from None
