"""Decodes bulk rows while they arrive: JSON lines and CSV; `bulk_array` decodes JSON arrays.

    bytes ─► whole lines ─► rows ─► batches of rows with the same names

A decoder yields the rows before the first bad one, then raises its error. CSV cells are texts, an
empty cell is NULL, and a cell of two quotes is the empty text. An empty line is a row if there is
one column, and is skipped otherwise.
"""

from __future__ import annotations

import csv
import re
from codecs import getincrementaldecoder
from collections.abc import Generator
from io import StringIO
from itertools import groupby
from typing import Any, Final, TypeAlias

import msgspec

from qserver.errors import (
    InvalidRequest,
    InvalidTextRepresentation,
    ProgramLimitExceeded,
    QserverError,
)
from qserver.limits import BULK_COLUMNS_MAX, BULK_ROW_BYTES_MAX
from qserver.query.bulk import RowBatch
from qserver.values.keys import Row
from qserver.web.statements.long_bodies import decode_in_steps
from qserver.web.statements.requests import NOT_JSON, decoder_of, why_not_json

ROWS_AT_ONCE: Final = 128
"""Rows of one statement."""

RECORD_LENGTH_SHORT: Final = 64 * 1024
"""Characters of a CSV record, or of JSON, that are taken at once."""

CELLS_AT_ONCE: Final = 4096

Batches: TypeAlias = Generator[RowBatch | None, None, None]
"""None lets others run."""

BOM: Final = b"\xef\xbb\xbf"

csv.field_size_limit(BULK_ROW_BYTES_MAX)


class ObjectBatches:
    """Groups JSON objects into batches; `lines`: each is to be a line."""

    def __init__(self, only: tuple[str, ...] | None, *, lines: bool = False) -> None:
        self._only = None if only is None else frozenset(only)
        self._lines = lines
        self._count = 0

    def of(self, objects: list[dict[str, Any]]) -> Batches:
        only = self._only
        if only is not None:
            objects = [{name: each[name] for name in each if name in only} for each in objects]
        for names, group in groupby(objects, tuple):
            rows: list[Row] = [tuple(each.values()) for each in group]
            for start in range(0, len(rows), ROWS_AT_ONCE):
                yield RowBatch(names, rows[start : start + ROWS_AT_ONCE], self._count + start + 1)
            self._count += len(rows)

    def of_long(self, text: bytes) -> Batches:
        """Yield the batch of one long object, decoded in steps."""
        try:
            _anything.decode(text)
            yield None
            found = yield from decode_in_steps(text, _values.decode)
        except NOT_JSON as error:
            raise self.refuse_json(error) from None
        except ProgramLimitExceeded as error:
            error.row = self._count + 1
            raise
        if type(found) is not dict:
            raise self._refuse_kind()
        if len(found) > BULK_COLUMNS_MAX:
            raise self.refuse(f"has more than {BULK_COLUMNS_MAX} members")
        yield from self.of([found])

    def refuse_json(self, error: Exception) -> QserverError:
        """The error of the row after those yielded, which is no JSON object."""
        return self._refuse_kind(f": {why_not_json(error)}")

    def _refuse_kind(self, why: str = "") -> QserverError:
        refused = self.refuse(f"is not a JSON object{why}")
        if not self._lines:
            return refused
        error = InvalidTextRepresentation(refused.message)
        error.row, error.is_body = refused.row, True
        return error

    def refuse(self, reason: str) -> InvalidRequest:
        """The error of the row after those yielded."""
        return refused_row(self._count + 1, reason)


class JsonLinesDecoder:
    def __init__(self, only: tuple[str, ...] | None) -> None:
        self._batches = ObjectBatches(only, lines=True)
        self._begun: list[bytes] = []
        """The pieces of a line that has no end yet."""
        self._begun_bytes = 0
        self._is_first = True

    def feed(self, data: bytes, *, last: bool = False) -> Batches:
        end = len(data) if last else data.rfind(b"\n") + 1
        if not end and not last:
            self._begun.append(data)
            self._begun_bytes += len(data)
            if self._begun_bytes > BULK_ROW_BYTES_MAX:
                raise self._batches.refuse(TOO_LONG)
            return
        lines = b"".join([*self._begun, data[:end]])
        is_long = self._begun_bytes > RECORD_LENGTH_SHORT
        self._begun = [data[end:]]
        self._begun_bytes = len(data) - end
        if self._is_first:
            self._is_first, lines = False, lines.removeprefix(BOM)
        if is_long:  # the first line, and no other
            line, _, lines = lines.partition(b"\n")
            if not line.isspace():
                yield from self._batches.of_long(line)
        try:
            objects = _objects.decode_lines(lines)
        except NOT_JSON:
            yield from self._one_by_one(lines)
            return
        if not _one_a_line(lines, len(objects)):
            yield from self._one_by_one(lines)
            return
        yield from self._batches.of(objects)

    def _one_by_one(self, lines: bytes) -> Batches:
        """Yield the rows before the bad line, then raise its error."""
        objects: list[dict[str, Any]] = []
        for line in lines.split(b"\n"):
            if not line.strip():
                continue
            try:
                objects.append(_objects.decode(line))
            except NOT_JSON as error:
                yield from self._batches.of(objects)
                raise self._batches.refuse_json(error) from None
        raise AssertionError("each line alone is a JSON object, and all together are not")


class CsvDecoder:
    def __init__(self, only: tuple[str, ...] | None) -> None:
        self._only = only
        self._decode = getincrementaldecoder("utf-8-sig")("strict").decode
        self._begun: list[str] = []
        """The pieces of a record that has no end yet."""
        self._begun_length = 0
        self._in_quotes = 0
        self._header: list[str] | None = None
        self._names: tuple[str, ...] = ()
        self._places: list[int] | None = None
        """The cells that are taken; None: all."""
        self._count = 0

    def feed(self, data: bytes, *, last: bool = False) -> Batches:
        text, trouble = self._text(data, last)
        end = self._end_of_records(text)
        if trouble is not None:
            if end:
                yield from self._batches("".join([*self._begun, text[:end]]))
            if self._header is None:
                raise InvalidRequest(f"the header of the CSV {trouble}")
            raise self._refuse(trouble)
        if last:
            end = len(text)
        if not end and not last:
            self._begun.append(text)
            self._begun_length += len(text)
            if self._begun_length > BULK_ROW_BYTES_MAX:
                raise self._refuse(TOO_LONG)
            return
        records = "".join([*self._begun, text[:end]])
        is_long = self._begun_length > RECORD_LENGTH_SHORT
        self._begun = [text[end:]]
        self._begun_length = len(text) - end
        if is_long:
            records = yield from self._long_record(records)
        yield from self._batches(records)
        if last and self._header is None:
            raise InvalidRequest("the CSV has no header line")

    def _text(self, data: bytes, last: bool) -> tuple[str, str | None]:
        """The text of a piece; if it is none, what comes before that, and what is wrong."""
        try:
            text, trouble = self._decode(data, last), None
        except UnicodeDecodeError as error:
            text, trouble = error.object[: error.start].decode(), "is not UTF-8"
        if "\0" in text:
            text, trouble = text.partition("\0")[0], "has a NUL character, which no text can hold"
        return text, trouble

    def _end_of_records(self, text: str) -> int:
        r"""The end of a complete record, the last or nearly so: after a line end outside of quotes.

        A \r at the end may be half of one.
        """
        pieces = text.split('"')
        begin = len(text)
        end = 0
        for at in range(len(pieces) - 1, -1, -1):
            piece = pieces[at]
            begin -= len(piece)
            if not (self._in_quotes + at) % 2:
                line_end = piece.rfind("\n") + 1 or piece.rfind("\r", 0, -1) + 1
                if line_end:
                    end = begin + line_end
                    break
            begin -= 1
        self._in_quotes = (self._in_quotes + len(pieces) - 1) % 2
        return end

    def _long_record(self, records: str) -> Generator[RowBatch | None, None, str]:
        """Decode the first record, a long one, a few cells at a time; return the rest.

        Only this record may be long: everything before a line end has been taken.
        """
        line = len(records) - len(records.lstrip("\r\n"))
        if line:  # the end of a line, or empty ones
            yield from self._batches(records[:line])
            records = records[line:]
            if not records:
                return ""
        most = BULK_COLUMNS_MAX if self._header is None else len(self._header)
        cells, at = yield from self._cells(records, most)
        if not records.startswith(_LINE_ENDS, at) and at < len(records):
            raise self._refuse(STRAY_QUOTE)
        if self._header is None:
            self._begin([each or "" for each in cells])
            yield RowBatch(self._names, [], 1)
        else:
            if len(cells) < most:
                raise self._refuse(_cells_differ(len(cells), most))
            if self._places is not None:
                cells = [cells[place] for place in self._places]
            yield self._batch([tuple(cells)])
        return records[at + (2 if records.startswith("\r\n", at) else 1) :]

    def _cells(
        self, records: str, most: int
    ) -> Generator[None, None, tuple[list[str | None], int]]:
        """Decode the cells of the first record; return them, and where they end."""
        cells: list[str | None] = []
        at = 0
        while True:
            found = _CELL.match(records, at)
            assert found is not None, "a cell may be empty"
            quoted, plain = found.groups()
            if not len(cells) % CELLS_AT_ONCE or found.end() - at > RECORD_LENGTH_SHORT:
                yield None
            cells.append((plain or None) if quoted is None else quoted.replace('""', '"'))
            at = found.end()
            if not records.startswith(",", at):
                return cells, at
            if len(cells) == most:
                more = "" if self._header is None else ", as many as the header"
                raise self._refuse(f"has more than {most} cells{more}")
            at += 1

    def _batches(self, records: str) -> Batches:
        records, trouble = _before_a_stray_quote(records)
        has_empty = '""' in records
        if has_empty:
            records = _QUOTED.sub(_mark_empty, records)
        values_of = _with_nulls_and_empty if has_empty else _with_nulls
        reader = csv.reader(StringIO(records, newline=""), strict=True)
        rows: list[Row] = []
        try:
            for cells in reader:
                if not cells:
                    if self._header is None or len(self._header) > 1:
                        continue
                    cells = [""]  # the only cell is empty
                if self._header is None:
                    self._begin(cells)
                    yield RowBatch(self._names, [], 1)
                    continue
                if len(cells) != len(self._header):
                    trouble = _cells_differ(len(cells), len(self._header))
                    break
                if self._places is not None:
                    cells = [cells[at] for at in self._places]
                rows.append(values_of(cells))
                if len(rows) == ROWS_AT_ONCE:
                    yield self._batch(rows)
                    rows = []
        except csv.Error:
            trouble = "is not CSV"
        if rows:
            yield self._batch(rows)
        if trouble is not None:
            raise self._refuse(trouble)

    def _refuse(self, trouble: str) -> InvalidRequest:
        """The error of the row after those yielded, or of the header."""
        if self._header is None:
            return InvalidRequest(f"the header of the CSV {trouble}")
        return refused_row(self._count + 1, trouble)

    def _batch(self, rows: list[Row]) -> RowBatch:
        batch = RowBatch(self._names, rows, self._count + 1)
        self._count += len(rows)
        return batch

    def _begin(self, header: list[str]) -> None:
        self._header = header
        only = self._only
        if len(header) > BULK_COLUMNS_MAX:
            raise InvalidRequest(f"the header of the CSV has more than {BULK_COLUMNS_MAX} cells")
        if len(set(header)) < len(header):
            raise InvalidRequest("the header of the CSV has a name more than once")
        if only is None:
            self._names = tuple(header)
            return
        missing = [name for name in only if name not in header]
        if missing:
            raise InvalidRequest(f"the header of the CSV has no column {missing[0]!r}")
        self._names = only
        self._places = [header.index(name) for name in only]


TOO_LONG: Final = f"is longer than {BULK_ROW_BYTES_MAX} bytes, or does not end"
STRAY_QUOTE: Final = "has a quote inside of a cell, or one that is not closed"
_LINE_ENDS: Final = ("\r", "\n")
_CELL: Final = re.compile(r'"([^"]*+(?>""[^"]*+)*+)"|([^",\r\n]*+)')
_QUOTED: Final = re.compile(r'(?<![^,\r\n])"[^"]*+(?>""[^"]*+)*+"(?![^,\r\n])')
"""A cell in quotes."""
_anything: Final = msgspec.json.Decoder(msgspec.Raw)
_values: Final[msgspec.json.Decoder[Any]] = decoder_of(Any)
_objects: Final[msgspec.json.Decoder[dict[str, Any]]] = decoder_of(dict[str, Any])


def _one_a_line(lines: bytes, objects: int) -> bool:
    """Tell whether so many objects in a text of JSON lines are one on each line that has any.

    A line that begins with { and ends with } has whole objects: no object goes on after } with {.
    """
    ends = lines.count(b"\n") + (not lines.endswith(b"\n"))
    begun = lines.count(b"\n{") + lines.startswith(b"{")
    ended = lines.count(b"}\n") + lines.endswith(b"}")
    if objects == ends == begun == ended:
        return True
    filled = [line for line in map(bytes.strip, lines.split(b"\n")) if line]
    whole = all(line[:1] == b"{" and line[-1:] == b"}" for line in filled)
    return whole and len(filled) == objects


def _cells_differ(cells: int, columns: int) -> str:
    return f"has {cells} cells, and the header {columns}"


def _with_nulls(cells: list[str]) -> Row:
    """The values of cells, of which none is an empty text: what is empty is NULL."""
    return tuple([each or None for each in cells]) if "" in cells else tuple(cells)


def _with_nulls_and_empty(cells: list[str]) -> Row:
    """The values of cells, of which some are marked as an empty text."""
    return tuple(["" if each == "\0" else each or None for each in cells])


def _before_a_stray_quote(records: str) -> tuple[str, str | None]:
    """Return the records up to one with a quote in the wrong place, and what is wrong then."""
    if '"' in records and '"' in _QUOTED.sub("", records):
        outside = _QUOTED.sub(_fill, records)
        stray = outside.find('"')
        if stray >= 0:
            line = max(outside.rfind("\n", 0, stray), outside.rfind("\r", 0, stray)) + 1
            return records[:line], STRAY_QUOTE
    return records, None


def _fill(cell: re.Match[str]) -> str:
    return "x" * len(cell.group())


def _mark_empty(cell: re.Match[str]) -> str:
    text = cell.group()
    return '"\0"' if len(text) == 2 else text


def refused_row(row: int, reason: str) -> InvalidRequest:
    """The error of an unreadable row."""
    error = InvalidRequest(f"row {row} {reason}")
    error.row = row
    return error
