"""Generates the OpenAPI 3.1 description from the catalogue of routes and the declared shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from qserver import __version__
from qserver.config import Settings
from qserver.limits import IDEMPOTENCY_KEY_BYTES_MAX
from qserver.web.compression import CODINGS
from qserver.web.description import shapes, version_shapes
from qserver.web.description.catalogue import BODILESS
from qserver.web.description.examples import EXAMPLES
from qserver.web.description.schemas import without_defaults, written_out
from qserver.web.route import Plane, Query, Route

REFERENCE: Final = "#/components/schemas/{name}"
HEADER_REFERENCE: Final = "#/components/headers/{name}"

STATUS_MEANINGS: Final = {
    200: "An error of SQL",
    304: "The client has the answer: a tag of If-None-Match holds",
    307: "This host does not serve it: call the one that Location names",
    400: "The request, its JSON or its SQL is malformed",
    401: "No key, or one that is not good",
    403: "The key may not do this",
    404: "No such thing, or none that the key may see",
    405: "The route does not take this method, or the statement needs another one",
    406: "The server cannot write the format that the client asks for",
    408: "The body arrived too slowly",
    409: "The name is taken, or the work is under way",
    410: "The version is older than the history that is kept",
    413: "The body is too large",
    415: "The body is of a kind that the route does not take",
    422: "The Idempotency-Key was used with another request",
    429: "Too many requests in a minute, or too many of something open: see Retry-After",
    500: "A bug of the server",
    503: "Not now: see Retry-After",
}


_OF_STATEMENTS: Final = (
    shapes.QueryAnswer,
    shapes.TransactionAnswer,
    shapes.BulkAnswer,
    shapes.BULK,
    shapes.ChangesAnswer,
    shapes.CommitAnswer,
    version_shapes.DiffAnswer,
    version_shapes.RestoreAnswer,
    version_shapes.VersionsAnswer,
)
"""Answers that may be an error of SQL instead, which is a 200, too."""


def describe(routes: Sequence[Route], settings: Settings) -> dict[str, Any]:
    declared = {shape for route in routes for shape in _shapes(route)}
    structs = [each for each in declared if isinstance(each, type) and _is_struct(each)]
    _, components = msgspec.json.schema_components(
        [*sorted(structs, key=lambda each: each.__name__), shapes.ErrorAnswer],
        ref_template=REFERENCE,
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, settings)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "qserver",
            "version": __version__,
            "summary": "A SQL database that you talk to over HTTP.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": settings.data_url or "/"}],
        "paths": paths,
        "components": {
            "schemas": without_defaults(written_out(components)),
            "headers": HEADERS,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key (svc_k_…) or a session token (svc_s_…).",
                }
            },
        },
        "tags": [
            {"name": "data", "description": "Queries and transactions"},
            {"name": "control", "description": "Sessions, databases, API keys"},
            {"name": "both", "description": "The service itself"},
        ],
    }


def _operation(route: Route, settings: Settings) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.purpose,
        "tags": [route.plane.value],
        "responses": _responses(route),
        "security": [] if route.anonymous else [{"bearer": []}],
    }
    parameters = [_in_path(name) for name in re.findall(r"{(\w+)}", route.path)]
    parameters += [_in_query(each) for each in route.queries]
    parameters += [_in_header(name) for name in _headers_taken(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None:
        operation["requestBody"] = _body(route)
    if route.plane is Plane.CONTROL and settings.control_url:
        operation["servers"] = [{"url": settings.control_url}]
    return operation


def _body(route: Route) -> dict[str, Any]:
    if route.request is str:
        content = {"text/plain": {"schema": {"type": "string"}}}
    else:
        schema = _schema(route.request)
        if route.named_request is not None:
            schema = {"oneOf": [schema, _schema(route.named_request)]}
        content = {"application/json": {"schema": schema, **_example(route, 0)}}
    for media in route.request_media:
        content[media] = {"schema": {"type": "string"}}
    return {"required": not route.body_optional, "content": content}


def _example(route: Route, which: int) -> dict[str, Any]:
    """The request of its example, or the answer, if it has one."""
    found = EXAMPLES.get((route.method, route.path))
    return {} if found is None else {"example": found[which]}


def _headers_taken(route: Route) -> Iterator[str]:
    if route.path in (*_OF_A_DATABASE, "/v1/notifications"):
        yield "X-Database"
    if route.path == "/v1/copy" or (route.path in _INSIDE and route.method == "POST"):
        yield "X-Transaction"
    if route.path in _OF_VERSIONS:
        yield "X-Min-Version"
    if route.has_tag:
        yield "If-None-Match"
    if route.streams:
        yield "Last-Event-ID"
    if route.takes_idempotency_key:
        yield "Idempotency-Key"
    if route.path == "/sql":
        yield from _OF_NEON


def _responses(route: Route) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": route.purpose}
    if route.answer is not None:
        answer["content"] = {route.media: {"schema": _answer_schema(route), **_example(route, 1)}}
    for media in route.media_besides:
        answer["content"][media] = {"schema": _streamed(route, media)}
    if route.streams:
        answer["content"]["text/event-stream"] = {"schema": _streamed(route, "text/event-stream")}
    responses = {str(route.status): answer}
    if route.has_tag:
        responses["304"] = {"description": STATUS_MEANINGS[304]}
    refused = {200} if route.answer is shapes.OpenTransactionAnswer else set()
    for status in sorted(_statuses(route) | refused):
        schema = _schema(shapes.ErrorAnswer)
        if route.error is not None:  # or the server has refused it before
            schema = {"oneOf": [_schema(route.error), schema]}
        if status == 503 and route.answer in (shapes.HealthAnswer, shapes.ReadyAnswer):
            schema = _schema(route.answer)
        responses[str(status)] = {
            "description": STATUS_MEANINGS[status],
            "content": {"application/json": {"schema": schema}},
        }
    for text, response in responses.items():
        names = _headers_given(route, int(text))
        response["headers"] = {name: {"$ref": HEADER_REFERENCE.format(name=name)} for name in names}
    return responses


def _statuses(route: Route) -> set[int]:
    """The statuses of its errors."""
    statuses = {*route.errors, 500, *(() if route.anonymous else (401, 429, 503))}
    if "application/vnd.apache.arrow.stream" in route.media_besides:
        statuses |= {406}
    if route.queries:
        statuses |= {400}
    if route.takes_idempotency_key:
        statuses |= {409, 422}
    if route.plane is Plane.CONTROL:
        statuses |= {307, 404}
    if route.method not in BODILESS:
        statuses |= {408, 415}
    return statuses


def _headers_given(route: Route, status: int) -> Iterator[str]:
    """The headers that an answer of this status has, or may have."""
    yield "X-Request-Id"
    if not route.anonymous and status != 307:  # 401, too: a key may end while its request runs
        yield from ("RateLimit", "RateLimit-Policy")
    if route.is_compressible and route.answer is not None and status != 304:
        yield "Content-Encoding"
    if status in (route.status, 304):
        yield from route.headers
    if status in (route.status, 304) and route.has_tag:
        yield from ("ETag", "Cache-Control")
    elif status == route.status and (route.streams or route.media_besides):
        yield "Cache-Control"
    if status == route.status and route.takes_idempotency_key:
        yield "Idempotency-Replayed"
    yield from _OF_STATUS.get(status, ())


def _streamed(route: Route, media: str) -> dict[str, Any]:
    if media != "text/event-stream":
        return {"type": "string", **({"format": "binary"} if "arrow" in media else {})}
    events = _FEED_EVENTS if route.streams else _ROW_EVENTS
    return {"type": "string", "description": events}


def _answer_schema(route: Route) -> dict[str, Any]:
    """A SQL error is also a 200."""
    if route.answer in _OF_STATEMENTS:
        return {"oneOf": [_schema(route.answer), _schema(shapes.ErrorAnswer)]}
    if route.batch_answer is not None:
        return {"oneOf": [_schema(route.answer), _schema(route.batch_answer)]}
    return _schema(route.answer)


def _shapes(route: Route) -> tuple[type | None, ...]:
    asked = route.request, route.named_request
    return *asked, route.answer, route.batch_answer, route.error


def _schema(shape: Any) -> dict[str, Any]:
    if shape is str:
        return {"type": "string"}
    if shape is dict:
        return {"type": "object"}
    if shape is shapes.BULK:
        return {"type": "array", "items": {"type": "object"}}
    return {"$ref": REFERENCE.format(name=shape.__name__)}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer" if query.type is int else "string"}
    if query.choices:
        schema["enum"] = list(query.choices)
    if query.least is not None:
        schema["minimum"] = query.least
    if query.most is not None:
        schema["maximum"] = query.most
    if query.several:
        schema = {"type": "array", "items": schema}
    return {
        "name": query.name,
        "in": "query",
        "required": query.required,
        "description": query.meaning,
        "schema": schema,
    }


def _in_header(name: str) -> dict[str, Any]:
    meaning, schema = HEADERS_TAKEN[name]
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": meaning,
        "schema": {"type": "string", **schema},
    }


def _is_struct(shape: type) -> bool:
    return issubclass(shape, msgspec.Struct)


_OF_A_DATABASE: Final = (
    *("/v1/query", "/query", "/sql", "/v1/transaction", "/v1/transaction/open"),
    *("/v1/changes", "/tables", "/v1/tables/{name}/rows", "/v1/copy"),
)
_OF_VERSIONS: Final = (
    *_OF_A_DATABASE,
    *(f"/v1/databases/{{database}}/{last}" for last in ("versions", "diff", "restore")),
)
_INSIDE: Final = ("/v1/query", "/query", "/sql", "/v1/transaction")

_FLAG: Final = {"enum": ["true", "false"]}
_OF_NEON: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "Neon-Connection-String": (
        "postgresql://user:KEY@host/database: key and database, where no other header says.",
        {"pattern": "^(postgres(ql)?://|$)"},
    ),
    "Neon-Raw-Text-Output": ("Every value as PostgreSQL's text, not as a JSON value.", _FLAG),
    "Neon-Array-Mode": ("Rows as arrays, not as objects.", _FLAG),
    "Neon-Batch-Isolation-Level": (
        "All are serializable.",
        {"enum": ["ReadUncommitted", "ReadCommitted", "RepeatableRead", "Serializable"]},
    ),
    "Neon-Batch-Read-Only": ("Whether statements that write are refused.", _FLAG),
    "Neon-Batch-Deferrable": ("Has no effect.", _FLAG),
    "Neon-Pool-Opt-In": ("Has no effect.", {}),
}

HEADERS_TAKEN: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    **_OF_NEON,
    "X-Database": ("Which database is meant, where the body or the URL does not say.", {}),
    "X-Transaction": ("The open transaction that it is part of, if the body does not say.", {}),
    "X-Min-Version": (
        "Wait until the database has this version; if the body says one too, the larger counts.",
        {"pattern": "^[0-9]+$"},
    ),
    "If-None-Match": ("Tags of answers that the client has; if one holds, it is a 304.", {}),
    "Last-Event-ID": ("The id of the last event that has arrived; wins over since.", {}),
    "Idempotency-Key": (
        "Makes a change that is sent again be applied once, and answered the same.",
        {"minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES_MAX},
    ),
}


def _header(meaning: str, **schema: Any) -> dict[str, Any]:
    return {"description": meaning, "schema": {"type": "string", **schema}}


HEADERS: Final = {
    "X-Request-Id": _header("The id of the request, also in the server's log."),
    "RateLimit": _header("How many requests are left, and when the next is free."),
    "RateLimit-Policy": _header("How many requests there may be in which time."),
    "Retry-After": _header("Seconds until it is worth another try.", pattern="^[0-9]+$"),
    "WWW-Authenticate": _header("How to authenticate.", enum=["Bearer"]),
    "Allow": _header("The methods that it takes."),
    "Location": _header("Where the route is served."),
    "Accept-Encoding": _header("The codings that a body may have.", enum=["identity"]),
    "ETag": _header("The tag of the answer, for If-None-Match; not if it depends on the time."),
    "Cache-Control": _header("Whether the answer may be kept."),
    "X-Qserver-Version": _header("The release of the server, and of its files."),
    "Content-Security-Policy": _header("What the page may load, and from where."),
    "X-Content-Type-Options": _header("The file is of the kind that it says.", enum=["nosniff"]),
    "X-Frame-Options": _header("No page may show it in a frame.", enum=["DENY"]),
    "Referrer-Policy": _header("What other sites are told of the page.", enum=["no-referrer"]),
    "Cross-Origin-Opener-Policy": _header("Who shares its window.", enum=["same-origin"]),
    "Cross-Origin-Resource-Policy": _header("Whose pages may load it.", enum=["same-origin"]),
    "Permissions-Policy": _header("Which of a device's parts the page may use."),
    "Content-Encoding": _header(
        "The coding of a long answer, one that the request's Accept-Encoding allows.",
        enum=[coding.name.decode() for coding in CODINGS],
    ),
    "Idempotency-Replayed": _header(
        "The answer is that of an earlier request with the same Idempotency-Key.", enum=["true"]
    ),
}

_OF_STATUS: Final = {
    307: ("Location",),
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    409: ("Retry-After",),
    415: ("Accept-Encoding",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}

_ROW_EVENTS: Final = (
    "Events: `columns`, a `row` for each row, then one `done` or `error`. Of a live query:"
    " `columns`, `row`s, `ready`, and then for ever `delete`s and `insert`s, closed by `version`;"
    " `error` ends it."
)
_FEED_EVENTS: Final = (
    "Events without an end: a `change` for each change, and `version`, whose id is the version,"
    " after the last change of one; `error` ends them."
)
