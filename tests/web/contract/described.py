"""Holds answers to the OpenAPI description: their status, their headers, their body.

`Client.call` passes every answer of the contract's tests through here, so whatever the service
answers in them is described, and the description is true of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import httpx
import jsonschema_rs

from qserver.config import load
from qserver.web.description.catalogue import ROUTES, find_route
from qserver.web.description.openapi import describe

DOCUMENT: Final = describe(ROUTES, load({}))

OF_HTTP: Final = frozenset(
    {"connection", "content-length", "content-type", "date", "server", "transfer-encoding", "vary"}
)
"""Headers of any answer, which OpenAPI leaves out, and those of CORS and of the alias."""
_ELSEWHERE: Final = ("access-control-", "alt-svc", "via", "x-accel-buffering")


def check(method: str, path: str, answer: httpx.Response) -> None:
    """Raise if the answer of a route is not as it is described."""
    route = find_route(method, path.partition("?")[0])
    if route is None:
        return  # no such route, or another method: nothing describes that answer
    status = answer.status_code
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    described = operation["responses"].get(str(status))
    named = f"{route.method} {route.path}: {status}"
    assert described is not None, f"{named} is not described: {answer.text[:500]}"
    headers = {each.lower() for each in described.get("headers", {})}
    for name in answer.headers:
        known = name in headers or name in OF_HTTP or name.startswith(_ELSEWHERE)
        assert known, f"{named}: the header {name} is not described"
    if method == "HEAD" or not answer.content:
        return
    media = answer.headers["content-type"].partition(";")[0]
    assert media in described["content"], f"{named}: {media} is not described"
    if media == "application/json":
        _validator(route.path, route.method.lower(), status).validate(answer.json())


@cache
def _validator(path: str, method: str, status: int) -> Any:
    content = DOCUMENT["paths"][path][method]["responses"][str(status)]["content"]
    schema = content["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, validate_formats=True
    )
