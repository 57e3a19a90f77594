"""From the bytes of a request to what it asks for, or an error that says what is wrong with it."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

import msgspec

from qserver.engine.sql_gateway import Statement
from qserver.errors import (
    InvalidRequest,
    RequestTooLarge,
    UnsupportedMediaType,
)
from qserver.limits import (
    NUMERIC_INTEGER_DIGITS_MAX,
    PARAMETERS_MAX,
    REQUEST_BODY_BYTES_MAX,
    STATEMENT_BYTES_MAX,
    TRANSACTION_STATEMENTS_MAX,
)
from qserver.sql.parameters import Given
from qserver.web.shapes import QueryRequest, TransactionRequest

Shape = TypeVar("Shape")

JSON_TYPES: Final = frozenset(
    # curl's -d says the last of these unless told otherwise, and then means JSON all the same.
    {b"", b"application/json", b"text/json", b"application/x-www-form-urlencoded"}
)
TEXT_TYPES: Final = frozenset({b"", b"text/plain"})

_STREAM: Final = re.compile(r"\s*/\*\+\s*STREAM\s*\*/", re.IGNORECASE)


def decode(decoder: msgspec.json.Decoder[Shape], body: bytes) -> Shape:
    """The request in a JSON body. Numbers with a point are kept as they are written."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the request is not as it should be: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None


def decoder_of(shape: type[Shape]) -> msgspec.json.Decoder[Shape]:
    return msgspec.json.Decoder(shape, float_hook=_exact)


def _exact(text: str) -> Decimal:
    """A number as it is written, unless to write it out would take no end of digits."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # even its exponent is past counting
        number = Decimal("Infinity")
    if not number.is_finite() or abs(number.adjusted()) > NUMERIC_INTEGER_DIGITS_MAX:
        raise ValueError(f"a number has at most {NUMERIC_INTEGER_DIGITS_MAX} digits")
    return number


_query_decoder: Final = decoder_of(QueryRequest)
_transaction_decoder: Final = decoder_of(TransactionRequest)


def query_request(content_type: bytes, body: bytes) -> QueryRequest:
    """POST /v1/query."""
    if content_type not in JSON_TYPES:
        check_media_type(content_type, JSON_TYPES, "application/json")
    request = decode(_query_decoder, body)
    if len(body) > STATEMENT_BYTES_MAX:
        _check_statement(request.sql)
    if request.params is not None:
        _check_params(request.params)
    return request


def text_request(content_type: bytes, body: bytes) -> QueryRequest:
    """POST /query."""
    check_media_type(content_type, TEXT_TYPES, "text/plain")
    try:
        sql = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the statement is not UTF-8: {error}") from None
    if len(body) > STATEMENT_BYTES_MAX:
        _check_statement(sql)
    return QueryRequest(sql)


def transaction_request(
    content_type: bytes, body: bytes
) -> tuple[TransactionRequest, list[Statement]]:
    """POST /v1/transaction."""
    check_media_type(content_type, JSON_TYPES, "application/json")
    request = decode(_transaction_decoder, body)
    if len(request.statements) > TRANSACTION_STATEMENTS_MAX:
        raise InvalidRequest(
            f"a transaction has at most {TRANSACTION_STATEMENTS_MAX} statements,"
            f" this one has {len(request.statements)}"
        )
    if not request.statements:
        raise InvalidRequest("a transaction has at least one statement, this one has none")
    return request, [_statement(index, each) for index, each in enumerate(request.statements)]


def _statement(index: int, given: Any) -> Statement:
    statement = Statement(given) if isinstance(given, str) else Statement(given.sql, given.params)
    if wants_stream(statement.sql):
        error = InvalidRequest(
            "a statement of a transaction cannot be streamed",
            hint="Send it alone to /v1/query, or leave out /*+ STREAM */.",
        )
        error.statement = index
        raise error
    _check_statement(statement.sql)
    if statement.parameters is not None:
        _check_params(statement.parameters)
    return statement


def wants_stream(sql: str) -> bool:
    """Does the statement begin with the hint?"""
    return "/*+" in sql and _STREAM.match(sql) is not None


def too_large() -> RequestTooLarge:
    return RequestTooLarge(
        f"the body is larger than {REQUEST_BODY_BYTES_MAX} bytes",
        hint="Send it in several requests.",
    )


def check_media_type(given: bytes, accepted: frozenset[bytes], instead: str) -> None:
    if given in accepted:
        return
    media_type = given.partition(b";")[0].strip().lower()
    if media_type not in accepted and not (
        accepted is JSON_TYPES and media_type.endswith(b"+json")
    ):
        raise UnsupportedMediaType(
            f"a body of type {media_type.decode('latin-1')!r} is not understood here",
            hint=f"Send it with the header Content-Type: {instead}.",
        )


def _check_statement(sql: str) -> None:
    if 4 * len(sql) <= STATEMENT_BYTES_MAX:  # no character is longer than that
        return
    if len(sql.encode("utf-8", "replace")) > STATEMENT_BYTES_MAX:
        raise RequestTooLarge(f"a statement has at most {STATEMENT_BYTES_MAX} bytes")


def _check_params(params: Given) -> None:
    if params is not None and len(params) > PARAMETERS_MAX:
        raise InvalidRequest(
            f"a statement has at most {PARAMETERS_MAX} parameters, {len(params)} were given"
        )
