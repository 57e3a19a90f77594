"""A small HTTP/1.1 server for Trio, made for many short requests. It serves any ASGI 3 application.

    await serve(application, ServerOptions(port=8000), stop=stop, report=print)

Reads and writes sockets directly, parses heads with llhttp (httptools), one task for each
connection and none for a request. It is strict: what another server could read in another way is
refused. HTTP/2 and WebSockets are not spoken; a proxy, or another ASGI server, is there for that.

    server      bind, start, accept, drain          connection  requests one after the other
    listening   sockets                             exchange    one request and its answer
    lifespan    the application's start and end     head, body  bytes to checked requests
    context     what connections share              answer      heads of answers
    transport   plain sockets       tls  the same over TLS
    refusal     answers of the server's own         options, counters, errors
"""

from __future__ import annotations

from qserver.web.http1.asgi import Application, Lane, LaneAnswer, LaneLater, Waits
from qserver.web.http1.counters import Counters, ServerStatistics
from qserver.web.http1.errors import ApplicationFailed, ClientGone, InvalidAnswer
from qserver.web.http1.options import ServerOptions
from qserver.web.http1.server import serve

__all__ = [
    "serve",
    "ServerOptions",
    "Counters",
    "ServerStatistics",
    "Application",
    "Lane",
    "LaneAnswer",
    "LaneLater",
    "Waits",
    "ApplicationFailed",
    "ClientGone",
    "InvalidAnswer",
]
