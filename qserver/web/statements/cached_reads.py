"""GET /v1/query: a query in a URL, with an ETag made from what its result depends on.

    the basis of the query ─► ETag ─┬─ the client has it: 304, and nothing runs
                                    └─ otherwise the query runs on the same snapshot

An ETag is for one organization, database, request and release. It is weak: rows are the same,
timings are not. With `as_of`, the result depends on the version found.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final

import msgspec

from qserver import __version__
from qserver.control.databases import OpenDatabase
from qserver.engine.work import Step
from qserver.errors import InvalidRequest, MethodNotAllowed, QserverError, ReadOnlyTransaction
from qserver.http1 import Headers, Response
from qserver.query.basis import Basis
from qserver.query.results import TransactionResult
from qserver.web.calls import JSON, ONLY_JSON, Facts, Serving
from qserver.web.query_strings import read_query_string, whole_number
from qserver.web.statements.query_calls import QueryCall
from qserver.web.statements.requests import decode_value
from qserver.web.statements.rows import RowEncoders
from qserver.web.statements.statement_calls import StatementEndpoint
from qserver.web.statuses import Pair

TEXTS: Final = ("sql", "statement", "database", "format", "as_of", "consistency")
NUMBERS: Final = ("max_rows", "timeout_ms", "min_version", "max_age_ms")
PARAMETERS: Final = (*TEXTS, "params", *NUMBERS)
CACHED: Final = (b"cache-control", b"private, no-cache")

_encode: Final = msgspec.json.Encoder().encode


class ReadCall(QueryCall):
    endpoint: ReadEndpoint
    only_queries = True
    _tag: bytes | None = None

    reads_body = False

    def run(self, body: bytes) -> Serving:
        """Run the query string, as the fields of a body."""
        self.check_head()
        return super().run(_encode(_fields(self.endpoint.request.query)))

    def check_head(self) -> None:
        if self.endpoint.has_idempotency_key:
            raise InvalidRequest("a request that only reads takes no Idempotency-Key")
        if self.endpoint.is_inside:
            raise InvalidRequest("in an open transaction, send queries with POST")

    def perform(self) -> Generator[Step, Any, TransactionResult | None]:
        """Run the query; None if the client has its result."""
        self._only_read()
        (statement,), opened = self._statements, self._opened
        assert opened is not None

        def is_known(basis: Basis | None) -> bool:
            if basis is not None:
                self._tag = self._tag_of(opened, basis)
            known = self.endpoint.known_tags
            return self._tag is not None and (self._tag in known or b"*" in known)

        reading = partial(opened.sql.read, statement, self._options, is_known)
        outcome: TransactionResult | None = yield reading
        return outcome

    def encode(self, outcome: TransactionResult | None) -> Response | None:
        if outcome is not None:
            return super().encode(outcome)
        return self.answer(304, super().headers((self._tag_pair(), CACHED)), b"")

    def _open_stream(self) -> Serving:
        self._only_read()
        return super()._open_stream()

    def _only_read(self) -> None:
        may = {"write": True, "define": True, "read_only": True}  # so that the method is refused
        allowed = msgspec.structs.replace(self._options.allowed, **may)
        its_own = {"allowed": allowed, "request_id": self.request_id}
        self._options = msgspec.structs.replace(self._options, **its_own)

    def headers(self, own: Any = ONLY_JSON) -> Headers:
        if own is not ONLY_JSON:
            return super().headers(own)
        tag = () if self._tag is None else (self._tag_pair(),)
        return super().headers((JSON, *tag, CACHED))

    def known(self, error: Exception) -> QserverError:
        if isinstance(error, ReadOnlyTransaction):
            error = MethodNotAllowed(
                "GET runs only queries, and this statement may change something",
                hint="Send it with POST.",
                allowed=("POST",),
            )
        return super().known(error)

    def _tag_pair(self) -> Pair:
        assert self._tag is not None
        return (b"etag", self._tag)

    def _tag_of(self, opened: OpenDatabase, basis: Basis) -> bytes:
        (statement,), options = self._statements, self._options
        asked = (statement.sql, statement.parameters, self._form, options.cut_rows)
        whose = (__version__, self.grant.organization_id, opened.id)
        digest = sha256(msgspec.msgpack.encode((whose, asked, basis))).hexdigest()
        return b'W/"%b"' % digest[:32].encode()


class ReadEndpoint(StatementEndpoint):
    kind = idempotent_kind = ReadCall

    def __init__(self, facts: Facts, name: str, encoders: RowEncoders) -> None:
        super().__init__(facts, name, encoders)
        self.known_tags = tags_in(facts.headers.get(b"if-none-match", b""))


def _fields(query: bytes) -> dict[str, Any]:
    """The fields of the query string, as the body of a POST would have them."""
    fields = typed_fields(read_query_string(query, PARAMETERS))
    if "sql" not in fields and "statement" not in fields:
        raise InvalidRequest("the parameter sql is missing")
    return fields


def typed_fields(given: Mapping[str, str]) -> dict[str, Any]:
    """Parameters, converted to the types of the body's fields."""
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name in NUMBERS:
            fields[name] = whole_number(name, value)
        elif name == "params":
            text = value.encode()
            decode_value(text, "params")  # one value, and nothing behind it that would be a field
            fields[name] = msgspec.Raw(text)
        else:
            fields[name] = value
    return fields


def tags_in(header: bytes) -> frozenset[bytes]:
    """The tags of If-None-Match, for weak comparison."""
    tags = (each.strip() for each in header.split(b","))
    return frozenset(b"W/" + tag if tag[:1] == b'"' else tag for tag in tags if tag)
