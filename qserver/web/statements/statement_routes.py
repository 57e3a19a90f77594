"""The routes of statements: POST /v1/query, /query, /v1/transaction and /sql."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import fields

from qserver.errors import InvalidRequest
from qserver.http1 import Request
from qserver.web.calls import Facts, KeyedCall, Serving
from qserver.web.description.shapes import QueryRequest, TransactionRequest
from qserver.web.neon import NeonEndpoint
from qserver.web.query_strings import names_in
from qserver.web.statements.idempotent_calls import (
    IdempotentQueryCall,
    IdempotentTextCall,
    IdempotentTransactionCall,
)
from qserver.web.statements.query_calls import QueryCall, TextCall
from qserver.web.statements.rows import RowEncoders
from qserver.web.statements.statement_calls import StatementEndpoint
from qserver.web.statements.transaction_calls import TransactionCall


class PostEndpoint(StatementEndpoint):
    """A route whose options are in the body and in headers; in the URL they have no effect."""

    def __init__(self, facts: Facts, name: str, encoders: RowEncoders) -> None:
        super().__init__(facts, name, encoders)
        if facts.request.query and _misplaced(facts.request) is not None:
            self.kind = MisplacedCall


class MisplacedCall(KeyedCall):
    """A request with an option in its URL. Without it, it would do something else than was meant.

    A parameter that is no option is let pass, as it always was.
    """

    def run(self, body: bytes) -> Serving:
        raise InvalidRequest(
            f"{_misplaced(self.endpoint.request)} is not read from the URL of a POST",
            hint="Send it as a field of the body; a database or an open transaction also by the"
            " header X-Database or X-Transaction.",
        )


_OPTIONS: Final = frozenset(
    each.name for shape in (QueryRequest, TransactionRequest) for each in fields(shape)
)


def _misplaced(request: Request) -> str | None:
    """The first parameter of the query string that is an option of statements."""
    return next((name for name in names_in(request.query) if name in _OPTIONS), None)


class QueryEndpoint(PostEndpoint):
    kind = QueryCall
    idempotent_kind = IdempotentQueryCall


class TextEndpoint(PostEndpoint):
    kind = TextCall
    idempotent_kind = IdempotentTextCall


class TransactionEndpoint(PostEndpoint):
    kind = TransactionCall
    idempotent_kind = IdempotentTransactionCall


STATEMENT_ROUTES: Final[Mapping[str, type[StatementEndpoint]]] = {
    "/v1/query": QueryEndpoint,
    "/query": TextEndpoint,
    "/v1/transaction": TransactionEndpoint,
    "/sql": NeonEndpoint,
}
