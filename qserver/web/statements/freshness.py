"""Parses how fresh a read must be: `min_version`, `consistency` and `max_age_ms` of a request.

The header X-Min-Version says the same as the field, for bodies that have no fields, and for clients
that send the same body again. If both are there, both hold.
"""

from __future__ import annotations

from typing import Final

from qserver.engine.freshness import STRONG, Freshness
from qserver.errors import InvalidRequest
from qserver.web.description.shapes import QueryRequest, TransactionRequest
from qserver.web.query_strings import whole_number

MIN_VERSION: Final = b"x-min-version"


def freshness_of(
    request: QueryRequest | TransactionRequest, header: bytes | None, is_inside: bool
) -> Freshness:
    """How fresh the request must be; `is_inside`: it is a step of an open transaction."""
    replica, max_age_ms = request.consistency != "strong", request.max_age_ms
    if max_age_ms is not None and not replica:
        raise InvalidRequest(
            "max_age_ms is for what a replica has", hint='Send "consistency": "session" with it.'
        )
    if replica and is_inside:
        raise InvalidRequest("an open transaction reads its own version, not that of a replica")
    wanted = version_wanted(header, request.min_version)
    return Freshness(wanted.min_version, replica, max_age_ms) if replica else wanted


def version_wanted(header: bytes | None, given: int | None = None) -> Freshness:
    """The freshness of a request that can only name a version, in its header or a field."""
    least = given or 0
    if header is not None:
        least = max(least, whole_number("X-Min-Version", header.decode("latin-1"), 0))
    return Freshness(least) if least else STRONG
