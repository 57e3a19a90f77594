"""COPY in text and CSV: rows to lines, and pieces that are cut anywhere to rows.

    text    tabs between values, a backslash before what is special, \\N is NULL
    csv     quotes around what needs them, nothing is NULL

A row of what is read has texts and NULLs, which the table's types read. A row that is too short or
too long is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from qserver.errors import BadCopyFileFormat, CharacterNotInRepertoire, ProgramLimitExceeded
from qserver.limits import BULK_ROW_BYTES_MAX
from qserver.query.copying.statement import ALL, CopyFormat
from qserver.values.text_output import shown_function
from qserver.values.types import SqlType

CopiedRow = tuple[str | None, ...]

_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.?))", re.DOTALL)
_END: Final = "\\."
_UNREADABLE: Final = 'invalid byte sequence for encoding "UTF8"'


SHOWN_LENGTH_MAX: Final = 100
"""Characters of data that an error shows."""


def shortened(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}..."


# --- out ------------------------------------------------------------------------------------------


class TextWriter:
    """Writes rows as lines."""

    def __init__(
        self, form: CopyFormat, columns: tuple[str, ...], types: tuple[SqlType, ...]
    ) -> None:
        self._form = form
        self._delimiter = form.delimiter
        forced = columns if form.force_quote == ALL else form.force_quote
        self._cells = [
            _cell(form, shown_function(sql_type), name in forced)
            for name, sql_type in zip(columns, types, strict=True)
        ]
        plain = _quoting(form) if form.name == "csv" else _escaping(form)
        self.header = form.delimiter.join(map(plain, columns)).encode() + b"\n"

    def line(self, row: Sequence[Any]) -> bytes:
        null = self._form.null
        cells = [
            null if value is None else cell(value)
            for value, cell in zip(row, self._cells, strict=True)
        ]
        line = self._delimiter.join(cells)
        if line == _END and self._form.name == "csv":
            line = f"{self._form.quote}{line}{self._form.quote}"
        return line.encode() + b"\n"


def _cell(form: CopyFormat, shown: Callable[[Any], str], forced: bool) -> Callable[[Any], str]:
    if form.name == "text":
        escaped = _escaping(form)
        return lambda value: escaped(shown(value))
    quoted = _quoting(form, forced)
    return lambda value: quoted(shown(value))


@lru_cache(maxsize=64)
def _escaping(form: CopyFormat) -> Callable[[str], str]:
    table = {ord(real): f"\\{letter}" for letter, real in _ESCAPES.items()}
    table[ord("\\")] = "\\\\"
    table.setdefault(ord(form.delimiter), f"\\{form.delimiter}")
    special = re.compile("[" + re.escape("".join(map(chr, table))) + "]")
    return lambda text: text.translate(table) if special.search(text) else text


@lru_cache(maxsize=64)
def _quoting(form: CopyFormat, forced: bool = False) -> Callable[[str], str]:
    quote, escape, null = form.quote, form.escape, form.null
    special = re.compile("[" + re.escape(form.delimiter + quote + "\r\n") + "]")

    def quoted(text: str) -> str:
        if not (forced or text == null or special.search(text)):
            return text
        if escape != quote:
            text = text.replace(escape, escape * 2)
        return quote + text.replace(quote, escape + quote) + quote

    return quoted


# --- in -------------------------------------------------------------------------------------------


class Lines:
    """Decodes pieces, and cuts them into records."""

    def __init__(self, form: CopyFormat, columns: tuple[str, ...], table: str) -> None:
        self._form = form
        self._columns = columns
        self._table = table
        self._rest: list[bytes] = []
        """Pieces of a line whose end has not come."""
        self._held: list[str] = []
        """Lines of a record whose end has not come."""
        self._size = 0
        """Bytes of both."""
        self._is_in_quotes = False
        self.line = 0
        """The line of the data on which the last record ends."""
        self._record: str | None = None
        """The record that is being read."""
        self._is_header = form.header
        self._has_ended = False
        is_csv = form.name == "csv"
        self._fields = self._csv if is_csv else self._text
        self._goes_on = self._ends_in_quotes if is_csv else _ends_escaped
        self._special = form.quote if is_csv else "\\"
        if is_csv:
            self._escaped_quotes = _escaped_quotes(form)
            self._field = _csv_field(form)
            self._not_null = _positions(form.force_not_null, columns)
            self._null = _positions(form.force_null, columns)

    def feed(self, piece: bytes, *, last: bool = False) -> Iterator[CopiedRow]:
        """Yield the rows that are whole by now."""
        data = self._whole_lines(piece, last)
        if data is None:
            return
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            self.line += len(self._held) + data.count(b"\n", 0, error.start) + 1
            raise CharacterNotInRepertoire(_UNREADABLE) from None
        if "\0" in text:
            self.line += len(self._held) + text.count("\n", 0, text.index("\0")) + 1
            raise CharacterNotInRepertoire(f"{_UNREADABLE}: 0x00")
        for record in self._records(text, last):
            self.line += 1 + record.count("\n")
            self._record = record
            if self._has_ended:
                continue
            if record == _END:
                self._has_ended = True
            elif self._is_header:
                self._check_header(record)
            else:
                row = self._row(record)
                self._record = None
                yield row
        self._check_size()

    def _whole_lines(self, piece: bytes, last: bool) -> bytes | None:
        """Return all lines that have ended, and keep what is behind them."""
        end = len(piece) if last else piece.rfind(b"\n") + 1
        if not end and not last:
            self._rest.append(piece)
            self._size += len(piece)
            self._check_size()
            return None
        data = b"".join((*self._rest, piece[:end]))
        self._rest = [piece[end:]]
        self._size += len(piece) - len(data)
        if last and data and not data.endswith(b"\n"):
            data += b"\n"
        return data

    def _check_size(self) -> None:
        if self._size > BULK_ROW_BYTES_MAX:
            self.line += len(self._held) + 1
            raise ProgramLimitExceeded(f"a row has more than {BULK_ROW_BYTES_MAX} bytes")

    def _records(self, text: str, last: bool) -> Iterator[str]:
        """Each line is looked at once, however long its record is."""
        lines = text[:-1].split("\n") if text else []
        is_plain = self._special not in text
        for line in lines:
            if self._is_in_quotes if is_plain else self._goes_on(line):
                self._held.append(line)
                self._size += len(line.encode()) + 1
                continue
            record = line
            if self._held:
                record = "\n".join((*self._held, line))
                self._held, self._size = [], sum(map(len, self._rest))
            yield record.removesuffix("\r")
        if last and self._held:
            self.line += len(self._held)
            self._record = "\n".join(self._held)
            what = "CSV quoted field" if self._form.name == "csv" else "line"
            raise BadCopyFileFormat(f"unterminated {what}")

    def _ends_in_quotes(self, line: str) -> bool:
        """Return whether the end of a line of CSV belongs to a value."""
        if self._escaped_quotes is None:
            if line.count(self._special) % 2:
                self._is_in_quotes = not self._is_in_quotes
            return self._is_in_quotes
        for found in self._escaped_quotes.findall(line):
            is_quote = found[-1] == self._special
            if is_quote and (len(found) == 1 or not self._is_in_quotes):
                self._is_in_quotes = not self._is_in_quotes
        return self._is_in_quotes

    def _row(self, record: str) -> CopiedRow:
        fields = self._fields(record)
        expected = len(self._columns)
        if len(fields) < expected:
            if not record and expected == 0:
                return ()
            raise BadCopyFileFormat(f'missing data for column "{self._columns[len(fields)]}"')
        if len(fields) > expected:
            raise BadCopyFileFormat("extra data after last expected column")
        return tuple(fields)

    def _check_header(self, record: str) -> None:
        self._is_header = False
        if self._form.matches:
            named = [each or "" for each in self._fields(record)]
            if named != list(self._columns):
                raise BadCopyFileFormat(
                    "column names of the header line do not match those of the statement"
                )

    def where(self) -> str:
        where = f"COPY {self._table}, line {self.line}"
        return where if self._record is None else f'{where}: "{shortened(self._record)}"'

    # --- fields ---

    def _text(self, record: str) -> list[str | None]:
        form = self._form
        if "\\" not in record:
            cut = record.split(form.delimiter, len(self._columns))
            return [None if each == form.null else each for each in cut]
        cut = _split_text(record, form.delimiter)
        return [None if each == form.null else _ESCAPED.sub(_unescaped, each) for each in cut]

    def _csv(self, record: str) -> list[str | None]:
        form = self._form
        if form.quote not in record and not (self._not_null or self._null):
            cut = record.split(form.delimiter, len(self._columns))
            return [None if each == form.null else each for each in cut]
        fields: list[str | None] = []
        at = 0
        while True:
            found = self._field.match(record, at)
            assert found is not None, "a field may be empty"
            fields.append(self._value(found.group(), len(fields)))
            at = found.end()
            if at >= len(record) or len(fields) > len(self._columns):
                return fields
            at += 1  # the delimiter
            if at == len(record):
                fields.append(self._value("", len(fields)))
                return fields

    def _value(self, raw: str, at: int) -> str | None:
        form = self._form
        quote = form.quote
        if quote not in raw:
            return None if raw == form.null and at not in self._not_null else raw
        value = _unquoted(raw, quote, form.escape)
        return None if value == form.null and at in self._null else value


def _positions(names: tuple[str, ...], columns: tuple[str, ...]) -> frozenset[int]:
    return frozenset(at for at, name in enumerate(columns) if names == ALL or name in names)


@lru_cache(maxsize=64)
def _csv_field(form: CopyFormat) -> re.Pattern[str]:
    """The expression of a field: texts in quotes and texts without, one behind the other."""
    quote, escape = re.escape(form.quote), re.escape(form.escape)
    delimiter = re.escape(form.delimiter)
    if form.quote == form.escape:
        inside = rf"{quote}(?>[^{quote}]|{quote}{quote})*+{quote}"
    else:
        inside = rf"{quote}(?>[^{quote}{escape}]|{escape}.)*+{quote}"
    return re.compile(rf"(?>{inside}|[^{quote}{delimiter}])*+", re.DOTALL)


def _unquoted(raw: str, quote: str, escape: str) -> str:
    if escape == quote:
        if raw.startswith(quote) and raw.endswith(quote) and raw.count(quote) == 2:
            return raw[1:-1]
        # Every second part is in quotes; an empty one between two of these is a doubled quote.
        parts = raw.split(quote)
        parts[2:-1:2] = [each or quote for each in parts[2:-1:2]]
        return "".join(parts)
    pattern = re.compile(rf"{re.escape(escape)}([{re.escape(quote + escape)}])|{re.escape(quote)}")
    return pattern.sub(lambda found: found[1] or "", raw)


@lru_cache(maxsize=64)
def _escaped_quotes(form: CopyFormat) -> re.Pattern[str] | None:
    """The expression of quotes, and of what an escape precedes; None if a quote is its own."""
    if form.escape == form.quote:
        return None
    quote, escape = re.escape(form.quote), re.escape(form.escape)
    return re.compile(rf"{escape}[{quote}{escape}]|{quote}")


def _ends_escaped(line: str) -> bool:
    """Return whether a backslash stands before the end of a line, and none before that."""
    line = line.removesuffix("\r")
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split_text(record: str, delimiter: str) -> list[str]:
    """Cut at delimiters that no backslash precedes."""
    fields: list[str] = []
    field: list[str] = []
    for part in record.split(delimiter):
        field.append(part)
        if (len(part) - len(part.rstrip("\\"))) % 2 == 0:
            fields.append(delimiter.join(field))
            field = []
    if field:
        fields.append(delimiter.join(field))
    return fields


def _unescaped(found: re.Match[str]) -> str:
    octal, hexadecimal, other = found.groups()
    if octal is None and hexadecimal is None:
        return _ESCAPES.get(other, other)
    code = int(octal, 8) & 0xFF if octal is not None else int(hexadecimal, 16)
    if not 0 < code < 0x80:
        raise CharacterNotInRepertoire(f"{_UNREADABLE}: 0x{code:02x}")
    return chr(code)
