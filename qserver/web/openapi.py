"""Generates the OpenAPI 3.1 description from the catalogue of routes and the declared shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from qserver import __version__
from qserver.config import Settings
from qserver.limits import IDEMPOTENCY_KEY_BYTES_MAX
from qserver.web import shapes
from qserver.web.catalogue import BODILESS, Plane, Query, Route
from qserver.web.compression import CODINGS

REFERENCE: Final = "#/components/schemas/{name}"

STATUS_MEANINGS: Final = {
    307: "This host does not serve it: call the one that Location names",
    400: "The request, its JSON or its SQL is malformed",
    401: "No key, or one that is not good",
    403: "The key may not do this",
    404: "No such thing, or none that the key may see",
    405: "The route does not take this method",
    409: "The name is taken, or the work is under way",
    410: "The version is older than the history that is kept",
    413: "The body is too large",
    415: "The body is of a kind that the route does not take",
    422: "The Idempotency-Key was used with another request",
    429: "Too many requests in a minute: see Retry-After",
    500: "A bug of the server",
    503: "Not now: see Retry-After",
}


_OF_STATEMENTS: Final = (
    shapes.QueryAnswer,
    shapes.TransactionAnswer,
    shapes.BulkAnswer,
    shapes.BULK,
    shapes.ChangesAnswer,
)


def describe(routes: Sequence[Route], settings: Settings) -> dict[str, Any]:
    declared = {
        shape for route in routes for shape in (route.request, route.named_request, route.answer)
    }
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
            "schemas": components,
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
    if route.path in (
        "/v1/query",
        "/query",
        "/v1/transaction",
        "/v1/changes",
        "/tables",
    ) or shapes.BULK in (route.request, route.answer):
        parameters.append(_DATABASE_HEADER)
    if route.streams:
        parameters.append(_LAST_EVENT_ID)
    if route.takes_idempotency_key:
        parameters.append(_IDEMPOTENCY_KEY)
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
        content = {"application/json": {"schema": schema}}
    for media in route.request_media:
        content[media] = {"schema": {}}
    return {"required": not route.body_optional, "content": content}


def _responses(route: Route) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": route.purpose}
    if route.answer is not None:
        answer["content"] = {route.media: {"schema": _answer_schema(route)}}
    if route.is_compressible and route.answer is not None:
        answer["headers"] = {"Content-Encoding": _CONTENT_ENCODING}
    if route.takes_idempotency_key:
        answer["headers"]["Idempotency-Replayed"] = _REPLAYED
    for media in route.media_besides:
        answer["content"][media] = {"schema": {"type": "string"}}
    if route.streams:
        answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    responses = {str(route.status): answer}
    statuses = {*route.errors, 500, *(() if route.anonymous else (401, 429))}
    if route.queries:
        statuses |= {400}
    if route.takes_idempotency_key:
        statuses |= {409, 422}
    if route.plane is Plane.CONTROL:
        statuses |= {307, 404}
    if route.method not in BODILESS:
        statuses |= {415}
    if route.answer in _OF_STATEMENTS:
        statuses |= {503}
    for status in sorted(statuses):
        schema = _schema(shapes.ErrorAnswer)
        if status == 503 and route.answer in (shapes.HealthAnswer, shapes.ReadyAnswer):
            schema = _schema(route.answer)
        responses[str(status)] = {
            "description": STATUS_MEANINGS[status],
            "content": {"application/json": {"schema": schema}},
        }
    return responses


def _answer_schema(route: Route) -> dict[str, Any]:
    """A SQL error is also a 200."""
    if route.answer in _OF_STATEMENTS:
        return {"oneOf": [_schema(route.answer), _schema(shapes.ErrorAnswer)]}
    return _schema(route.answer)


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
    kind = "integer" if query.type is int else "string"
    return {
        "name": query.name,
        "in": "query",
        "required": False,
        "description": query.meaning,
        "schema": {"type": kind},
    }


def _is_struct(shape: type) -> bool:
    return issubclass(shape, msgspec.Struct)


_CONTENT_ENCODING: Final = {
    "description": "The coding of a long answer, one that the request's Accept-Encoding allows.",
    "schema": {"enum": [coding.name.decode() for coding in CODINGS]},
}

_DATABASE_HEADER: Final = {
    "name": "X-Database",
    "in": "header",
    "required": False,
    "description": "Which database is meant, where the body does not say.",
    "schema": {"type": "string"},
}

_LAST_EVENT_ID: Final = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "The id of the last event that has arrived; wins over since.",
    "schema": {"type": "string"},
}

_IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes a change that is sent again be applied once, and answered the same.",
    "schema": {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES_MAX},
}

_REPLAYED: Final = {
    "description": "The answer is that of an earlier request with the same Idempotency-Key.",
    "schema": {"enum": ["true"]},
}
