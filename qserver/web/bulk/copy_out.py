"""GET /v1/copy?sql=COPY … TO STDOUT: streams rows in the format that the statement says.

text      text/plain                  csv      text/csv
binary    application/octet-stream

An error behind the first page cuts the connection: none of the formats has words for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from qserver.control.records import Grant
from qserver.errors import InvalidRequest
from qserver.pgwire.copy_binary import HEADER, TRAILER, BinaryWriter
from qserver.query.copying.statement import CopyStatement, query_of
from qserver.query.copying.text import TextWriter
from qserver.query.row_stream import RowStream
from qserver.query.sql_database import Statement
from qserver.sql import Rows
from qserver.web.bulk.copy_in import statement_of
from qserver.web.calls import Facts, KeyedCall, Serving
from qserver.web.query_strings import read_query_string
from qserver.web.route import Route
from qserver.web.statements.cached_reads import ReadCall, ReadEndpoint, typed_fields
from qserver.web.statements.requests import query_request
from qserver.web.statements.rows import RowEncoder, RowEncoders
from qserver.web.streaming.streams import CsvLines, Silent

_TYPES: Final[Mapping[str, bytes]] = {
    "text": b"text/plain; charset=utf-8",
    "csv": b"text/csv; charset=utf-8; header=%b",
    "binary": b"application/octet-stream",
}

_encode: Final = msgspec.json.Encoder().encode


class CopyLines(Silent):
    """Rows in a format of COPY."""

    keep_alive = b""

    def __init__(self, encoder: RowEncoder, statement: CopyStatement) -> None:
        super().__init__(encoder)
        form, self._text = statement.format, statement.text
        self._tail = b""
        if form.is_binary:
            self._head, self._tail = HEADER, TRAILER
            self._line = BinaryWriter(encoder.types).line
        else:
            writer = TextWriter(form, encoder.columns, encoder.types)
            self._head = writer.header if form.header else b""
            self._line = writer.line
        self.content_type = _TYPES[form.name]
        if form.name == "csv":
            self.content_type %= b"present" if form.header else b"absent"

    def head(self, stream: RowStream) -> bytes:
        stream.count_as(self._text)
        return self._head

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        return b"".join(map(self._line, rows))

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes:
        return self._tail


class CopyOutEndpoint(ReadEndpoint):
    def __init__(self, facts: Facts, route: Route, encoders: RowEncoders) -> None:
        super().__init__(facts, f"GET {route.path}", encoders)
        self.kind = CopyOutCall
        self.queries = route.parameters
        self.form = CsvLines  # which cannot express errors either; see `format_of`


class CopyOutCall(ReadCall):
    endpoint: CopyOutEndpoint
    notes_leaving = False
    _statement: CopyStatement

    def limit(self, grant: Grant) -> None:
        KeyedCall.limit(self, grant)

    def check_head(self) -> None:
        if self.endpoint.has_idempotency_key:
            raise InvalidRequest("a request that only reads takes no Idempotency-Key")

    def run(self, body: bytes) -> Serving:
        self.check_head()
        given = read_query_string(self.endpoint.request.query, self.endpoint.queries)
        self._statement = statement_of(given, is_from=False)
        fields = typed_fields({name: given[name] for name in given if name != "sql"})
        request = query_request(b"", _encode({**fields, "sql": "-"}))
        self._statements = (Statement(query_of(self._statement)),)
        return self.until_left(self.stream(request))

    def format_of(self, encoder: RowEncoder) -> CopyLines:
        return CopyLines(encoder, self._statement)
