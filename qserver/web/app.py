"""Finds the endpoint for the head of a request.

    head ─► host, CORS, request id ─┬─ statements: `statement_routes`
                                    ├─ any other route: `routes`, a quart-trio app behind a bridge
                                    ├─ OPTIONS: preflight
                                    └─ none: an error

An endpoint is a pure function of the head, so our own server finds it once per distinct head. The
application is the same under `qserver serve` and, by `asgi`, under any ASGI server that runs Trio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from qserver.errors import (
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    QserverError,
    UnsupportedMediaType,
)
from qserver.http1 import Request, Varying
from qserver.web import console
from qserver.web.bulk import bulk, bulk_out, copy_in, copy_out
from qserver.web.calls import TRACE_HEADERS, Endpoint, Facts, Preflight, Refusal
from qserver.web.compression import negotiate
from qserver.web.cors import Cors
from qserver.web.description.catalogue import BODILESS, find_route, routes_of
from qserver.web.hosts import VIA, Hosts, Place
from qserver.web.neon import upgrading
from qserver.web.route import Route
from qserver.web.routes.bridge import Bridge, RouteEndpoint
from qserver.web.routes.client_files import ClientFileEndpoint
from qserver.web.service.node import ClusterNode
from qserver.web.service.service import Service
from qserver.web.service.together import Together
from qserver.web.statements.cached_reads import ReadEndpoint
from qserver.web.statements.idempotency import no_key_for
from qserver.web.statements.open_transactions import KINDS, OpenTransactionEndpoint, not_inside
from qserver.web.statements.rows import RowEncoders
from qserver.web.statements.statement_routes import STATEMENT_ROUTES
from qserver.web.statuses import Pairs
from qserver.web.streaming import change_feed, notifications

_ONCE: Final = (
    b"neon-connection-string",
    b"authorization",
    b"content-type",
    b"x-database",
    b"x-transaction",
    b"x-min-version",
    b"idempotency-key",
    b"last-event-id",
)


class Application:
    varying = Varying(
        (b"idempotency-key", b"x-transaction", b"x-min-version", b"x-request-id"),
        rb"/v1/transaction/txn_(\w{0,100})(?:/commit)?",
    )

    def __init__(
        self,
        service: Service,
        running: Callable[[], AbstractAsyncContextManager[object]],
        prefix: str,
    ) -> None:
        settings = service.settings
        self.service = service
        if service.traces is not None:
            headers = (*self.varying.headers, *TRACE_HEADERS)
            self.varying = replace(self.varying, headers=headers)
        self.node: ClusterNode | None = None
        """Of several machines, if it is one."""
        self.running = running
        self._hosts = Hosts(settings.data_url, settings.alias_url, settings.control_url)
        self._cors = Cors(settings.cors_origins)
        self._compresses = settings.compression
        self._encoders = RowEncoders()
        self._bridge = Bridge(service, Together(service))
        self._numbers = count(1)
        self._prefix = prefix
        """The prefix of request ids, unique per process."""

    def drain(self) -> None:
        """Make /ready report that the service is stopping."""
        self.service.drain()

    def endpoint(self, request: Request) -> Endpoint:
        endpoint = self._found(request)
        traces = self.service.traces
        return endpoint if traces is None else traces.traced(endpoint)

    def _found(self, request: Request) -> Endpoint:
        headers = dict(request.headers)
        place = self._hosts.place_of(headers.get(b"host", b""))
        every_answer = self._cors.answer(headers.get(b"origin"))
        if place is Place.ALIAS:  # handle it as the data plane does, with a Via header
            every_answer = [*every_answer, VIA]
        compression = None
        if self._compresses:
            compression = negotiate(_values(request, b"accept-encoding"))
            every_answer = _with_vary(every_answer, b"Accept-Encoding")
        facts = Facts(
            self.service,
            self._next_id,
            request,
            headers,
            every_answer,
            compression,
        )
        repeated = _repeated(request, headers)
        if repeated is not None:
            return Refusal(facts, "repeated header", lambda: _given_twice(repeated))
        if request.method not in BODILESS and b"content-encoding" in headers:
            codings = b", ".join(_values(request, b"content-encoding"))
            if codings.strip().lower() not in (b"", b"identity"):
                return Refusal(facts, "compressed body", lambda: _compressed(codings))
        if b"upgrade" in headers and (request.method, request.path) == ("GET", upgrading.PATH):
            return upgrading.TunnelEndpoint(facts)
        hot = STATEMENT_ROUTES.get(request.path)
        if hot is not None and request.method == "POST" and place is not Place.CONTROL:
            return hot(facts, request.path, self._encoders)
        is_read = request.path == "/v1/query" and request.method in ("GET", "HEAD")
        if is_read and place is not Place.CONTROL:
            return ReadEndpoint(facts, f"GET {request.path}", self._encoders)
        return self._cold(facts, place)

    def _cold(self, facts: Facts, place: Place) -> Endpoint:
        """The endpoint for a request that is not for a hot route."""
        method, path = facts.request.method, facts.request.path
        if method == "OPTIONS":
            return self._preflight(facts, path)
        route = find_route(method, path)
        if route is None:
            return Refusal(facts, "unknown", lambda: _no_route(method, path))
        query = facts.request.query.decode("latin-1")
        target = quote(path)  # the path is decoded, and this goes into a header
        target = f"{target}?{query}" if query else target
        if self._hosts.refusal(place, route, target) is not None:

            def refused() -> QserverError:
                error = self._hosts.refusal(place, route, target)
                assert error is not None, "it is for the head to say"
                return error

            return Refusal(facts, route.path, refused)
        if (
            method not in BODILESS
            and b"idempotency-key" in facts.headers
            and not route.takes_idempotency_key
        ):
            return Refusal(facts, route.path, lambda: no_key_for(route))
        if route.path == copy_in.PATH:
            if route.method == "GET":
                return copy_out.CopyOutEndpoint(facts, route, self._encoders)
            return copy_in.CopyInEndpoint(facts, route)
        if b"x-transaction" in facts.headers and not route.anonymous:
            return Refusal(facts, route.path, lambda: not_inside(route))
        if (route.method, route.path) in KINDS:
            return OpenTransactionEndpoint(facts, route)
        if route.path == bulk.PATH:
            if route.method == "GET":
                return bulk_out.RowsOutEndpoint(facts, route, self._encoders)
            return bulk.BulkEndpoint(facts, route)
        if route.path == change_feed.PATH:
            return change_feed.ChangesEndpoint(facts, route)
        if route.path == notifications.PATH:
            return notifications.NotificationsEndpoint(facts, route)
        if route.path.startswith(console.PATH):
            return console.ConsoleEndpoint(facts, route)
        if route.is_file:
            return ClientFileEndpoint(facts, route)
        return RouteEndpoint(facts, route, self._bridge)

    def _preflight(self, facts: Facts, path: str) -> Endpoint:
        routes = routes_of(path)
        if not routes and path != "*":
            return Refusal(facts, "OPTIONS", lambda: _no_route("OPTIONS", path))
        cors = self._cors.preflight(facts.headers.get(b"origin"))
        return Preflight(facts, _methods(routes), cors)

    def _next_id(self) -> str:
        return f"{self._prefix}{next(self._numbers):x}"


def _repeated(request: Request, headers: dict[bytes, bytes]) -> bytes | None:
    """The name of a repeated header that may occur only once."""
    if len(headers) == len(request.headers):
        return None
    names = [name for name, _ in request.headers]
    return next((name for name in _ONCE if names.count(name) > 1), None)


def _values(request: Request, name: bytes) -> list[bytes]:
    """The values of a header that may occur several times."""
    return [value for each, value in request.headers if each == name]


def _with_vary(headers: Pairs, name: bytes) -> Pairs:
    """The headers, with one more request header that the answer depends on."""
    varies = [value for each, value in headers if each == b"vary"]
    others = [pair for pair in headers if pair[0] != b"vary"]
    return [*others, (b"vary", b", ".join([*varies, name]))]


def _compressed(codings: bytes) -> QserverError:
    """To decompress is to let a few bytes become many."""
    error = UnsupportedMediaType(
        f"a body with Content-Encoding {codings.decode('latin-1')!r} is not understood here",
        hint="Send it as it is, without Content-Encoding.",
    )
    error.is_compressed = True
    return error


def _given_twice(name: bytes) -> QserverError:
    """To pick one value would be a guess, and a proxy in front may guess differently."""
    return InvalidRequest(
        f"the header {name.decode()} is there more than once", hint="Send it once."
    )


def _methods(routes: Mapping[str, Route]) -> tuple[str, ...]:
    """The methods of a path with these routes."""
    return tuple(sorted({*routes, "OPTIONS", *(("HEAD",) if "GET" in routes else ())}))


def _no_route(method: str, path: str) -> QserverError:
    routes = routes_of(path)
    if routes:
        allowed = _methods(routes)
        return MethodNotAllowed(
            f"{path} does not take {method}",
            hint=f"It takes {', '.join(allowed)}.",
            allowed=allowed,
        )
    return NotFound(f"there is no route {path}", hint="GET / lists all routes.")
