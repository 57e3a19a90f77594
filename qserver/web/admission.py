"""An admitted request: its head, its route, and the grant of its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qserver.control.records import Grant
from qserver.engine.freshness import Freshness
from qserver.errors import Forbidden
from qserver.http1 import Client, Request
from qserver.web.query_strings import BIGINT_MAX, read_query_string, whole_number
from qserver.web.route import Route
from qserver.web.statements.freshness import MIN_VERSION, version_wanted
from qserver.web.statuses import Pairs


@dataclass(slots=True)
class Admission:
    request: Request
    headers: Mapping[bytes, bytes]
    client: Client
    route: Route
    grant_or_none: Grant | None
    headers_out: Pairs
    """Headers to add to the answer."""
    error: Exception | None = None
    """The exception that its handler raised."""
    request_id: str | None = None

    @property
    def grant(self) -> Grant:
        assert self.grant_or_none is not None, "anonymous routes have no use for a grant"
        return self.grant_or_none

    def need(self, scope: str) -> None:
        if not self.grant.has(scope):
            raise Forbidden(
                f"{self.route.path} needs a key with the scope {scope}",
                detail=f"This one has {', '.join(sorted(self.grant.scopes)) or 'none'}.",
            )

    def queries(self) -> dict[str, str]:
        """The parameters of the query string, which are those of the route."""
        return read_query_string(self.request.query, self.route.parameters)

    @property
    def freshness(self) -> Freshness:
        """How fresh what it reads must be."""
        return version_wanted(self.headers.get(MIN_VERSION))

    def number(self, name: str, least: int = -BIGINT_MAX) -> int | None:
        """An integer parameter of the query string, from `least` on."""
        text = self.queries().get(name)
        return None if text is None else whole_number(name, text, least)
