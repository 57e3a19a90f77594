"""An admitted request: its head, its route, and the grant of its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from qserver.control.records import Grant
from qserver.errors import Forbidden, InvalidRequest
from qserver.http1 import Client, Request
from qserver.web.catalogue import Route
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
        """The parameters of the query string; raises if the route does not know a name."""
        text = self.request.query.decode("latin-1")
        given = dict(parse_qsl(text, keep_blank_values=True))
        known = {each.name for each in self.route.queries}
        unknown = sorted(set(given) - known)
        if unknown:
            raise InvalidRequest(
                f"unknown parameter {unknown[0]!r}",
                hint=f"Known are: {', '.join(sorted(known)) or 'none'}.",
            )
        return given

    def number(self, name: str) -> int | None:
        """An integer parameter of the query string."""
        text = self.queries().get(name)
        if text is None:
            return None
        if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 18:
            raise InvalidRequest(f"{name} is a whole number, not {text!r}")
        return int(text)
