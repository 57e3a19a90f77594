"""Rows in bulk: rows as lines of JSON, files in pieces, formats by the names of files; no network.

rows ──► lines ──► pieces ──► Request ──► one POST, sent while the rows are made
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO, Final, Literal, TypeAlias, TypedDict, Unpack

import msgspec

from qserver.client import requests
from qserver.client.failures import error_from
from qserver.client.requests import JSON, Request, bindable
from qserver.errors import InvalidRequest

Format: TypeAlias = Literal["csv", "ndjson", "json"]
OnConflict: TypeAlias = Literal["error", "ignore", "update"]
RowIn: TypeAlias = Mapping[str, Any] | Sequence[Any]

MEDIA: Final[Mapping[Format, str]] = {
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "json": JSON,
}
_SUFFIXES: Final[Mapping[str, Format]] = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
}
ROWS_AT_ONCE: Final = 500
PIECE_BYTES: Final = 64 * 1024
_FAILURE: Final = b'{"success":false,"error":{"code":'


class ReadOptions(TypedDict, total=False):
    """What rows that are read can be asked with."""

    as_of: int | str | None
    min_version: int | None
    consistency: str | None
    max_age_ms: int | None
    timeout_ms: int | None
    database: str | None


_encode_lines: Final = msgspec.json.Encoder().encode_lines


def insert(
    table: str,
    content: Iterable[bytes],
    format: Format,
    *,
    only: Sequence[str] | None = None,
    on_conflict: OnConflict | None = None,
    database: str | None = None,
    idempotency_key: str | None = None,
    overriding: str | None = None,
) -> Request:
    """A request that inserts what the pieces of a body say; `only` takes some columns of it."""
    place = requests.listing(
        "tables",
        table,
        "rows",
        on_conflict=on_conflict,
        columns=requests.joined(only),
        overriding=overriding,
        database=database,
    )
    return Request(
        "POST",
        place.path,
        content,
        idempotency_key=requests.idempotency_key_of(idempotency_key),
        content_type=MEDIA[format],
        versions_of=database or "",
    )


def select(
    table: str,
    accept: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    params: Any = None,
    order: str | None = None,
    limit: int | None = None,
    **options: Unpack[ReadOptions],
) -> Request:
    """A request for the rows of a table."""
    place = requests.listing(
        "tables",
        table,
        "rows",
        columns=requests.joined(columns),
        where=where,
        params=requests.in_url(params),
        order=order,
        limit=limit,
        **options,
    )
    versions_of = options.get("database") or ""
    return Request("GET", place.path, accept=accept, versions_of=versions_of)


def copy_in(
    sql: str,
    content: Iterable[bytes],
    *,
    database: str | None = None,
    transaction: str | None = None,
    idempotency_key: str | None = None,
) -> Request:
    """A request for COPY … FROM STDIN, whose data is the body."""
    return Request(
        "POST",
        requests.listing("copy", sql=sql, database=database).path,
        content,
        idempotency_key=requests.idempotency_key_of(idempotency_key),
        content_type="application/octet-stream",
        versions_of=database or "",
        transaction=transaction,
    )


def copy_out(
    sql: str, *, transaction: str | None = None, **options: Unpack[ReadOptions]
) -> Request:
    """A request for COPY … TO STDOUT."""
    place = requests.listing("copy", sql=sql, **options)
    versions_of = options.get("database") or ""
    return Request("GET", place.path, versions_of=versions_of, transaction=transaction)


def lines(rows: Iterable[RowIn], columns: Sequence[str] | None) -> Iterator[bytes]:
    """The rows as JSON lines, many at a time."""
    objects: list[dict[str, Any]] = []
    for number, row in enumerate(rows, 1):
        objects.append(_object(row, columns, number))
        if len(objects) == ROWS_AT_ONCE:
            yield _written(objects, number)
            objects = []
    if objects:
        yield _written(objects, number)


def _object(row: RowIn, columns: Sequence[str] | None, number: int) -> dict[str, Any]:
    if isinstance(row, Mapping):
        if columns is not None:
            row = {name: row[name] for name in columns if name in row}
        return bindable(row)  # type: ignore[no-any-return]
    if columns is None:
        raise InvalidRequest(f"row {number} has no names of columns", hint="Give columns=….")
    if isinstance(row, str | bytes) or len(row) != len(columns):
        raise InvalidRequest(f"row {number} does not have {len(columns)} values")
    return bindable(dict(zip(columns, row, strict=True)))  # type: ignore[no-any-return]


def _written(objects: list[dict[str, Any]], number: int) -> bytes:
    try:
        return _encode_lines(objects)
    except (TypeError, ValueError) as error:
        first = number - len(objects) + 1
        raise InvalidRequest(
            f"rows {first} to {number} cannot be written as JSON: {error}"
        ) from error


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def tells_format(name: str) -> bool:
    """Whether the name of a file says which format it has."""
    return PurePath(name).suffix.lower() in _SUFFIXES


def format_of(name: Any) -> Format:
    """The format of a file with this name."""
    suffix = PurePath(name).suffix.lower() if isinstance(name, str) else ""
    found = _SUFFIXES.get(suffix)
    if found is None:
        raise InvalidRequest(
            f"the name {name!r} does not tell the format of the file",
            hint="Give the format: csv, ndjson or json.",
        )
    return found


class Saver:
    """Writes an answer to a file as it arrives, and notices at its end if it failed."""

    def __init__(self, file: BinaryIO, format: Format) -> None:
        self._file = file
        self._format = format
        self._tail = b""
        self.bytes = 0

    def take(self, piece: bytes) -> None:
        self._file.write(piece)
        self.bytes += len(piece)
        if self._format == "ndjson":
            self._tail = (self._tail + piece)[-PIECE_BYTES:]

    def end(self) -> None:
        """Raise the error that the last line of JSON lines may be."""
        last = self._tail.rstrip(b"\n").rpartition(b"\n")[2]
        if last.startswith(_FAILURE):
            raise error_from(msgspec.json.decode(last)["error"], 200, None)


def is_failure(format: Format, status: int, media: str, beginning: bytes) -> bool:
    """Is this an error object, and not the rows that were asked for?"""
    if status != 200 or not media.startswith(MEDIA[format]):
        return True
    return format == "json" and beginning.lstrip()[:1] == b"{"
