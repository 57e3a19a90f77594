"""Passes a call to the quart-trio app: the one place that builds ASGI requests for it.

These routes answer as a whole, so the bridge collects the answer, and it leaves like every other.
The bridge raises a handler's exception again, so that one place answers all errors.

The app is made by the first request that needs it. Its packages take a fifth of the memory of a
server without data, and one that only runs statements needs none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from qserver.control.records import Grant
from qserver.errors import QserverError, RequestTooLarge
from qserver.http1 import Headers, Response
from qserver.limits import ANONYMOUS_BODY_BYTES_MAX
from qserver.web.admission import Admission
from qserver.web.callers import address_of
from qserver.web.calls import CLIENT_LEFT, Endpoint, Facts, KeyedCall, Serving
from qserver.web.route import Route
from qserver.web.service.audit import PATH_LENGTH_MAX, id_in, wanted_of
from qserver.web.statuses import Pairs

if TYPE_CHECKING:
    from qserver.web.service.service import Service
    from qserver.web.service.together import Together

Message = MutableMapping[str, Any]

ADMISSION: Final = "qserver.admission"
"""The key of a request's admission in its ASGI scope."""
RULES: Final = "qserver.web.routes.rules"
"""The module of the app."""


class Collected(msgspec.Struct):
    status: int = 500
    headers: Pairs = []
    body: bytes = b""


class Bridge:
    def __init__(self, service: Service, together: Together) -> None:
        """`together` answers other processes, so it is there before the app is."""
        self._service = service
        self._together = together
        self._making = trio.Lock()
        self._app: Any = None  # its own types are narrower than ASGI's

    async def ask(self, admission: Admission, body: bytes) -> Collected:
        """Let the app answer an admitted request. Raises the handler's exception."""
        if self._app is None:
            async with self._making:
                if self._app is None:
                    self._app = await trio.to_thread.run_sync(self._new_app)
        messages: list[Message] = [{"type": "http.request", "body": body}]
        collected = Collected()

        async def receive() -> Message:
            return messages.pop() if messages else await trio.sleep_forever()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                collected.status = message["status"]
                collected.headers = [
                    (name, value)
                    for name, value in message["headers"]
                    if name.lower() != b"content-length"  # the server adds it
                ]
            else:
                collected.body += message.get("body", b"")

        await self._app(_scope(admission), receive, send)
        if admission.error is not None:
            raise admission.error
        return collected

    def _new_app(self) -> Any:
        """Run in a thread: it takes a large part of a second."""
        return import_module(RULES).make_app(self._service, self._together)


def _scope(admission: Admission) -> dict[str, Any]:
    request = admission.request
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "query_string": request.query,
        "root_path": "",
        "headers": list(request.headers),
        "client": admission.client,
        "server": None,
        ADMISSION: admission,
    }


class RouteCall(KeyedCall):
    endpoint: RouteEndpoint
    _wanted: Mapping[str, Any] = MappingProxyType({})
    """What of its body may be audited."""
    _refused_with: str | None = None

    @property
    def reads_body(self) -> bool:  # type: ignore[override]
        return self.endpoint.route.method != "GET"

    def serve(self) -> Serving:
        return self._serve_anybody() if self.endpoint.route.anonymous else super().serve()

    def _serve_anybody(self) -> Serving:
        body, most = self.body, ANONYMOUS_BODY_BYTES_MAX
        if not self.reads_body:
            body = b""
        elif not isinstance(body, bytes):
            body = yield partial(self.whole, body, most)
        elif len(body) > most:
            raise RequestTooLarge(f"the body is larger than {most} bytes")
        return (yield from self.run(body))

    def limit(self, grant: Grant) -> None:
        if not self.endpoint.route.for_statement_keys:
            super().limit(grant)

    def run(self, body: bytes) -> Serving:
        endpoint = self.endpoint
        if endpoint.audit is not None:
            endpoint.audit.check()
            self._wanted = wanted_of(body)
        grant = None if endpoint.route.anonymous else self.grant
        admission = Admission(
            endpoint.request,
            endpoint.headers,
            self.client,
            endpoint.route,
            grant,
            [],
            request_id=self.request_id,
        )
        collected: Collected = yield partial(endpoint.bridge.ask, admission, body)
        headers = self.headers((*collected.headers, *admission.headers_out))
        return self.answer(collected.status, headers, collected.body)

    # --- the audit log ---

    def answer(
        self, status: int, headers: Headers, body: bytes, seconds: float | None = None
    ) -> Response:
        self._note(status, body)
        return super().answer(status, headers, body, seconds)

    def count(self, status: int) -> None:
        """Count a request without an answer of its own: its client has left."""
        self._note(status, b"")
        super().count(status)

    def refuse(self, known: QserverError) -> Response:
        self._refused_with = known.code
        return super().refuse(known)

    def _note(self, status: int, body: bytes) -> None:
        """Write a line to the audit log, if the route changes something.

        What is refused to somebody without a key leaves none: anybody could fill the disk.
        """
        endpoint, grant = self.endpoint, getattr(self, "grant", None)
        done, path = 0 < status < 400, endpoint.request.path
        if endpoint.audit is None or (grant is None and not done):
            return
        endpoint.audit.write(
            "control",
            action=f"{endpoint.route.method} {endpoint.route.path}",
            path=None if path == endpoint.route.path else path[:PATH_LENGTH_MAX],
            status=status or None,
            outcome="unknown" if status == CLIENT_LEFT else "done" if done else "refused",
            code=self._refused_with,
            organization=None if grant is None else grant.organization,
            key_id=None if grant is None else grant.key_id,
            session_id=None if grant is None else grant.session_id,
            address=address_of(
                self.client, endpoint.headers, trusted=endpoint.service.settings.trust_forwarded
            ),
            request_id=self.request_id,
            wanted=self._wanted or None,
            id=id_in(body) if done else None,
        )


class RouteEndpoint(Endpoint):
    kind = RouteCall

    def __init__(self, facts: Facts, route: Route, bridge: Bridge) -> None:
        super().__init__(facts, route.path, compressible=route.is_compressible)
        self.audit = facts.service.audit if route.is_audited else None
        self.route = route
        self.bridge = bridge
        self.cost = route.cost
