"""Decodes the body of a request, or raises an error that names the mistake."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from time import perf_counter
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import asdict

from qserver.control.tiers import Limits
from qserver.engine.work import timed_out
from qserver.engine.yielding import yield_to_others
from qserver.errors import (
    InvalidRequest,
    RequestTooLarge,
    UnsupportedMediaType,
)
from qserver.limits import (
    NUMERIC_INTEGER_DIGITS_MAX,
    PARAMETERS_MAX,
    STATEMENT_BYTES_MAX,
    TRANSACTION_STATEMENTS_MAX,
)
from qserver.query.sql_database import Statement
from qserver.sql import Given
from qserver.web.description.shapes import (
    NoFields,
    QueryRequest,
    StatementRequest,
    TransactionRequest,
)
from qserver.web.statements.long_bodies import decode_in_steps

Shape = TypeVar("Shape")

JSON_TYPES: Final = frozenset(
    # curl's -d sends the last of these by default, and the body is JSON all the same.
    {b"", b"application/json", b"text/json", b"application/x-www-form-urlencoded"}
)
NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for a text that is no JSON."""

TEXT_TYPES: Final = frozenset({b"", b"text/plain"})

BODY_BYTES_SHORT: Final = 64 * 1024
"""A longer body is decoded in steps."""

STEP_SECONDS: Final = 0.002
"""The approximate duration of such a step."""

_STREAM: Final = re.compile(r"\s*/\*\+\s*STREAM\s*\*/", re.IGNORECASE)
_LIVE: Final = re.compile(r"\s*/\*\+\s*LIVE\s*\*/", re.IGNORECASE)


def decode(decoder: msgspec.json.Decoder[Shape], body: bytes, what: str = "the body") -> Shape:
    """Decode a JSON body. Numbers with a decimal point stay exact."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the request is not as it should be: {error}") from None
    except NOT_JSON as error:
        raise InvalidRequest(f"{what} is not JSON: {why_not_json(error)}") from None


def why_not_json(error: Exception) -> str:
    """Why a text is no JSON, in words for the caller; the library names the byte."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def decoder_of(shape: type[Shape]) -> msgspec.json.Decoder[Shape]:
    return msgspec.json.Decoder(shape, float_hook=_exact)


def _exact(text: str) -> Decimal:
    """The exact number, unless it has too many digits."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # the exponent itself is out of range
        number = Decimal("Infinity")
    if not number.is_finite() or abs(number.adjusted()) > NUMERIC_INTEGER_DIGITS_MAX:
        raise ValueError(f"a number has at most {NUMERIC_INTEGER_DIGITS_MAX} digits")
    return number


class _LongQuery(QueryRequest, frozen=True, kw_only=True):
    params: msgspec.Raw = msgspec.Raw(b"null")  # type: ignore[assignment]


class _LongTransaction(TransactionRequest, frozen=True, kw_only=True):
    statements: msgspec.Raw  # type: ignore[assignment]


_query_decoder: Final = decoder_of(QueryRequest)
_transaction_decoder: Final = decoder_of(TransactionRequest)
_long_query_decoder: Final = decoder_of(_LongQuery)
_long_transaction_decoder: Final = decoder_of(_LongTransaction)
_nothing_decoder: Final = decoder_of(NoFields)
_value_decoder: Final[msgspec.json.Decoder[Any]] = decoder_of(Any)


def decode_value(raw: bytes, what: str = "the body") -> Any:
    """Decode a part of a body, of any shape."""
    return decode(_value_decoder, raw, what)


def check_no_fields(content_type: bytes, body: bytes) -> None:
    """Check the body of a request that has none, or an object without fields."""
    if body.strip():
        check_media_type(content_type, JSON_TYPES, "application/json")
        decode(_nothing_decoder, body)


async def decode_value_in_steps(
    raw: bytes, began: float, timeout_ms: int | None, limits: Limits
) -> tuple[Any, int]:
    """Decode a long part of a body; return it and the milliseconds that its request has left."""
    check_timeout(timeout_ms, limits)
    most_ms = timeout_ms or limits.statement_timeout_ms
    value = await _decoded(raw, began, most_ms)
    return value, _left(began, most_ms)


def check_timeout(timeout_ms: int | None, limits: Limits) -> None:
    """Raise if a request asks for more time than its organization may have."""
    most = limits.statement_timeout_max_ms
    if timeout_ms is not None and timeout_ms > most:
        raise InvalidRequest(
            f"timeout_ms is at most {most} here, not {timeout_ms}",
            hint="GET /v1/organization shows it as statement_timeout_max_ms.",
        )


def query_request(content_type: bytes, body: bytes) -> QueryRequest:
    """POST /v1/query."""
    if content_type not in JSON_TYPES:
        check_media_type(content_type, JSON_TYPES, "application/json")
    request = decode(_query_decoder, body)
    if len(body) > STATEMENT_BYTES_MAX:
        _check_statement(request.sql)
    if request.params is not None:
        check_params(request.params)
    return request


async def read_query_request(content_type: bytes, body: bytes, limits: Limits) -> QueryRequest:
    """The same; other tasks run while a long body is decoded. Its deadline includes that time."""
    if len(body) <= BODY_BYTES_SHORT:
        return query_request(content_type, body)
    began = perf_counter()
    check_media_type(content_type, JSON_TYPES, "application/json")
    request = decode(_long_query_decoder, body)
    raw = bytes(request.params)
    if not raw.startswith((b"[", b"{")):
        return query_request(content_type, body)
    _check_statement(request.sql)
    params, left = await decode_value_in_steps(raw, began, request.timeout_ms, limits)
    check_params(params)
    return QueryRequest(**{**asdict(request), "params": params, "timeout_ms": left})


def text_request(content_type: bytes, body: bytes) -> QueryRequest:
    """POST /query."""
    check_media_type(content_type, TEXT_TYPES, "text/plain")
    try:
        sql = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the statement is not UTF-8, from byte {error.start} on") from None
    if len(body) > STATEMENT_BYTES_MAX:
        _check_statement(sql)
    return QueryRequest(sql)


def transaction_request(
    content_type: bytes, body: bytes
) -> tuple[TransactionRequest, list[Statement]]:
    """POST /v1/transaction."""
    check_media_type(content_type, JSON_TYPES, "application/json")
    return _checked(decode(_transaction_decoder, body))


async def read_transaction_request(
    content_type: bytes, body: bytes, limits: Limits
) -> tuple[TransactionRequest, list[Statement]]:
    """The same; other tasks run while a long body is decoded. Its deadline includes that time."""
    if len(body) <= BODY_BYTES_SHORT:
        return transaction_request(content_type, body)
    began = perf_counter()
    check_media_type(content_type, JSON_TYPES, "application/json")
    request = decode(_long_transaction_decoder, body)
    raw = bytes(request.statements)
    if not raw.startswith(b"["):
        return transaction_request(content_type, body)
    statements, left = await decode_value_in_steps(raw, began, request.timeout_ms, limits)
    check_count(statements)
    fields = {**asdict(request), "timeout_ms": left}
    fields["statements"] = list(map(_statement_request, statements))
    return _checked(TransactionRequest(**fields))


def _statement_request(given: Any) -> str | StatementRequest:
    """Check a decoded statement, with the same error messages as for a short body."""
    params = None
    if isinstance(given, dict) and isinstance(given.get("params"), list | dict):
        params = given.pop("params")
    try:
        made: str | StatementRequest = msgspec.convert(given, str | StatementRequest)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the request is not as it should be: {error}") from None
    return made if isinstance(made, str) or params is None else StatementRequest(made.sql, params)


async def _decoded(raw: bytes, began: float, timeout_ms: int) -> Any:
    """Decode a long text, under the deadline of its request."""
    steps = decode_in_steps(raw, lambda part: decode(_value_decoder, part))
    while True:
        pause = perf_counter() + STEP_SECONDS
        try:
            while perf_counter() < pause:
                next(steps)
        except StopIteration as end:
            return end.value
        _left(began, timeout_ms)
        await yield_to_others()


def _left(began: float, timeout_ms: int) -> int:
    """The milliseconds left until the request's deadline."""
    left = timeout_ms - (perf_counter() - began) * 1000
    if left <= 0:
        raise timed_out()
    return max(1, int(left))


def _checked(request: TransactionRequest) -> tuple[TransactionRequest, list[Statement]]:
    check_count(request.statements)
    return request, [statement_of(index, each) for index, each in enumerate(request.statements)]


def check_count(statements: list[Any]) -> None:
    if len(statements) > TRANSACTION_STATEMENTS_MAX:
        raise InvalidRequest(
            f"a transaction has at most {TRANSACTION_STATEMENTS_MAX} statements,"
            f" this one has {len(statements)}"
        )
    if not statements:
        raise InvalidRequest("a transaction has at least one statement, this one has none")


def statement_of(index: int, given: Any) -> Statement:
    """Check a statement of a transaction."""
    statement = Statement(given) if isinstance(given, str) else Statement(given.sql, given.params)
    hint = "STREAM" if wants_stream(statement.sql) else "LIVE" if is_live(statement.sql) else None
    if hint is not None:
        error = InvalidRequest(
            f"a statement of a transaction cannot be {'streamed' if hint == 'STREAM' else 'live'}",
            hint=f"Send it alone to /v1/query, or leave out /*+ {hint} */.",
        )
        error.statement = index
        raise error
    _check_statement(statement.sql)
    if statement.parameters is not None:
        check_params(statement.parameters)
    return statement


def wants_stream(sql: str) -> bool:
    """Does the statement begin with the STREAM hint?"""
    return "/*+" in sql and _STREAM.match(sql) is not None


def is_live(sql: str) -> bool:
    """Does the statement begin with the LIVE hint?"""
    return "/*+" in sql and _LIVE.match(sql) is not None


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
    if 4 * len(sql) <= STATEMENT_BYTES_MAX:  # a character has at most 4 bytes
        return
    if len(sql.encode("utf-8", "replace")) > STATEMENT_BYTES_MAX:
        raise RequestTooLarge(f"a statement has at most {STATEMENT_BYTES_MAX} bytes")


def check_params(params: Given) -> None:
    if params is not None and len(params) > PARAMETERS_MAX:
        raise InvalidRequest(
            f"a statement has at most {PARAMETERS_MAX} parameters, {len(params)} were given"
        )
