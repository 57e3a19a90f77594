"""A small HTTP/1.1 server for Trio, made for many short requests. It serves an `Application`.

    await serve(application, ServerOptions(port=8000), stop=stop, report=print)

Reads and writes sockets directly, parses heads with llhttp (httptools), one task for each
connection and none for a request. It is strict: what another server could read in another way is
refused. HTTP/2 and WebSockets are not spoken; a proxy, or an ASGI server, is there for that.

    application  the interface of what is served    server      bind, start, accept, drain
    connection   requests one after the other       state       its states
    head, heads  bytes to checked requests          listening   sockets
    body         where a body ends                  context     what connections share
    incoming     a body that has yet to come        reactor     one wait for all connections
    answer       heads of answers                   transport   plain sockets
    headers      headers of answers                 tls         the same over TLS
    parts        answers that come in parts         refusal     answers of the server's own
"""

from __future__ import annotations

from qserver.http1.application import (
    PENDING,
    Answer,
    Application,
    Client,
    Endpoint,
    IncomingBody,
    Parts,
    Request,
    Respond,
    Response,
)
from qserver.http1.counters import Counters, ServerStatistics
from qserver.http1.errors import BodyRefused, ClientGone, InvalidAnswer
from qserver.http1.headers import Headers
from qserver.http1.options import ServerOptions
from qserver.http1.server import serve

__all__ = [
    "PENDING",
    "Answer",
    "Application",
    "BodyRefused",
    "Client",
    "ClientGone",
    "Counters",
    "Endpoint",
    "Headers",
    "IncomingBody",
    "InvalidAnswer",
    "Parts",
    "Request",
    "Respond",
    "Response",
    "ServerOptions",
    "ServerStatistics",
    "serve",
]
