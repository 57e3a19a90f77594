"""What Neon's driver sends: who asks for which database, and the statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from qserver.control.tiers import Limits
from qserver.errors import InvalidRequest, Unauthorized
from qserver.web.description.neon_shapes import NeonRequest, NeonStatement
from qserver.web.statements.requests import decode, decode_value_in_steps, decoder_of

CONNECTION_STRING: Final = b"neon-connection-string"
ISOLATION_LEVELS: Final = (
    b"ReadUncommitted",
    b"ReadCommitted",
    b"RepeatableRead",
    b"Serializable",
)
_SCHEMES: Final = ("postgres", "postgresql")
_HINT: Final = "It is postgresql://user:KEY@host/database, with an API key as the password."


class Asked(msgspec.Struct, frozen=True):
    queries: Sequence[NeonStatement]
    is_batch: bool


class ConnectionString(msgspec.Struct, frozen=True):
    password: str | None
    database: str | None


def connection_string(text: str) -> ConnectionString:
    """Read what a URL of PostgreSQL says. Its text holds a secret: no error repeats it."""
    scheme, mark, rest = text.partition("://")
    if not mark or scheme not in _SCHEMES:
        raise Unauthorized("the connection string is no URL of PostgreSQL", hint=_HINT)
    where, _, path = rest.partition("?")[0].partition("/")
    login, _, host = where.rpartition("@")
    if not host:
        raise Unauthorized("the connection string names no host", hint=_HINT)
    password = login.partition(":")[2]
    return ConnectionString(unquote(password) or None, unquote(path) or None)


def flag_of(headers: Mapping[bytes, bytes], name: bytes) -> bool:
    value = headers.get(name, b"false").lower()
    if value not in (b"true", b"false"):
        raise InvalidRequest(f"{name.decode()} is true or false")
    return value == b"true"


def check_isolation(headers: Mapping[bytes, bytes]) -> None:
    """All levels are serializable here; a word that is none is an error."""
    level = headers.get(b"neon-batch-isolation-level")
    if level is not None and level not in ISOLATION_LEVELS:
        raise InvalidRequest(
            "invalid isolation level",
            hint=f"One of {', '.join(each.decode() for each in ISOLATION_LEVELS)}.",
        )


_decoder: Final = decoder_of(NeonRequest)


def read_body(body: bytes) -> Asked:
    return _asked(decode(_decoder, body))


async def read_long_body(body: bytes, began: float, limits: Limits) -> Asked:
    """The same; other tasks run while it is decoded."""
    value, _ = await decode_value_in_steps(body, began, None, limits)
    try:
        return _asked(msgspec.convert(value, NeonRequest))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the request is not as it should be: {error}") from None


def _asked(body: NeonRequest) -> Asked:
    if body.queries is not None:
        if body.query is not None:
            raise InvalidRequest("a request has either query or queries")
        return Asked(body.queries, is_batch=True)
    if body.query is None:
        raise InvalidRequest(
            "the request has no query", hint='Send {"query": …, "params": […]} or {"queries": […]}.'
        )
    return Asked([NeonStatement(body.query, body.params, body.array_mode)], is_batch=False)


def text_of_parameter(value: Any) -> str | None:
    """Return a parameter as PostgreSQL's text; the driver sends texts, others may send JSON."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return str(value)
        case list():
            return f"{{{','.join(map(_text_of_element, value))}}}"
        case _:
            return msgspec.json.encode(value).decode()


def _text_of_element(value: Any) -> str:
    if value is None:
        return "NULL"
    text = text_of_parameter(value)
    assert text is not None
    if isinstance(value, list):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
