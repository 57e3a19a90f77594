"""The JSON body of a request to a route, decoded."""

from __future__ import annotations

from typing import TypeVar

from quart import request

from qserver.errors import InvalidRequest
from qserver.web.admission import Admission
from qserver.web.statements.requests import (
    JSON_TYPES,
    check_media_type,
    check_no_fields,
    decode,
    decoder_of,
)

Shape = TypeVar("Shape")


async def body_of(admission: Admission, shape: type[Shape]) -> Shape:
    data = await request.get_data(as_text=False)
    assert isinstance(data, bytes)
    if not data and admission.route.body_optional:
        return shape()
    content_type = admission.headers.get(b"content-type", b"")
    check_media_type(content_type, JSON_TYPES, "application/json")
    if not data:
        raise InvalidRequest(f"{admission.route.path} needs a JSON body")
    return decode(decoder_of(shape), data)


async def need_no_fields(admission: Admission) -> None:
    """Raise if the request has a body with fields."""
    data = await request.get_data(as_text=False)
    assert isinstance(data, bytes)
    check_no_fields(admission.headers.get(b"content-type", b""), data)
