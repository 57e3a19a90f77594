"""Server-sent events, cut out of bytes as they arrive, and what a query's events mean.

    bytes ─► EventReader.feed ─► Event(kind, data) ─► RowsOfStream.take ─► rows

`EventReader` keeps at most one event that is not whole yet. It knows the part of the format that
the API uses: lines that end in LF (or CRLF), `event`, `data` and comments; `id` is passed over.

A stream ends with exactly one `done` or `error`. One that ends without either was cut off, and
what was read of it is not the whole result: that is `ConnectionLost`, never a quiet end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from qserver.client.answers import Result, Row, row_of
from qserver.client.failures import ConnectionLost, error_from, unexpected_answer

# A row is one event; the server's own limits keep rows far below this.
EVENT_BYTES_MAX: Final = 256 * 1024 * 1024


class Event(NamedTuple):
    """One event: its kind, and the bytes of its data."""

    kind: bytes
    data: bytes


class EventReader:
    """Whole events out of pieces of bytes."""

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
    """What has come of one result: its columns, then rows, then how it ended."""

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()
        self.version: int | None = None
        self.summary: Mapping[str, Any] | None = None
        """The data of `done`; None while rows may still come."""
        self._reader = EventReader()

    def take(self, piece: bytes) -> Iterator[Row]:
        """The rows that this piece of the body completes."""
        for kind, data in self._reader.feed(piece):
            if kind == b"row":
                yield row_of(_decoded(data), self.columns)
            elif kind == b"columns":
                head = _decoded(data)
                self.columns = tuple(head["columns"])
                self.types = tuple(head.get("types", ()))
                self.version = head.get("version")
            elif kind == b"done":
                self.summary = _decoded(data)
            elif kind == b"error":
                body = _decoded(data)
                raise error_from(body.get("error", body))

    def take_whole(self, result: Result) -> list[Row]:
        """An answer that did not stream: the same, at once."""
        self.columns, self.types, self.version = result.columns, result.types, result.version
        self.summary = {"row_count": len(result.rows), "affected_rows": result.affected_rows}
        return result.rows

    def end(self) -> None:
        if self.summary is None:
            raise ConnectionLost(
                "the stream ended before the result did",
                hint="The rows so far are not the whole result; run the query again.",
            )


def _without_returns(text: bytes) -> list[bytes]:
    # A CR may be the last byte of a piece: it stays until its LF has come.
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


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise unexpected_answer(200, data) from None
