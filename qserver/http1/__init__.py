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

from qserver.http1.addresses import network_of as network_of
from qserver.http1.application import (
    PATH as PATH,
    PENDING as PENDING,
    Answer as Answer,
    Application as Application,
    Client as Client,
    Elsewhere as Elsewhere,
    Endpoint as Endpoint,
    Hold as Hold,
    IncomingBody as IncomingBody,
    Parts as Parts,
    Request as Request,
    Respond as Respond,
    Response as Response,
    Values as Values,
    Varying as Varying,
    hold_anything as hold_anything,
    request_id_of as request_id_of,
)
from qserver.http1.counters import Counters as Counters, ServerStatistics as ServerStatistics
from qserver.http1.errors import (
    AnswerCut as AnswerCut,
    BodyRefused as BodyRefused,
    ClientGone as ClientGone,
    InvalidAnswer as InvalidAnswer,
)
from qserver.http1.headers import Headers as Headers
from qserver.http1.listening import bind_now as bind_now, close_all as close_all
from qserver.http1.moving import Adopt as Adopt, Moved as Moved, Mover as Mover
from qserver.http1.options import ServerOptions as ServerOptions
from qserver.http1.refusal import Refusal as Refusal
from qserver.http1.server import serve as serve
