"""One route: its method and path, who may call it, its request and its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

STREAMED: Final = (
    *("text/event-stream", "application/x-ndjson", "text/csv"),
    "application/vnd.apache.arrow.stream",
)
"""Media types of answers with rows, beside JSON."""


class Plane(Enum):
    """The hosts that serve a route."""

    DATA = "data"
    CONTROL = "control"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter of the query string."""

    name: str
    type: type
    meaning: str
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    required: bool = False
    several: bool = False
    """Whether it may be there more than once."""


@dataclass(frozen=True, slots=True)
class Route:
    """`scope` is the scope that a key needs; None: any key, or no key at all if `anonymous`."""

    method: str
    path: str
    purpose: str
    plane: Plane
    answer: type | None
    batch_answer: type | None = None
    """What a batch is answered with, if that is another shape."""
    status: int = 200
    request: type | None = None
    named_request: type | None = None
    """What a key that can only run its statements sends instead."""
    request_media: tuple[str, ...] = ()
    """Media types that its body may have besides."""
    scope: str | None = None
    anonymous: bool = False
    error: type | None = None
    """The shape of its errors, if that is not the same as everywhere."""
    errors: tuple[int, ...] = ()
    """Statuses that it may answer with, besides those of every route of its kind."""
    queries: tuple[Query, ...] = ()
    media: str = "application/json"
    """The media type of an answer that is not JSON."""
    media_besides: tuple[str, ...] = ()
    """Media types that its answer has for those who accept them."""
    body_optional: bool = False
    for_statement_keys: bool = False
    """Whether a key that can only run its statements may call it."""
    cost: int = 1
    """How many requests it counts for in the organization's rate limit."""
    takes_idempotency_key: bool = False
    streams: bool = False
    """Whether it also answers with events without an end, for those who accept them."""
    has_tag: bool = False
    """Whether its answer has an ETag, and may be 304."""
    headers: tuple[str, ...] = ()
    """Headers that only its answers have, and no answer that is a failure."""
    is_file: bool = False
    """Whether its answer is a file of `qserver/javascript/`."""

    @property
    def is_compressible(self) -> bool:
        """Answers of the control plane contain secrets, see `compression`."""
        return self.plane is not Plane.CONTROL

    @property
    def is_audited(self) -> bool:
        """Whether it may change what the control plane has, or a whole database."""
        return self.plane is not Plane.DATA and self.method not in ("GET", "HEAD", "OPTIONS")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names that its query string may have."""
        return tuple(each.name for each in self.queries)

    @property
    def name(self) -> str:
        """The name of the handler: `get_v1_keys_id` for GET /v1/keys/{id}."""
        words = re.findall(r"[a-z0-9]+", self.path)
        return "_".join([self.method.lower(), *words])
