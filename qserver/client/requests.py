"""Builds the client's requests as values; no I/O.

The server binds parameters; the client never splices them into the text. Python values that JSON
lacks become the strings of the API's table of types: Decimal and dates as text, bytes as base64,
and the three doubles that JSON cannot write as "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from qserver import __version__
from qserver.errors import InvalidRequest

Parameters = Sequence[Any] | Mapping[str, Any]

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"
MINUTE: Final = timedelta(minutes=1)
_USER_AGENT: Final = f"qserver-client/{__version__}"


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that the client has, and its tag."""

    tag: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, without the address and the key."""

    method: str
    path: str
    content: bytes | Iterable[bytes] | AsyncIterable[bytes] | None = None
    accept: str = JSON
    database: str | None = None
    """For a request that has no body to name it in."""
    idempotency_key: str | None = None
    transaction: str | None = None
    """The open transaction that it is a step of, for a request that has no body to name it in."""
    content_type: str | None = None
    """Of a content that is not JSON."""
    cacheable: bool = False
    """Whether the client may keep the answer, see `result_cache`."""
    answers_again: bool = False
    """Whether the server answers it again instead of doing it again."""
    versions_of: str | None = None
    """The database whose version the answer has, by name; "" is the key's own."""
    wants_token: bool = False
    """Whether the answer must not be older than what the client has seen, see `seen`."""
    min_version: int | None = None
    strong: Callable[[], Request] | None = None
    """The same request for the process that writes the database, of one for a replica."""

    @property
    def is_whole(self) -> bool:
        """Whether its body is there, and not made while it is sent."""
        return self.content is None or isinstance(self.content, bytes)

    @property
    def is_repeatable(self) -> bool:
        """Whether to send it twice has the effect of sending it once."""
        return self.method == "GET" or self.idempotency_key is not None or self.answers_again

    def arguments_with(self, kept: Kept | None = None) -> dict[str, Any]:
        """The request as httpx takes it; the server need not send an answer that is kept."""
        headers = {
            "Accept": self.accept,
            "X-Database": self.database,
            "Idempotency-Key": self.idempotency_key,
            "X-Transaction": self.transaction,
            "Content-Type": self.content_type,
            "If-None-Match": None if kept is None else kept.tag,
            "X-Min-Version": None if self.min_version is None else str(self.min_version),
        }
        return {
            "method": self.method,
            "url": self.path,
            "content": self.content,
            "headers": _present(headers),
        }


@dataclass(frozen=True, slots=True)
class Named:
    """The name of a statement of the key, in place of SQL: all that some keys can run."""

    name: str


Text = str | Named


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a transaction, with its parameters."""

    sql: Text
    params: Parameters | None = None


def checked_url(url: str) -> str:
    """The URL without its last slash; raises if it is not a server's URL."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unclosed brackets, or a port that is not a number
        is_good = False
    if not is_good:
        raise InvalidRequest(
            f"{url!r} is not the URL of a server", hint="Write it as http://127.0.0.1:8000."
        )
    return url.rstrip("/")


def is_local(url: str) -> bool:
    """Is the server on this machine? Then it takes longer to compress an answer than to send it."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def headers_with(key: str | None, url: str) -> dict[str, str]:
    """The headers of every request. The key is only here."""
    headers = {"User-Agent": _USER_AGENT, "Content-Type": JSON}
    if is_local(url):
        headers["Accept-Encoding"] = "identity"  # httpx asks for what it can decode
    if key is not None:
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise InvalidRequest(
                "the API key holds characters that no key has",
                hint="A key is svc_k_ and then letters, digits, - or _; check how it was copied.",
            )
        headers["Authorization"] = f"Bearer {key}"
    return headers


def query(
    sql: Text, params: Parameters | None, database: str | None, options: Mapping[str, Any]
) -> Request:
    fields, key = _key_apart(options)
    body = {**_text(sql), "format": "arrays", **_given(params, database), **fields}
    made = Request("POST", "/v1/query", encoded(body), idempotency_key=key)
    return _of_version(made, partial(query, sql, params, database), database, options)


def read(
    sql: Text, params: Parameters | None, database: str | None, options: Mapping[str, Any]
) -> Request:
    """A query by its URL; options that are None are omitted."""
    fields = {**_text(sql), "format": "arrays", "database": database, **options}
    made = listing("query", **fields, params=in_url(params), cacheable=True)
    return _of_version(made, partial(read, sql, params, database), database, options)


def stream(
    sql: Text, params: Parameters | None, database: str | None, options: Mapping[str, Any]
) -> Request:
    body = {**_text(sql), **_given(params, database), **options}
    is_live = options.get("live", False)
    made = Request("POST", "/v1/query", encoded(body), EVENT_STREAM, answers_again=is_live)
    return _of_version(made, partial(stream, sql, params, database), database, options)


def arrow(
    sql: Text, params: Parameters | None, database: str | None, options: Mapping[str, Any]
) -> Request:
    """A query whose answer is columns."""
    body = {**_text(sql), **_given(params, database), **options}
    made = Request("POST", "/v1/query", encoded(body), ARROW)
    return _of_version(made, partial(arrow, sql, params, database), database, options)


def transaction(
    statements: Sequence[Text | Statement], database: str | None, options: Mapping[str, Any]
) -> Request:
    fields, key = _key_apart(options)
    body = {
        "statements": [each if isinstance(each, str) else _statement(each) for each in statements],
        **_given(None, database),
        **fields,
    }
    made = Request("POST", "/v1/transaction", encoded(body), idempotency_key=key)
    return _of_version(made, partial(transaction, statements, database), database, options)


def _of_version(
    made: Request,
    again: Callable[[Mapping[str, Any]], Request],
    database: str | None,
    options: Mapping[str, Any],
) -> Request:
    """The request, whose answer has a version; `again` makes it with other options."""
    made = replace(made, versions_of=options.get("database") or database or "")
    if options.get("consistency") != "session":
        return made
    strong = {name: each for name, each in options.items() if name not in _OF_REPLICAS}
    wants_token = options.get("as_of") is None
    return replace(made, wants_token=wants_token, strong=partial(again, strong))


_OF_REPLICAS: Final = ("consistency", "max_age_ms")


def tables(database: str | None) -> Request:
    if database is not None and not (database.isascii() and database.isprintable()):
        raise InvalidRequest(f"{database!r} is not the name of a database")
    return Request("GET", "/tables", database=database)


def changes(
    since: int,
    tables: Sequence[str] | None,
    database: str | None,
    accept: str = EVENT_STREAM,
    **options: Any,
) -> Request:
    place = listing("changes", since=since, tables=joined(tables), database=database, **options)
    return replace(place, accept=accept, versions_of=database or "")


def commit(transaction_id: str) -> Request:
    """The server keeps the answer of a commit, and gives it again."""
    return replace(record("POST", "transaction", transaction_id, "commit"), answers_again=True)


def record(method: str, *path: str, **fields: Any) -> Request:
    """A control plane request; fields that are None are omitted."""
    given = _present(fields)
    return Request(method, _address(path), encoded(given) if given else None)


def listing(*path: str, cacheable: bool = False, **given: Any) -> Request:
    """A request with a query string; parameters that are None are omitted, `from_` is `from`."""
    query = urlencode({name.rstrip("_"): each for name, each in _present(given).items()})
    address = _address(path)
    return Request("GET", f"{address}?{query}" if query else address, cacheable=cacheable)


def comparison(
    since: int | str | None,
    until: int | str | None,
    tables: Sequence[str] | None,
    from_database: str | None,
    **more: str,
) -> dict[str, Any]:
    """What is asked of the difference of two versions, for `listing`."""
    names = {"from_database": from_database, "tables": joined(tables)}
    return {"from_": since, "to": until, **names, **more}


def _address(path: Sequence[str]) -> str:
    return "/v1/" + "/".join(quote(each, safe="") for each in path)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def joined(names: Sequence[str] | None) -> str | None:
    return None if names is None else ",".join(names)


def in_url(params: Parameters | None) -> str | None:
    return None if params is None else encoded(bindable(params)).decode()


def encoded(body: Any) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the request cannot be written as JSON: {error}") from error


def _key_apart(options: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The options that are fields of the body, and the Idempotency-Key, which is a header."""
    fields = dict(options)
    return fields, idempotency_key_of(fields.pop("idempotency_key", None))


def idempotency_key_of(key: str | None) -> str | None:
    """The key, which a header can hold."""
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise InvalidRequest(
            "an idempotency_key is a text of printable ASCII characters, and not empty"
        )
    return key


def _statement(given: Named | Statement) -> dict[str, Any]:
    if isinstance(given, Named):
        return _text(given)
    return {**_text(given.sql), **_given(given.params, None)}


def _text(sql: Text) -> dict[str, str]:
    return {"statement": sql.name} if isinstance(sql, Named) else {"sql": sql}


def _given(params: Parameters | None, database: str | None) -> dict[str, Any]:
    return _present({"params": bindable(params), "database": database})


def bindable(value: Any) -> Any:
    """The value as the encoder writes it whole.

    It knows no subclasses of texts and numbers, such as numpy's. It would write null for doubles
    that are not finite, and drop the seconds of an offset from UTC, which zones had until they went
    by the hour.
    """
    match value:
        case str():
            return str.__str__(value)  # of a subclass, the text
        case bool() | Enum():
            return value
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else _NOT_FINITE[str(float(value))]
        case timedelta():  # the encoder's "-P1D" is no interval of PostgreSQL's
            return f"P{value.days}DT{value.seconds}.{value.microseconds:06}S"
        case datetime() if (offset := value.utcoffset()) and offset % MINUTE:
            return value.astimezone(UTC)
        case Mapping():
            return {name: bindable(each) for name, each in value.items()}
        case list() | tuple():
            return [bindable(each) for each in value]
        case _:
            return value


_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
