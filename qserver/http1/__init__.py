"""A small HTTP/1.1 server for Trio, built for many short requests. It serves an `Application`.

    await serve(application, ServerOptions(port=8000), stop=stop, report=print)

The server reads and writes sockets directly and parses heads with llhttp (httptools). It runs one
task per connection and none per request. It is strict: it refuses every request that another server
could read differently. It speaks neither HTTP/2 nor WebSockets: put a proxy in front, or use an
ASGI server.

    application  the interface to the application   server      bind, start, accept, drain
    connection   requests one after the other       state       its states
    head, heads  bytes to checked requests          listening   sockets
    body         where a body ends                  context     state shared by connections
    incoming     a body that is still arriving      reactor     one wait for all connections
    answer       heads of answers                   transport   plain sockets
    headers      headers of answers                 tls         the same over TLS
    parts        streamed answers                   refusal     the server's own answers
    addresses    whose connection makes room        moving      connections to other processes
"""

from __future__ import annotations

from qserver.http1.addresses import network_of
from qserver.http1.application import (
    PATH,
    PENDING,
    Answer,
    Application,
    Client,
    Elsewhere,
    Endpoint,
    Hold,
    IncomingBody,
    Parts,
    Request,
    Respond,
    Response,
    Values,
    Varying,
    hold_anything,
    request_id_of,
)
from qserver.http1.counters import Counters, ServerStatistics
from qserver.http1.errors import AnswerCut, BodyRefused, ClientGone, InvalidAnswer
from qserver.http1.headers import Headers
from qserver.http1.listening import bind_now, close_all
from qserver.http1.moving import Adopt, Moved, Mover
from qserver.http1.options import ServerOptions
from qserver.http1.refusal import Refusal
from qserver.http1.server import serve

__all__ = [
    "PATH",
    "PENDING",
    "Adopt",
    "Answer",
    "AnswerCut",
    "Application",
    "BodyRefused",
    "Client",
    "ClientGone",
    "Counters",
    "Elsewhere",
    "Endpoint",
    "Headers",
    "Hold",
    "IncomingBody",
    "InvalidAnswer",
    "Moved",
    "Mover",
    "Parts",
    "Refusal",
    "Request",
    "Respond",
    "Response",
    "ServerOptions",
    "ServerStatistics",
    "Values",
    "Varying",
    "hold_anything",
    "bind_now",
    "close_all",
    "network_of",
    "request_id_of",
    "serve",
]
