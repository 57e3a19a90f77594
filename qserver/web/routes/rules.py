"""The quart-trio app of all routes but the hot ones, with rules from the catalogue.

The bridge imports this module when the first request needs it.

A handler is a method named after its route (`get_v1_keys`). It takes the admission and the
arguments in the path, and returns the answer's shape, or a pair of shape and status. Before a
request gets here, its route is found, its key is valid and its rate limit is checked. Parameters
that the route does not have are refused, and so is a body with fields where it takes none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from qserver.errors import InvalidRequest
from qserver.web import console
from qserver.web.admission import Admission
from qserver.web.bulk import bulk, copy_in
from qserver.web.description.catalogue import BODILESS, ROUTES
from qserver.web.route import Route
from qserver.web.routes.bodies import need_no_fields
from qserver.web.routes.bridge import ADMISSION
from qserver.web.routes.control import ControlRoutes
from qserver.web.routes.description import DescriptionRoutes
from qserver.web.routes.history import HistoryRoutes
from qserver.web.routes.insight import InsightRoutes
from qserver.web.routes.upkeep import UpkeepRoutes
from qserver.web.service.service import Service
from qserver.web.service.together import Together
from qserver.web.statements.json_values import encode_json
from qserver.web.statements.open_transactions import KINDS
from qserver.web.statements.statement_routes import STATEMENT_ROUTES
from qserver.web.streaming import change_feed, notifications

Handler = Callable[..., Awaitable[Any]]

ELSEWHERE = {*STATEMENT_ROUTES, bulk.PATH, copy_in.PATH, change_feed.PATH, notifications.PATH}
"""Paths that have endpoints of their own."""

TEXTS: Final = ("text/plain", "text/html")
"""Media types whose header says that they are UTF-8."""


def make_app(service: Service, together: Together) -> QuartTrio:
    app = QuartTrio("qserver", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = None  # the bridge gets a body that is read already
    app.config["BODY_TIMEOUT"] = app.config["RESPONSE_TIMEOUT"] = None
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    handlers = (
        ControlRoutes(service),
        HistoryRoutes(service),
        InsightRoutes(service),
        UpkeepRoutes(service, together),
        DescriptionRoutes(service),
    )
    for route in ROUTES:
        place = (route.method, route.path)
        elsewhere = route.path in ELSEWHERE or route.path.startswith(console.PATH)
        if not elsewhere and not route.is_file and place not in KINDS:
            rule = route.path.replace("{", "<").replace("}", ">")
            view = _view(route, _handler(handlers, route))
            app.add_url_rule(rule, endpoint=route.name, view_func=view, methods=[route.method])

    @app.errorhandler(Exception)
    async def failed(error: Exception) -> Response:
        _admission().error = _as_ours(error)
        return Response(b"", 500)

    return app


def _handler(handlers: tuple[object, ...], route: Route) -> Handler:
    found = [getattr(each, route.name) for each in handlers if hasattr(each, route.name)]
    assert len(found) == 1, f"{route.method} {route.path} has {len(found)} handlers"
    handler: Handler = found[0]
    return handler


def _view(route: Route, handler: Handler) -> Callable[..., Awaitable[Response]]:
    async def view(**arguments: str) -> Response:
        admission = _admission()
        if route.scope is not None:
            admission.need(route.scope)
        if not route.anonymous:
            admission.queries()
        if route.request is None and route.method not in BODILESS:
            await need_no_fields(admission)
        answer = await handler(admission, **arguments)
        status = route.status
        if isinstance(answer, tuple):
            answer, status = answer
        body = answer if isinstance(answer, bytes) else encode_json(answer)
        media = f"{route.media}; charset=utf-8" if route.media in TEXTS else route.media
        response = Response(b"" if answer is None else body, status, content_type=media)
        if answer is None:
            del response.headers["content-type"]
        return response

    return view


def _admission() -> Admission:
    scope: dict[str, Any] = dict(request.scope)
    found: Admission = scope[ADMISSION]
    return found


def _as_ours(error: Exception) -> Exception:
    if isinstance(error, HTTPException) and error.code is not None and error.code < 500:
        return InvalidRequest(error.description or error.name)
    return error
