"""A request that was let in: the exchange, its route, and what its key may do."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from qserver.control.records import Grant
from qserver.errors import Forbidden, InvalidRequest
from qserver.web.catalogue import Route
from qserver.web.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Admission:
    exchange: Exchange
    route: Route
    grant_or_none: Grant | None

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
        """The query string, all of whose names must be those that the route knows."""
        text = self.exchange.scope.get("query_string", b"").decode("latin-1")
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
        """A parameter of the query string that is a whole number."""
        text = self.queries().get(name)
        if text is None:
            return None
        if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 18:
            raise InvalidRequest(f"{name} is a whole number, not {text!r}")
        return int(text)
