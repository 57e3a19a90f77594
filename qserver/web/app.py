"""The one ASGI application: hosts, CORS, request ids, and which part answers.

    request ─► id ─► host ─┬─ alias: one hop more, and Via on the answer
                           ├─ OPTIONS: preflight
                           ├─ hot route: `dataplane`, plain ASGI
                           └─ any other: route, key, rate limit ─► `routes`, a quart-trio app

It is the same under `qserver serve` and under any other ASGI server that runs Trio.
"""

from __future__ import annotations

from itertools import count
from time import perf_counter
from typing import Final
from urllib.parse import quote

from qserver.errors import InvalidRequest, MethodNotAllowed, NotFound, QserverError
from qserver.web.admission import Admission
from qserver.web.catalogue import find_route, routes_of
from qserver.web.cors import Cors
from qserver.web.dataplane import DataPlane, Handler
from qserver.web.exchange import JSON, ClientGone, Exchange, Message, Receive, Scope, Send
from qserver.web.hosts import VIA, Hosts, Place
from qserver.web.http1 import Lane
from qserver.web.lanes import find_lane
from qserver.web.lifespan import Lifespan
from qserver.web.routes import make_routes
from qserver.web.service import UNLIMITED, Service, State

REQUEST_ID_LENGTH_MAX: Final = 128
_ONCE: Final = (b"authorization", b"content-type", b"x-database", b"idempotency-key")
_DIRECT: Final = (Place.ANY, Place.DATA)


class Application:
    def __init__(self, service: Service, lifespan: Lifespan, prefix: str) -> None:
        settings = service.settings
        self._service = service
        self._lifespan = lifespan
        self._hosts = Hosts(settings.data_url, settings.alias_url, settings.control_url)
        self._cors = Cors(settings.cors_origins)
        plane = DataPlane(service)
        self._hot = plane.handlers
        self._encoders = plane.encoders
        self._routes = make_routes(service)
        self._numbers = count(1)
        self._prefix = prefix
        """Of request ids: no two processes have the same."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    def lane(self, scope: Scope) -> Lane | None:
        """The short way for requests with this head, see `lanes`."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        place = self._hosts.place_of(headers.get(b"host", b""))
        if scope["method"] != "POST" or place not in _DIRECT or _repeated(scope, headers):
            return None
        headers_out = [JSON, *UNLIMITED, *self._cors.answer(headers.get(b"origin"))]
        return find_lane(
            scope["path"], headers, headers_out, self._service, self._encoders, self._next_id
        )

    def drain(self) -> None:
        """From now on /ready says that the service is about to stop."""
        self._service.state = State.DRAINING

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        exchange = Exchange(scope, receive, send, headers, self._request_id(headers))
        exchange.headers_out += self._cors.answer(headers.get(b"origin"))
        place = self._hosts.place_of(headers.get(b"host", b""))
        if place is Place.ALIAS:
            self._hop(exchange)
        arrived = perf_counter()
        name = scope["path"]
        handler = self._hot.get(name)
        repeated = _repeated(scope, headers)
        if repeated is not None:
            name, handler = "repeated header", _refuse(repeated)
        elif handler is None or scope["method"] != "POST" or place is Place.CONTROL:
            name, handler = self._cold(exchange, place)
        try:
            await handler(exchange)
        except QserverError as error:
            await self._fail(exchange, error)
        except ClientGone:
            pass
        except Exception as error:
            if exchange.status == 0 or not _says_gone(error):
                bug = self._service.internal_error(error, exchange.request_id)
                await self._fail(exchange, bug)
        self._service.metrics.count(name, exchange.status, perf_counter() - arrived)

    async def _fail(self, exchange: Exchange, error: QserverError) -> None:
        if exchange.status == 0:
            await exchange.fail(error)
        else:  # the answer has begun, so all that is left is to break it off
            raise error

    def _request_id(self, headers: dict[bytes, bytes]) -> str:
        """The caller's own, if it sent a decent one; else the next of ours."""
        given = headers.get(b"x-request-id")
        if given is not None and given.isascii() and 0 < len(given) <= REQUEST_ID_LENGTH_MAX:
            text = given.decode()
            if text.isprintable():
                return text
        return self._next_id()

    def _next_id(self) -> str:
        return f"{self._prefix}{next(self._numbers):x}"

    def _hop(self, exchange: Exchange) -> None:
        """Forward from the alias to the data plane: the request goes on as if sent there."""
        send = exchange.send

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], VIA]
            await send(message)

        exchange.send = send_on

    def _cold(self, exchange: Exchange, place: Place) -> tuple[str, Handler]:
        """The name and handler of a request that is not for a hot route."""
        scope = exchange.scope
        method, path = scope["method"], scope["path"]
        if method == "OPTIONS":
            return "OPTIONS", self._options
        route = find_route(method, path)
        if route is None:
            return "unknown", _refuse(_no_route(method, path))
        query = scope.get("query_string", b"").decode("latin-1")
        target = quote(path)  # it came decoded, and goes into a header
        refusal = self._hosts.refusal(place, route, f"{target}?{query}" if query else target)
        if refusal is not None:
            return route.path, _refuse(refusal)

        async def handle(exchange: Exchange) -> None:
            grant = None
            if not route.anonymous:
                grant = await self._service.authenticate(exchange.headers)
                self._service.count_request(grant, exchange.headers_out, route.cost)
            if route.method != "GET":
                exchange.hand_back(await exchange.body())
            await self._routes(Admission(exchange, route, grant))

        return route.path, handle

    async def _options(self, exchange: Exchange) -> None:
        routes = routes_of(exchange.scope["path"])
        if not routes and exchange.scope["path"] != "*":
            raise _no_route("OPTIONS", exchange.scope["path"])
        exchange.headers_out += self._cors.preflight(exchange.headers.get(b"origin"))
        allowed = ", ".join([*sorted(routes), "OPTIONS"]).encode()
        exchange.status = 204
        headers = [(b"allow", allowed), *exchange.headers_out]
        await exchange.send({"type": "http.response.start", "status": 204, "headers": headers})
        await exchange.send({"type": "http.response.body", "body": b""})


def _repeated(scope: Scope, headers: dict[bytes, bytes]) -> QserverError | None:
    """What to say if a header that means one thing is there twice: which one counts is a guess,
    and a proxy in front may have guessed otherwise."""
    if len(headers) == len(scope["headers"]):
        return None
    names = [name for name, _ in scope["headers"]]
    for name in _ONCE:
        if names.count(name) > 1:
            return InvalidRequest(
                f"the header {name.decode()} is there more than once", hint="Send it once."
            )
    return None


def _says_gone(error: BaseException) -> bool:
    """Is it what a server raises out of `send` when nobody is there any more?"""
    if isinstance(error, BaseExceptionGroup):
        return all(_says_gone(each) for each in error.exceptions)
    return isinstance(error, OSError)


def _refuse(error: QserverError) -> Handler:
    async def handle(exchange: Exchange) -> None:
        raise error

    return handle


def _no_route(method: str, path: str) -> QserverError:
    routes = routes_of(path)
    if routes:
        allowed = tuple(sorted([*routes, "OPTIONS", *(["HEAD"] if "GET" in routes else [])]))
        return MethodNotAllowed(
            f"{path} does not take {method}",
            hint=f"It takes {', '.join(allowed)}.",
            allowed=allowed,
        )
    return NotFound(f"there is no route {path}", hint="GET / lists all routes.")
